/* YAML as fader takes it, settings, themes and their colours. */
#include "test.h"

#include <float.h>

#include "base/file.h"
#include "base/str.h"
#include "config/colour.h"
#include "config/paths.h"
#include "config/settings.h"
#include "config/theme.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "folder.h"

static int set_up(void **state)
{
    int rc = folder_make(state);

    setenv("XDG_CONFIG_HOME", folder, 1);
    return rc;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},       {"-0", 0},        {"1", 1},       {"+1", 1},
                {".5", 0.5},    {"5.", 5},        {"0.05", 0.05}, {"1e3", 1000},
                {"1E-2", 0.01}, {"-1.5e+1", -15}, {"0.1", 0.1}};
    static const char *const bad[] = {"",  " 1", "1 ", "nan", "inf", "0x1", "1_0",   "01",   "1,5",
                                      ".", "-",  "e1", "1e",  "1e+", "--1", "1.2.3", "1e999"};
    double value;
    (void)state;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(number_parse(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (number_parse(bad[i], &value))
            fail_msg("\"%s\" was read as %g", bad[i], value);
}

static void test_number_format(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},         {-0.0, "0"},
                 {1, "1"},         {100, "100"},
                 {0.8, "0.8"},     {0.05, "0.05"},
                 {49152, "49152"}, {-1, "-1"},
                 {1.15, "1.15"},   {0.1 + 0.2, "0.30000000000000004"}};
    char out[32];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        number_format(cases[i].value, out);
        assert_string_equal(out, cases[i].text);
    }
    const double hard[] = {DBL_MAX, DBL_MIN, 1e15, 1e-5, 123456789.123, 1.0 / 3, 5e-324};
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        double back;
        number_format(hard[i], out);
        assert_true(number_parse(out, &back));
        assert_true(back == hard[i]);
    }
}

/* ---- YAML ----------------------------------------------------------------------------------- */

static void assert_yaml_error(const char *text, size_t len, const char *why)
{
    struct error err = {""};
    struct node *root = yaml_parse("f.yaml", text, len, &err);

    if (root != NULL || strncmp(err.text, why, strlen(why)) != 0)
        fail_msg("%s\n gave: %s\n want: %s", text, root != NULL ? "a tree" : err.text, why);
}

static void test_yaml_tree(void **state)
{
    const char *text = "a: 1\nb:\n  - x\n  - \"2\"\n  - {c: null, d: [ ]}\ne: |\n  one\n  two\n";
    struct error err;
    double number;
    (void)state;
    struct node *root = yaml_parse("f.yaml", text, strlen(text), &err);

    assert_non_null(root);
    assert_int_equal(root->kind, NODE_MAP);
    const struct node *a = node_get(root, "a"), *b = node_get(root, "b"), *e = node_get(root, "e");
    assert_true(node_number(a, &number) && number == 1);
    assert_int_equal(a->line, 1);
    assert_int_equal(a->column, 4);
    assert_int_equal(b->kind, NODE_LIST);
    assert_int_equal(b->key_line, 2);
    assert_int_equal(b->key_column, 1);
    assert_false(node_number(b->first->next, &number)); /* quoted: a text */
    assert_int_equal(b->first->next->line, 4);
    const struct node *map = b->first->next->next;
    assert_int_equal(node_get(map, "c")->kind, NODE_NULL);
    assert_null(node_get(map, "d")->first);
    assert_null(node_get(map, "x"));
    assert_string_equal(e->text, "one\ntwo\n");
    node_free(root);

    root = yaml_parse("f.yaml", "# nothing\n", 10, &err);
    assert_non_null(root);
    assert_int_equal(root->kind, NODE_MAP);
    assert_null(root->first);
    node_free(root);
}

