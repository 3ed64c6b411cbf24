#include "test.h"

#include "app/keys.h"
#include "base/mem.h"
#include "tui/decoder.h"

#define MS ((int64_t)1000000)

static const struct decoder_options plain = {.escape_ns = 25 * MS};

/* ---- keys: every sequence alone, whole and split at every byte ------------------------------- */

struct known {
    const char *bytes;
    int key;
    const char *raw; /* NULL: the bytes themselves */
};

static const struct known keys[] = {
    {"a", 'a', NULL},
    {"~", '~', NULL},
    {"\r", '\r', NULL},
    {"\n", '\n', NULL},
    {"\t", '\t', NULL},
    {"\003", 3, NULL},
    {"\032", 26, NULL},
    {"\037", 31, NULL},
    {"\177", 127, NULL},
    {"\b", 8, NULL},
    {"\303\251", 0xE9, NULL},
    {"\344\270\255", 0x4E2D, NULL},
    {"\360\237\230\200", 0x1F600, NULL},
    {"\033a", KEYMOD_ALT | 'a', NULL},
    {"\033\r", KEYMOD_ALT | '\r', NULL},
    {"\033\177", KEYMOD_ALT | 127, NULL},
    {"\033\303\251", KEYMOD_ALT | 0xE9, NULL},
    {"\033\t", KEYS_BACKTAB, NULL},
    {"\033[Z", KEYS_BACKTAB, NULL},
    {"\033[A", KEYS_UP, NULL},
    {"\033OA", KEYS_UP, NULL},
    {"\033[B", KEYS_DOWN, NULL},
    {"\033[C", KEYS_RIGHT, NULL},
    {"\033OD", KEYS_LEFT, NULL},
    {"\033[H", KEYS_HOME, NULL},
    {"\033OF", KEYS_END, NULL},
    {"\033[1~", KEYS_HOME, NULL},
    {"\033[7~", KEYS_HOME, NULL},
    {"\033[4~", KEYS_END, NULL},
    {"\033[2~", KEYS_INSERT, NULL},
    {"\033[3~", KEYS_DELETE, NULL},
    {"\033[5~", KEYS_PAGE_UP, NULL},
    {"\033[6~", KEYS_PAGE_DOWN, NULL},
    {"\033OP", KEYS_F1, NULL},
    {"\033[11~", KEYS_F1, NULL},
    {"\033[[A", KEYS_F1, NULL},
    {"\033[[E", KEYS_F5, NULL},
    {"\033[15~", KEYS_F5, NULL},
    {"\033[17~", KEYS_F6, NULL},
    {"\033[24~", KEYS_F12, NULL},
    {"\033[1;5A", KEYMOD_CTRL | KEYS_UP, NULL},
    {"\033[1;2D", KEYMOD_SHIFT | KEYS_LEFT, NULL},
    {"\033[1;3C", KEYMOD_ALT | KEYS_RIGHT, NULL},
    {"\033[1;9C", KEYMOD_ALT | KEYS_RIGHT, NULL},
    {"\033[1;8C", KEYMOD_ALT | KEYMOD_CTRL | KEYMOD_SHIFT | KEYS_RIGHT, NULL},
    {"\033[3;5~", KEYMOD_CTRL | KEYS_DELETE, NULL},
    {"\033[1;2R", KEYMOD_SHIFT | KEYS_F3, NULL},
    {"\033\033[A", KEYMOD_ALT | KEYS_UP, NULL},
    {"\033\033OA", KEYMOD_ALT | KEYS_UP, NULL},
    {"\033[a", KEYMOD_SHIFT | KEYS_UP, NULL}, /* rxvt */
    {"\033Oa", KEYMOD_CTRL | KEYS_UP, NULL},
    {"\033[3^", KEYMOD_CTRL | KEYS_DELETE, NULL},
    {"\033[3$", KEYMOD_SHIFT | KEYS_DELETE, NULL},
    {"\033[3@", KEYMOD_SHIFT | KEYMOD_CTRL | KEYS_DELETE, NULL},
    {"\033OM", '\r', "\r"}, /* keypad */
    {"\033Oq", '1', "1"},
    {"\033[97;5u", 1, "\001"}, /* keys as numbers */
    {"\033[97;3u", KEYMOD_ALT | 'a', "\033a"},
    {"\033[13;2u", KEYMOD_SHIFT | '\r', ""},
    {"\033[27;5;106~", 10, "\n"},
    {"\033[9;2u", KEYS_BACKTAB, "\033[Z"},
    {"\033[233u", 0xE9, "\303\251"},
    {"\033[97:65;2u", 'a', "a"},
    {"\030p", KEYMOD_CTRL_X | 'p', NULL}, /* ^X and a key */
    {"\030 ", KEYMOD_CTRL_X | ' ', NULL},
    {"\030R", KEYMOD_CTRL_X | 'R', NULL},
    {"\030\005", KEYMOD_CTRL_X | 5, NULL},
    {"\030\030", KEYMOD_CTRL_X | 24, NULL},
    {"\030\033[D", KEYMOD_CTRL_X | KEYS_LEFT, NULL},
    {"\030\003", 3, "\003"},
};

