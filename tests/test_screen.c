/* From the canvas to curses: only what changed, whole wide characters, and styles in every depth of
 * colour. Curses draws into a file here; what it believes to stand on the screen is read back. */
#include "test.h"

#include <curses.h>
#include <locale.h>

#include "base/mem.h"
#include "config/theme.h"
#include "tui/screen.h"

static FILE *sink;
static SCREEN *term;

static void open_term(const char *name)
{
    sink = tmpfile();
    assert_non_null(sink);
    term = newterm(name, sink, sink);
    assert_non_null(term);
    set_term(term);
    resizeterm(6, 20);
}

static void close_term(void)
{
    endwin();
    delscreen(term);
    fclose(sink);
}

static struct styles styles_of(const char *theme_name)
{
    struct styles styles;
    struct error err;
    struct theme *theme = theme_load(theme_name, &err);

    assert_non_null(theme);
    styles_set(&styles, theme, styles_depth());
    theme_free(theme);
    return styles;
}

/* What curses holds in a row, blanks at the end left out. */
static const char *row_text(int row)
{
    static char out[256];
    wchar_t wide[64];

    mvwinnwstr(stdscr, row, 0, wide, 60);
    assert_true(wcstombs(out, wide, sizeof out) != (size_t)-1);
    for (size_t n = strlen(out); n > 0 && out[n - 1] == ' '; n--)
        out[n - 1] = '\0';
    return out;
}

static void only_rows_that_changed_are_copied(void **state)
{
    struct canvas *c = canvas_new(6, 20);
    struct screen s;
    (void)state;

    open_term("xterm-256color");
    struct styles styles = styles_of("dark");
    screen_init(&s);
    canvas_text(c, 0, 0, 20, STYLE_TEXT, "rain");
    canvas_text(c, 3, 2, 20, STYLE_ACCENT, "雨が降る");
    assert_int_equal(screen_flush(&s, c, &styles, 5, 0), 6);
    assert_string_equal(row_text(0), "rain");
    assert_string_equal(row_text(3), "  雨が降る");
    assert_int_equal(screen_flush(&s, c, &styles, 5, 0), 0);
    canvas_text(c, 3, 4, 1, STYLE_TEXT, "x"); /* takes half of a wide one */
    assert_int_equal(screen_flush(&s, c, &styles, 5, 0), 1);
    assert_string_equal(row_text(3), "  雨x 降る");
    canvas_text(c, 3, 4, 2, STYLE_TEXT, "が");
    canvas_text(c, 5, 18, 2, STYLE_TEXT, "ok"); /* the last cell does not scroll */
    assert_int_equal(screen_flush(&s, c, &styles, -1, 0), 2);
    assert_string_equal(row_text(3), "  雨が降る");
    assert_string_equal(row_text(0), "rain");
    assert_string_equal(row_text(5), "                  ok");
    screen_forget(&s);
    assert_int_equal(screen_flush(&s, c, &styles, 5, 0), 6);
    screen_done(&s);
    canvas_free(c);
    close_term();
}

/* A theme's ground is that of its text: a style without one of its own stands on it. */
static void styles_stand_on_the_ground_of_the_text(void **state)
{
    struct styles styles;
    struct error err;
    short fg, bg;
    struct theme *theme = theme_load("dark", &err);
    (void)state;

    assert_non_null(theme);
    unsetenv("NO_COLOR");
    theme->looks[STYLE_TEXT].bg_256 = 235;
    theme->looks[STYLE_ACCENT].bg_256 = -1;
    theme->looks[STYLE_FOCUS].bg_256 = 24;
    open_term("xterm-256color");
    styles_set(&styles, theme, styles_depth());
    pair_content((short)styles.pairs[STYLE_ACCENT], &fg, &bg);
    assert_int_equal(bg, 235);
    pair_content((short)styles.pairs[STYLE_FOCUS], &fg, &bg);
    assert_int_equal(bg, 24);
    close_term();
    theme_free(theme);
}

static void a_style_is_a_pair_or_attributes(void **state)
{
    short fg, bg;
    (void)state;

    unsetenv("NO_COLOR");
    open_term("xterm-256color");
    struct styles styles = styles_of("dark");
    assert_int_equal(styles.depth, DEPTH_256);
    pair_content((short)styles.pairs[STYLE_ACCENT], &fg, &bg);
    assert_in_range(fg, 16, 255);
    assert_int_equal(bg, -1);
    close_term();

    open_term("xterm");
    styles = styles_of("dark");
    assert_int_equal(styles.depth, DEPTH_8);
    for (int i = 0; i < STYLE_COUNT; i++) {
        if (styles.pairs[i] == 0)
            continue;
        pair_content((short)styles.pairs[i], &fg, &bg);
        assert_in_range(fg + 1, 0, 8);
        /* black on black would be nothing */
        assert_true(fg != 0 || bg > 0);
    }
    assert_true((styles.attrs[STYLE_DIM] & A_DIM) != 0);
    close_term();

    setenv("NO_COLOR", "1", 1);
    open_term("xterm-256color");
    styles = styles_of("dark");
    assert_int_equal(styles.depth, DEPTH_MONO);
    for (int i = 0; i < STYLE_COUNT; i++)
        assert_int_equal(styles.pairs[i], 0);
    /* heat is still told apart: four looks */
    for (int i = STYLE_HEAT_0; i < STYLE_HEAT_3; i++) {
        for (int k = i + 1; k <= STYLE_HEAT_3; k++)
            assert_true(styles.attrs[i] != styles.attrs[k]);
    }
    close_term();
    unsetenv("NO_COLOR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_rows_that_changed_are_copied),
        cmocka_unit_test(styles_stand_on_the_ground_of_the_text),
        cmocka_unit_test(a_style_is_a_pair_or_attributes),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
