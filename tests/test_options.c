/* The command line: tables, values, ranges, what is refused and how that is said. */
#include "test.h"

#include "cli/options.h"

enum { WORDS_MAX = 16 };

/* Parses "fader" and the words given; argv is copied, since parsing permutes it. */
static int parse(struct options *o, struct error *err, const char *const *words)
{
    static char *argv[WORDS_MAX + 2];
    static char copies[WORDS_MAX + 1][256];
    int argc = 0;

    strcpy(copies[0], "fader");
    argv[argc++] = copies[0];
    for (; words[argc - 1] != NULL; argc++) {
        assert_true(argc <= WORDS_MAX);
        snprintf(copies[argc], sizeof copies[argc], "%s", words[argc - 1]);
        argv[argc] = copies[argc];
    }
    argv[argc] = NULL;
    err->text[0] = '\0';
    options_init(o);
    return options_parse(&fader_options, argc, argv, o, err);
}

#define PARSE(o, err, ...) parse(o, err, (const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(const char *const *words, const char *text)
{
    struct options o;
    struct error err;

    assert_int_equal(parse(&o, &err, words), -1);
    assert_string_equal(err.text, text);
    options_done(&o);
}

#define REFUSED(text, ...) assert_refused((const char *const[]){__VA_ARGS__, NULL}, text)

static void test_defaults(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_int_equal(parse(&o, &err, (const char *const[]){NULL}), 1);
    assert_null(o.model);
    assert_null(o.reopen);
    assert_int_equal(o.predict, PREDICT_UNSET);
    assert_true(o.seed == SEED_UNSET);
    assert_int_equal(o.cache_type, -1);
    for (int k = 0; k < KNOB_COUNT; k++)
        assert_false(o.knobs.has[k]);
    options_done(&o);
}

static void test_values(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_true(PARSE(&o, &err, "-m", "a.gguf", "--ctx-size=512", "-n", "-1", "-s", "4294967295",
                      "--cache-type", "q8_0", "--raw", "--no-save") > 0);
    assert_string_equal(o.model, "a.gguf");
    assert_int_equal(o.ctx_size, 512);
    assert_int_equal(o.predict, -1);
    assert_true(o.seed == 4294967295);
    assert_int_equal(o.cache_type, CACHE_Q8_0);
    assert_true(o.raw && o.no_save);
    assert_false(o.events);
    options_done(&o);

    assert_true(PARSE(&o, &err, "--temp", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", ".05",
                      "--repeat-penalty", "1.0", "--repeat-last-n", "-1") > 0);
    static const double expected[KNOB_COUNT] = {
        [KNOB_TEMPERATURE] = 1.5,
        [KNOB_TOP_K] = 0,
        [KNOB_TOP_P] = 1,
        [KNOB_MIN_P] = 0.05,
        [KNOB_REPETITION_PENALTY] = 1,
        [KNOB_REPEAT_LAST_N] = -1,
    };
    for (int k = 0; k < KNOB_COUNT; k++) {
        assert_true(o.knobs.has[k]);
        assert_true(o.knobs.value[k] == expected[k]);
    }
    options_done(&o);
}

/* Every knob has its option, under the name that the engine's table gives it. */
static void test_every_knob_has_an_option(void **state)
{
    (void)state;
    for (int k = 0; k < KNOB_COUNT; k++) {
        const struct option_spec *found = NULL;
        for (size_t i = 0; i < fader_options.n; i++)
            if (strcmp(fader_options.specs[i].name, knob_traits[k].option) == 0)
                found = &fader_options.specs[i];
        assert_non_null(found);
        assert_non_null(found->help);
        assert_true(found->take == option_knob);
        assert_int_equal((int)found->min, k);
    }
}

static void test_no_option_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < fader_options.n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct option_spec *a = &fader_options.specs[i], *b = &fader_options.specs[k];
            assert_string_not_equal(a->name, b->name);
            assert_true(a->letter == 0 || a->letter != b->letter);
        }
}

static void test_sys(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_true(PARSE(&o, &err, "-sys", "be brief", "-p", "hello") > 0);
    assert_string_equal(o.system, "be brief");
    assert_string_equal(o.prompt, "hello");
    assert_true(o.seed == SEED_UNSET); /* not read as -s ys */
    options_done(&o);

    /* As the value of another option it is a text like any other. */
    assert_true(PARSE(&o, &err, "-p", "-sys") > 0);
    assert_string_equal(o.prompt, "-sys");
    assert_null(o.system);
    options_done(&o);
    assert_true(PARSE(&o, &err, "--prompt", "-sys", "-sys", "-sys") > 0);
    assert_string_equal(o.prompt, "-sys");
    assert_string_equal(o.system, "-sys");
    options_done(&o);
}

