/* Wrapping: where rows break, and that appending only adds. */
#include "test.h"

#include <locale.h>

#include "base/str.h"
#include "tui/wrap.h"

/* The rows of a text, each in brackets; code rows in braces; a newline is shown as '/'. */
static void add_rows(struct str *out, const struct wrap *w, const char *text)
{
    for (size_t i = 0; i < w->n; i++) {
        bool code = (w->rows[i].flags & WRAP_CODE) != 0;
        str_add_char(out, code ? '{' : '[');
        for (size_t at = w->rows[i].start; at < w->rows[i].end; at++)
            str_add_char(out, text[at] == '\n' ? '/' : text[at]);
        str_add_char(out, code ? '}' : ']');
    }
}

static const char *rows_of(const char *text, int width)
{
    static struct str out;
    struct wrap w;

    str_clear(&out);
    wrap_init(&w, width);
    wrap_extend(&w, text, strlen(text));
    add_rows(&out, &w, text);
    wrap_done(&w);
    return str_text(&out);
}

static void words_stay_whole(void **state)
{
    (void)state;
    assert_string_equal(rows_of("", 10), "[]");
    assert_string_equal(rows_of("the rain taps", 10), "[the rain ][taps]");
    assert_string_equal(rows_of("the rain", 8), "[the rain]");
    assert_string_equal(rows_of("the rain    taps", 8), "[the rain    ][taps]");
    assert_string_equal(rows_of("a\n\nb\n", 8), "[a/][/][b/][]");
    assert_string_equal(rows_of("the rain\ntaps", 8), "[the rain/][taps]");
}

static void a_word_longer_than_a_row_is_broken(void **state)
{
    (void)state;
    assert_string_equal(rows_of("no abcdefghij k", 6), "[no ][abcdef][ghij k]");
    assert_string_equal(rows_of("abcdef", 4), "[abcd][ef]");
}

static void wide_text_breaks_between_characters(void **state)
{
    (void)state;
    assert_string_equal(rows_of("雨が降る", 5), "[雨が][降る]");
    /* a full stop does not begin a row, an opening bracket does not end one */
    assert_string_equal(rows_of("雨が。降", 5), "[雨][が。][降]");
    assert_string_equal(rows_of("雨「が降", 5), "[雨][「が][降]");
    /* one that is wider than the row still goes somewhere */
    assert_string_equal(rows_of("雨", 1), "[雨]");
}

static void emoji_are_not_split(void **state)
{
    (void)state;
    const char *text =
        "ab "
        "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80";
    struct wrap w;

    wrap_init(&w, 4);
    wrap_extend(&w, text, strlen(text));
    assert_int_equal(w.n, 2);
    assert_int_equal(w.rows[1].end - w.rows[1].start, 22);
    wrap_done(&w);
}

static void code_is_not_rewrapped(void **state)
{
    (void)state;
    assert_string_equal(rows_of("x\n```c\nif (a)  b\n```\ny z", 8),
                        "[x/]{```c/}{if (a)  }{b/}{```/}[y z]");
    assert_string_equal(rows_of("```\na   b\n", 20), "{```/}{a   b/}{}");
    assert_string_equal(rows_of("```\nabc defghij", 8), "{```/}{abc defg}{hij}");
    assert_string_equal(rows_of("a ``` b", 20), "[a ``` b]");
}

static void tabs_go_to_the_next_stop(void **state)
{
    (void)state;
    assert_string_equal(rows_of("```\n\tab\tc", 8), "{```/}{\tab\t}{c}");
    assert_string_equal(rows_of("```\n\tab\tc", 9), "{```/}{\tab\tc}");
}

/* The rows at 24 columns with one reservation. */
static const char *rows_with(const char *text, const struct wrap_reserve *reserve)
{
    static struct str out;
    struct wrap w;

    str_clear(&out);
    wrap_init(&w, 24);
    w.reserves = reserve;
    w.n_reserves = 1;
    wrap_extend(&w, text, strlen(text));
    add_rows(&out, &w, text);
    wrap_done(&w);
    return str_text(&out);
}

