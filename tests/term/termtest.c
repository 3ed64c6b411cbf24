/* Runs test scripts against whole programs in a terminal. TAP on standard output, one line for each
 * `test` in the scripts named on the command line; the commands are in the table at the end. Every wait is for a
 * condition and every expectation is one; FADER_TEST_TIMEOUT (seconds, 30) is how long it may take to come
 * true. A failure shows the screen. FADER_UPDATE_GOLDEN=1 writes goldens instead of comparing them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "job.h"
#include "screen.h"
#include "script.h"

enum { DEFAULT_ROWS = 24, DEFAULT_COLS = 80 };
enum replies { REPLIES_ON, REPLIES_OFF, REPLIES_HELD };

static struct test {
    const char *file;
    struct script_line *line;    /* the command under way */
    struct job job;
    struct screen screen;
    bool started;
    int rows, cols;
    char *input, *output;        /* files instead of the terminal */
    enum replies replies;
    char dir[64];
    bool masked_rows[256];       /* rows that no golden tells of */
    bool failed, skipped;
    const char *why_skipped;
} t;

static char model_path[4096];
static int64_t timeout_ns;

/* ---- diagnostics ---------------------------------------------------------------------------- */

static void print_comment(const char *text)
{
    for (const char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        printf("#   %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fail(const char *format, ...)
{
    struct str out = STR_INIT;
    va_list args;

    t.failed = true;
    va_start(args, format);
    str_add_vformat(&out, format, args);
    va_end(args);
    printf("# %s:%d: %s: %s\n", t.file, t.line->number, t.line->words[0], str_text(&out));
    str_clear(&out);
    if (t.started) {
        screen_dump(&t.screen, false, NULL, &out);
        while (out.len > 2 && memcmp(out.data + out.len - 3, "\n|\n", 3) == 0)
            str_truncate(&out, out.len - 2);
        print_comment(str_text(&out));
    }
    str_done(&out);
}

/* ---- running -------------------------------------------------------------------------------- */

/* Takes in what came within timeout_ms, and answers for the terminal. */
static void pump(int timeout_ms)
{
    char bytes[65536];
    size_t n = job_pump(&t.job, bytes, sizeof bytes, timeout_ms);

    if (n > 0)
        screen_feed(&t.screen, bytes, n);
    if (t.replies == REPLIES_ON)
        job_write(&t.job, str_text(&t.screen.replies), t.screen.replies.len);
    if (t.replies != REPLIES_HELD)
        str_clear(&t.screen.replies);
}

/* Is it true, or becomes it so in time? */
static bool await(bool (*is_true)(void))
{
    int64_t end_ns = clock_now_ns() + timeout_ns;

    while (!is_true()) {
        if (clock_now_ns() > end_ns)
            return is_true();
        pump(50);
    }
    return true;
}

static bool has_started(void)
{
    return t.job.program > 0;
}

static void stop_program(void)
{
    if (t.started) {
        job_end(&t.job);
        screen_done(&t.screen);
    }
    t.started = false;
}

static void start(char **argv)
{
    stop_program();
    screen_init(&t.screen, t.rows, t.cols);
    job_start(&t.job, argv, t.rows, t.cols, t.input, t.output);
    t.started = true;
    if (!await(has_started))
        fail("it did not start");
}

static int number(int i)
{
    return i < t.line->n ? atoi(t.line->words[i]) : 0;
}

static const char *word(int i)
{
    return i < t.line->n ? t.line->words[i] : "";
}

/* ---- commands: setting up ------------------------------------------------------------------- */

static void do_need(void)
{
#ifdef WITH_SANITIZERS
    if (strcmp(word(1), "crash-handlers") == 0) {
        t.skipped = true;
        t.why_skipped = "sanitizers have handlers of their own";
    }
#endif
    if (strcmp(word(1), "model") == 0 && access(model_path, R_OK) != 0) {
        const char *require = getenv("FADER_REQUIRE_MODEL");
        if (require != NULL && strcmp(require, "1") == 0)
            fail("no model, and FADER_REQUIRE_MODEL=1");
        t.skipped = true;
        t.why_skipped = "no model";
    }
}

static void do_size(void)
{
    t.rows = number(1);
    t.cols = number(2);
}

static void do_resize(void)
{
    t.rows = number(1);
    t.cols = number(2);
    screen_resize(&t.screen, t.rows, t.cols);
    job_resize(&t.job, t.rows, t.cols);
}

static void do_env(void)
{
    char *equals = strchr(t.line->words[1], '=');

    if (equals == NULL) {
        unsetenv(word(1));
        return;
    }
    *equals = '\0';
    setenv(word(1), equals + 1, 1);
}

static void do_file(void)
{
    struct error err;

    if (!file_write_atomic(word(1), word(2), t.line->lens[2], 0600, &err))
        fail("%s", err.text);
}

static void do_input(void)
{
    t.input = mem_strdup(word(1));
}

static void do_output(void)
{
    t.output = mem_strdup(word(1));
}

static void do_replies(void)
{
    t.replies = strcmp(word(1), "off") == 0 ? REPLIES_OFF
                : strcmp(word(1), "hold") == 0 ? REPLIES_HELD : REPLIES_ON;
}

static void do_start(void)
{
    const char *fader = getenv("FADER"), *build = getenv("FADER_BUILDDIR");
    char *own = file_join(build != NULL ? build : ".", "fader");

    free(t.line->words[0]);
    t.line->words[0] = mem_strdup(fader != NULL ? fader : own);
    free(own);
    start(t.line->words);
}

static void do_run(void)
{
    start(t.line->words + 1);
}

/* ---- commands: doing ------------------------------------------------------------------------ */

static const struct {
    const char *name, *bytes;
} key_names[] = {
    {"Enter", "\r"},        {"Tab", "\t"},          {"Esc", "\033"},        {"Backspace", "\177"},
    {"Space", " "},         {"Up", "\033[A"},       {"Down", "\033[B"},     {"Right", "\033[C"},
    {"Left", "\033[D"},     {"Home", "\033[H"},     {"End", "\033[F"},      {"Insert", "\033[2~"},
    {"Delete", "\033[3~"},  {"PageUp", "\033[5~"},  {"PageDown", "\033[6~"}, {"Shift-Tab", "\033[Z"},
    {"F1", "\033OP"},       {"F2", "\033OQ"},       {"F3", "\033OR"},       {"F4", "\033OS"},
    {"F5", "\033[15~"},     {"F6", "\033[17~"},     {"F7", "\033[18~"},     {"F8", "\033[19~"},
    {"F9", "\033[20~"},     {"F10", "\033[21~"},    {"F11", "\033[23~"},    {"F12", "\033[24~"},
};

static void press(const char *name)
{
    char bytes[2];

    for (size_t i = 0; i < sizeof key_names / sizeof key_names[0]; i++)
        if (strcmp(key_names[i].name, name) == 0) {
            job_write(&t.job, key_names[i].bytes, strlen(key_names[i].bytes));
            return;
        }
    if (strncmp(name, "C-", 2) == 0 && name[2] != '\0') {
        bytes[0] = (char)(name[2] & 0x1F);
        job_write(&t.job, bytes, 1);
    } else if (strncmp(name, "M-", 2) == 0 && name[2] != '\0') {
        job_write(&t.job, "\033", 1);
        press(name + 2);
    } else {
        job_write(&t.job, name, strlen(name));
    }
}

static void do_key(void)
{
    for (int i = 1; i < t.line->n; i++)
        press(word(i));
}

static void do_type(void)
{
    job_write(&t.job, word(1), t.line->lens[1]);
}

static void do_paste(void)
{
    job_write(&t.job, "\033[200~", 6);
    job_write(&t.job, word(1), t.line->lens[1]);
    job_write(&t.job, "\033[201~", 6);
}

static void do_mouse(void)
{
    static const struct {
        const char *name;
        int code;
        char final;
    } kinds[] = {{"press", 0, 'M'}, {"drag", 32, 'M'}, {"release", 0, 'm'}, {"wheel-up", 64, 'M'},
                 {"wheel-down", 65, 'M'}};
    char bytes[64];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, word(1)) == 0) {
            int n = snprintf(bytes, sizeof bytes, "\033[<%d;%d;%d%c", kinds[i].code, number(3) + 1,
                             number(2) + 1, kinds[i].final);
            job_write(&t.job, bytes, (size_t)n);
            return;
        }
    fail("no such event");
}

static void do_release_replies(void)
{
    job_write(&t.job, str_text(&t.screen.replies), t.screen.replies.len);
    str_clear(&t.screen.replies);
}

static void do_signal(void)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"TERM", SIGTERM}, {"HUP", SIGHUP},   {"INT", SIGINT},   {"TSTP", SIGTSTP},
                 {"STOP", SIGSTOP}, {"CONT", SIGCONT}, {"SEGV", SIGSEGV}, {"ABRT", SIGABRT},
                 {"QUIT", SIGQUIT}, {"WINCH", SIGWINCH}, {"KILL", SIGKILL}, {"BUS", SIGBUS}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, word(1)) == 0) {
            job_signal(&t.job, names[i].number);
            return;
        }
    fail("no such signal");
}

