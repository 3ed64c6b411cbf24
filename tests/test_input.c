#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include <readline/readline.h>

#include "app/app.h"
#include "app/keys.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "tui/input.h"
#include "tui/terminal.h"

static struct {
    char *entered; /* the last text handed over, owned */
    int n_entered, n_eof, n_changed;
    char matches[256]; /* as listed last, blank-separated */
} seen;

static void on_entered(void *ctx, const char *text)
{
    (void)ctx;
    free(seen.entered);
    seen.entered = mem_strdup(text);
    seen.n_entered++;
}

static void on_eof(void *ctx)
{
    (void)ctx;
    seen.n_eof++;
}

static void on_changed(void *ctx)
{
    (void)ctx;
    seen.n_changed++;
}

static void on_matches(void *ctx, char *const *matches, size_t n)
{
    (void)ctx;
    seen.matches[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        strncat(seen.matches, matches[i], sizeof seen.matches - strlen(seen.matches) - 2);
        strcat(seen.matches, " ");
    }
}

static const struct input_hooks hooks = {
    .entered = on_entered, .eof = on_eof, .matches = on_matches, .changed = on_changed};

static struct app app;
static char folder[] = "/tmp/fader-input-XXXXXX";
static char *history_path;

static int open_input(void **state)
{
    (void)state;
    free(seen.entered);
    memset(&seen, 0, sizeof seen);
    unlink(history_path);
    input_open(&app, &hooks);
    return 0;
}

static int close_input(void **state)
{
    (void)state;
    rl_variable_bind("editing-mode", "emacs");
    input_close();
    return 0;
}

/* ---- feeding as the decoder does ------------------------------------------------------------ */

static void feed(const char *bytes)
{
    static const struct decoder_options options = {.escape_ns = 1};
    struct term_event event;
    struct decoder d;

    decoder_init(&d, &options);
    decoder_feed(&d, bytes, strlen(bytes), 0);
    decoder_expire(&d, 10);
    while (decoder_next(&d, &event)) {
        if (event.kind == TERM_PASTE)
            input_paste(event.text, event.len);
        else
            input_feed(&event);
    }
    decoder_done(&d);
}

#define UP   "\033[A"
#define DOWN "\033[B"
#define LEFT "\033[D"
#define HOME "\033[H"

static void expect(const char *text, size_t cursor)
{
    assert_string_equal(input_text(), text);
    assert_int_equal(input_cursor(), cursor);
}

/* ---- editing -------------------------------------------------------------------------------- */

static void test_typing(void **state)
{
    (void)state;
    feed("hello w\303\266rld");
    expect("hello w\303\266rld", 12);
    assert_true(seen.n_changed > 0);
    feed(LEFT LEFT LEFT LEFT "\177");
    expect("hello \303\266rld", 6);
    feed("\033[3~"); /* Delete: a whole character */
    expect("hello rld", 6);
    feed("\027");
    expect("rld", 0);
    feed("\031");
    expect("hello rld", 6);
    feed("\037");
    expect("rld", 0);
    feed("\r");
    assert_int_equal(seen.n_entered, 1);
    assert_string_equal(seen.entered, "rld");
    expect("", 0);
}

static void test_wide(void **state)
{
    (void)state;
    feed("\344\270\255\346\226\207");
    expect("\344\270\255\346\226\207", 6);
    feed("\177");
    expect("\344\270\255", 3);
    feed("\r");
    assert_string_equal(seen.entered, "\344\270\255");
}

/* Readline is not told the terminal's name; what it would learn from it is bound all the same. */
static void test_named_keys(void **state)
{
    (void)state;
    feed("one two three");
    feed("\033[1~");
    assert_int_equal(input_cursor(), 0);
    feed("\033[1;5C");
    assert_int_equal(input_cursor(), 3);
    feed("\033[4~");
    assert_int_equal(input_cursor(), 13);
    feed("\033[1;3D");
    assert_int_equal(input_cursor(), 8);
    feed("\033[3;5~");
    expect("one two ", 8);
}