static void check_key(struct decoder *d, const struct known *k, const char *how, size_t cut)
{
    const char *raw = k->raw != NULL ? k->raw : k->bytes;
    struct term_event e;

    if (!decoder_next(d, &e))
        fail_msg("%s %zu: no event for %s", how, cut, k->bytes + 1);
    if (e.kind != TERM_KEY || e.key != k->key)
        fail_msg("%s %zu: kind %d, key %x, not %x for %s", how, cut, e.kind, (unsigned)e.key,
                 (unsigned)k->key, k->bytes + 1);
    assert_int_equal(e.raw_len, strlen(raw));
    assert_memory_equal(e.raw, raw, e.raw_len);
    assert_false(decoder_next(d, &e));
    assert_int_equal(decoder_deadline(d), INT64_MAX);
}

static void test_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct known *k = &keys[i];
        size_t len = strlen(k->bytes);
        for (size_t cut = 0; cut < len; cut++) {
            struct decoder d;
            decoder_init(&d, &plain);
            decoder_feed(&d, k->bytes, cut, 0);
            decoder_expire(&d, 24 * MS);
            decoder_feed(&d, k->bytes + cut, len - cut, 24 * MS);
            check_key(&d, k, "cut", cut);
            decoder_done(&d);
        }
    }
}

/* All of them one after the other in one read: no sequence eats into the next. */
static void test_keys_in_a_row(void **state)
{
    struct decoder d;
    struct term_event e;
    (void)state;

    decoder_init(&d, &plain);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        decoder_feed(&d, keys[i].bytes, strlen(keys[i].bytes), (int64_t)i * 2000 * MS);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_true(decoder_next(&d, &e));
        assert_int_equal(e.key, keys[i].key);
    }
    assert_false(decoder_next(&d, &e));
    decoder_done(&d);
}

static void feed_text(struct decoder *d, const char *bytes, int64_t now_ns)
{
    decoder_feed(d, bytes, strlen(bytes), now_ns);
}

static void expect_key(struct decoder *d, int key)
{
    struct term_event e;

    assert_true(decoder_next(d, &e));
    assert_int_equal(e.kind, TERM_KEY);
    assert_int_equal(e.key, key);
}

static void expect_nothing(struct decoder *d)
{
    struct term_event e;

    assert_false(decoder_next(d, &e));
}

