/* Graphemes, their width, and the cells they are drawn in. */
#include "test.h"

#include <locale.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tui/textwidth.h"

/* The glyphs of a text, those of one grapheme together, graphemes parted by '|', wide glyphs
 * followed by '='. */
static const char *drawn(const char *text, size_t len)
{
    static struct str out;
    struct glyph glyphs[GRAPHEME_GLYPHS];
    struct grapheme g;

    str_clear(&out);
    for (size_t at = 0; at < len; at += g.len) {
        text_next(text + at, len - at, &g);
        size_t n = text_glyphs(text + at, &g, glyphs);
        if (at > 0)
            str_add_char(&out, '|');
        for (size_t i = 0; i < n; i++) {
            char bytes[4];
            for (int k = 0; k < GLYPH_POINTS && glyphs[i].points[k] != 0; k++)
                str_add(&out, bytes, utf8_encode(glyphs[i].points[k], bytes));
            if (glyphs[i].width == 2)
                str_add_char(&out, '=');
        }
    }
    return str_text(&out);
}

#define assert_drawn(text, expected) assert_string_equal(drawn(text, sizeof(text) - 1), expected)

static void plain_and_accented_letters(void **state)
{
    (void)state;
    assert_drawn("ab c", "a|b| |c");
    assert_drawn("e\xCC\x81x", "e\xCC\x81|x"); /* e + combining acute */
    assert_drawn("\xC3\xA9", "\xC3\xA9");
    assert_int_equal(text_width("e\xCC\x81x", 4), 2);
}

static void wide_characters_take_two_columns(void **state)
{
    (void)state;
    assert_drawn("雨ab", "雨=|a|b");
    assert_int_equal(text_width("雨の音", strlen("雨の音")), 6);
    assert_drawn("\xEA\xB0\x80\xEB\x82\x98", "\xEA\xB0\x80=|\xEB\x82\x98="); /* Hangul */
    /* conjoining jamo are one syllable of two columns */
    assert_int_equal(text_width("\xE1\x84\x80\xE1\x85\xA1", 6), 2);
}

static void joined_emoji_are_their_first_code_point(void **state)
{
    (void)state;
    assert_drawn("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80!",
                 "\xF0\x9F\x91\xA9=|!"); /* astronaut */
    assert_drawn("\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD",
                 "\xF0\x9F\x91\x8D=");                        /* thumb with a skin tone */
    assert_drawn("\xE2\x9D\xA4\xEF\xB8\x8F", "\xE2\x9D\xA4"); /* heart in emoji style */
    /* a flag is two code points and one grapheme */
    struct grapheme g;
    text_next("\xF0\x9F\x87\xAF\xF0\x9F\x87\xB5x", 9, &g);
    assert_int_equal(g.len, 8);
}

static void spacing_vowels_stay_with_their_letter(void **state)
{
    struct grapheme g;
    (void)state;

    text_next("\xE0\xA4\x95\xE0\xA4\xBE"
              "x",
              7, &g); /* Devanagari kaa */
    assert_int_equal(g.len, 6);
    struct glyph glyphs[GRAPHEME_GLYPHS];
    assert_int_equal(text_glyphs("\xE0\xA4\x95\xE0\xA4\xBE", &g, glyphs), 2);
    assert_int_equal(g.width, 2);
}

static void what_would_steer_a_terminal_is_shown(void **state)
{
    (void)state;
    assert_drawn("\x1B[2J", "␛|[|2|J");
    assert_drawn("\x07\x7F", "␇|␡");
    assert_drawn("\xC2\x9B", "‹9B›");          /* C1: CSI */
    assert_drawn("\xE2\x80\xAEx", "‹202E›|x"); /* right-to-left override */
    assert_drawn("\xC2\xAD", "‹AD›");          /* a soft hyphen: some draw it, some do not */
    assert_drawn("\xEF\xBB\xBF", "‹FEFF›");
    assert_drawn("\xCC\x81", "‹0301›"); /* a mark with nothing to stand on */
    assert_drawn("a\rb", "a|␍|b");
    assert_drawn("\xFF", "\xEF\xBF\xBD");
}

static void lines_and_tabs(void **state)
{
    struct grapheme g;
    (void)state;

    text_next("\r\nx", 3, &g);
    assert_int_equal(g.kind, GRAPHEME_NEWLINE);
    assert_int_equal(g.len, 2);
    assert_int_equal(text_width("\tx", 2), TEXT_TAB + 1);
    assert_int_equal(text_width("abc\tx", 5), TEXT_TAB + 1);
}

static void fitting_never_splits_a_grapheme(void **state)
{
    (void)state;
    assert_int_equal(text_fit("a雨b", strlen("a雨b"), 2), 1);
    assert_int_equal(text_fit("a雨b", strlen("a雨b"), 3), 4);
    assert_int_equal(text_fit("e\xCC\x81x", 4, 1), 3);
    assert_int_equal(text_fit("abc", 3, 9), 3);
}

/* Whatever the bytes: it moves on, and nothing that could be obeyed comes out. */
static void any_bytes_are_harmless(void **state)
{
    uint32_t seed = 12345;
    (void)state;

    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = (char)(seed >> 24);
        }
        for (size_t at = 0; at < sizeof bytes;) {
            struct glyph glyphs[GRAPHEME_GLYPHS];
            struct grapheme g;
            text_next(bytes + at, sizeof bytes - at, &g);
            assert_true(g.len > 0 && g.len <= sizeof bytes - at);
            size_t n = text_glyphs(bytes + at, &g, glyphs);
            int width = 0;
            for (size_t i = 0; i < n; i++) {
                assert_true(glyphs[i].points[0] >= 0x20 && glyphs[i].points[0] != 0x7F);
                assert_false(glyphs[i].points[0] >= 0x80 && glyphs[i].points[0] < 0xA0);
                assert_in_range(glyphs[i].width, 1, 2);
                width += glyphs[i].width;
            }
            if (g.kind != GRAPHEME_TAB)
                assert_int_equal(width, g.width);
            at += g.len;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_accented_letters),
        cmocka_unit_test(wide_characters_take_two_columns),
        cmocka_unit_test(joined_emoji_are_their_first_code_point),
        cmocka_unit_test(spacing_vowels_stay_with_their_letter),
        cmocka_unit_test(what_would_steer_a_terminal_is_shown),
        cmocka_unit_test(lines_and_tabs),
        cmocka_unit_test(fitting_never_splits_a_grapheme),
        cmocka_unit_test(any_bytes_are_harmless),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("textwidth", tests, NULL, NULL);
}