/* Sequences that readline does not know leave no traces. */
static void test_unknown_keys(void **state)
{
    (void)state;
    feed("a\033[24~\033[1;8C\033[57399u\033[M   \033[200~\033[201~\033[13~b");
    expect("ab", 2);
}

static void test_eof(void **state)
{
    (void)state;
    feed("ab" HOME "\004");
    expect("b", 0);
    assert_int_equal(seen.n_eof, 0);
    feed("\004");
    expect("", 0);
    feed("\004");
    assert_int_equal(seen.n_eof, 1);
    assert_int_equal(seen.n_entered, 0);
}

static void test_cancel(void **state)
{
    (void)state;
    feed("something");
    input_cancel();
    expect("", 0);
    feed("xyz\r"
         "\022x");
    assert_true(input_is_searching());
    input_cancel();
    assert_false(input_is_searching());
    expect("", 0);
    assert_string_equal(input_prompt(), "> ");
    feed("on\r");
    assert_string_equal(seen.entered, "on");
}

static void test_set_text(void **state)
{
    (void)state;
    feed("old");
    input_set_text("new\ntext");
    expect("new\ntext", 8);
    feed("!\r");
    assert_string_equal(seen.entered, "new\ntext!");
}

/* ---- several lines -------------------------------------------------------------------------- */

static void test_new_lines(void **state)
{
    (void)state;
    feed("one\ntwo\033\rthree\\\rfour"); /* Ctrl-J, Alt-Enter, backslash and Enter */
    assert_int_equal(seen.n_entered, 0);
    expect("one\ntwo\nthree\nfour", 18);
    feed("\033[13;2u"); /* Shift-Enter, where the terminal tells */
    expect("one\ntwo\nthree\nfour\n", 19);
    feed("\177\r");
    assert_int_equal(seen.n_entered, 1);
    assert_string_equal(seen.entered, "one\ntwo\nthree\nfour");
}

static void test_moving_between_lines(void **state)
{
    (void)state;
    feed("before\r");
    feed("\344\270\255\346\226\207ab\nxyz\n12345");
    feed(UP); /* column 5 of 3 */
    expect("\344\270\255\346\226\207ab\nxyz\n12345", 12);
    feed(UP); /* column 3: the second wide character is not split */
    assert_int_equal(input_cursor(), 3);
    feed(DOWN);
    assert_int_equal(input_cursor(), 11);
    feed(HOME);
    assert_int_equal(input_cursor(), 9);
    feed("\005");
    assert_int_equal(input_cursor(), 12);
    feed("\001"
         "\013");
    expect("\344\270\255\346\226\207ab\n\n12345", 9);
    feed("\013"); /* at its end: the newline */
    expect("\344\270\255\346\226\207ab\n12345", 9);
    feed(UP UP); /* from the first line: history */
    assert_string_equal(input_text(), "before");
    feed(DOWN);
    assert_string_equal(input_text(), "\344\270\255\346\226\207ab\n12345");
}

static void test_paste(void **state)
{
    (void)state;
    feed("say: \033[200~one\r\ntwo\r\033[201~");
    assert_int_equal(seen.n_entered, 0);
    expect("say: one\ntwo\n", 13);
    feed("\037"); /* one undo takes it back */
    expect("say: ", 5);
    feed("\022sa\033[200~pasted\033[201~"); /* in a search: it ends */
    assert_false(input_is_searching());
    assert_non_null(strstr(input_text(), "pasted"));
}

/* ---- history and search --------------------------------------------------------------------- */