static void labels_get_their_room(void **state)
{
    static const char text[] = "the rain taps out a code on the tin";
    (void)state;
    /* from "rain" on, eight columns less */
    assert_string_equal(rows_with(text, &(struct wrap_reserve){4, 8, 4}),
                        "[the rain taps ][out a code on the tin]");
    /* "taps" has come too far for eight, but not for four */
    assert_string_equal(rows_with(text, &(struct wrap_reserve){9, 8, 4}),
                        "[the rain taps out a ][code on the tin]");
    /* "a" begins another row, and has its room there */
    assert_string_equal(rows_with(text, &(struct wrap_reserve){18, 8, 4}),
                        "[the rain taps out ][a code on the ][tin]");
    /* but a word is not torn */
    assert_string_equal(rows_with(text, &(struct wrap_reserve){22, 8, 4}),
                        "[the rain taps out a code ][on the tin]");
}

static void finding_a_row(void **state)
{
    struct wrap w;
    const char *text = "the rain taps out";
    (void)state;

    wrap_init(&w, 9);
    wrap_extend(&w, text, strlen(text));
    assert_int_equal(w.n, 2);
    assert_int_equal(wrap_find(&w, 0), 0);
    assert_int_equal(wrap_find(&w, 8), 0);
    assert_int_equal(wrap_find(&w, 9), 1);
    assert_int_equal(wrap_find(&w, 99), 1);
    wrap_done(&w);
}

/* Text that came piece by piece lies as if it had come at once, and no row but the last ever moved.
 */
static void appending_only_adds(void **state)
{
    static const char *const pieces[] = {"rain ", "tin",      " ",
                                         "\n",    "雨",       "。",
                                         "e",     "\xCC\x81", "``",
                                         "`",     "\t",       "a-very-long-word-",
                                         "  ",    "roof",     "\xF0\x9F\x91\xA9",
                                         "("};
    uint32_t seed = 7;
    (void)state;

    for (int round = 0; round < 300; round++) {
        struct str text = STR_INIT;
        struct wrap grown, whole;
        struct wrap_row before[256];
        wrap_init(&grown, 5 + round % 12);
        wrap_init(&whole, 5 + round % 12);
        for (int i = 0; i < 60; i++) {
            size_t n = grown.n;
            if (n > 0)
                memcpy(before, grown.rows, n * sizeof *before);
            seed = seed * 1664525 + 1013904223;
            str_add_text(&text, pieces[(seed >> 24) % (sizeof pieces / sizeof *pieces)]);
            size_t first = wrap_extend(&grown, text.data, text.len);
            assert_true(n == 0 ? first == 0 : first == n - 1);
            for (size_t r = 0; r + 1 < n; r++) {
                assert_int_equal(grown.rows[r].start, before[r].start);
                assert_int_equal(grown.rows[r].end, before[r].end);
                assert_int_equal(grown.rows[r].flags, before[r].flags);
            }
            wrap_reset(&whole, whole.width);
            wrap_extend(&whole, text.data, text.len);
            assert_int_equal(whole.n, grown.n);
            for (size_t r = 0; r < whole.n; r++) {
                assert_int_equal(grown.rows[r].start, whole.rows[r].start);
                assert_int_equal(grown.rows[r].end, whole.rows[r].end);
                assert_int_equal(grown.rows[r].flags, whole.rows[r].flags);
            }
        }
        /* rows cover the text without a gap */
        for (size_t r = 0; r < grown.n; r++)
            assert_int_equal(grown.rows[r].start, r > 0 ? grown.rows[r - 1].end : 0);
        assert_int_equal(grown.rows[grown.n - 1].end, text.len);
        wrap_done(&grown);
        wrap_done(&whole);
        str_done(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_stay_whole),
        cmocka_unit_test(a_word_longer_than_a_row_is_broken),
        cmocka_unit_test(wide_text_breaks_between_characters),
        cmocka_unit_test(emoji_are_not_split),
        cmocka_unit_test(code_is_not_rewrapped),
        cmocka_unit_test(tabs_go_to_the_next_stop),
        cmocka_unit_test(labels_get_their_room),
        cmocka_unit_test(finding_a_row),
        cmocka_unit_test(appending_only_adds),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("wrap", tests, NULL, NULL);
}