static void test_escape(void **state)
{
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    feed_text(&d, "\033", 1000);
    assert_int_equal(decoder_deadline(&d), 1000 + 25 * MS);
    decoder_expire(&d, 25 * MS);
    expect_nothing(&d);
    decoder_expire(&d, 1000 + 25 * MS);
    expect_key(&d, 27);
    feed_text(&d, "[A", 100 * MS); /* too late to be a sequence */
    expect_key(&d, '[');
    expect_key(&d, 'A');

    feed_text(&d, "\033[", 200 * MS); /* Alt-[ */
    decoder_expire(&d, 225 * MS);
    expect_key(&d, KEYMOD_ALT | '[');
    feed_text(&d, "\033\033", 300 * MS);
    decoder_expire(&d, 325 * MS);
    expect_key(&d, 27);
    expect_key(&d, 27);
    feed_text(&d, "\033\033x", 400 * MS); /* Esc, Alt-x */
    expect_key(&d, 27);
    expect_key(&d, KEYMOD_ALT | 'x');
    feed_text(&d, "\033[1;\033[B", 500 * MS); /* one begun and left */
    expect_key(&d, KEYS_DOWN);
    feed_text(&d, "\033[12\003", 600 * MS); /* a control character is no part of it */
    expect_key(&d, 3);
    feed_text(&d, "\033[12", 700 * MS);
    decoder_expire(&d, 800 * MS);
    expect_nothing(&d);
    decoder_expire(&d, 2700 * MS);
    feed_text(&d, "x", 2700 * MS);
    expect_key(&d, 'x');
    expect_nothing(&d);
    decoder_done(&d);
}

static void test_invalid(void **state)
{
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    feed_text(&d, "\377\300\344\270x\200\303", 0);
    expect_key(&d, 'x');
    expect_nothing(&d);
    feed_text(&d, "\033[A", 0);
    expect_key(&d, KEYS_UP);
    /* longer than any sequence: swallowed whole */
    feed_text(&d, "\033[1111111111;2222222222;3333333333;4444444444;5555555555mZ", 0);
    expect_key(&d, 'Z');
    expect_nothing(&d);
    feed_text(&d, "\033[99~\033[I\033[O\033[57399u\033[?7z", 0); /* unknown ones */
    struct term_event e;
    assert_true(decoder_next(&d, &e));
    assert_int_equal(e.kind, TERM_REPLY);
    assert_int_equal(e.reply, REPLY_OTHER);
    expect_nothing(&d);
    decoder_done(&d);
}

static void test_repeat(void **state)
{
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    feed_text(&d, "\030\033[C", 0);
    expect_key(&d, KEYMOD_CTRL_X | KEYS_RIGHT);
    feed_text(&d, "\033[C", 900 * MS);
    expect_key(&d, KEYMOD_CTRL_X | KEYS_RIGHT);
    feed_text(&d, "\033[A", 1800 * MS);
    expect_key(&d, KEYMOD_CTRL_X | KEYS_UP);
    feed_text(&d, "\033[C", 2801 * MS); /* a second has passed */
    expect_key(&d, KEYS_RIGHT);
    feed_text(&d, "\030\033[Cx\033[C", 3000 * MS); /* another key ends it */
    expect_key(&d, KEYMOD_CTRL_X | KEYS_RIGHT);
    expect_key(&d, 'x');
    expect_key(&d, KEYS_RIGHT);
    feed_text(&d, "\030", 4000 * MS);
    feed_text(&d, "\033", 4000 * MS); /* ^X Esc is nothing */
    decoder_expire(&d, 4100 * MS);
    expect_nothing(&d);
    feed_text(&d, "p", 4200 * MS);
    expect_key(&d, 'p');
    decoder_done(&d);
}

static void test_backspace(void **state)
{
    const struct decoder_options with_h = {.escape_ns = 25 * MS, .backspace_is_h = true};
    struct decoder d;
    (void)state;

    decoder_init(&d, &with_h);
    feed_text(&d, "\b\033\b", 0);
    expect_key(&d, 127);
    expect_key(&d, KEYMOD_ALT | 127);
    decoder_done(&d);
}

/* ---- mouse ---------------------------------------------------------------------------------- */

static void expect_mouse(struct decoder *d, enum mouse_kind kind, int button, int x, int y,
                         int clicks)
{
    struct term_event e;

    assert_true(decoder_next(d, &e));
    assert_int_equal(e.kind, TERM_MOUSE);
    assert_int_equal(e.mouse.kind, kind);
    assert_int_equal(e.mouse.button, button);
    assert_int_equal(e.mouse.x, x);
    assert_int_equal(e.mouse.y, y);
    assert_int_equal(e.mouse.clicks, clicks);
}