static void test_optional_value(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_true(PARSE(&o, &err, "--continue") > 0);
    assert_string_equal(o.reopen, "");
    options_done(&o);
    assert_true(PARSE(&o, &err, "--continue=chat.jsonl") > 0);
    assert_string_equal(o.reopen, "chat.jsonl");
    options_done(&o);
}

static void test_moves(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_true(PARSE(&o, &err, "--at", "20:temperature=0", "--at", "5:top_p=0.5", "--at",
                      "20:temp=1.25", "--at", "0:rep_pen=1.2") > 0);
    assert_int_equal(o.moves.n, 4);
    assert_int_equal(o.moves.items[0].n, 0);
    assert_int_equal(o.moves.items[0].knob, KNOB_REPETITION_PENALTY);
    assert_int_equal(o.moves.items[1].n, 5);
    assert_int_equal(o.moves.items[1].knob, KNOB_TOP_P);
    assert_true(o.moves.items[2].value == 0); /* same place: in the order given */
    assert_true(o.moves.items[3].value == 1.25);
    options_done(&o);
}

static void test_refused(void **state)
{
    (void)state;
    REFUSED("--nonsense: no such option", "--nonsense");
    REFUSED("--tmep: no such option; did you mean --temp?", "--tmep=1");
    REFUSED("-Z: no such option", "-Z");
    REFUSED("-m: needs a value", "-m");
    REFUSED("--model: needs a value", "--model");
    REFUSED("--raw=1: takes no value", "--raw=1");
    REFUSED("banana: not expected here (text of several words needs quotes)", "banana");
    REFUSED("--predict: 'ten' is not a whole number from -1 to 2147483647", "-n", "ten");
    REFUSED("--predict: '' is not a whole number from -1 to 2147483647", "-n", "");
    REFUSED("--predict: '1.5' is not a whole number from -1 to 2147483647", "-n", "1.5");
    REFUSED("--seed: '4294967296' is not a whole number from -1 to 4294967295", "-s", "4294967296");
    REFUSED("--seed: '99999999999999999999' is not a whole number from -1 to 4294967295", "-s",
            "99999999999999999999");
    REFUSED("--temp: 'nan' is not a number", "--temp", "nan");
    REFUSED("--temp: '0x1' is not a number", "--temp", "0x1");
    REFUSED("--temp: '1,5' is not a number", "--temp", "1,5");
    REFUSED("--cache-type: 'f32' is not a cache type: f16 or q8_0", "--cache-type", "f32");
    REFUSED("--at: '20' is not N:KNOB=VALUE", "--at", "20");
    REFUSED("--at 20:volume=1: 'volume' is not a knob", "--at", "20:volume=1");
    REFUSED("--at -1:temp=1: '-1' is not the number of an answer token (0, 1, ...)", "--at",
            "-1:temp=1");
    REFUSED("--at 1:temp=hot: 'hot' is not a number", "--at", "1:temp=hot");
}

/* Out of range: the option, the value and the range are named. */
static void test_ranges(void **state)
{
    static const char *const words[][2] = {
        {"--temp", "5.1"},  {"--temp", "-0.1"},          {"--top-p", "1.01"},
        {"--min-p", "-1"},  {"--repeat-penalty", "0.4"}, {"--repeat-penalty", "3.1"},
        {"--top-k", "1.5"}, {"--top-k", "-1"},           {"--at", "3:temperature=9"},
    };
    struct options o;
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(PARSE(&o, &err, words[i][0], words[i][1]), -1);
        assert_ptr_equal(strstr(err.text, words[i][0]), err.text);
        assert_null(strchr(err.text, '\n'));
        options_done(&o);
    }
}

static void test_help_lists_what_has_help(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    options_print_help(&fader_options, out);
    fclose(out);
    for (size_t i = 0; i < fader_options.n; i++) {
        char name[64];
        snprintf(name, sizeof name, "--%s%c", fader_options.specs[i].name,
                 fader_options.specs[i].argument == NULL     ? ' '
                 : fader_options.specs[i].argument[0] == '[' ? '['
                                                             : ' ');
        if (fader_options.specs[i].help != NULL) {
            assert_non_null(strstr(text, name));
            assert_non_null(strstr(text, fader_options.specs[i].help));
        } else {
            assert_null(strstr(text, name));
        }
    }
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        assert_true(strcspn(line, "\n") <= 100);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_every_knob_has_an_option),
        cmocka_unit_test(test_no_option_twice),
        cmocka_unit_test(test_sys),
        cmocka_unit_test(test_optional_value),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_help_lists_what_has_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
