#include "config.h"

#include "tui/terminal.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "tui/base64.h"
#include "tui/signals.h"

#define MS ((int64_t)1000000)

static const int64_t REPLY_NS = 1000 * MS; /* how long an ESC may be the beginning of a reply */
enum { IN_FD = STDIN_FILENO, OUT_FD = STDOUT_FILENO, COPY_MAX = 100000 };

static const char PASTE_ON[] = "\033[?2004h", PASTE_OFF[] = "\033[?2004l";
static const char MOUSE_ON[] = "\033[?1002h\033[?1006h", MOUSE_OFF[] = "\033[?1006l\033[?1002l";
static const char SYNC_ON[] = "\033[?2026h", SYNC_OFF[] = "\033[?2026l";
static const char ASK_SYNC[] = "\033[?2026$p";
/* Not on the first row: there the reply would read like F3 with a modifier. */
static const char ASK_GLYPH[] = "\033[2;1H\342\227\217\033[6n";

static struct {
    bool open, lent;
    bool mouse;    /* wanted */
    bool extended; /* the terminal may be asked things (not the Linux console) */
    bool sync;     /* it knows synchronised output */
    bool glyph_asked;
    int glyph_columns;
    SCREEN *screen;
    struct termios shell, ours;
    int shell_flags; /* of OUT_FD */
    char reset[512]; /* gives the screen back; for the end by a crash */
    struct decoder decoder;
    bool resized, resumed;
    bool hung_up; /* nothing can be read any more */
    int ending;   /* the signal that asked for it */
    bool ended;   /* TERM_QUIT was told */
} term;

/* ---- output --------------------------------------------------------------------------------- */

/* Past curses, whose buffer is empty between frames. That a terminal is gone shows in reading. */
static void emit(const char *bytes, size_t len)
{
    file_write_all(OUT_FD, bytes, len);
}

static void emit_text(const char *text)
{
    emit(text, strlen(text));
}

void terminal_frame_begin(void)
{
    if (term.sync)
        emit_text(SYNC_ON);
}

void terminal_frame_end(void)
{
    if (term.sync)
        emit_text(SYNC_OFF);
}

void terminal_beep(void)
{
    if (term.open && !term.lent)
        emit_text("\a");
}

bool terminal_copy(const char *text, size_t len, struct error *err)
{
    if (!term.open || term.lent)
        return error_set(err, "copy: there is no terminal to send it to");
    if (len > COPY_MAX)
        return error_set(err,
                         "copy: %zu bytes are more than terminals take (%d); /export writes a file",
                         len, (int)COPY_MAX);
    char *code = base64_encode(text, len);
    emit_text("\033]52;c;");
    emit_text(code);
    emit_text("\a");
    free(code);
    return true;
}

/* ---- modes ---------------------------------------------------------------------------------- */

static void modes_on(void)
{
    emit_text(PASTE_ON);
    if (term.mouse)
        emit_text(MOUSE_ON);
}

static void modes_off(void)
{
    if (term.sync)
        emit_text(SYNC_OFF);
    emit_text(MOUSE_OFF);
    emit_text(PASTE_OFF);
}

void terminal_set_mouse(bool on)
{
    if (term.open && !term.lent && on != term.mouse)
        emit_text(on ? MOUSE_ON : MOUSE_OFF);
    term.mouse = on;
}

static void set_termios(const struct termios *t, int when)
{
    while (tcsetattr(IN_FD, when, t) != 0 && errno == EINTR)
        ;
}

/* Appends a terminfo string without its padding ("$<5>"). */
static void add_capability(char *out, size_t size, const char *name)
{
    const char *s = tigetstr(name);
    size_t n = strlen(out);

    if (s == NULL || s == (const char *)-1)
        return;
    while (*s != '\0' && n + 1 < size) {
        if (s[0] == '$' && s[1] == '<' && strchr(s, '>') != NULL) {
            s = strchr(s, '>') + 1;
            continue;
        }
        out[n++] = *s++;
    }
    out[n] = '\0';
}

static void prepare_reset(void)
{
    char *r = term.reset;
    size_t size = sizeof term.reset;
    const char *leave = tigetstr("rmcup");

    r[0] = '\0';
    if (term.extended)
        strcat(r, SYNC_OFF);
    strcat(r, MOUSE_OFF);
    strcat(r, PASTE_OFF);
    add_capability(r, size, "sgr0");
    add_capability(r, size, "op");
    add_capability(r, size, "cnorm");
    if (leave != NULL && leave != (const char *)-1)
        add_capability(r, size, "rmcup");
    else
        strncat(r, "\r\n", size - strlen(r) - 1);
}

/* ---- life cycle ----------------------------------------------------------------------------- */

bool terminal_is_usable(void)
{
    const char *name = getenv("TERM");
    int problem;

    if (!isatty(IN_FD) || !isatty(OUT_FD) || name == NULL || *name == '\0' ||
        strcmp(name, "dumb") == 0)
        return false;
    if (setupterm(NULL, OUT_FD, &problem) != OK)
        return false;
    const char *move = tigetstr("cup"), *clear = tigetstr("clear");
    bool usable =
        move != NULL && move != (const char *)-1 && clear != NULL && clear != (const char *)-1;
    del_curterm(cur_term);
    return usable;
}

