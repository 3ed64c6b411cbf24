#include "config.h"

#include "cli/plain.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/readline.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/plain_impl.h"
#include "tui/completion.h"
#include "tui/history_file.h"
#include "tui/signals.h"

static const int64_t TWICE_NS = 1500000000; /* Ctrl-C again within this leaves */
enum { LINE_MAX_BYTES = 1 << 20, RECAP_TURNS = 2 };

/* Readline's callbacks know no context. */
static struct plain p;

/* ---- output --------------------------------------------------------------------------------- */

/* A line of ours; a prompt that stands there is put up again behind it. */
static void note(const char *text)
{
    bool shown = p.shown;

    p.shown = false;
    plain_start_line(&p, p.notes);
    fputs("* ", p.notes);
    plain_print(&p, p.notes, text, strlen(text));
    fputc('\n', p.notes);
    *plain_at_start(&p, p.notes) = true;
    if (shown) {
        p.shown = true;
        rl_forced_update_display();
        *plain_at_start(&p, p.notes) = false;
    }
}

static void note_message(void)
{
    if (strcmp(p.message, p.app->message) == 0)
        return;
    snprintf(p.message, sizeof p.message, "%s", p.app->message);
    if (p.message[0] != '\0')
        note(p.message);
}

static void print_rest(void)
{
    if (p.turn == NULL)
        return;
    plain_print(&p, stdout, str_text(&p.turn->text) + p.printed, p.turn->text.len - p.printed);
    p.printed = p.turn->text.len;
}

/* What the answer has got since; nothing while a line is being typed. */
static void print_answer(void)
{
    if (p.shown)
        return;
    print_rest();
    if (p.app->answer == NULL || p.app->answer == p.turn)
        return;
    if (p.turn != NULL)
        plain_start_line(&p, stdout);
    p.turn = p.app->answer;
    p.printed = 0;
    print_rest();
}

/* A conversation that was reopened: how it ended, once. */
static void recapitulate(void)
{
    const struct conversation *c = p.app->conversation;
    size_t n = conversation_depth(c), from = n > RECAP_TURNS ? n - RECAP_TURNS : 0;

    if (c == p.conversation)
        return;
    p.conversation = c;
    if (n == 0)
        return;
    if (from > 0)
        fprintf(p.notes, from == 1 ? "* 1 earlier turn\n" : "* %zu earlier turns\n", from);
    for (size_t i = from; i < n; i++) {
        const struct turn *t = conversation_at(c, i);
        if (t->role == ROLE_USER)
            fputs("> ", p.notes);
        plain_print(&p, p.notes, str_text(&t->text), t->text.len);
        plain_start_line(&p, p.notes);
    }
}

/* ---- the prompt ----------------------------------------------------------------------------- */

static int next_byte(FILE *stream)
{
    (void)stream;
    return plain_tty_read_byte(&p);
}

static void redisplay(void)
{
    if (p.shown)
        rl_redisplay();
}

static void show_prompt(void)
{
    if (p.shown || !p.by_hand)
        return;
    fflush(stdout);
    plain_start_line(&p, p.notes);
    if (app_is_answering(p.app) && !p.app->control.paused) {
        p.held = true;
        app_set_paused(p.app, true);
    }
    p.shown = true;
    rl_set_prompt(p.typed.len > 0 ? "... " : "> ");
    rl_on_new_line();
    rl_forced_update_display();
    *plain_at_start(&p, p.notes) = false;
}

static void release_hold(void)
{
    if (p.held)
        app_set_paused(p.app, false);
    p.held = false;
}

static void take_line(char *line)
{
    p.shown = false;
    if (line == NULL)
        p.at_end = true;
    else
        *plain_at_start(&p, p.notes) = true; /* readline has ended the line */
    free(p.line);
    p.line = line;
}

/* Is it about the pause itself? Then the hold must not undo what it says. */
static bool sets_pause(const char *line)
{
    char name[16];

    return sscanf(line, "/set %15s", name) == 1 && strncmp(name, "pause", 5) == 0;
}

/* A whole line. The hold ends when it has acted: the next token is drawn with what it set. */
static void enter(const char *line)
{
    bool about_pause = sets_pause(line);

    if (about_pause)
        release_hold();
    app_enter(p.app, line);
    if (!about_pause)
        release_hold();
    print_answer();
}

