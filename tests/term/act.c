/* What a test prepares, and what a user does. */
#include "config.h"

#include "termtest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

/* ---- commands: setting up ------------------------------------------------------------------- */

/* Terminals are described in a package of their own on some systems. */
static bool knows_terminal(const char *name)
{
    struct str command = STR_INIT;

    str_add_format(&command, "infocmp '%s' >/dev/null 2>&1", name);
    bool known = system(str_text(&command)) == 0;
    str_done(&command);
    return known;
}

static void do_need(void)
{
#ifdef WITH_SANITIZERS
    if (strcmp(word(1), "crash-handlers") == 0) {
        t.skipped = true;
        t.why_skipped = "sanitizers have handlers of their own";
    }
#endif
    if (strcmp(word(1), "terminfo") == 0 && !knows_terminal(word(2))) {
        t.skipped = true;
        t.why_skipped = "terminfo does not know that terminal";
    }
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
    t.replies = strcmp(word(1), "off") == 0    ? REPLIES_OFF
                : strcmp(word(1), "hold") == 0 ? REPLIES_HELD
                                               : REPLIES_ON;
}

static void do_start(void)
{
    const char *fader = getenv("FADER"), *build = getenv("FADER_BUILDDIR");
    char *own = file_join(build != NULL ? build : ".", "fader");

    free(t.line->words[0]);
    t.line->words[0] = mem_strdup(fader != NULL ? fader : own);
    free(own);
    start_program(t.line->words);
}

static void do_run(void)
{
    start_program(t.line->words + 1);
}

/* ---- commands: doing ------------------------------------------------------------------------ */

static const struct {
    const char *name, *bytes;
} key_names[] = {
    {"Enter", "\r"},       {"Tab", "\t"},         {"Esc", "\033"},         {"Backspace", "\177"},
    {"Space", " "},        {"Up", "\033[A"},      {"Down", "\033[B"},      {"Right", "\033[C"},
    {"Left", "\033[D"},    {"Home", "\033[H"},    {"End", "\033[F"},       {"Insert", "\033[2~"},
    {"Delete", "\033[3~"}, {"PageUp", "\033[5~"}, {"PageDown", "\033[6~"}, {"Shift-Tab", "\033[Z"},
    {"F1", "\033OP"},      {"F2", "\033OQ"},      {"F3", "\033OR"},        {"F4", "\033OS"},
    {"F5", "\033[15~"},    {"F6", "\033[17~"},    {"F7", "\033[18~"},      {"F8", "\033[19~"},
    {"F9", "\033[20~"},    {"F10", "\033[21~"},   {"F11", "\033[23~"},     {"F12", "\033[24~"},
};

static void add_key(struct str *out, const char *name)
{
    for (size_t i = 0; i < sizeof key_names / sizeof key_names[0]; i++)
        if (strcmp(key_names[i].name, name) == 0) {
            str_add_text(out, key_names[i].bytes);
            return;
        }
    if (strncmp(name, "C-", 2) == 0 && name[2] != '\0') {
        str_add_char(out, (char)(name[2] & 0x1F));
    } else if (strncmp(name, "M-", 2) == 0 && name[2] != '\0') {
        str_add_char(out, '\033');
        add_key(out, name + 2);
    } else {
        str_add_text(out, name);
    }
}

/* The keys of one line come together: programs tell keys apart by the time between them. */
static void do_key(void)
{
    struct str bytes = STR_INIT;

    for (int i = 1; i < t.line->n; i++)
        add_key(&bytes, word(i));
    job_write(&t.job, str_text(&bytes), bytes.len);
    str_done(&bytes);
}

/* Presses the keys from word `first` on in turn, half a second apart: for what a program believes only
 * for some time after the key before. On a machine that stands still that may have been too long. */
static int pressed;
static int64_t pressed_ns;

static void press_in_turn(int first)
{
    struct str bytes = STR_INIT;

    if (pressed > 0 && clock_since_s(pressed_ns) < 0.5)
        return;
    add_key(&bytes, word(first + pressed++ % (t.line->n - first)));
    job_write(&t.job, str_text(&bytes), bytes.len);
    str_done(&bytes);
    pressed_ns = clock_now_ns();
}

static bool is_ended_by_key(void)
{
    if (!t.job.exited)
        press_in_turn(1);
    return t.job.exited;
}

/* insist KEY...: until it ends */
static void do_insist(void)
{
    pressed = 0;
    if (!await(is_ended_by_key))
        fail("it goes on");
}

static bool has_text_by_key(void)
{
    bool there = screen_has(&t.screen, word(1));

    if (!there)
        press_in_turn(2);
    return there;
}

/* insist-text "text" KEY...: until it is on the screen */
static void do_insist_text(void)
{
    pressed = 0;
    if (!await(has_text_by_key))
        fail("\"%s\" did not come", word(1));
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

static bool add_mouse(struct str *out, const char *name, int row, int col)
{
    static const struct {
        const char *name;
        int code;
        char final;
    } kinds[] = {{"press", 0, 'M'},
                 {"drag", 32, 'M'},
                 {"release", 0, 'm'},
                 {"wheel-up", 64, 'M'},
                 {"wheel-down", 65, 'M'}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            str_add_format(out, "\033[<%d;%d;%d%c", kinds[i].code, col + 1, row + 1,
                           kinds[i].final);
            return true;
        }
    return false;
}

/* A double click comes at once, like the keys of a line. */
static void do_mouse(void)
{
    static const char *const clicks[] = {"press", "release", "press", "release", NULL};
    const char *const one[] = {word(1), NULL};
    struct str bytes = STR_INIT;
    bool known = true;

    for (const char *const *name = strcmp(word(1), "double") == 0 ? clicks : one; *name; name++)
        known = known && add_mouse(&bytes, *name, number(2), number(3));
    if (known)
        job_write(&t.job, str_text(&bytes), bytes.len);
    else
        fail("no such event");
    str_done(&bytes);
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
    } names[] = {{"TERM", SIGTERM}, {"HUP", SIGHUP},     {"INT", SIGINT},   {"TSTP", SIGTSTP},
                 {"STOP", SIGSTOP}, {"CONT", SIGCONT},   {"SEGV", SIGSEGV}, {"ABRT", SIGABRT},
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

const struct command act_commands[] = {
    {"need", do_need, 2, false},
    {"size", do_size, 3, false},
    {"env", do_env, 2, false},
    {"file", do_file, 3, false},
    {"input", do_input, 2, false},
    {"output", do_output, 2, false},
    {"replies", do_replies, 2, false},
    {"start", do_start, 1, false},
    {"run", do_run, 2, false},
    {"key", do_key, 2, true},
    {"insist", do_insist, 2, true},
    {"insist-text", do_insist_text, 3, true},
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
    {NULL, NULL, 0, false},
};