static void test_yaml_refusals(void **state)
{
    struct str deep = STR_INIT, big = STR_INIT;
    (void)state;

#define REFUSED(text, why) assert_yaml_error(text, sizeof text - 1, why)
    REFUSED("a: &x 1\n", "f.yaml:1:4: anchors are not used here");
    REFUSED("a: *x\n", "f.yaml:1:4: aliases are not used here");
    REFUSED("a: !!int 1\n", "f.yaml:1:4: tags are not used here");
    REFUSED("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: \"a\" was given in line 1 already");
    REFUSED("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document: one file holds one");
    REFUSED("[a]: 1\n", "f.yaml:1:1: a key must be a word");
    REFUSED("a: 1\0\n", "f.yaml:1:5: a NUL byte: this is not a text file");
    REFUSED("a: \"\\0\"\n", "f.yaml:1:4: a NUL character in a text");
    REFUSED("a: \xc3(\n", "f.yaml:1:4: not UTF-8");
    REFUSED("\xff\xfe"
            "a\0",
            "f.yaml:1:1: not UTF-8");
    REFUSED("a: [1\n", "f.yaml:2:1: ");
    REFUSED("a: 1\n  b: 2\n", "f.yaml:2:4: ");
    REFUSED("a: \"x\n", "f.yaml:");
#undef REFUSED
    for (int i = 0; i < 40; i++)
        str_add_text(&deep, "[");
    assert_yaml_error(str_text(&deep), deep.len, "f.yaml:1:17: nested too deeply");
    str_add_text(&big, "a: ");
    while (big.len <= CONFIG_FILE_MAX)
        str_add_text(&big, "xxxxxxxxxxxxxxxx");
    assert_yaml_error(str_text(&big), big.len, "f.yaml: larger than 65536 bytes");
    str_done(&deep);
    str_done(&big);
}

