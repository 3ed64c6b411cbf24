/* The one table of keys, and the text that comes from it. */
#include "test.h"

#include "app/keys.h"
#include "base/str.h"

static void test_found(void **state)
{
    (void)state;
    assert_int_equal(keys_find(FOCUS_INPUT, KEYS_F5), ACTION_PAUSE);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_CTRL_X | ' '), ACTION_PAUSE);
    assert_int_equal(keys_find(FOCUS_TRANSCRIPT, KEYMOD_CTRL_X | '.'), ACTION_STEP);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_CTRL_X | 'r'), ACTION_RETRY);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_CTRL_X | 'R'), ACTION_RETRY_SAME);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_CTRL_X | 5), ACTION_EDITOR);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_CTRL_X | KEYS_LEFT), ACTION_NUDGE_LEFT);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_ALT | 'k'), ACTION_NUDGE_RIGHT);
    assert_int_equal(keys_find(FOCUS_INPUT, 3), ACTION_STOP);
    /* a place's own binding comes before the one that holds anywhere */
    assert_int_equal(keys_find(FOCUS_FADERS, KEYS_LEFT), ACTION_NUDGE_LEFT);
    assert_int_equal(keys_find(FOCUS_TRANSCRIPT, KEYS_LEFT), ACTION_TOKEN_LEFT);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYS_LEFT), ACTION_NONE);
    assert_int_equal(keys_find(FOCUS_FADERS, 'm'), ACTION_FADER_MUTE);
    assert_int_equal(keys_find(FOCUS_INPUT, 'm'), ACTION_NONE);
    /* what readline needs stays readline's: previous-history, and its other ^X sequences */
    assert_int_equal(keys_find(FOCUS_INPUT, 16), ACTION_NONE);
    assert_int_equal(keys_find(FOCUS_INPUT, KEYMOD_CTRL_X | ('U' & 31)), ACTION_NONE);
}

/* One key does one thing in one place. */
static void test_no_key_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_bindings; i++) {
        assert_int_not_equal(bindings[i].action, ACTION_NONE);
        for (size_t j = i + 1; j < n_bindings; j++) {
            if (bindings[i].where == bindings[j].where)
                assert_int_not_equal(bindings[i].key, bindings[j].key);
        }
    }
}

/* Nothing is needed that some terminals cannot send (interface.md 4), and no single key quits or
 * erases while something is typed: digits and letters are free in the input line. */
static void test_never_needed(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_bindings; i++) {
        int key = bindings[i].key;
        int bare = key & ~(KEYMOD_ALT | KEYMOD_CTRL | KEYMOD_SHIFT | KEYMOD_CTRL_X);
        assert_false(bare == KEYS_F10 || bare == KEYS_F11 || bare == KEYS_F12);
        assert_int_equal(key & (KEYMOD_CTRL | KEYMOD_SHIFT), 0);
        if (bare >= KEYS_UP && bare <= KEYS_RIGHT)
            assert_int_equal(key & KEYMOD_ALT, 0);
        if (bindings[i].where == BIND_ANYWHERE)
            assert_false(key >= ' ' && key < 127);
        if (bindings[i].where == FOCUS_FADERS)
            assert_false(key >= '0' && key <= '9');
    }
}

/* Whether a line under `title` has `name` among its keys, which stand before two blanks. */
static bool is_described(const char *text, const char *title, const char *name)
{
    const char *line = strstr(text, title);

    for (line = strchr(line, '\n'); line != NULL && strncmp(line, "\n  ", 3) == 0;
         line = strchr(line + 1, '\n')) {
        const char *keys = line + 3, *end = strstr(keys, "  ");
        for (const char *at = strstr(keys, name); at != NULL && (end == NULL || at < end);
             at = strstr(at + 1, name)) {
            char before = at == keys ? ' ' : at[-1], after = at[strlen(name)];
            if (before == ' ' && (after == ' ' || after == ','))
                return true;
        }
    }
    return false;
}

static void test_places(void **state)
{
    static const char *const titles[FOCUS_COUNT] = {[FOCUS_FADERS] = "In the faders",
                                                    [FOCUS_CANDIDATES] = "In the candidates",
                                                    [FOCUS_TRANSCRIPT] = "In the transcript"};
    struct str text = STR_INIT;
    (void)state;

    keys_describe(&text);
    for (size_t i = 0; i < n_bindings; i++) {
        char name[24];
        if (bindings[i].where <= FOCUS_INPUT || bindings[i].key == 8) /* Ctrl-H is Backspace */
            continue;
        keys_format(bindings[i].key, name);
        if (!is_described(text.data, titles[bindings[i].where], name))
            fail_msg("/keys lacks %s: %s", titles[bindings[i].where], name);
    }
    str_done(&text);
}