static void test_mouse(void **state)
{
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    feed_text(&d, "\033[<0;10;5m", 0); /* a release of nothing */
    expect_nothing(&d);
    feed_text(&d, "\033[<0;10;5M\033[<32;300;5M\033[<0;300;5m", 0);
    expect_mouse(&d, MOUSE_PRESS, 1, 9, 4, 1);
    expect_mouse(&d, MOUSE_DRAG, 1, 299, 4, 0);
    expect_mouse(&d, MOUSE_RELEASE, 1, 299, 4, 0);
    feed_text(&d, "\033[<64;1;1M\033[<65;1;1M\033[<66;1;1M\033[<2;1;1M", 0);
    expect_mouse(&d, MOUSE_WHEEL_UP, 0, 0, 0, 0);
    expect_mouse(&d, MOUSE_WHEEL_DOWN, 0, 0, 0, 0);
    expect_mouse(&d, MOUSE_PRESS, 3, 0, 0, 1);
    feed_text(&d, "\033[<2;1;1m\033[<0;0;5M\033[<35;4;4M",
              0); /* column 0; motion without a button */
    expect_mouse(&d, MOUSE_RELEASE, 3, 0, 0, 0);
    expect_nothing(&d);
    feed_text(&d, "\033[M !!\033[M#!!", 0); /* the old encoding */
    expect_mouse(&d, MOUSE_PRESS, 1, 0, 0, 1);
    expect_mouse(&d, MOUSE_RELEASE, 1, 0, 0, 0);
    decoder_done(&d);
}

static void test_clicks(void **state)
{
    static const char click[] = "\033[<0;7;7M\033[<0;7;7m";
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    for (int i = 0; i < 3; i++) {
        feed_text(&d, click, i * 300 * MS);
        expect_mouse(&d, MOUSE_PRESS, 1, 6, 6, i + 1);
        expect_mouse(&d, MOUSE_RELEASE, 1, 6, 6, 0);
    }
    feed_text(&d, click, 1100 * MS); /* too slow */
    expect_mouse(&d, MOUSE_PRESS, 1, 6, 6, 1);
    expect_mouse(&d, MOUSE_RELEASE, 1, 6, 6, 0);
    feed_text(&d, "\033[<0;8;7M", 1200 * MS); /* elsewhere */
    expect_mouse(&d, MOUSE_PRESS, 1, 7, 6, 1);
    decoder_done(&d);
}

/* ---- paste ---------------------------------------------------------------------------------- */

static void expect_paste(struct decoder *d, const char *text)
{
    struct term_event e;

    assert_true(decoder_next(d, &e));
    assert_int_equal(e.kind, TERM_PASTE);
    assert_string_equal(e.text, text);
    assert_int_equal(e.len, strlen(text));
}

static void test_paste(void **state)
{
    static const char bytes[] =
        "\033[200~one\r\ntwo\rthree\n\033[201x\033\033[A\003\302\205\344\270\255\377\033[201~z";
    struct decoder d;
    (void)state;

    for (size_t cut = 0; cut <= sizeof bytes - 1; cut++) {
        decoder_init(&d, &plain);
        decoder_feed(&d, bytes, cut, 0);
        decoder_expire(&d, 20 * MS);
        decoder_feed(&d, bytes + cut, sizeof bytes - 1 - cut, 20 * MS);
        expect_paste(&d, "one\ntwo\nthree\n[201x[A\344\270\255\357\277\275");
        expect_key(&d, 'z');
        expect_nothing(&d);
        decoder_done(&d);
    }
    decoder_init(&d, &plain);
    feed_text(&d, "\033[200~\033[201~", 0);
    expect_paste(&d, "");
    feed_text(&d, "\033[200~lost", 0); /* its end never comes */
    decoder_expire(&d, 4999 * MS);
    expect_nothing(&d);
    decoder_expire(&d, 5000 * MS);
    expect_paste(&d, "lost");
    feed_text(&d, "\033[200~not taken\033[201~", 0); /* freed with the decoder */
    decoder_done(&d);
}