/* A backslash at the end: the text goes on in the next line. */
static void take_typed(void)
{
    char *line = p.line;
    size_t len = strlen(line);

    p.line = NULL;
    if (len > 0 && line[len - 1] == '\\') {
        str_add(&p.typed, line, len - 1);
        str_add_char(&p.typed, '\n');
        free(line);
        return;
    }
    str_add(&p.typed, line, len);
    free(line);
    char *text = mem_strdup(str_text(&p.typed));
    str_clear(&p.typed);
    history_file_add(text);
    enter(text);
    free(text);
}

/* ---- input ---------------------------------------------------------------------------------- */

static void read_key(void)
{
    show_prompt();
    rl_callback_read_char();
    if (p.line != NULL)
        take_typed();
    if (p.at_end) {
        struct termios modes;
        if (tcgetattr(STDIN_FILENO, &modes) != 0) /* no Ctrl-D: the terminal is gone */
            p.status = 128 + SIGHUP;
        plain_start_line(&p, p.notes);
        p.app->quit = true;
    }
}

/* Standard input that is a pipe or a file: read while there is room, entered one line after
 * another. */
static void read_stream(void)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

    if (n > 0)
        str_add(&p.typed, bytes, (size_t)n);
    else if (n == 0 || errno != EINTR)
        p.at_end = true;
}

/* The next line of a stream, when the answer to the one before has ended. */
static void enter_from_stream(void)
{
    while (!app_is_answering(p.app) && !p.app->quit) {
        const char *end = memchr(str_text(&p.typed), '\n', p.typed.len);
        size_t len = end != NULL ? (size_t)(end - p.typed.data) : p.typed.len;
        if (end == NULL && !(p.at_end && len > 0) && len < LINE_MAX_BYTES)
            break;
        char *line = mem_strndup(p.typed.data, len);
        str_erase(&p.typed, 0, len + (end != NULL));
        if (len > 0 && line[len - 1] == '\r')
            line[len - 1] = '\0';
        enter(line);
        free(line);
    }
    if (p.app->state == APP_FAILED) {
        p.status = EXIT_FAILURE;
        p.app->quit = true;
    }
    if (p.at_end && p.typed.len == 0 && !app_is_answering(p.app))
        p.app->quit = true;
    /* Not polled while there are lines to enter: they wait, and so may whoever writes them. */
    p.app->view_fd =
        p.at_end || memchr(str_text(&p.typed), '\n', p.typed.len) != NULL ? -1 : STDIN_FILENO;
}

/* ---- signals -------------------------------------------------------------------------------- */

static void empty_line(void)
{
    rl_callback_sigcleanup();
    rl_free_line_state();
    rl_replace_line("", 1);
    str_clear(&p.typed);
    app_cancel_edit(p.app);
    p.shown = false;
    plain_start_line(&p, p.notes);
}

static void on_interrupt(void)
{
    bool typed = p.by_hand && (rl_end > 0 || p.typed.len > 0);
    int64_t now_ns = clock_now_ns();

    if (!p.by_hand) {
        p.status = 128 + SIGINT;
        p.app->quit = true;
    } else if (app_is_answering(p.app) || typed) {
        if (p.shown)
            empty_line();
        release_hold();
        app_stop(p.app);
    } else if (p.interrupted_ns != 0 && now_ns - p.interrupted_ns < TWICE_NS) {
        plain_start_line(&p, p.notes);
        p.app->quit = true;
    } else {
        p.interrupted_ns = now_ns;
        note("Ctrl-C again, or Ctrl-D, leaves");
    }
}

/* Another program had the terminal: our modes again, and the prompt. */
static void take_terminal_again(void)
{
    if (!p.by_hand)
        return;
    plain_tty_take(&p);
    if (p.shown) {
        rl_on_new_line();
        rl_forced_update_display();
    }
}

bool plain_heed_signals(struct plain *plain)
{
    struct signals_seen seen;

    signals_take(&seen);
    if (seen.ending != 0) {
        plain->status = 128 + seen.ending;
        plain->app->quit = true;
    }
    if (seen.interrupted)
        on_interrupt();
    if (seen.resized && plain->by_hand)
        rl_resize_terminal();
    if (seen.stopping) {
        if (plain->by_hand)
            plain_tty_lend(plain);
        signals_stop_job();
    }
    if (seen.stopping || seen.continued)
        take_terminal_again();
    return seen.interrupted || plain->app->quit;
}