/* As deep as is allowed, and no deeper. */
static void test_yaml_depth(void **state)
{
    struct error err;
    (void)state;

    for (int depth = CONFIG_DEPTH_MAX - 1; depth <= CONFIG_DEPTH_MAX + 1; depth++) {
        struct str s = STR_INIT;
        for (int i = 0; i < depth; i++)
            str_add_char(&s, '[');
        for (int i = 0; i < depth; i++)
            str_add_char(&s, ']');
        struct node *root = yaml_parse("f.yaml", str_text(&s), s.len, &err);
        assert_int_equal(root != NULL, depth <= CONFIG_DEPTH_MAX);
        node_free(root);
        str_done(&s);
    }
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Every prefix and many mutations of the shipped themes: a tree or an error, nothing else. */
static void test_yaml_mutated(void **state)
{
    char **names = theme_names(), **folders = paths_data("themes");
    uint32_t seed = 7;
    int refused = 0, taken = 0;
    struct error err;
    (void)state;

    for (int i = 0; i < 1500; i++) {
        struct str path = STR_INIT, text = STR_INIT;
        str_add_format(&path, "%s/dark.yaml", folders[1]);
        assert_true(file_read(str_text(&path), 65536, &text, &err));
        if (i < 300)
            str_truncate(&text, text.len * (size_t)i / 300);
        for (uint32_t n = i < 300 ? 0 : 1 + next_random(&seed) % 3; n > 0; n--)
            text.data[next_random(&seed) % text.len] = (char)next_random(&seed);
        char *copy = file_join(folder, "mutated.yaml");
        FILE *f = fopen(copy, "wb");
        assert_non_null(f);
        fwrite(str_text(&text), 1, text.len, f);
        fclose(f);
        err.text[0] = '\0';
        struct theme *t = theme_load(copy, &err);
        assert_true(t != NULL || err.text[0] != '\0');
        t != NULL ? taken++ : refused++;
        theme_free(t);
        free(copy);
        str_done(&path);
        str_done(&text);
    }
    assert_true(taken > 50 && refused > 50);
    paths_list_free(names);
    paths_list_free(folders);
}

/* ---- settings ------------------------------------------------------------------------------- */

static void write_settings(const char *text)
{
    char *path = paths_config("config.yaml");
    struct error err;

    assert_true(file_write_atomic(path, text, strlen(text), 0600, &err));
    free(path);
}

static void test_settings_absent(void **state)
{
    struct settings s;
    struct error err;
    (void)state;

    assert_true(settings_load(&s, NULL, &err));
    assert_null(s.model);
    assert_true(s.mouse && s.save);
    assert_false(s.drop_oldest);
    assert_int_equal(s.cache_type, -1);
    assert_int_equal(s.prefill, -1);
    assert_int_equal(s.ctx_size, 0);
    for (int i = 0; i < KNOB_COUNT; i++)
        assert_false(s.has[i]);
    settings_done(&s);
}

static void test_settings_all(void **state)
{
    struct settings s;
    struct preset_warnings w = {NULL, 0, 0};
    struct error err;
    (void)state;

    write_settings("model: smol\npreset: poetry\ntheme: tape\nsystem: Be brief.\n"
                   "ctx_size: 4096\nthreads: 2\nbatch_size: 64\ncache_type: q8_0\n"
                   "glyphs: ascii\nmouse: off\nsave: no\non_full: drop\npace: 12\npanel: strip\n"
                   "prefill_while_typing: off\n"
                   "temperature: 1.2\nrepetition_penalty_range: 0\n");
    assert_true(settings_load(&s, &w, &err));
    assert_int_equal(w.n, 0);
    assert_string_equal(s.model, "smol");
    assert_string_equal(s.preset, "poetry");
    assert_string_equal(s.theme, "tape");
    assert_string_equal(s.system, "Be brief.");
    assert_int_equal(s.ctx_size, 4096);
    assert_int_equal(s.threads, 2);
    assert_int_equal(s.batch_size, 64);
    assert_int_equal(s.cache_type, 1);
    assert_int_equal(s.glyphs, GLYPHS_ASCII);
    assert_false(s.mouse || s.save);
    assert_true(s.drop_oldest);
    assert_true(s.pace == 12);
    assert_int_equal(s.panel, 1);
    assert_int_equal(s.prefill, PREFILL_OFF);
    assert_true(s.has[KNOB_TEMPERATURE] && s.knob[KNOB_TEMPERATURE] == 1.2);
    assert_true(s.has[KNOB_REPEAT_LAST_N] && s.knob[KNOB_REPEAT_LAST_N] == -1);
    assert_false(s.has[KNOB_TOP_K]);
    settings_done(&s);
}

static void test_settings_wrong(void **state)
{
    static const char *const wrong[][2] = {
        {"threads: 0\n", ":1:10: threads: \"0\" is not a whole number from 1 to 512"},
        {"threads: two\n", ":1:10: threads: \"two\" is not a whole number from 1 to 512"},
        {"cache_type: q4\n", ":1:13: cache_type: \"q4\" is none of f16, q8_0"},
        {"on_full: explode\n", ":1:10: on_full: \"explode\" is none of drop, stop"},
        {"prefill_while_typing: yes\n",
         ":1:23: prefill_while_typing: \"yes\" is none of auto, on, off"},
        {"mouse: maybe\n", ":1:8: mouse: \"maybe\" is neither on nor off"},
        {"pace: fast\n", ":1:7: pace: \"fast\" is neither full nor a number"},
        {"model: [a]\n", ":1:8: model: a list is not a text"},
        {"x: 1\ntemperature: 7\n", ":2:14: temperature: 7 is out of range (0 - 5)"},
        {"[1]\n", ":1:1: a list where settings should be"},
    };
    struct preset_warnings w = {NULL, 0, 0};
    struct settings s;
    struct error err;
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_settings(wrong[i][0]);
        assert_false(settings_load(&s, NULL, &err));
        if (strstr(err.text, wrong[i][1]) == NULL)
            fail_msg("%s gave: %s", wrong[i][0], err.text);
        settings_done(&s);
    }
    write_settings("tempreture: 1\npannel: desk\npace: full\n");
    assert_true(settings_load(&s, &w, &err));
    assert_int_equal(w.n, 2);
    assert_non_null(strstr(w.items[0], ":1:1: unknown setting \"tempreture\" ignored: "
                                       "did you mean temperature?"));
    assert_non_null(strstr(w.items[1], "did you mean panel?"));
    preset_warnings_done(&w);
    settings_done(&s);
}

