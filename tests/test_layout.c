/* Layout as pictures: one letter a region, '.' for nothing. */
#include "test.h"

#include "base/str.h"
#include "tui/layout.h"

static void paint(char *picture, const struct layout *l, struct rect r, char letter)
{
    for (int row = r.row; row < r.row + r.rows; row++) {
        for (int col = r.col; col < r.col + r.cols; col++) {
            assert_in_range(row, 0, l->rows - 1);
            assert_in_range(col, 0, l->cols - 1);
            picture[row * l->cols + col] = letter;
        }
    }
}

static char *painted(const struct layout *l)
{
    char *picture = malloc((size_t)(l->rows * l->cols) + 1);

    memset(picture, '.', (size_t)(l->rows * l->cols));
    paint(picture, l, l->status, 'S');
    paint(picture, l, l->header, '=');
    paint(picture, l, l->transcript, 't');
    paint(picture, l, l->divider, '|');
    paint(picture, l, l->faders, 'F');
    paint(picture, l, l->seed, 's');
    paint(picture, l, l->candidates, 'c');
    paint(picture, l, l->plot, 'p');
    paint(picture, l, l->dice, 'd');
    paint(picture, l, l->strip, '-');
    paint(picture, l, l->hints, 'h');
    if (l->message.row != l->hints.row)
        paint(picture, l, l->message, 'm');
    paint(picture, l, l->input, '>');
    return picture;
}

/* The regions down one column, equal rows counted: "S1 =1 t20 >1 h1". */
static const char *column(const struct layout *l, int col)
{
    static struct str out;
    char *picture = painted(l);

    str_clear(&out);
    for (int row = 0; row < l->rows;) {
        int end = row;
        while (end < l->rows && picture[end * l->cols + col] == picture[row * l->cols + col])
            end++;
        str_add_format(&out, "%s%c%d", row > 0 ? " " : "", picture[row * l->cols + col], end - row);
        row = end;
    }
    free(picture);
    return str_text(&out);
}

static void the_desk_at_80x24(void **state)
{
    struct layout l = layout_compute(24, 80, PANEL_DESK, 1);
    (void)state;

    assert_string_equal(column(&l, 0), "S1 =1 t20 >1 h1");
    assert_string_equal(column(&l, 47), "S1 =1 |20 >1 h1");
    assert_string_equal(column(&l, 48), "S1 =1 F5 s1 c11 d3 >1 h1");
    assert_int_equal(l.transcript.cols, 47);
    assert_int_equal(l.faders.cols, 32);
    assert_int_equal(layout_text_width(&l), 43);
    assert_false(l.large);
}

static void the_desk_at_140x40(void **state)
{
    struct layout l = layout_compute(40, 140, PANEL_DESK, 1);
    (void)state;

    assert_string_equal(column(&l, 0), "S1 =1 t36 >1 h1");
    assert_string_equal(column(&l, 139), "S1 =1 F10 c20 p3 d3 >1 h1");
    assert_int_equal(l.transcript.cols, 96);
    assert_int_equal(l.faders.cols, 43);
    assert_true(l.large);
}

static void a_wide_screen_does_not_widen_the_text(void **state)
{
    struct layout l = layout_compute(120, 400, PANEL_DESK, 1);
    (void)state;

    assert_int_equal(layout_text_width(&l), LAYOUT_TEXT_MAX);
    assert_int_equal(l.message.rows, 1);
    assert_true(l.message.row < l.input.row);
}

static void small_terminals_get_the_strip(void **state)
{
    struct layout l = layout_compute(24, 59, PANEL_DESK, 1);
    (void)state;

    assert_int_equal(l.panel, PANEL_STRIP);
    assert_string_equal(column(&l, 0), "S1 =1 t19 -1 >1 h1");
    l = layout_compute(11, 80, PANEL_DESK, 1);
    assert_string_equal(column(&l, 79), "S1 t7 -1 >1 h1");
    l = layout_compute(12, 60, PANEL_DESK, 1);
    assert_int_equal(l.panel, PANEL_DESK);
    assert_string_equal(column(&l, 59), "S1 =1 F5 d3 >1 h1");
    l = layout_compute(5, 20, PANEL_DESK, 1);
    assert_string_equal(column(&l, 0), "S1 t1 -1 >1 h1");
}

static void bare_leaves_the_text(void **state)
{
    struct layout l = layout_compute(24, 80, PANEL_BARE, 1);
    (void)state;

    assert_string_equal(column(&l, 0), "S1 t21 >1 h1");
    assert_int_equal(l.transcript.cols, 80);
}

static void the_input_grows_to_a_third(void **state)
{
    struct layout l = layout_compute(24, 80, PANEL_DESK, 3);
    (void)state;

    assert_string_equal(column(&l, 0), "S1 =1 t18 >3 h1");
    l = layout_compute(24, 80, PANEL_DESK, 99);
    assert_int_equal(l.input.rows, 8);
    l = layout_compute(5, 20, PANEL_DESK, 99);
    assert_int_equal(l.input.rows, 1);
}

static bool overlap(struct rect a, struct rect b)
{
    return a.rows > 0 && b.rows > 0 && a.cols > 0 && b.cols > 0 && a.row < b.row + b.rows &&
           b.row < a.row + a.rows && a.col < b.col + b.cols && b.col < a.col + a.cols;
}

/* At every size: nothing overlaps, nothing sticks out, and the input is there. */
static void every_size_is_sound(void **state)
{
    (void)state;
    for (int rows = 1; rows <= 125; rows++) {
        for (int cols = 1; cols <= 410; cols += rows % 3 + 1) {
            for (int mode = 0; mode < PANEL_COUNT; mode++) {
                struct layout l = layout_compute(rows, cols, (enum panel_mode)mode, rows % 7);
                const struct rect all[] = {l.status, l.header,     l.transcript, l.divider,
                                           l.strip,  l.input,      l.hints,      l.faders,
                                           l.seed,   l.candidates, l.plot,       l.dice};
                enum { N = sizeof all / sizeof *all };
                for (int i = 0; i < N; i++) {
                    assert_true(all[i].rows >= 0 && all[i].cols >= 0);
                    assert_true(all[i].row + all[i].rows <= rows &&
                                all[i].col + all[i].cols <= cols);
                    for (int k = i + 1; k < N; k++)
                        assert_false(overlap(all[i], all[k]));
                }
                assert_true(l.input.rows >= 1);
                assert_true(rows < 5 || l.transcript.rows >= 1);
                assert_true(layout_text_width(&l) >= 1 && layout_text_width(&l) <= LAYOUT_TEXT_MAX);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_desk_at_80x24),
        cmocka_unit_test(the_desk_at_140x40),
        cmocka_unit_test(a_wide_screen_does_not_widen_the_text),
        cmocka_unit_test(small_terminals_get_the_strip),
        cmocka_unit_test(bare_leaves_the_text),
        cmocka_unit_test(the_input_grows_to_a_third),
        cmocka_unit_test(every_size_is_sound),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
