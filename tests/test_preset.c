/* Presets: what a file means, what is refused and how it is said; saving; by name. */
#include "preset_help.h"

#include <locale.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- reading -------------------------------------------------------------------------------- */

static void test_all_keys(void **state)
{
    struct error err;
    struct preset_warnings w = {NULL, 0, 0};
    (void)state;
    struct preset *p = from_text("name: rain song\n"
                                 "description: wet\n"
                                 "system: |\n  Be brief.\n  Be kind.\n"
                                 "temperature: 1.25\ntop_k: 40\ntop_p: .5\nmin_p: 1e-2\n"
                                 "repetition_penalty: 1.5\nrepetition_penalty_range: 64\n"
                                 "penalty_exempt: [3, 14]\n"
                                 "order: [penalty, top_k, temperature]\n"
                                 "seed: 4294967295\nmax_tokens: 99\n"
                                 "try: [one, \"two: three\"]\n",
                                 &w, &err);

    assert_non_null(p);
    assert_int_equal(w.n, 0);
    assert_string_equal(p->name, "rain song");
    assert_string_equal(p->description, "wet");
    assert_string_equal(p->system, "Be brief.\nBe kind.\n");
    assert_knob(p, KNOB_TEMPERATURE, 1.25);
    assert_knob(p, KNOB_TOP_K, 40);
    assert_knob(p, KNOB_TOP_P, 0.5);
    assert_knob(p, KNOB_MIN_P, 0.01);
    assert_knob(p, KNOB_REPETITION_PENALTY, 1.5);
    assert_knob(p, KNOB_REPEAT_LAST_N, 64);
    for (int i = 0; i < KNOB_COUNT; i++)
        assert_true(p->has[i]);
    assert_int_equal(p->knobs.exempt_mode, EXEMPT_LIST);
    assert_int_equal(p->knobs.n_exempt, 2);
    assert_int_equal(p->knobs.exempt[1], 14);
    assert_true(p->has_order && p->has_exempt);
    assert_order(p, STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE);
    assert_int_equal(p->seed, 4294967295);
    assert_int_equal(p->max_tokens, 99);
    assert_string_equal(p->tries[1], "two: three");
    assert_null(p->tries[2]);
    preset_free(p);
}

static void test_absent_keys(void **state)
{
    struct error err;
    struct knobs initial = knobs_default();
    (void)state;
    struct preset *p = from_text("temperature: 0.1\n", NULL, &err);

    assert_non_null(p);
    assert_true(p->has[KNOB_TEMPERATURE]);
    assert_false(p->has[KNOB_TOP_K] || p->has_order || p->has_exempt);
    assert_knob(p, KNOB_TOP_K, initial.value[KNOB_TOP_K]);
    assert_int_equal(p->seed, -1);
    assert_null(p->tries);
    preset_free(p);
}