static void test_origins(void **state)
{
    (void)state;
    for (int i = 0; i < ORIGIN_COUNT; i++)
        assert_true(strlen(origin_name((enum origin)i)) > 0);
    assert_string_equal(origin_name(ORIGIN_MODEL), "model file");
    assert_true(ORIGIN_BUILT_IN < ORIGIN_MODEL && ORIGIN_MODEL < ORIGIN_SETTINGS &&
                ORIGIN_SETTINGS < ORIGIN_PRESET && ORIGIN_PRESET < ORIGIN_COMMAND_LINE);
}

/* ---- colours -------------------------------------------------------------------------------- */

static void test_colours(void **state)
{
    int32_t rgb;
    (void)state;

    assert_true(colour_parse("#fF8000", &rgb));
    assert_int_equal(rgb, 0xff8000);
    assert_false(colour_parse("#ff800", &rgb) || colour_parse("ff8000", &rgb) ||
                 colour_parse("#gg0000", &rgb) || colour_parse("#ff80000", &rgb));
    for (int i = 16; i < 256; i++) /* each is nearest to itself */
        assert_int_equal(colour_of_256(colour_nearest_256(colour_of_256(i))), colour_of_256(i));
    assert_int_equal(colour_nearest_256(0xff0000), 196);
    assert_int_equal(colour_nearest_256(0x808080), 244);
    assert_int_equal(colour_nearest_256(-1), -1);
    assert_int_equal(colour_nearest_16(0xffffff), 15);
    assert_int_equal(colour_nearest_16(0x000000), 0);
    assert_int_equal(colour_nearest_16(0xfa0505), 9);
    assert_int_equal(colour_nearest_16(-1), -1);
    assert_true(colour_contrast(0x000000, 0xffffff) > 20.99);
    assert_true(colour_contrast(0x777777, 0xffffff) > 4.47 &&
                colour_contrast(0x777777, 0xffffff) < 4.49); /* WCAG's own example */
}

/* ---- themes --------------------------------------------------------------------------------- */

static struct theme *theme_of(const char *text, struct error *err)
{
    char *path = file_join(folder, "t.yaml");

    assert_true(file_write_atomic(path, text, strlen(text), 0600, err));
    struct theme *t = theme_load(path, err);
    free(path);
    return t;
}

static void test_theme_keys(void **state)
{
    struct error err = {""};
    (void)state;
    struct theme *t =
        theme_of("name: mine\npalette: {sea: \"#0000ff\"}\n"
                 "accent: {fg: sea, bold: true, underline: true, mono: [bold, reverse]}\n"
                 "text: {fg: \"#eeeeee\", bg: \"#101010\", fg16: 7}\n"
                 "code: {bg: default, fg256: 30, mono: plain, italic: on}\n",
                 &err);

    if (t == NULL)
        fail_msg("%s", err.text);
    assert_string_equal(t->name, "mine");
    const struct style_look *text = &t->looks[STYLE_TEXT], *accent = &t->looks[STYLE_ACCENT],
                            *code = &t->looks[STYLE_CODE];
    assert_int_equal(text->fg_16, 7);
    assert_int_equal(text->fg_256, colour_nearest_256(0xeeeeee));
    assert_int_equal(accent->fg_rgb, 0x0000ff);
    assert_int_equal(accent->bg_rgb, 0x101010); /* text's ground */
    assert_int_equal(accent->bg_256, text->bg_256);
    assert_int_equal(accent->fg_256, 21);
    assert_int_equal(accent->attrs, ATTR_BOLD | ATTR_UNDERLINE);
    assert_int_equal(accent->mono_attrs, ATTR_BOLD | ATTR_REVERSE);
    assert_int_equal(code->bg_rgb, -1);
    assert_int_equal(code->bg_16, -1);
    assert_int_equal(code->fg_256, 30);
    assert_int_equal(code->attrs, ATTR_ITALIC);
    assert_int_equal(code->mono_attrs, 0);
    assert_memory_equal(&t->looks[STYLE_BAR], text, sizeof *text); /* left out: as text */
    theme_free(t);
}