static void test_paste_huge(void **state)
{
    size_t size = 3 << 20;
    char *bytes = mem_alloc(size);
    struct term_event e;
    struct decoder d;
    (void)state;

    memset(bytes, 'x', size);
    decoder_init(&d, &plain);
    feed_text(&d, "\033[200~", 0);
    decoder_feed(&d, bytes, size, 0);
    feed_text(&d, "\033[201~q", 0);
    assert_true(decoder_next(&d, &e));
    assert_int_equal(e.len, 1 << 20);
    expect_key(&d, 'q');
    decoder_done(&d);
    free(bytes);
}

/* ---- replies -------------------------------------------------------------------------------- */

static void expect_reply(struct decoder *d, enum term_reply reply, int a, int b)
{
    struct term_event e;

    assert_true(decoder_next(d, &e));
    assert_int_equal(e.kind, TERM_REPLY);
    assert_int_equal(e.reply, reply);
    assert_int_equal(e.reply_a, a);
    assert_int_equal(e.reply_b, b);
}

static void test_replies(void **state)
{
    static const char bytes[] = "\033[?2026;2$y\033[2;3R\033[?62;4c";
    struct decoder d;
    (void)state;

    for (size_t cut = 0; cut <= sizeof bytes - 1; cut++) {
        decoder_init(&d, &plain);
        decoder_await_reply(&d, 1000 * MS);
        decoder_feed(&d, bytes, cut, 10 * MS);
        decoder_expire(&d, 200 * MS); /* late: more than an Esc would be waited for */
        decoder_feed(&d, bytes + cut, sizeof bytes - 1 - cut, 200 * MS);
        expect_reply(&d, REPLY_SYNC, 2, 0);
        expect_reply(&d, REPLY_CURSOR, 2, 3);
        expect_reply(&d, REPLY_OTHER, 0, 0);
        expect_nothing(&d);
        decoder_done(&d);
    }
}

/* Answers to questions that an earlier program asked come in the first second, and are nothing to
 * us. */
static void test_strings(void **state)
{
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    decoder_await_reply(&d, 1000 * MS);
    feed_text(&d, "\033]11;rgb:0000/0000/0000\033\\a\033P1+r5463=1b\033\\\033]10;x\007b", 500 * MS);
    expect_reply(&d, REPLY_OTHER, 0, 0);
    expect_key(&d, 'a');
    expect_reply(&d, REPLY_OTHER, 0, 0);
    expect_reply(&d, REPLY_OTHER, 0, 0);
    expect_key(&d, 'b');
    feed_text(&d, "\033]", 2000 * MS); /* later it is Alt-] */
    expect_key(&d, KEYMOD_ALT | ']');
    decoder_done(&d);
}

/* Any bytes at all: no crash, no hang, and afterwards a key is a key. */
static void test_noise(void **state)
{
    uint32_t x = 12345;
    struct term_event e;
    struct decoder d;
    (void)state;

    decoder_init(&d, &plain);
    decoder_await_reply(&d, INT64_MAX);
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        for (size_t i = 0; i < sizeof bytes; i++) {
            x = x * 1664525 + 1013904223;
            bytes[i] = (x >> 28) < 6 ? "\033[O;M<~0159?$\030"[(x >> 16) % 14] : (char)(x >> 16);
        }
        decoder_feed(&d, bytes, sizeof bytes, round * MS);
        while (decoder_next(&d, &e))
            assert_true(e.kind <= TERM_REPLY && e.raw_len <= TERM_RAW_MAX);
    }
    decoder_expire(&d, INT64_MAX / 2);
    while (decoder_next(&d, &e))
        ;
    feed_text(&d, "x\003", INT64_MAX / 2); /* the first may be the second half of a ^X */
    bool found = false;
    while (decoder_next(&d, &e))
        found = e.key == 3;
    assert_true(found);
    decoder_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),    cmocka_unit_test(test_keys_in_a_row),
        cmocka_unit_test(test_escape),  cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_repeat),  cmocka_unit_test(test_backspace),
        cmocka_unit_test(test_mouse),   cmocka_unit_test(test_clicks),
        cmocka_unit_test(test_paste),   cmocka_unit_test(test_paste_huge),
        cmocka_unit_test(test_replies), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