static void test_words(void **state)
{
    struct error err;
    (void)state;
    struct preset *p = from_text("top_k: off\ntop_p: off\nmin_p: off\nrepetition_penalty: off\n"
                                 "repetition_penalty_range: 0\ntemperature_last: true\n",
                                 NULL, &err);
    assert_non_null(p);
    assert_knob(p, KNOB_TOP_K, 0);
    assert_knob(p, KNOB_TOP_P, 1);
    assert_knob(p, KNOB_MIN_P, 0);
    assert_knob(p, KNOB_REPETITION_PENALTY, 1);
    assert_knob(p, KNOB_REPEAT_LAST_N, -1);
    assert_order(p, STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE);
    preset_free(p);
    p = from_text("repetition_penalty_range: off\n", NULL, &err);
    assert_knob(p, KNOB_REPEAT_LAST_N, 0);
    preset_free(p);
    p = from_text("repeat_last_n: 0\n", NULL, &err);
    assert_knob(p, KNOB_REPEAT_LAST_N, 0);
    preset_free(p);
    p = from_text("repeat_last_n: off\n", NULL, &err);
    assert_knob(p, KNOB_REPEAT_LAST_N, 0);
    preset_free(p);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("a: 1\ntemperature: 9\n", "p.yaml:2:14: temperature: 9 is out of range (0 - 5)");
    assert_refused("temperature: warm\n", "p.yaml:1:14: temperature: \"warm\" is not a number");
    assert_refused("temperature: \"0.8\"\n", "p.yaml:1:14: temperature: \"0.8\" is not a number");
    assert_refused("top_p: 0,9\n", "p.yaml:1:8: top_p: \"0,9\" is not a number or off");
    assert_refused("top_p: nan\n", "p.yaml:1:8: top_p: \"nan\" is not a number or off");
    assert_refused("top_p: .inf\n", "p.yaml:1:8: top_p: \".inf\" is not a number or off");
    assert_refused("top_k: 0x10\n", "p.yaml:1:8: top_k: \"0x10\" is not a number or off");
    assert_refused("top_k: 012\n", "p.yaml:1:8: top_k: \"012\" is not a number or off");
    assert_refused("top_k: 1.5\n", "p.yaml:1:8: top_k: 1.5 is not a whole number");
    assert_refused("top_k: [1]\n", "p.yaml:1:8: top_k: a list is not a number or off");
    assert_refused("top_k:\n", "p.yaml:1:7: top_k: nothing is not a number or off");
    assert_refused("repetition_penalty: 0.1\n",
                   "p.yaml:1:21: repetition_penalty: 0.1 is out of range (0.5 - 3)");
    assert_refused("seed: 4294967296\n",
                   "p.yaml:1:7: seed: 4294967296 is not a whole number from -1 to 4294967295");
    assert_refused("penalty_exempt: all\n", "p.yaml:1:17: penalty_exempt: \"all\" is neither "
                                            "punctuation, none nor a list of token ids");
    assert_refused("penalty_exempt: [1, -2]\n",
                   "p.yaml:1:21: penalty_exempt: \"-2\" is not a token id");
    assert_refused("order: [top_k, magic]\n", "p.yaml:1:16: order: \"magic\" is none of penalty, "
                                              "temperature, top_k, top_p, min_p");
    assert_refused("try: just one\n", "p.yaml:1:6: try: \"just one\" is not a list of prompts");
    assert_refused("name: a/b\n", "p.yaml:1:7: preset name \"a/b\": letters, digits, and - _ . or "
                                  "blanks inside it");
    assert_refused("description: \"a\\eb\"\n",
                   "p.yaml:1:14: description: holds a control character");
    assert_refused("system: \"a\\x9bb\"\n", "p.yaml:1:9: system: holds a control character");
    assert_refused("repeat_last_n: 5\nrepetition_penalty_range: 6\n",
                   "p.yaml:2:1: repeat_last_n and repetition_penalty_range contradict each other");
    assert_refused("- 1\n", "p.yaml:1:1: a list where keys and values should be");
}

static void test_warnings(void **state)
{
    static const char *const want[] = {
        "p.yaml:1:1: unknown key \"temprature\" ignored: did you mean temperature?",
        "p.yaml:2:1: unknown key \"zzzzzz\" ignored",
        "p.yaml:4:1: dry_multiplier: \"0.8\": fader has no such sampler; ignored",
        "p.yaml:7:1: order: the repetition penalty comes first in fader",
    };
    struct preset_warnings w = {NULL, 0, 0};
    struct error err;
    (void)state;
    struct preset *p = from_text("temprature: 1\nzzzzzz: 1\ntypical_p: 1.0\ndry_multiplier: 0.8\n"
                                 "mirostat_tau: 7\ndynamic_temperature: false\n"
                                 "order: [top_k, penalty]\n",
                                 &w, &err);

    assert_non_null(p);
    assert_int_equal(w.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < w.n; i++)
        assert_string_equal(w.items[i], want[i]);
    preset_warnings_done(&w);
    preset_free(p);
}

static void test_names(void **state)
{
    static const char *const good[] = {"rain", "llama.cpp", "a b", "_x-1", "\u96e8", "r\u00e9gn"};
    static const char *const bad[] = {"",     ".hidden", "a/b",    " a", "a ", "-f",
                                      "a\nb", "a\xff",   "\u2028", "..", "a:b"};
    char longest[65];
    struct error err;
    (void)state;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!preset_check_name(good[i], &err))
            fail_msg("%s: %s", good[i], err.text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (preset_check_name(bad[i], &err))
            fail_msg("\"%s\" was taken as a name", bad[i]);
    memset(longest, 'x', 64);
    longest[64] = '\0';
    assert_false(preset_check_name(longest, &err));
    assert_true(preset_check_name(longest + 1, &err));
}