static void test_theme_wrong(void **state)
{
    static const char *const wrong[][2] = {
        {"acent: {}\n", "t.yaml:1:1: unknown style \"acent\": did you mean accent?"},
        {"text: {fg: blue}\n", "t.yaml:1:12: fg: \"blue\" is no \"#rrggbb\""},
        {"palette: {a: b}\ntext: {fg: a}\n", "t.yaml:1:14: a: \"b\" is no \"#rrggbb\""},
        {"text: {fg256: 256}\n", "t.yaml:1:15: fg256: \"256\" is neither"},
        {"text: {mono: blink}\n", "t.yaml:1:14: mono: \"blink\" is none of plain, bold"},
        {"text: {colour: 1}\n", "t.yaml:1:8: unknown key \"colour\""},
        {"text: {bold: 1}\n", "t.yaml:1:14: bold: \"1\" is neither true nor false"},
        {"text: red\n", "t.yaml:1:7: text: \"red\" is not a map"},
        {"palette: red\n", "t.yaml:1:10: palette: not a map"},
    };
    struct error err;
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(theme_of(wrong[i][0], &err));
        if (strstr(err.text, wrong[i][1]) == NULL)
            fail_msg("%s gave: %s", wrong[i][0], err.text);
    }
    assert_null(theme_load("drak", &err));
    assert_string_equal(err.text, "theme drak: there is none of that name: did you mean dark?");
    assert_null(theme_load("neon sign", &err));
    assert_non_null(strstr(err.text, "there is none of that name, but dark, fjord"));
    assert_null(theme_load("../dark", &err));
}

/* What stands as lines and tracks need not read as text does (WCAG 1.4.11: 3 for graphics). */
static double needed(enum style s)
{
    return s == STYLE_RULE || s == STYLE_FADER || s == STYLE_BAR_MODEL ? 3.0 : 4.5;
}

static void check_contrast(const struct theme *t, enum style s, const char *depth, int32_t fg,
                           int32_t bg)
{
    bool light = strcmp(t->name, "light") == 0;

    if (fg < 0) /* the terminal's own text: it is readable, or nothing is */
        return;
    if (bg < 0)
        bg = light ? 0xffffff : 0x000000;
    double contrast = colour_contrast(fg, bg);
    if (contrast < needed(s))
        fail_msg("theme %s: %s (%s) has a contrast of %.2f, needs %.1f", t->name, style_name(s),
                 depth, contrast, needed(s));
}

static int32_t of_index(int index)
{
    return index < 0 ? -1 : colour_of_256(index);
}

static void test_theme_contrast(void **state)
{
    char **names = theme_names();
    size_t checked = 0;
    struct error err;
    (void)state;

    for (char **n = names; *n != NULL; n++) {
        struct theme *t = theme_load(*n, &err);
        if (t == NULL)
            fail_msg("%s", err.text);
        for (int s = 0; s < STYLE_COUNT; s++, checked++) {
            const struct style_look *l = &t->looks[s];
            check_contrast(t, (enum style)s, "24 bits", l->fg_rgb, l->bg_rgb);
            check_contrast(t, (enum style)s, "256 colours", of_index(l->fg_256),
                           of_index(l->bg_256));
            if (l->fg_256 >= 0)
                assert_true(l->fg_256 >= 16); /* not among those that users redefine */
        }
        theme_free(t);
    }
    assert_true(checked >= 6 * STYLE_COUNT);
    paths_list_free(names);
}

