/* Runs test scripts against whole programs in a terminal. TAP on standard output, one line for each
 * `test` in the scripts named on the command line; the commands are in the tables of act.c and
 * expect.c. Every wait is for a condition and every expectation is one; FADER_TEST_TIMEOUT
 * (seconds, 60) is how long it may take to come true. A failure shows the screen.
 * FADER_UPDATE_GOLDEN=1 writes goldens instead of comparing them. */
#include "config.h"

#include "termtest.h"

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

enum { DEFAULT_ROWS = 24, DEFAULT_COLS = 80 };

struct test t;
char model_path[4096];
static int64_t timeout_ns;

/* ---- diagnostics ---------------------------------------------------------------------------- */

void print_comment(const char *text)
{
    for (const char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        printf("#   %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

void fail(const char *format, ...)
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

void pump(int timeout_ms)
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

/* The program has gone, and all that it wrote is here: nothing will become true any more. */
static bool is_over(void)
{
    return t.job.exited && t.job.master < 0;
}

bool await(bool (*is_true)(void))
{
    int64_t end_ns = clock_now_ns() + timeout_ns;

    while (!is_true()) {
        if (clock_now_ns() > end_ns || is_over())
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

void start_program(char **argv)
{
    stop_program();
    screen_init(&t.screen, t.rows, t.cols);
    job_start(&t.job, argv, t.rows, t.cols, t.input, t.output);
    t.started = true;
    if (!await(has_started))
        fail("it did not start");
}

int number(int i)
{
    return i < t.line->n ? atoi(t.line->words[i]) : 0;
}

const char *word(int i)
{
    return i < t.line->n ? t.line->words[i] : "";
}

int row_number(int i)
{
    return number(i) < 0 ? t.rows + number(i) : number(i);
}

/* ---- commands ------------------------------------------------------------------------------- */

static const struct command *find_command(const struct command *c, const char *name)
{
    while (c->name != NULL && strcmp(c->name, name) != 0)
        c++;
    return c->name != NULL ? c : NULL;
}

static void run_command(void)
{
    const struct command *c = find_command(act_commands, word(0));

    if (c == NULL)
        c = find_command(expect_commands, word(0));
    if (c == NULL)
        fail("no such command");
    else if (t.line->n < c->words)
        fail("too few words");
    else if (c->running && !t.started)
        fail("nothing was started");
    else
        c->run();
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
    static const char *const none[] = {"NO_COLOR", "COLORTERM", "INPUTRC", "VISUAL",
                                       "EDITOR",   "SSH_TTY",   "TMUX",    "LC_ALL",
                                       "LC_CTYPE", "COLUMNS",   "LINES"};
    static const char *const homes[][2] = {{"HOME", ""},
                                           {"XDG_CONFIG_HOME", "/config"},
                                           {"XDG_DATA_HOME", "/data"},
                                           {"XDG_STATE_HOME", "/state"},
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

/* The commands of one test, up to the next `test` (then true, and its line is in `line`) or the
 * end. */
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
               t.skipped && !t.failed ? " # SKIP " : "",
               t.skipped && !t.failed ? t.why_skipped : "");
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
    timeout_ns = (int64_t)(timeout != NULL ? atoi(timeout) : 60) * 1000000000;
    find_model();
    for (int i = 1; i < argc; i++)
        failures += run_file(argv[i], &n);
    printf("1..%d\n", n);

    return failures > 0;
}