static void take_signals(void *view)
{
    plain_heed_signals(view);
}

/* A Ctrl-C that came before these keys counts before them. */
static void input_ready(void *view)
{
    take_signals(view);
    if (p.app->quit)
        return;
    if (p.by_hand)
        read_key();
    else
        read_stream();
}

/* ---- the view ------------------------------------------------------------------------------- */

void plain_changed(void *view, unsigned what)
{
    (void)view;
    recapitulate();
    if (what & CHANGE_TRANSCRIPT)
        print_answer();
    if (what & CHANGE_STATUS)
        note_message();
}

/* Between two rounds of the loop: the end of an answer, the prompt, the next line. */
static int64_t tick(void *view, int64_t now_ns)
{
    (void)view;
    (void)now_ns;
    if (p.turn != NULL && p.app->answer != p.turn && !p.shown) {
        print_answer();
        plain_start_line(&p, stdout);
        p.turn = p.app->answer;
        p.printed = 0;
    }
    if (p.by_hand && !app_is_answering(p.app))
        show_prompt();
    else if (!p.by_hand)
        enter_from_stream();
    fflush(stdout);
    fflush(p.notes);
    return p.app->quit ? 0 : INT64_MAX;
}

/* ---- life cycle ----------------------------------------------------------------------------- */

/* ^X ^E: the line through the user's editor. */
static int edit_line(int count, int key)
{
    struct error err;
    char *text;

    (void)count;
    (void)key;
    if (plain_edit_text(&p, rl_line_buffer, &text, &err)) {
        plain_set_input(&p, text);
        free(text);
    } else {
        note(err.text);
    }
    return 0;
}

/* Readline on a terminal of which nothing is assumed: it then prints text, blanks, returns and
 * backspaces. */
static void open_readline(void)
{
    static const char *const variables[][2] = {
        {"enable-bracketed-paste", "off"},    {"enable-active-region", "off"},
        {"show-mode-in-prompt", "off"},       {"colored-stats", "off"},
        {"colored-completion-prefix", "off"}, {"bell-style", "none"},
    };

    rl_readline_name = "fader";
    rl_terminal_name = "dumb";
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    rl_instream = stdin;
    rl_outstream = p.notes;
    rl_getc_function = next_byte;
    rl_redisplay_function = redisplay;
    completion_set_up(p.app);
    history_file_open(!p.app->options.no_save);
    rl_initialize(); /* INPUTRC is read here; what it may not change comes after */
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        rl_variable_bind(variables[i][0], variables[i][1]);
    rl_bind_keyseq("\\C-x\\C-e", edit_line);
    plain_tty_open(&p);
    rl_callback_handler_install("> ", take_line);
    plain_tty_adopt(&p);
}

static void close_readline(void)
{
    rl_callback_handler_remove();
    plain_tty_lend(&p);
    history_file_close();
}

static void attach(struct app *app)
{
    app->ops = &plain_view_ops;
    app->ops_ctx = &p;
    app->view_fd = STDIN_FILENO;
    app->input_ready = input_ready;
    app->signal_fd = signals_fd();
    app->signal_ready = take_signals;
    app->tick = tick;
    app_set_candidates(app, 0);
}

int plain_run(struct app *app)
{
    struct error err;

    memset(&p, 0, sizeof p);
    p.app = app;
    p.starts_line = p.notes_start_line = true;
    p.by_hand = isatty(STDIN_FILENO);
    p.notes = isatty(STDOUT_FILENO) ? stdout : stderr;
    if (!signals_open(&err)) {
        fprintf(stderr, "fader: %s\n", err.text);
        return EXIT_FAILURE;
    }
    attach(app);
    recapitulate();
    if (p.by_hand)
        open_readline();
    app_run(app);
    print_answer();
    if (p.turn != NULL)
        plain_start_line(&p, stdout);
    fflush(stdout);
    if (p.by_hand)
        close_readline();
    signals_set_rescue(NULL, -1, NULL);
    signals_close();
    str_done(&p.typed);
    free(p.line);
    app->ops = NULL;
    return p.status;
}