/* Under a locale with a decimal comma, where the system has one. */
static void test_locale(void **state)
{
    static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "cs_CZ.UTF-8"};
    char out[32];
    double value;
    (void)state;

    size_t i = 0, n = sizeof comma / sizeof *comma;
    while (i < n && setlocale(LC_NUMERIC, comma[i]) == NULL)
        i++;
    assert_true(number_parse("0.75", &value));
    assert_true(value == 0.75);
    assert_false(number_parse("0,75", &value));
    number_format(0.75, out);
    assert_string_equal(out, "0.75");
    setlocale(LC_NUMERIC, "C");
}

/* ---- saving --------------------------------------------------------------------------------- */

/* Text out of the pieces that have a meaning in YAML. */
static char *random_text(uint32_t *seed, bool lines)
{
    static const char *const pieces[] = {
        " ",      "  ",  "- ",   "# ",   ": ",     "'",          "\"",     "\\",     "|",
        ">",      "%",   "@",    "`",    "&a",     "*a",         "!t",     "{",      "}",
        "[",      "]",   ",",    "?",    "---",    "...",        "null",   "~",      "true",
        "off",    "0.5", "1e3",  "word", "\u96e8", "\U0001f327", "\u00e9", "\u00a0", "\u2028",
        "\ufeff", "\n",  "\n\n", "\t",   "\n  x",
    };
    struct str s = STR_INIT;
    size_t n = next_random(seed) % 9;

    for (size_t i = 0; i < n; i++) {
        const char *piece = pieces[next_random(seed) % (sizeof pieces / sizeof *pieces)];
        if (lines || strpbrk(piece, "\n\t") == NULL)
            str_add_text(&s, piece);
    }
    return str_steal(&s);
}

static struct preset *random_preset(uint32_t *seed)
{
    struct preset *p = preset_new("round trip");

    p->description = random_text(seed, false);
    p->system = random_text(seed, true);
    for (int i = 0; i < KNOB_COUNT; i++) {
        const struct knob_trait *t = &knob_traits[i];
        double max = t->max > 1e6 ? 60000 : t->max;
        double value = t->min + (max - t->min) * (next_random(seed) % 100000 / 100000.0);
        p->has[i] = next_random(seed) % 4 != 0;
        if (p->has[i])
            p->knobs.value[i] = t->whole ? (double)(int)value : value;
    }
    p->has_order = next_random(seed) % 2;
    for (int i = STAGE_COUNT - 1; p->has_order && i > 1; i--) {
        int j = 1 + (int)(next_random(seed) % (uint32_t)i);
        uint8_t keep = p->knobs.order[i];
        p->knobs.order[i] = p->knobs.order[j];
        p->knobs.order[j] = keep;
    }
    p->has_exempt = next_random(seed) % 2;
    if (p->has_exempt) {
        p->knobs.exempt_mode = (uint8_t)(next_random(seed) % 3);
        p->knobs.n_exempt =
            (uint8_t)(p->knobs.exempt_mode == EXEMPT_LIST ? next_random(seed) % 65 : 0);
        for (int i = 0; i < p->knobs.n_exempt; i++)
            p->knobs.exempt[i] = (int32_t)(next_random(seed) % 49152);
    }
    p->seed = next_random(seed) % 2 ? -1 : (int64_t)(next_random(seed) * 250ull);
    p->max_tokens = (int32_t)(next_random(seed) % 3) - 1;
    if (next_random(seed) % 2) {
        p->tries = mem_array(3, sizeof *p->tries);
        p->tries[0] = random_text(seed, true);
        p->tries[1] = random_text(seed, true);
    }
    return p;
}

