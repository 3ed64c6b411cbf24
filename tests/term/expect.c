/* What should be seen. Every expectation is waited for, but those of something that must not be. */
#include "config.h"

#include "termtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/str.h"

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

    if (!await(is_exited)) {
        fail("it goes on");
        return;
    }
    int status = t.job.wait_status;
    if (by_signal ? !WIFSIGNALED(status) || WTERMSIG(status) != number(2)
                  : !WIFEXITED(status) || WEXITSTATUS(status) != number(1))
        fail("it ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void do_expect_tty(void)
{
    const struct termios *b = &t.job.before, *a = &t.job.after;

    if (!job_tty_is_restored(&t.job))
        fail("the terminal's modes are not what they were: iflag %x %x, oflag %x %x, cflag %x %x, "
             "lflag %x %x",
             b->c_iflag, a->c_iflag, b->c_oflag, a->c_oflag, b->c_cflag, a->c_cflag, b->c_lflag,
             a->c_lflag);
}

/* The first mode that a shell does not expect; 0: none. */
static int mode_left(void)
{
    static const int off[] = {1000, 1002, 1003, 1006, 1049, 2004, 2026};

    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (screen_mode(&t.screen, off[i]) == 1)
            return off[i];
    return screen_mode(&t.screen, 25) == 0 ? 25 : 0;
}

static bool screen_is_left(void)
{
    return mode_left() == 0;
}

/* What a shell expects of the screen after a stop or an exit, the news of which may be here before
 * the last that the program wrote. */
static void do_expect_left(void)
{
    if (!await(screen_is_left))
        fail("mode %d is still %s", mode_left(), mode_left() == 25 ? "off" : "on");
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
    else if (strstr(str_text(&attributes), "fg=") != NULL ||
             strstr(str_text(&attributes), "bg=") != NULL)
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

static struct str golden; /* what the screen should be */

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
    str_done(&golden);
}

/* Recording is done by hand and looked at: here, and only here, quiet is taken for the end of a
 * frame. */
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

const struct command expect_commands[] = {
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
    {NULL, NULL, 0, false},
};