/* A tty whose description some other program left non-blocking would lose half of a frame. */
static void make_blocking(void)
{
    term.shell_flags = fcntl(OUT_FD, F_GETFL);
    if (term.shell_flags >= 0 && (term.shell_flags & O_NONBLOCK))
        fcntl(OUT_FD, F_SETFL, term.shell_flags & ~O_NONBLOCK);
}

static void restore_blocking(void)
{
    if (term.shell_flags >= 0 && (term.shell_flags & O_NONBLOCK))
        fcntl(OUT_FD, F_SETFL, term.shell_flags);
}

/* Every byte as it comes, nothing echoed, no keyboard signals, no flow control. */
static void set_up_curses(void)
{
    raw();
    noecho();
    nonl();
    typeahead(-1); /* a frame is drawn whole, whatever is being typed */
    intrflush(stdscr, FALSE);
    tcgetattr(IN_FD, &term.ours);
    term.ours.c_iflag &=
        ~(tcflag_t)(IXON | IXOFF | ICRNL | INLCR | IGNCR | ISTRIP | BRKINT | PARMRK);
    term.ours.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    term.ours.c_cc[VMIN] = 1;
    term.ours.c_cc[VTIME] = 0;
    set_termios(&term.ours, TCSADRAIN);
    def_prog_mode();
    def_shell_mode(); /* endwin is to touch the screen only: see give_back */
}

/* What the terminal can do: the replies come when they come, and no frame waits for them. The probe
 * is wiped by the first frame. */
static void ask_terminal(void)
{
    if (!term.extended)
        return;
    emit_text(ASK_SYNC);
    term.glyph_asked = MB_CUR_MAX > 1;
    if (term.glyph_asked)
        emit_text(ASK_GLYPH);
    clearok(curscr, TRUE);
    decoder_await_reply(&term.decoder, clock_now_ns() + REPLY_NS);
}

static void start_decoder(void)
{
    const char *ssh = getenv("SSH_TTY");
    struct decoder_options options = {
        .escape_ns = (ssh != NULL && *ssh != '\0' ? 100 : 25) * MS,
        .backspace_is_h = term.shell.c_cc[VERASE] == '\b',
    };

    decoder_init(&term.decoder, &options);
}

/* What was typed before the tty was raw: there an Enter had become a newline, and a Ctrl-D a mark
 * that reads as a NUL now. */
static void take_typed_ahead(void)
{
    struct pollfd p = {.fd = IN_FD, .events = POLLIN};
    char bytes[4096];

    if (!(term.shell.c_lflag & ICANON) || poll(&p, 1, 0) <= 0)
        return;
    ssize_t n = read(IN_FD, bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' && (term.shell.c_iflag & ICRNL))
            bytes[i] = '\r';
        else if (bytes[i] == '\0')
            bytes[i] = (char)term.shell.c_cc[VEOF];
    }
    if (n > 0)
        decoder_feed(&term.decoder, bytes, (size_t)n, clock_now_ns());
}

bool terminal_open(bool mouse, struct error *err)
{
    static bool at_exit;
    const char *name = getenv("TERM");

    memset(&term, 0, sizeof term);
    if (tcgetattr(IN_FD, &term.shell) != 0)
        return error_set_errno(err, errno, "terminal");
    if (!signals_open(err))
        return false;
    make_blocking();
    use_tioctl(TRUE);
    term.screen = newterm(NULL, stdout, stdin);
    if (term.screen == NULL) {
        restore_blocking();
        signals_close();
        return error_set(err, "terminal: nothing is known of TERM=%s", name != NULL ? name : "");
    }
    term.open = true;
    term.mouse = mouse;
    term.extended = name != NULL && strncmp(name, "linux", 5) != 0;
    prepare_reset();
    signals_set_rescue(term.reset, OUT_FD, &term.shell);
    mem_set_fatal_hook(signals_rescue);
    if (!at_exit)
        at_exit = atexit(signals_rescue) == 0;
    start_decoder();
    set_up_curses();
    take_typed_ahead();
    modes_on();
    refresh(); /* curses enters the alternate screen with its first frame: an empty one */
    ask_terminal();
    return true;
}

/* The screen and the tty, as the shell had them. What was typed ahead, and replies that come late,
 * are dropped: the shell would take them for commands. */
static void give_back(void)
{
    modes_off();
    endwin();
    set_termios(&term.shell, TCSAFLUSH);
    restore_blocking();
}

static void take_again(void)
{
    struct termios theirs;
    bool were_ours = tcgetattr(IN_FD, &theirs) == 0 && !(theirs.c_lflag & ICANON);

    make_blocking();
    set_termios(&term.ours, TCSADRAIN);
    if (!were_ours)
        take_typed_ahead();
    modes_on();
    signals_set_rescue(term.reset, OUT_FD, &term.shell);
    term.resized = true; /* it may have another size, and nothing on it is ours */
    clearok(curscr, TRUE);
}