/* Every action is bound, and /keys names every one. */
static void test_complete(void **state)
{
    struct str text = STR_INIT;
    (void)state;

    keys_describe(&text);
    for (int a = ACTION_NONE + 1; a < ACTION_COUNT; a++) {
        bool bound = false, named = false;
        for (size_t i = 0; i < n_bindings && !bound; i++)
            bound = bindings[i].action == (enum action)a;
        if (!bound)
            fail_msg("action %d has no key", a);
        for (size_t i = 0; i < n_bindings && !named; i++) {
            char name[24];
            if (bindings[i].action != (enum action)a)
                continue;
            keys_format(bindings[i].key, name);
            named = strstr(text.data, name) != NULL;
        }
        if (!named)
            fail_msg("/keys does not name action %d", a);
    }
    assert_non_null(strstr(text.data, "GNOME Terminal takes F1"));
    str_done(&text);
}

static void expect_name(int key, const char *name)
{
    char out[24];

    keys_format(key, out);
    assert_string_equal(out, name);
}

static void test_names(void **state)
{
    (void)state;
    expect_name(KEYMOD_CTRL_X | ' ', "^X Space");
    expect_name(KEYMOD_CTRL_X | 5, "^X ^E");
    expect_name(KEYMOD_CTRL_X | KEYS_LEFT, "^X Left");
    expect_name(KEYMOD_ALT | 'j', "Alt-j");
    expect_name(KEYS_F5, "F5");
    expect_name(KEYS_F12, "F12");
    expect_name(3, "Ctrl-C");
    expect_name(9, "Tab");
    expect_name(KEYS_BACKTAB, "Shift-Tab");
    expect_name(0xE9, "é");
    expect_name(KEYMOD_CTRL_X | KEYMOD_CTRL | KEYMOD_ALT | KEYMOD_SHIFT | 127,
                "^X Ctrl-Alt-Shift-Backs"); /* cut, never past the end */
}

static void expect_explained(int key, const char *want)
{
    char out[256];

    keys_explain(key, out, sizeof out);
    assert_string_equal(out, want);
}

static void test_explained(void **state)
{
    (void)state;
    expect_explained(KEYMOD_CTRL_X | ' ', "^X Space: pause, go on");
    expect_explained(KEYMOD_CTRL_X | KEYS_RIGHT, "^X Right: more, fine");
    expect_explained('y', "y: copy (in the transcript)");
    expect_explained(13, "Enter: send (in the line); back to the input line (in the faders); go on "
                         "with this one instead (in the candidates); back to the input line (in "
                         "the transcript)");
    expect_explained('q', "q: text");
    expect_explained(16, "Ctrl-P: readline's");
    expect_explained(KEYMOD_CTRL_X | ('U' & 31), "^X ^U: readline's");
}

static const char *hint_of(const struct key_hint *h, const char *key)
{
    for (; h->key != NULL; h++) {
        if (strcmp(h->key, key) == 0)
            return h->what;
    }
    return NULL;
}

static void test_hints(void **state)
{
    (void)state;
    assert_string_equal(hint_of(keys_hints(FOCUS_INPUT, true, false), "F5"), "pause");
    assert_string_equal(hint_of(keys_hints(FOCUS_INPUT, true, true), "F5"), "go on");
    assert_string_equal(hint_of(keys_hints(FOCUS_INPUT, true, true), "F6"), "one word");
    assert_string_equal(hint_of(keys_hints(FOCUS_INPUT, false, true), "F5"), "go on");
    assert_null(hint_of(keys_hints(FOCUS_INPUT, false, false), "F6"));
    assert_string_equal(hint_of(keys_hints(FOCUS_FADERS, true, false), "Space"), "pause");
    assert_string_equal(hint_of(keys_hints(FOCUS_FADERS, true, true), "Space"), "go on");
    assert_string_equal(hint_of(keys_hints(FOCUS_CANDIDATES, true, true), "Space"), "go on");
    for (int f = 0; f < FOCUS_COUNT; f++)
        assert_non_null(keys_hints((enum focus)f, false, false)[0].key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),        cmocka_unit_test(test_no_key_twice),
        cmocka_unit_test(test_never_needed), cmocka_unit_test(test_complete),
        cmocka_unit_test(test_places),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_explained),    cmocka_unit_test(test_hints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