static void test_history(void **state)
{
    struct str text = STR_INIT;
    struct error err;
    struct stat st;
    (void)state;

    feed("first\r"
         "second\r"
         "second\r"
         "  \r"
         "two\nlines\r"
         "#1 is a number\r");
    assert_int_equal(seen.n_entered, 6);
    feed(UP UP);
    expect("two\nlines", 9);
    feed("\001"); /* of its second line */
    assert_int_equal(input_cursor(), 4);
    feed(UP UP UP);
    expect("first", 5); /* "second" once, blanks never */
    input_close();
    assert_int_equal(stat(history_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(file_read(history_path, 10000, &text, &err));
    assert_non_null(strstr(str_text(&text), "first"));
    str_done(&text);

    input_open(&app, &hooks); /* another sitting */
    feed(UP);
    assert_string_equal(input_text(), "#1 is a number");
    feed(UP);
    assert_string_equal(input_text(), "two\nlines");
}

static void test_no_save(void **state)
{
    struct stat st;
    (void)state;

    input_close();
    unlink(history_path);
    app.options.no_save = true;
    input_open(&app, &hooks);
    feed("secret\r" UP);
    assert_string_equal(input_text(), "secret");
    app.options.no_save = false;
    assert_int_not_equal(stat(history_path, &st), 0);
}

static void test_search(void **state)
{
    (void)state;
    feed("alpha one\r"
         "beta two\r"
         "\022alp");
    assert_true(input_is_searching());
    assert_true(input_takes_escape());
    assert_non_null(strstr(input_prompt(), "alp"));
    assert_string_equal(input_text(), "alpha one");
    feed("\033");
    assert_false(input_is_searching());
    assert_string_equal(input_prompt(), "> ");
    expect("alpha one", 0);
    feed("\005"
         "!\r");
    assert_string_equal(seen.entered, "alpha one!");
}

static void test_argument(void **state)
{
    (void)state;
    feed("\0334");
    assert_true(input_is_searching());
    assert_non_null(strstr(input_prompt(), "4"));
    feed("x");
    expect("xxxx", 4);
    assert_false(input_is_searching());
    feed("\026\033[A"); /* quoted-insert takes the next key as it is */
    assert_string_equal(input_text(), "xxxx\033[A");
}

/* ---- vi mode -------------------------------------------------------------------------------- */

static void test_vi(void **state)
{
    (void)state;
    rl_variable_bind("editing-mode", "vi");
    input_cancel();
    feed("hello world");
    assert_true(input_takes_escape());
    feed("\033"); /* a lone Esc is command mode at once */
    assert_false(input_takes_escape());
    feed("bx");
    expect("hello orld", 6);
    feed("A!\033");
    feed("0"
         "i>\033[C<"); /* an arrow in insertion is an arrow */
    expect(">h<ello orld!", 3);
    feed("\r");
    assert_string_equal(seen.entered, ">h<ello orld!");
    feed("ok\033k");
    assert_string_equal(input_text(), ">h<ello orld!");
    rl_variable_bind("editing-mode", "emacs");
    assert_false(input_takes_escape());
}

static void test_mode_in_prompt(void **state)
{
    (void)state;
    rl_variable_bind("show-mode-in-prompt", "on");
    rl_variable_bind("vi-cmd-mode-string", "\"\\1\\e[2 q\\2N \"");
    rl_variable_bind("editing-mode", "vi");
    assert_string_equal(input_prompt(), "(ins)> ");
    feed("\033");
    assert_null(strchr(input_prompt(), '\033'));
    rl_variable_bind("show-mode-in-prompt", "off");
}

/* ---- completion ----------------------------------------------------------------------------- */

static void test_completion(void **state)
{
    (void)state;
    feed("no /com\t");
    expect("no /com", 7);
    assert_false(input_wants_tab());
    input_cancel();
    feed("/undo extra");
    assert_true(input_wants_tab());
    input_cancel();
    feed("/und\t");
    expect("/undo ", 6);
    input_cancel();
    feed("/mo\t"); /* /model and /mouse */
    expect("/mo", 3);
    assert_non_null(strstr(seen.matches, "model"));
    assert_non_null(strstr(seen.matches, "mouse"));
    feed("d");
    assert_string_equal(seen.matches, ""); /* the next key takes them away */
    feed("\t");
    expect("/model ", 7);
    input_cancel();
    feed("//und\t"); /* a slash that is text */
    assert_false(input_wants_tab());
}

static void test_completion_of_files(void **state)
{
    struct error err;
    char line[256];
    (void)state;

    char *path = file_join(folder, "notes-of-today.md");
    assert_true(file_write_atomic(path, "x", 1, 0600, &err));
    snprintf(line, sizeof line, "/export %s/notes-o\t", folder);
    feed(line);
    snprintf(line, sizeof line, "/export %s ", path);
    assert_string_equal(input_text(), line);
    unlink(path);
    free(path);
}

/* ---- layout --------------------------------------------------------------------------------- */

static void expect_layout(int width, const char *wanted, size_t cursor_row, int cursor_column)
{
    struct input_row rows[8];
    struct str got = STR_INIT;
    size_t row;
    int column;

    size_t n = input_layout(width, rows, 8, &row, &column);
    for (size_t i = 0; i < n && i < 8; i++) {
        str_add(&got, input_text() + rows[i].start, rows[i].end - rows[i].start);
        str_add_char(&got, '|');
    }
    assert_string_equal(str_text(&got), wanted);
    assert_int_equal(row, cursor_row);
    assert_int_equal(column, cursor_column);
    str_done(&got);
}

static void test_layout(void **state)
{
    (void)state;
    expect_layout(12, "|", 0, 2);
    feed("0123456789");
    expect_layout(13, "0123456789|", 0, 12);
    expect_layout(12, "0123456789||", 1, 2); /* the cursor has a place */
    feed(LEFT);
    expect_layout(12, "0123456789|", 0, 11);
    expect_layout(7, "01234|56789|", 1, 6);
    expect_layout(1, "0|1|2|3|4|5|6|7|", 9, 0); /* eight of ten are told */
    input_set_text("a\344\270\255\346\226\207\n\nb");
    expect_layout(6, "a\344\270\255|\346\226\207||b|", 3, 3);
    expect_layout(7, "a\344\270\255\346\226\207||b|", 2, 3);
    feed(UP);
    expect_layout(7, "a\344\270\255\346\226\207||b|", 1, 2);
    input_set_text("a\tb\344\270\255");
    expect_layout(40, "a\tb\344\270\255|", 0, 9);
    expect_layout(2, "a|\t|b|\344\270\255||", 4, 1); /* wider than a row: a row of its own */
    assert_int_equal(input_indent(40), 2);
    assert_int_equal(input_indent(2), 1);
}

/* The editor's text comes back whole; one that fails changes nothing. */
static void test_editor(void **state)
{
    struct error err;
    (void)state;

    feed("draft");
    setenv("VISUAL", "f() { printf 'edited\\nby %s\\n' \"$(cat \"$1\")\" > \"$1\"; }; f", 1);
    assert_true(input_edit(&err));
    expect("edited\nby draft", 15);
    setenv("VISUAL", "exit 3 #", 1);
    assert_false(input_edit(&err));
    assert_non_null(strstr(err.text, "3"));
    expect("edited\nby draft", 15);
    setenv("VISUAL", "/no/such/editor", 1);
    assert_false(input_edit(&err));
    assert_non_null(strstr(err.text, "not found"));
    unsetenv("VISUAL");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_input, close_input)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_typing),         TEST(test_wide),       TEST(test_named_keys),
        TEST(test_unknown_keys),   TEST(test_eof),        TEST(test_cancel),
        TEST(test_set_text),       TEST(test_new_lines),  TEST(test_moving_between_lines),
        TEST(test_paste),          TEST(test_history),    TEST(test_no_save),
        TEST(test_search),         TEST(test_argument),   TEST(test_vi),
        TEST(test_mode_in_prompt), TEST(test_completion), TEST(test_completion_of_files),
        TEST(test_layout),         TEST(test_editor),
    };

    if (mkdtemp(folder) == NULL || !terminal_set_locale()) {
        printf("1..0 # SKIP no UTF-8 locale\n");
        return 0;
    }
    setenv("XDG_STATE_HOME", folder, 1);
    setenv("INPUTRC", "/dev/null", 1);
    unsetenv("TERM"); /* readline must do without */
    history_path = file_join(folder, "fader/history");
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(history_path);
    char *inner = file_join(folder, "fader");
    rmdir(inner);
    rmdir(folder);
    free(inner);
    free(history_path);
    free(seen.entered);
    return failures;
}
