/* Other programs' presets, whole and mutilated. */
#include "preset_help.h"

#include <unistd.h>

static struct preset *import(const char *file, struct preset_warnings *w)
{
    const char *source = getenv("FADER_SRCDIR");
    struct str path = STR_INIT;
    struct error err;

    *w = (struct preset_warnings){NULL, 0, 0};
    str_add_format(&path, "%s/tests/data/import/%s", source != NULL ? source : ".", file);
    struct preset *p = preset_import(str_text(&path), w, &err);
    if (p == NULL)
        fail_msg("%s", err.text);
    str_done(&path);
    assert_int_equal(p->knobs.exempt_mode, EXEMPT_NONE);
    assert_true(p->has_exempt && p->has_order);
    return p;
}

static void assert_warned(const struct preset_warnings *w, size_t i, const char *part)
{
    if (i >= w->n || strstr(w->items[i], part) == NULL)
        fail_msg("warning %zu is \"%s\", should have \"%s\"", i, i < w->n ? w->items[i] : "(none)",
                 part);
}

static void test_import_webui(void **state)
{
    struct preset_warnings w;
    (void)state;
    struct preset *p = import("webui.yaml", &w);

    assert_string_equal(p->name, "webui");
    assert_knob(p, KNOB_TEMPERATURE, 0.7);
    assert_knob(p, KNOB_TOP_K, 0); /* left out: neutral there, not fader's 50 */
    assert_knob(p, KNOB_REPETITION_PENALTY, 1.15);
    assert_knob(p, KNOB_REPEAT_LAST_N, 1024);
    assert_order(p, STAGE_PENALTY, STAGE_TOP_K, STAGE_TEMPERATURE, STAGE_TOP_P, STAGE_MIN_P);
    assert_int_equal(w.n, 1);
    assert_warned(&w, 0, "webui.yaml:6:1: dry_multiplier");
    preset_warnings_done(&w);
    preset_free(p);
}

static void test_import_tavern(void **state)
{
    struct preset_warnings w;
    (void)state;
    struct preset *p = import("tavern.json", &w);

    assert_knob(p, KNOB_TEMPERATURE, 1.15);
    assert_knob(p, KNOB_MIN_P, 0.02);
    assert_knob(p, KNOB_REPETITION_PENALTY, 1.05);
    assert_knob(p, KNOB_REPEAT_LAST_N, 2048);
    assert_int_equal(p->max_tokens, 300);
    assert_int_equal(p->seed, -1);
    assert_order(p, STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE);
    assert_int_equal(w.n, 2);
    assert_warned(&w, 0, "xtc_probability: \"0.5\": fader has no such sampler");
    assert_warned(&w, 1, "not used by fader: streaming, negative_prompt, max_length");
    preset_warnings_done(&w);
    preset_free(p);
}

static void test_import_kobold(void **state)
{
    struct preset_warnings w;
    (void)state;
    struct preset *p = import("kobold.json", &w);

    assert_knob(p, KNOB_TEMPERATURE, 0.65);
    assert_knob(p, KNOB_REPEAT_LAST_N, -1);
    assert_order(p, STAGE_PENALTY, STAGE_TOP_P, STAGE_MIN_P, STAGE_TOP_K, STAGE_TEMPERATURE);
    assert_int_equal(w.n, 1);
    assert_warned(&w, 0, "tfs: \"0.97\"");
    preset_warnings_done(&w);
    preset_free(p);
}

static void test_import_ollama(void **state)
{
    struct preset_warnings w;
    (void)state;
    struct preset *p = import("Modelfile", &w);

    assert_knob(p, KNOB_TEMPERATURE, 0.3);
    assert_knob(p, KNOB_TOP_K, 25);
    assert_knob(p, KNOB_TOP_P, 0.9);
    assert_knob(p, KNOB_REPEAT_LAST_N, 64);
    assert_int_equal(p->max_tokens, -1);
    assert_string_equal(p->system, "You are a ship's cook.\nAnswer in one line: \"Aye.\"\n");
    assert_order(p, STAGE_PENALTY, STAGE_TOP_K, STAGE_TEMPERATURE, STAGE_TOP_P, STAGE_MIN_P);
    assert_int_equal(w.n, 1);
    assert_warned(&w, 0, "FROM, stop, stop, num_ctx, TEMPLATE");
    preset_warnings_done(&w);
    preset_free(p);
}

static void test_import_hf(void **state)
{
    struct preset_warnings w;
    (void)state;
    struct preset *p = import("generation_config.json", &w);

    assert_knob(p, KNOB_TEMPERATURE, 0.6);
    assert_knob(p, KNOB_TOP_K, 50);
    assert_knob(p, KNOB_TOP_P, 0.95);
    assert_int_equal(p->max_tokens, 512);
    assert_order(p, STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P);
    preset_warnings_done(&w);
    preset_free(p);
}

static void test_import_flags(void **state)
{
    struct preset_warnings w;
    (void)state;
    struct preset *p = import("llama-flags.txt", &w);

    assert_knob(p, KNOB_TEMPERATURE, 0.7);
    assert_knob(p, KNOB_TOP_K, 20);
    assert_knob(p, KNOB_TOP_P, 1); /* left out of --samplers: off */
    assert_knob(p, KNOB_MIN_P, 0.1);
    assert_knob(p, KNOB_REPETITION_PENALTY, 1.1);
    assert_knob(p, KNOB_REPEAT_LAST_N, 128);
    assert_int_equal(p->max_tokens, 200);
    assert_int_equal(p->seed, 42);
    assert_string_equal(p->system, "You are terse.");
    assert_int_equal(p->knobs.order[STAGE_COUNT - 1], STAGE_TEMPERATURE);
    assert_int_equal(w.n, 1);
    assert_warned(&w, 0, "not used by fader: m, color");
    preset_warnings_done(&w);
    preset_free(p);
}