static void test_round_trip(void **state)
{
    uint32_t seed = 4711;
    struct error err;
    (void)state;

    for (int i = 0; i < 2000; i++) {
        struct str text = STR_INIT;
        struct preset *p = random_preset(&seed);
        preset_format(p, &text);
        struct preset *back = from_text(str_text(&text), NULL, &err);
        if (back == NULL)
            fail_msg("%s in\n%s", err.text, str_text(&text));
        assert_same(p, back);
        preset_free(p);
        preset_free(back);
        str_done(&text);
    }
}

/* The window as text-generation-webui writes it, where 0 is everything. */
static void test_format_range(void **state)
{
    static const struct {
        double value;
        const char *line;
    } cases[] = {{-1, "repetition_penalty_range: 0\n"},
                 {64, "repetition_penalty_range: 64\n"},
                 {0, "repetition_penalty_range: off\n"}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct preset *p = preset_new("p");
        struct str text = STR_INIT;
        p->knobs.value[KNOB_REPEAT_LAST_N] = cases[i].value;
        p->has[KNOB_REPEAT_LAST_N] = true;
        preset_format(p, &text);
        assert_non_null(strstr(str_text(&text), cases[i].line));
        str_done(&text);
        preset_free(p);
    }
}

static void test_save(void **state)
{
    struct preset_warnings w = {NULL, 0, 0};
    struct error err = {""};
    char *path;
    (void)state;
    struct preset *p = preset_new("my rain"), *back;

    p->system = mem_strdup("You \"speak\"\n\n  in rain: drop by drop.\n");
    p->knobs.value[KNOB_TEMPERATURE] = 0.1 + 0.2;
    p->has[KNOB_TEMPERATURE] = true;
    assert_true(preset_save(p, false, &path, &err));
    assert_non_null(strstr(path, "/fader/presets/my rain.yaml"));
    back = preset_load("my rain", &w, &err);
    assert_non_null(back);
    assert_int_equal(w.n, 0);
    assert_same(p, back);
    assert_string_equal(back->path, path);
    preset_free(back);

    p->knobs.value[KNOB_TEMPERATURE] = 2;
    assert_false(preset_save(p, false, NULL, &err));
    assert_non_null(strstr(err.text, "is there already"));
    back = preset_load("my rain", NULL, &err);
    assert_knob(back, KNOB_TEMPERATURE, 0.1 + 0.2);
    preset_free(back);
    assert_true(preset_save(p, true, NULL, &err));
    back = preset_load("my rain", NULL, &err);
    assert_knob(back, KNOB_TEMPERATURE, 2);
    preset_free(back);

    free(p->name);
    p->name = mem_strdup("../escape");
    assert_false(preset_save(p, true, NULL, &err));
    preset_free(p);
    free(path);
}

/* ---- by name -------------------------------------------------------------------------------- */

static void test_shipped(void **state)
{
    static const char *const first[] = {"default", "rigorous", "poetry",   "wild",
                                        "loop",    "neutral",  "llama.cpp"};
    struct preset_list list;
    struct error err;
    (void)state;

    preset_list_all(&list);
    assert_true(list.n >= 10);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(list.items[i].name, first[i]);
    for (size_t i = 0; i < list.n; i++) {
        struct preset_warnings w = {NULL, 0, 0};
        const struct preset_entry *e = &list.items[i];
        if (e->user)
            continue;
        struct preset *p = preset_load(e->name, &w, &err);
        if (p == NULL)
            fail_msg("%s", err.text);
        assert_int_equal(w.n, 0);
        assert_null(e->problem);
        assert_non_null(p->description);
        for (int k = 0; k < KNOB_COUNT; k++)
            assert_true(p->has[k]); /* choosing one sets every knob */
        assert_true(p->tries != NULL && p->tries[0] != NULL);
        preset_free(p);
    }
    preset_list_done(&list);
}