void terminal_close(void)
{
    if (!term.open)
        return;
    if (!term.lent)
        give_back();
    signals_set_rescue(NULL, -1, NULL);
    mem_set_fatal_hook(NULL);
    signals_close();
    delscreen(term.screen);
    decoder_done(&term.decoder);
    term.open = false;
}

/* Of the signals that were taken, those that ask for the end. */
static void note_ending(const struct signals_seen *seen)
{
    if (seen->interrupted)
        term.ending = SIGINT;
    if (seen->ending != 0)
        term.ending = seen->ending;
}

void terminal_suspend(void)
{
    if (!term.open || term.lent)
        return;
    give_back();
    signals_set_rescue(NULL, -1, NULL);
    signals_lend(true);
    term.lent = true;
}

void terminal_resume(void)
{
    struct signals_seen seen;

    if (!term.open || !term.lent)
        return;
    term.lent = false;
    signals_lend(false);
    signals_take(&seen); /* what the other program's stops and continuations left */
    note_ending(&seen);
    take_again();
}

/* While another job has the terminal it is not touched: this stops us until we are in front. */
static void wait_for_foreground(void)
{
    pid_t front = tcgetpgrp(IN_FD);

    if (front > 0 && front != getpgrp())
        kill(0, SIGTTOU);
}

void terminal_stop(void)
{
    struct signals_seen seen;

    if (!term.open || term.lent)
        return;
    give_back();
    signals_set_rescue(NULL, -1, NULL);
    signals_stop_job();
    wait_for_foreground();
    signals_take(&seen); /* the SIGCONT that ended that wait */
    note_ending(&seen);
    take_again();
    term.resumed = true;
}

/* After a SIGSTOP nobody gave the terminal back, and the shell has used it since. */
static void go_on(void)
{
    struct signals_seen seen;

    wait_for_foreground();
    signals_take(&seen); /* the SIGCONT that ended that wait */
    note_ending(&seen);
    term.resumed = true;
    endwin();
    take_again();
}

/* ---- size ----------------------------------------------------------------------------------- */

void terminal_size(int *rows, int *cols)
{
    getmaxyx(stdscr, *rows, *cols);
}

static void resize(void)
{
    struct winsize size;

    if (ioctl(OUT_FD, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        return;
    if (size.ws_row != LINES || size.ws_col != COLS)
        resizeterm(size.ws_row, size.ws_col);
}

int terminal_glyph_columns(void)
{
    return term.glyph_columns;
}

/* ---- events --------------------------------------------------------------------------------- */

int terminal_fd(void)
{
    return IN_FD;
}

int terminal_signal_fd(void)
{
    return signals_fd();
}

int64_t terminal_deadline(void)
{
    return term.open ? decoder_deadline(&term.decoder) : INT64_MAX;
}

/* Reads once what is there; a terminal that is gone is noted. */
static void read_tty(int64_t now_ns)
{
    struct pollfd p = {.fd = IN_FD, .events = POLLIN};
    char bytes[4096];

    if (term.hung_up || poll(&p, 1, 0) <= 0)
        return;
    ssize_t n = read(IN_FD, bytes, sizeof bytes);
    if (n > 0)
        decoder_feed(&term.decoder, bytes, (size_t)n, now_ns);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        term.hung_up = true;
}

static void take_signals(void)
{
    struct signals_seen seen;

    signals_take(&seen);
    note_ending(&seen);
    term.resized |= seen.resized;
    if (term.lent)
        return;
    if (seen.stopping)
        terminal_stop();
    else if (seen.continued)
        go_on();
}

static bool take_flag(bool *flag)
{
    bool was = *flag;

    *flag = false;
    return was;
}

/* Events of the terminal itself, the most urgent first. */
static bool next_own_event(struct term_event *out)
{
    *out = (struct term_event){0};
    if (term.ending != 0 || term.hung_up) {
        out->kind = TERM_QUIT;
        out->status = term.ending != 0 ? 128 + term.ending : 128 + SIGHUP;
        term.ended = true;
        return true;
    }
    if (take_flag(&term.resized)) {
        resize();
        out->kind = term.resumed ? TERM_RESUMED : TERM_RESIZE;
        term.resumed = false;
        return true;
    }
    return false;
}

static void note_reply(const struct term_event *event)
{
    if (event->reply == REPLY_SYNC)
        term.sync = event->reply_a >= 1 && event->reply_a <= 3;
    else if (event->reply == REPLY_CURSOR && take_flag(&term.glyph_asked))
        term.glyph_columns = event->reply_b - 1;
}

bool terminal_next_event(struct term_event *out)
{
    int64_t now_ns = clock_now_ns();

    if (!term.open || term.ended)
        return false;
    take_signals();
    if (next_own_event(out))
        return true;
    if (!decoder_next(&term.decoder, out)) {
        read_tty(now_ns);
        decoder_expire(&term.decoder, now_ns);
        if (!decoder_next(&term.decoder, out))
            return term.hung_up && next_own_event(out);
    }
    if (out->kind == TERM_REPLY)
        note_reply(out);
    return true;
}