static bool is_continued(void)
{
    return !t.job.stopped;
}

static void do_fg(void)
{
    job_continue(&t.job, true);
    await(is_continued);
}

static void do_bg(void)
{
    job_continue(&t.job, false);
    await(is_continued);
}

/* What came so far no longer counts for wait-bytes and wait-mode. */
static void do_forget(void)
{
    pump(0);
    str_clear(&t.screen.log);
}

static void do_hangup(void)
{
    job_hang_up(&t.job);
}

/* ---- commands: expecting -------------------------------------------------------------------- */

static bool text_is_there(void)
{
    return screen_has(&t.screen, word(1));
}

static bool text_is_gone(void)
{
    return !text_is_there();
}

static void do_wait_text(void)
{
    if (!await(text_is_there))
        fail("\"%s\" did not come", word(1));
}

static void do_wait_gone(void)
{
    if (!await(text_is_gone))
        fail("\"%s\" did not go", word(1));
}

static void do_expect_no_text(void)
{
    if (text_is_there())
        fail("\"%s\" is there", word(1));
}

/* Rows below 0 count from the bottom: -1 is the last. */
static int row_number(int i)
{
    return number(i) < 0 ? t.rows + number(i) : number(i);
}

static bool row_is_so(void)
{
    struct str row = STR_INIT;

    screen_row(&t.screen, row_number(1), &row);
    bool so = strcmp(t.line->words[0], "wait-row") == 0 ? strcmp(str_text(&row), word(2)) == 0
                                                        : strstr(str_text(&row), word(2)) != NULL;
    str_done(&row);
    return so;
}