static void test_course_numbers(void **state)
{
    static const struct {
        const char *name;
        double temperature, top_k, top_p, penalty;
    } want[] = {
        {"default", 0.8, 50, 0.9, 1.1},
        {"rigorous", 0.1, 50, 0.9, 1.15},
        {"poetry", 0.8, 0, 0.9, 1.05},
        {"wild", 2, 50, 0.9, 1.1},
        {"loop", 0, 0, 1, 1},
        {"neutral", 1, 0, 1, 1},
        {"llama.cpp", 0.8, 40, 0.95, 1},
    };
    struct error err;
    (void)state;

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct preset *p = preset_load(want[i].name, NULL, &err);
        assert_non_null(p);
        assert_knob(p, KNOB_TEMPERATURE, want[i].temperature);
        assert_knob(p, KNOB_TOP_K, want[i].top_k);
        assert_knob(p, KNOB_TOP_P, want[i].top_p);
        assert_knob(p, KNOB_REPETITION_PENALTY, want[i].penalty);
        preset_free(p);
    }
    struct preset *p = preset_load("llama.cpp", NULL, &err);
    assert_knob(p, KNOB_MIN_P, 0.05);
    assert_knob(p, KNOB_REPEAT_LAST_N, 64);
    assert_order(p, STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE);
    preset_free(p);
}

static void test_unknown_name(void **state)
{
    struct error err;
    (void)state;

    assert_null(preset_load("poetrie", NULL, &err));
    assert_string_equal(err.text,
                        "preset poetrie: there is none of that name: did you mean poetry?");
    assert_null(preset_load("no-such-thing-at-all", NULL, &err));
    assert_non_null(strstr(err.text, "there is none of that name"));
    assert_null(preset_load("..", NULL, &err));
}

/* Without any data folder the built-in one is left. */
static void test_default_always(void **state)
{
    struct knobs initial = knobs_default();
    struct preset_list list;
    struct error err;
    char *data = mem_strdup(getenv("FADER_DATA_DIR")),
         *config = mem_strdup(getenv("XDG_CONFIG_HOME"));
    (void)state;

    setenv("FADER_DATA_DIR", "/nonexistent", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    struct preset *p = preset_load("default", NULL, &err);
    assert_non_null(p);
    for (int i = 0; i < KNOB_COUNT; i++)
        assert_knob(p, (enum knob)i, initial.value[i]);
    preset_list_all(&list);
    assert_int_equal(list.n, 1);
    preset_list_done(&list);
    preset_free(p);
    setenv("XDG_CONFIG_HOME", config, 1);
    if (data != NULL)
        setenv("FADER_DATA_DIR", data, 1);
    else
        unsetenv("FADER_DATA_DIR");
    free(data);
    free(config);
}

/* The user's file goes before the shipped one; one that does not load is listed with its reason. */
static void test_user_presets(void **state)
{
    struct preset_list list;
    struct error err;
    bool broken = false, wild = false;
    (void)state;
    char *mine = file_join(folder, "fader/presets/wild.yaml");
    char *bad = file_join(folder, "fader/presets/broken.yaml");

    assert_true(file_write_atomic(mine, "temperature: 1.5\n", 17, 0600, &err));
    assert_true(file_write_atomic(bad, "temperature: 99\n", 16, 0600, &err));
    struct preset *p = preset_load("wild", NULL, &err);
    assert_knob(p, KNOB_TEMPERATURE, 1.5);
    preset_free(p);
    preset_list_all(&list);
    for (size_t i = 0; i < list.n; i++) {
        if (strcmp(list.items[i].name, "broken") == 0) {
            broken = true;
            assert_non_null(strstr(list.items[i].problem, "broken.yaml:1:14: temperature: 99"));
        }
        if (strcmp(list.items[i].name, "wild") == 0) {
            assert_false(wild);
            wild = true;
            assert_true(list.items[i].user);
        }
    }
    assert_true(broken && wild);
    preset_list_done(&list);
    unlink(mine);
    unlink(bad);
    free(mine);
    free(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_keys),     cmocka_unit_test(test_absent_keys),
        cmocka_unit_test(test_words),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_warnings),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_locale),       cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_format_range), cmocka_unit_test(test_save),
        cmocka_unit_test(test_shipped),      cmocka_unit_test(test_course_numbers),
        cmocka_unit_test(test_unknown_name), cmocka_unit_test(test_default_always),
        cmocka_unit_test(test_user_presets),
    };

    return cmocka_run_group_tests(tests, set_up, folder_remove);
}