/* Whatever matters must be seen without colour, too. */
static void test_theme_monochrome(void **state)
{
    static const enum style apart[] = {STYLE_ACCENT, STYLE_FOCUS,  STYLE_SELECTION, STYLE_ERROR,
                                       STYLE_HEAT_1, STYLE_HEAT_2, STYLE_HEAT_3};
    char **names = theme_names();
    struct error err;
    (void)state;

    for (char **n = names; *n != NULL; n++) {
        struct theme *t = theme_load(*n, &err);
        assert_non_null(t);
        for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
            if (t->looks[apart[i]].mono_attrs == t->looks[STYLE_TEXT].mono_attrs)
                fail_msg("theme %s: %s looks like text without colour", *n, style_name(apart[i]));
        for (int a = STYLE_HEAT_0; a <= STYLE_HEAT_3; a++)
            for (int b = STYLE_HEAT_0; b < a; b++)
                assert_int_not_equal(t->looks[a].mono_attrs, t->looks[b].mono_attrs);
        assert_non_null(t->description);
        theme_free(t);
    }
    paths_list_free(names);
}

static void assert_same_look(const struct style_look *a, const struct style_look *b)
{
    assert_int_equal(a->fg_rgb, b->fg_rgb);
    assert_int_equal(a->bg_rgb, b->bg_rgb);
    assert_int_equal(a->fg_256, b->fg_256);
    assert_int_equal(a->bg_256, b->bg_256);
    assert_int_equal(a->fg_16, b->fg_16);
    assert_int_equal(a->bg_16, b->bg_16);
    assert_int_equal(a->attrs, b->attrs);
    assert_int_equal(a->mono_attrs, b->mono_attrs);
}

static void test_theme_built_in(void **state)
{
    char *data = strdup(getenv("FADER_DATA_DIR") != NULL ? getenv("FADER_DATA_DIR") : "");
    struct error err;
    (void)state;
    struct theme *file = theme_load("dark", &err);

    assert_non_null(file);
    assert_non_null(file->path);
    setenv("FADER_DATA_DIR", "/nonexistent", 1);
    struct theme *own = theme_load("dark", &err);
    assert_non_null(own);
    assert_null(own->path);
    for (int style = 0; style < STYLE_COUNT; style++)
        assert_same_look(&own->looks[style], &file->looks[style]);
    char **names = theme_names();
    assert_string_equal(names[0], "dark");
    assert_null(names[1]);
    paths_list_free(names);
    setenv("FADER_DATA_DIR", data, 1);
    theme_free(own);
    theme_free(file);
    free(data);
}

static void test_theme_names(void **state)
{
    static const char *const shipped[] = {"dark",  "fjord",      "high-contrast",
                                          "light", "monochrome", "tape"};
    char **names = theme_names();
    (void)state;

    for (size_t i = 0; i < 6; i++)
        assert_string_equal(names[i], shipped[i]);
    assert_null(names[6]);
    paths_list_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),          cmocka_unit_test(test_number_format),
        cmocka_unit_test(test_yaml_tree),        cmocka_unit_test(test_yaml_refusals),
        cmocka_unit_test(test_yaml_depth),       cmocka_unit_test(test_yaml_mutated),
        cmocka_unit_test(test_settings_absent),  cmocka_unit_test(test_settings_all),
        cmocka_unit_test(test_settings_wrong),   cmocka_unit_test(test_origins),
        cmocka_unit_test(test_colours),          cmocka_unit_test(test_theme_keys),
        cmocka_unit_test(test_theme_wrong),      cmocka_unit_test(test_theme_contrast),
        cmocka_unit_test(test_theme_monochrome), cmocka_unit_test(test_theme_built_in),
        cmocka_unit_test(test_theme_names),
    };

    return cmocka_run_group_tests(tests, set_up, folder_remove);
}