/* do_sample: false is greedy, whatever stands beside it; a wrong value names key and range. */
static void test_import_values(void **state)
{
    char *path = file_join(folder, "x.json");
    struct error err;
    (void)state;

    const char greedy[] = "{\"do_sample\": false, \"temperature\": 0.9}";
    assert_true(file_write_atomic(path, greedy, strlen(greedy), 0600, &err));
    struct preset *p = preset_import(path, NULL, &err);
    assert_non_null(p);
    assert_knob(p, KNOB_TEMPERATURE, 0);
    preset_free(p);

    const char *const wrong[][2] = {
        {"{\"temperature\": 50}", "x.json: temperature: 50 is out of range (0 - 5)"},
        {"{\"temperature\": \"hot\"}", "x.json: temperature: \"hot\" is not a number"},
        {"{\"temperature\": 1e999}", "is not a number"},
        {"{\"temperature\": ]", "x.json:1:17: not JSON from here on"},
        {"{\"temp\": 0.7, \"temp\": 0.8}", "x.json: \"temp\" is given twice"},
        {"{\"color\": 1}", "x.json: no sampling parameter in it, read as a file of Hugging Face"},
        {"PARAMETER top_k \"12", "x.json:1:1: the quotes are not closed"},
        {"FROM x\nNONSENSE y\n", "x.json:2:1: not an instruction of a Modelfile"},
        {"", "x.json: empty"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(file_write_atomic(path, wrong[i][0], strlen(wrong[i][0]), 0600, &err));
        assert_null(preset_import(path, NULL, &err));
        if (strstr(err.text, wrong[i][1]) == NULL)
            fail_msg("%s gave: %s", wrong[i][0], err.text);
    }
    unlink(path);
    free(path);
}

/* What was imported is fader's own format from then on. */
static void test_import_round_trip(void **state)
{
    static const char *const files[] = {
        "webui.yaml",     "tavern.json", "kobold.json", "Modelfile", "generation_config.json",
        "llama-flags.txt"};
    struct preset_warnings w;
    struct error err;
    (void)state;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct str text = STR_INIT;
        struct preset *p = import(files[i], &w);
        preset_warnings_done(&w);
        preset_format(p, &text);
        struct preset *back = from_text(str_text(&text), &w, &err);
        assert_non_null(back);
        assert_int_equal(w.n, 0);
        assert_same(p, back);
        preset_free(p);
        preset_free(back);
        str_done(&text);
    }
}

/* ---- hostile files -------------------------------------------------------------------------- */

static void mutate(struct str *s, uint32_t *seed)
{
    static const char *const pieces[] = {"[",  "{",  "&a ",    "*a",    "!!",   "\"",       "'",
                                         "\n", "\t", ": ",     "- ",    "\xff", "\xe2\x80", "%",
                                         "|",  ">",  "1e9",    "---\n", "\\",   "null",     ",",
                                         "]",  "}",  "\"\"\"", "#"};
    size_t edits = 1 + next_random(seed) % 4;

    for (size_t i = 0; i < edits && s->len > 0; i++) {
        size_t at = next_random(seed) % s->len;
        switch (next_random(seed) % 4) {
        case 0:
            s->data[at] = (char)next_random(seed);
            break;
        case 1:
            str_erase(s, at, 1 + next_random(seed) % 8);
            break;
        case 2: {
            const char *piece = pieces[next_random(seed) % (sizeof pieces / sizeof *pieces)];
            str_insert(s, at, piece, strlen(piece));
            break;
        }
        default:
            str_truncate(s, at + 1);
        }
    }
}

static void test_mutated(void **state)
{
    static const char *const files[] = {
        "webui.yaml",     "tavern.json", "kobold.json", "Modelfile", "generation_config.json",
        "llama-flags.txt"};
    const char *source = getenv("FADER_SRCDIR");
    char *path = file_join(folder, "mutated");
    uint32_t seed = 99;
    int loaded = 0, refused = 0;
    struct error err;
    (void)state;

    for (int i = 0; i < 1800; i++) {
        struct preset_warnings w = {NULL, 0, 0};
        struct str name = STR_INIT, text = STR_INIT;
        str_add_format(&name, "%s/tests/data/import/%s", source != NULL ? source : ".",
                       files[i % 6]);
        assert_true(file_read(str_text(&name), 65536, &text, &err));
        mutate(&text, &seed);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fwrite(str_text(&text), 1, text.len, f);
        fclose(f);
        err.text[0] = '\0';
        struct preset *p = preset_import(path, &w, &err);
        if (p == NULL) {
            assert_true(err.text[0] != '\0');
            refused++;
        } else {
            for (int k = 0; k < KNOB_COUNT; k++)
                assert_true(knob_check((enum knob)k, p->knobs.value[k], 0, &err));
            loaded++;
        }
        preset_free(p);
        p = preset_load_file(path, NULL, &err);
        preset_free(p);
        preset_warnings_done(&w);
        str_done(&text);
        str_done(&name);
    }
    assert_true(loaded > 100 && refused > 100); /* the mutations reach both sides */
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import_webui),  cmocka_unit_test(test_import_tavern),
        cmocka_unit_test(test_import_kobold), cmocka_unit_test(test_import_ollama),
        cmocka_unit_test(test_import_hf),     cmocka_unit_test(test_import_flags),
        cmocka_unit_test(test_import_values), cmocka_unit_test(test_import_round_trip),
        cmocka_unit_test(test_mutated),
    };

    return cmocka_run_group_tests(tests, set_up, folder_remove);
}