static void do_wait_row(void)
{
    if (!await(row_is_so))
        fail("row %d is not \"%s\"", row_number(1), word(2));
}

static bool has_word(const char *text, const char *wanted)
{
    size_t n = strlen(wanted);

    for (const char *p = text; (p = strstr(p, wanted)) != NULL; p += n)
        if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

/* wait-cell ROW COL "x" [ATTRIBUTE | !ATTRIBUTE] ... */
static bool cell_is_so(void)
{
    struct str text = STR_INIT, attributes = STR_INIT;

    screen_cell(&t.screen, row_number(1), number(2), &text, &attributes);
    bool so = strcmp(str_text(&text), word(3)) == 0;
    for (int i = 4; i < t.line->n; i++)
        so = so && (word(i)[0] == '!' ? !has_word(str_text(&attributes), word(i) + 1)
                                      : has_word(str_text(&attributes), word(i)));
    str_done(&text);
    str_done(&attributes);
    return so;
}

static void do_wait_cell(void)
{
    struct str text = STR_INIT, attributes = STR_INIT;

    if (!await(cell_is_so)) {
        screen_cell(&t.screen, row_number(1), number(2), &text, &attributes);
        fail("it is \"%s\" %s", str_text(&text), str_text(&attributes));
    }
    str_done(&text);
    str_done(&attributes);
}

static bool cursor_is_so(void)
{
    int row, col;

    screen_cursor(&t.screen, &row, &col);
    return row == row_number(1) && col == number(2);
}

static void do_wait_cursor(void)
{
    if (!await(cursor_is_so))
        fail("it is elsewhere");
}

static bool mode_is_so(void)
{
    return (screen_mode(&t.screen, number(1)) == 1) == (strcmp(word(2), "on") == 0);
}

static void do_wait_mode(void)
{
    if (!await(mode_is_so))
        fail("mode %d is not %s", number(1), word(2));
}

static bool bytes_are_there(void)
{
    return memmem(str_text(&t.screen.log), t.screen.log.len, word(1), t.line->lens[1]) != NULL;
}

static void do_wait_bytes(void)
{
    if (!await(bytes_are_there))
        fail("they did not come");
}

static void do_expect_no_bytes(void)
{
    if (bytes_are_there())
        fail("they came");
}

static bool is_stopped(void)
{
    return t.job.stopped;
}

static void do_wait_stopped(void)
{
    if (!await(is_stopped))
        fail("it goes on");
}

static bool is_exited(void)
{
    return t.job.exited;
}

/* wait-exit STATUS, or wait-exit signal NUMBER */
static void do_wait_exit(void)
{
    bool by_signal = strcmp(word(1), "signal") == 0;
    int status = t.job.wait_status;

    if (!await(is_exited)) {
        fail("it goes on");
        return;
    }
    status = t.job.wait_status;
    if (by_signal ? !WIFSIGNALED(status) || WTERMSIG(status) != number(2)
                  : !WIFEXITED(status) || WEXITSTATUS(status) != number(1))
        fail("it ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void do_expect_tty(void)
{
    const struct termios *b = &t.job.before, *a = &t.job.after;

    if (!job_tty_is_restored(&t.job))
        fail("the terminal's modes are not what they were: iflag %x %x, oflag %x %x, cflag %x %x, lflag %x %x",
             b->c_iflag, a->c_iflag, b->c_oflag, a->c_oflag, b->c_cflag, a->c_cflag, b->c_lflag, a->c_lflag);
}

/* What a shell expects of the screen: expect-screen-left, after a stop or an exit. */
static void do_expect_left(void)
{
    static const int off[] = {1000, 1002, 1003, 1006, 1049, 2004, 2026};

    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (screen_mode(&t.screen, off[i]) == 1)
            fail("mode %d is still on", off[i]);
    if (screen_mode(&t.screen, 25) == 0)
        fail("the cursor is still hidden");
    do_expect_tty();
}

static void do_expect_no_color(void)
{
    struct str text = STR_INIT, attributes = STR_INIT;

    for (int row = 0; row < t.rows; row++)
        for (int col = 0; col < t.cols; col++)
            screen_cell(&t.screen, row, col, &text, &attributes);
    if (attributes.len == 0)
        fail("no attribute anywhere: is anything drawn?");
    else if (strstr(str_text(&attributes), "fg=") != NULL || strstr(str_text(&attributes), "bg=") != NULL)
        fail("there are colours");
    str_done(&text);
    str_done(&attributes);
}

static bool file_is_so(void)
{
    struct str text = STR_INIT;
    struct error err;
    bool so = file_read(word(1), 1 << 24, &text, &err) && strstr(str_text(&text), word(2)) != NULL;

    str_done(&text);
    return so;
}

static void do_wait_file(void)
{
    if (!await(file_is_so))
        fail("%s does not hold \"%s\"", word(1), word(2));
}

static void do_expect_file_without(void)
{
    struct str text = STR_INIT;
    struct error err;

    if (!file_read(word(1), 1 << 24, &text, &err))
        fail("%s", err.text);
    else if (memmem(str_text(&text), text.len, word(2), t.line->lens[2]) != NULL)
        fail("%s holds it", word(1));
    str_done(&text);
}

/* ---- goldens -------------------------------------------------------------------------------- */

/* mask-row ROW: what differs from run to run (speeds) is left out of goldens. */
static void do_mask_row(void)
{
    if (row_number(1) >= 0 && row_number(1) < 256)
        t.masked_rows[row_number(1)] = true;
}

static struct str golden;    /* what the screen should be */

static void dump_for_golden(struct str *out)
{
    str_clear(out);
    screen_dump(&t.screen, true, t.masked_rows, out);
}

/* A frame may be half drawn: it is waited for like anything else. */
static bool golden_is_so(void)
{
    struct str now = STR_INIT;

    dump_for_golden(&now);
    bool so = strcmp(str_text(&golden), str_text(&now)) == 0;
    str_done(&now);
    return so;
}

static void compare_golden(const char *path)
{
    struct str now = STR_INIT;
    struct error err;

    str_clear(&golden);
    if (!file_read(path, 1 << 20, &golden, &err)) {
        fail("%s", err.text);
    } else if (!await(golden_is_so)) {
        fail("the screen is not that of %s", path);
        printf("# wanted:\n");
        print_comment(str_text(&golden));
        printf("# got:\n");
        dump_for_golden(&now);
        print_comment(str_text(&now));
    }
    str_done(&now);
}

/* Recording is done by hand and looked at: here, and only here, quiet is taken for the end of a frame. */
static void record_golden(const char *path)
{
    struct str now = STR_INIT;
    struct error err;
    size_t before;

    do {
        before = t.screen.log.len;
        pump(300);
    } while (t.screen.log.len != before);
    dump_for_golden(&now);
    if (!file_write_atomic(path, now.data, now.len, 0644, &err))
        fail("%s", err.text);
    str_done(&now);
}

static void do_golden(void)
{
    const char *source = getenv("FADER_SRCDIR"), *update = getenv("FADER_UPDATE_GOLDEN");
    struct str path = STR_INIT;

    str_add_format(&path, "%s/tests/term/golden/%s.txt", source != NULL ? source : ".", word(1));
    if (update != NULL && *update == '1')
        record_golden(str_text(&path));
    else
        compare_golden(str_text(&path));
    str_done(&path);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct command {
    const char *name;
    void (*run)(void);
    int words;               /* at least, itself included */
    bool running;            /* there must be a program */
} commands[] = {
    /* before the start */
    {"need", do_need, 2, false},
    {"size", do_size, 3, false},
    {"env", do_env, 2, false},
    {"file", do_file, 3, false},
    {"input", do_input, 2, false},
    {"output", do_output, 2, false},
    {"replies", do_replies, 2, false},
    {"start", do_start, 1, false},
    {"run", do_run, 2, false},
    /* what a user does */
    {"key", do_key, 2, true},
    {"type", do_type, 2, true},
    {"send", do_type, 2, true},
    {"paste", do_paste, 2, true},
    {"mouse", do_mouse, 4, true},
    {"resize", do_resize, 3, true},
    {"release-replies", do_release_replies, 1, true},
    {"signal", do_signal, 2, true},
    {"fg", do_fg, 1, true},
    {"bg", do_bg, 1, true},
    {"hangup", do_hangup, 1, true},
    {"forget", do_forget, 1, true},
    /* what should be seen */
    {"wait-text", do_wait_text, 2, true},
    {"wait-gone", do_wait_gone, 2, true},
    {"expect-no-text", do_expect_no_text, 2, true},
    {"wait-row", do_wait_row, 3, true},
    {"wait-row-has", do_wait_row, 3, true},
    {"wait-cell", do_wait_cell, 4, true},
    {"wait-cursor", do_wait_cursor, 3, true},
    {"wait-mode", do_wait_mode, 3, true},
    {"wait-bytes", do_wait_bytes, 2, true},
    {"expect-no-bytes", do_expect_no_bytes, 2, true},
    {"wait-stopped", do_wait_stopped, 1, true},
    {"wait-exit", do_wait_exit, 2, true},
    {"expect-tty", do_expect_tty, 1, true},
    {"expect-left", do_expect_left, 1, true},
    {"expect-no-color", do_expect_no_color, 1, true},
    {"wait-file", do_wait_file, 3, false},
    {"expect-file-without", do_expect_file_without, 3, false},
    {"mask-row", do_mask_row, 2, true},
    {"golden", do_golden, 2, true},
};

static void run_command(void)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const struct command *c = &commands[i];
        if (strcmp(c->name, t.line->words[0]) != 0)
            continue;
        if (t.line->n < c->words)
            fail("too few words");
        else if (c->running && !t.started)
            fail("nothing was started");
        else
            c->run();
        return;
    }
    fail("no such command");
}

/* ---- tests ---------------------------------------------------------------------------------- */

static const char *look_up(const char *name, size_t len)
{
    static const char *const environment[] = {"SRC", "FADER_SRCDIR", "BUILD", "FADER_BUILDDIR"};

    if (len == 3 && memcmp(name, "DIR", 3) == 0)
        return t.dir;
    if (len == 5 && memcmp(name, "MODEL", 5) == 0)
        return model_path;
    for (size_t i = 0; i < 4; i += 2)
        if (strlen(environment[i]) == len && memcmp(environment[i], name, len) == 0)
            return getenv(environment[i + 1]);
    return NULL;
}

/* A home of its own, and an environment that says nothing else. */
static void set_up(void)
{
    static const char *const none[] = {"NO_COLOR", "COLORTERM", "INPUTRC",  "VISUAL",  "EDITOR", "SSH_TTY",
                                       "TMUX",     "LC_ALL",    "LC_CTYPE", "COLUMNS", "LINES"};
    static const char *const homes[][2] = {{"HOME", ""}, {"XDG_CONFIG_HOME", "/config"},
                                           {"XDG_DATA_HOME", "/data"}, {"XDG_STATE_HOME", "/state"},
                                           {"XDG_CACHE_HOME", "/cache"}};

    strcpy(t.dir, "/tmp/fader-term-XXXXXX");
    if (mkdtemp(t.dir) == NULL) {
        perror("termtest: mkdtemp");
        exit(99);
    }
    t.rows = DEFAULT_ROWS;
    t.cols = DEFAULT_COLS;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        unsetenv(none[i]);
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        struct str path = STR_INIT;
        str_add_format(&path, "%s%s", t.dir, homes[i][1]);
        setenv(homes[i][0], str_text(&path), 1);
        str_done(&path);
    }
    setenv("LANG", "C.UTF-8", 1);
    setenv("TERM", "xterm-256color", 1);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void tear_down(void)
{
    stop_program();
    free(t.input);
    free(t.output);
    nftw(t.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The commands of one test, up to the next `test` (then true, and its line is in `line`) or the end. */
static bool run_test(struct script *script, struct script_line *line)
{
    bool more;

    while ((more = script_next(script, line, look_up)) && strcmp(line->words[0], "test") != 0) {
        t.line = line;
        if (!t.failed && !t.skipped)
            run_command();
        script_line_done(line);
    }
    return more;
}

static int run_file(const char *path, int *n)
{
    struct script_line line;
    struct script script;
    int failures = 0;

    if (!script_open(&script, path)) {
        printf("not ok %d - %s cannot be read\n", ++*n, path);
        return 1;
    }
    bool more = script_next(&script, &line, look_up);
    while (more) {
        if (strcmp(line.words[0], "test") != 0 || line.n != 2) {
            printf("Bail out! %s:%d: a test begins with: test \"title\"\n", path, line.number);
            exit(99);
        }
        char *title = mem_strdup(line.words[1]);
        script_line_done(&line);
        memset(&t, 0, sizeof t);
        t.file = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
        set_up();
        more = run_test(&script, &line);
        printf("%sok %d - %s: %s%s%s\n", t.failed ? "not " : "", ++*n, t.file, title,
               t.skipped && !t.failed ? " # SKIP " : "", t.skipped && !t.failed ? t.why_skipped : "");
        fflush(stdout);
        failures += t.failed;
        tear_down();
        free(title);
    }
    script_close(&script);
    return failures;
}

static void find_model(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    static const char name[] = "fader/models/SmolLM2-135M-Instruct.Q4_1.gguf";

    if (cache != NULL && *cache != '\0')
        snprintf(model_path, sizeof model_path, "%s/%s", cache, name);
    else
        snprintf(model_path, sizeof model_path, "%s/.cache/%s", home != NULL ? home : "", name);
}

int main(int argc, char **argv)
{
    const char *timeout = getenv("FADER_TEST_TIMEOUT");
    int n = 0, failures = 0;

    signal(SIGPIPE, SIG_IGN);
    timeout_ns = (int64_t)(timeout != NULL ? atoi(timeout) : 30) * 1000000000;
    find_model();
    for (int i = 1; i < argc; i++)
        failures += run_file(argv[i], &n);
    printf("1..%d\n", n);
    str_done(&golden);
    return failures > 0;
}
