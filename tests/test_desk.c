/* The desk: scales, nudges, mute, notch, undo, origins; and marks. */
#include "test.h"

#include "app/desk.h"
#include "app/marks.h"

enum { VOCAB = 49152 };

static struct desk desk_new(void)
{
    struct desk d;

    desk_init(&d);
    d.n_vocab = VOCAB;
    return d;
}

static void test_initial(void **state)
{
    struct desk d = desk_new();
    enum knob rows[DESK_FADERS];
    (void)state;

    assert_near(d.now.value[KNOB_TEMPERATURE], 0.8, 0);
    assert_near(d.now.value[KNOB_TOP_K], 50, 0);
    assert_near(d.now.value[KNOB_TOP_P], 0.9, 0);
    assert_near(d.now.value[KNOB_REPETITION_PENALTY], 1.1, 0);
    assert_false(desk_is_changed(&d));
    desk_rows(&d, rows);
    const enum knob order[] = {KNOB_REPETITION_PENALTY, KNOB_TEMPERATURE, KNOB_TOP_K, KNOB_TOP_P,
                               KNOB_MIN_P};
    assert_memory_equal(rows, order, sizeof order);
}

static void expect_travel(enum knob knob, double value, double travel)
{
    bool beyond = true;

    assert_near(fader_travel(knob, value, VOCAB, &beyond), travel, 1e-9);
    assert_false(beyond);
}

static void test_travel(void **state)
{
    bool beyond;
    (void)state;

    expect_travel(KNOB_TEMPERATURE, 0, 0);
    expect_travel(KNOB_TEMPERATURE, 0.5, 0.25);
    expect_travel(KNOB_TEMPERATURE, 2, 1);
    assert_near(fader_travel(KNOB_TEMPERATURE, 2.5, VOCAB, &beyond), 1, 0);
    assert_true(beyond);
    expect_travel(KNOB_REPETITION_PENALTY, 1, 0);
    expect_travel(KNOB_REPETITION_PENALTY, 1.25, 0.5);
    expect_travel(KNOB_REPETITION_PENALTY, 1.5, 1);
    assert_near(fader_travel(KNOB_REPETITION_PENALTY, 0.9, VOCAB, &beyond), 0, 0);
    assert_true(beyond);
    expect_travel(KNOB_TOP_P, 0, 0);
    expect_travel(KNOB_TOP_P, 0.4, 0.25);
    expect_travel(KNOB_TOP_P, 0.8, 0.5); /* half of the travel lies above */
    expect_travel(KNOB_TOP_P, 0.9, 0.75);
    expect_travel(KNOB_TOP_P, 1, 1);
    expect_travel(KNOB_TOP_K, 1, 0);
    expect_travel(KNOB_TOP_K, 0, 1); /* off stands at the right end ... */
    double largest = fader_travel(KNOB_TOP_K, VOCAB, VOCAB, &beyond);
    assert_true(largest < 1 && largest > 0.9); /* ... after the largest */
    double ten = fader_travel(KNOB_TOP_K, 10, VOCAB, NULL);
    double hundred = fader_travel(KNOB_TOP_K, 100, VOCAB, NULL);
    assert_near(hundred, 2 * ten, 1e-9); /* logarithmic */
    expect_travel(KNOB_MIN_P, 0, 0);
    expect_travel(KNOB_MIN_P, 1, 1);
    double a = fader_travel(KNOB_MIN_P, 0.01, VOCAB, NULL);
    double b = fader_travel(KNOB_MIN_P, 0.1, VOCAB, NULL);
    assert_near(1 - b, b - a, 1e-9);
}

static void test_top_k_stops(void **state)
{
    static const double stops[] = {1,  2,   3,   5,   7,   10,  15,  20,  30,   40,  50,
                                   70, 100, 150, 200, 300, 400, 500, 700, 1000, 1500};
    struct desk d = desk_new();
    struct error err;
    (void)state;

    assert_true(desk_set(&d, KNOB_TOP_K, 1, &err));
    assert_false(desk_nudge(&d, KNOB_TOP_K, -1, false)); /* the scale's left end */
    for (size_t i = 1; i < sizeof stops / sizeof stops[0]; i++) {
        assert_true(desk_nudge(&d, KNOB_TOP_K, 1, false));
        assert_near(d.now.value[KNOB_TOP_K], stops[i], 0);
    }
    assert_true(desk_set(&d, KNOB_TOP_K, 45, &err)); /* between two stops */
    desk_nudge(&d, KNOB_TOP_K, -1, false);
    assert_near(d.now.value[KNOB_TOP_K], 40, 0);
    desk_nudge(&d, KNOB_TOP_K, 1, true); /* three stops */
    assert_near(d.now.value[KNOB_TOP_K], 100, 0);
    assert_true(desk_set(&d, KNOB_TOP_K, 40000, &err));
    assert_true(desk_nudge(&d, KNOB_TOP_K, 1, false));
    assert_near(d.now.value[KNOB_TOP_K], 0, 0); /* off, after the largest */
    assert_false(desk_nudge(&d, KNOB_TOP_K, 1, false));
    desk_nudge(&d, KNOB_TOP_K, -1, false);
    assert_near(d.now.value[KNOB_TOP_K], 40000, 0);
}

static void test_nudges_are_decimals(void **state)
{
    static const struct {
        enum knob knob;
        double from, fine, coarse, min, max;
    } cases[] = {
        {KNOB_TEMPERATURE, 0.8, 0.05, 0.2, 0, 2},
        {KNOB_REPETITION_PENALTY, 1.1, 0.01, 0.05, 1, 1.5},
        {KNOB_TOP_P, 0.9, 0.01, 0.05, 0, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct desk d = desk_new();
        enum knob k = cases[i].knob;
        desk_nudge(&d, k, 1, false);
        assert_near(d.now.value[k], cases[i].from + cases[i].fine, 1e-12);
        desk_nudge(&d, k, -1, true);
        assert_near(d.now.value[k], cases[i].from + cases[i].fine - cases[i].coarse, 1e-12);
        for (int step = 0; step < 200; step++) {
            char text[32];
            desk_nudge(&d, k, step < 120 ? -1 : 1, false);
            snprintf(text, sizeof text, "%.2f", d.now.value[k]);
            /* exactly the number that is shown: 0.8, never 0.7999999 */
            assert_near(d.now.value[k], strtod(text, NULL), 0);
            assert_true(d.now.value[k] >= cases[i].min && d.now.value[k] <= cases[i].max);
        }
        while (desk_nudge(&d, k, 1, true))
            continue;
        assert_near(d.now.value[k], cases[i].max, 0);
        while (desk_nudge(&d, k, -1, true))
            continue;
        assert_near(d.now.value[k], cases[i].min, 0);
    }
}

static void test_min_p(void **state)
{
    struct desk d = desk_new();
    struct error err;
    (void)state;

    assert_false(desk_nudge(&d, KNOB_MIN_P, -1, false));
    desk_nudge(&d, KNOB_MIN_P, 1, false);
    assert_near(d.now.value[KNOB_MIN_P], 0.001, 0);
    desk_set(&d, KNOB_MIN_P, 0.05, &err);
    desk_nudge(&d, KNOB_MIN_P, 1, false);
    assert_near(d.now.value[KNOB_MIN_P], 0.07, 0);
    while (desk_nudge(&d, KNOB_MIN_P, 1, true))
        continue;
    assert_near(d.now.value[KNOB_MIN_P], 1, 0);
}

/* Past the end of its travel a fader only moves inwards. */
static void test_beyond(void **state)
{
    struct desk d = desk_new();
    struct error err;
    (void)state;

    assert_true(desk_set(&d, KNOB_TEMPERATURE, 2.5, &err));
    assert_false(desk_nudge(&d, KNOB_TEMPERATURE, 1, false));
    assert_near(d.now.value[KNOB_TEMPERATURE], 2.5, 0);
    assert_true(desk_nudge(&d, KNOB_TEMPERATURE, -1, false));
    assert_near(d.now.value[KNOB_TEMPERATURE], 2.45, 1e-12);
    assert_false(desk_set(&d, KNOB_TEMPERATURE, 5.5, &err));
    assert_non_null(strstr(err.text, "temperature"));
    assert_false(desk_set(&d, KNOB_TOP_K, 2.5, &err));
    assert_false(desk_set(&d, KNOB_TOP_K, VOCAB + 1, &err));
    assert_near(d.now.value[KNOB_TEMPERATURE], 2.45, 1e-12);
}

static void test_mouse(void **state)
{
    struct desk d = desk_new();
    (void)state;

    assert_true(desk_move_to(&d, KNOB_TEMPERATURE, 0.51));
    assert_near(d.now.value[KNOB_TEMPERATURE], 1.0, 0);
    assert_false(desk_move_to(&d, KNOB_TEMPERATURE, 0.505)); /* the same stop */
    desk_move_to(&d, KNOB_TOP_K, 1);
    assert_near(d.now.value[KNOB_TOP_K], 0, 0);
    desk_move_to(&d, KNOB_TOP_K, -3);
    assert_near(d.now.value[KNOB_TOP_K], 1, 0);
    desk_move_to(&d, KNOB_TOP_P, 0.75);
    assert_near(d.now.value[KNOB_TOP_P], 0.9, 0);
    /* every stop is found again where it stands */
    for (double t = 0; t <= 1; t += 0.001) {
        desk_move_to(&d, KNOB_TOP_K, t);
        double at = fader_travel(KNOB_TOP_K, d.now.value[KNOB_TOP_K], VOCAB, NULL);
        double value = d.now.value[KNOB_TOP_K];
        desk_move_to(&d, KNOB_TOP_K, at);
        assert_near(d.now.value[KNOB_TOP_K], value, 0);
    }
}

static void test_mute_reset_undo(void **state)
{
    struct desk d = desk_new();
    struct error err;
    enum knob which;
    (void)state;

    assert_true(desk_set(&d, KNOB_TOP_K, 20, &err));
    assert_int_equal(d.fader[KNOB_TOP_K].origin, ORIGIN_SLIDER);
    assert_true(desk_mute(&d, KNOB_TOP_K));
    assert_near(d.now.value[KNOB_TOP_K], 0, 0);
    assert_true(d.fader[KNOB_TOP_K].muted);
    assert_true(desk_mute(&d, KNOB_TOP_K));
    assert_near(d.now.value[KNOB_TOP_K], 20, 0);
    assert_false(d.fader[KNOB_TOP_K].muted);
    assert_false(desk_mute(&d, KNOB_MIN_P)); /* neutral already */

    assert_true(desk_mute(&d, KNOB_TEMPERATURE));
    assert_near(d.now.value[KNOB_TEMPERATURE], 1, 0);
    assert_true(desk_set(&d, KNOB_TEMPERATURE, 0.5, &err)); /* a value unmutes */
    assert_false(d.fader[KNOB_TEMPERATURE].muted);

    assert_true(desk_undo(&d, &which)); /* back to muted */
    assert_int_equal(which, KNOB_TEMPERATURE);
    assert_true(d.fader[KNOB_TEMPERATURE].muted);
    assert_true(desk_undo(&d, &which));
    assert_near(d.now.value[KNOB_TEMPERATURE], 0.8, 0);
    assert_true(desk_is_changed(&d));   /* top-k still */
    assert_true(desk_undo(&d, &which)); /* unmuting, muting, setting top-k */
    assert_true(desk_undo(&d, &which));
    assert_true(desk_undo(&d, &which));
    assert_false(desk_is_changed(&d));
    assert_false(desk_undo(&d, &which));

    desk_set(&d, KNOB_TOP_P, 0.5, &err);
    assert_true(desk_knob_changed(&d, KNOB_TOP_P));
    desk_reset(&d, KNOB_TOP_P);
    assert_false(desk_knob_changed(&d, KNOB_TOP_P));
    assert_int_equal(d.fader[KNOB_TOP_P].origin, ORIGIN_BUILT_IN);
}

/* A drag is one step back, however many cells it crossed. */
static void test_undo_of_a_drag(void **state)
{
    struct desk d = desk_new();
    enum knob which;
    (void)state;

    for (double t = 0; t <= 1; t += 0.1)
        desk_move_to(&d, KNOB_TEMPERATURE, t);
    assert_true(desk_undo(&d, &which));
    assert_near(d.now.value[KNOB_TEMPERATURE], 0.8, 0);
    for (int i = 0; i < 2 * DESK_UNDO_MAX; i++)
        desk_nudge(&d, KNOB_TEMPERATURE, i % 2 == 0 ? 1 : -1, false);
    assert_int_equal(d.n_undo, DESK_UNDO_MAX); /* the oldest are forgotten, nothing else */
    while (desk_undo(&d, &which))
        continue;
    assert_near(d.now.value[KNOB_TEMPERATURE], 0.8, 1e-12);
}

static void test_layers(void **state)
{
    struct desk d = desk_new();
    bool has[KNOB_COUNT] = {[KNOB_TEMPERATURE] = true};
    double value[KNOB_COUNT] = {[KNOB_TEMPERATURE] = 0.6};
    struct preset p = {.name = (char *)"poetry", .knobs = knobs_default(), .seed = -1};
    (void)state;

    desk_apply(&d, has, value, ORIGIN_SETTINGS); /* below the preset: the notch moves with it */
    assert_near(d.now.value[KNOB_TEMPERATURE], 0.6, 0);
    assert_false(desk_is_changed(&d));
    value[KNOB_TEMPERATURE] = 1.2;
    desk_apply(&d, has, value, ORIGIN_COMMAND_LINE); /* above it */
    assert_true(desk_is_changed(&d));
    assert_near(d.preset.value[KNOB_TEMPERATURE], 0.6, 0);
    desk_reset(&d, KNOB_TEMPERATURE);
    assert_int_equal(d.fader[KNOB_TEMPERATURE].origin, ORIGIN_SETTINGS);

    p.knobs.value[KNOB_TOP_K] = 0;
    p.has[KNOB_TOP_K] = true;
    desk_apply_preset(&d, &p); /* every knob */
    assert_near(d.now.value[KNOB_TEMPERATURE], 0.8, 0);
    assert_near(d.now.value[KNOB_TOP_K], 0, 0);
    assert_int_equal(d.fader[KNOB_TOP_K].origin, ORIGIN_PRESET);
    assert_int_equal(d.fader[KNOB_TEMPERATURE].origin, ORIGIN_BUILT_IN);
    assert_string_equal(d.preset_name, "poetry");
    assert_false(desk_is_changed(&d));
}

static void expect_text(enum knob knob, double value, const char *text)
{
    char out[16];

    fader_value_text(knob, value, out);
    assert_string_equal(out, text);
}

static void test_value_text(void **state)
{
    (void)state;
    expect_text(KNOB_TEMPERATURE, 0.8, "0.80");
    expect_text(KNOB_TEMPERATURE, 0, "greedy");
    expect_text(KNOB_TEMPERATURE, 0.855, "0.855");
    expect_text(KNOB_TEMPERATURE, 5, "5.00");
    expect_text(KNOB_TOP_K, 50, "50");
    expect_text(KNOB_TOP_K, 0, "off");
    expect_text(KNOB_TOP_P, 1, "off");
    expect_text(KNOB_TOP_P, 0.9, "0.90");
    expect_text(KNOB_MIN_P, 0, "off");
    expect_text(KNOB_REPETITION_PENALTY, 1.1, "1.10");
    expect_text(KNOB_REPETITION_PENALTY, 1, "1.00");
    expect_text(KNOB_REPEAT_LAST_N, -1, "all");
    expect_text(KNOB_REPEAT_LAST_N, 64, "64");
}

static void test_greedy_idles_what_stands_below(void **state)
{
    struct desk d = desk_new();
    struct error err;
    (void)state;

    assert_false(fader_is_idle(&d, KNOB_TOP_K));
    desk_set(&d, KNOB_TEMPERATURE, 0, &err);
    assert_true(fader_is_idle(&d, KNOB_TOP_K));
    assert_true(fader_is_idle(&d, KNOB_TOP_P));
    assert_true(fader_is_idle(&d, KNOB_MIN_P));
    assert_false(fader_is_idle(&d, KNOB_REPETITION_PENALTY));
    assert_false(fader_is_idle(&d, KNOB_TEMPERATURE));
    const uint8_t llama[] = {STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P,
                             STAGE_TEMPERATURE};
    memcpy(d.now.order, llama, sizeof llama);
    assert_false(fader_is_idle(&d, KNOB_TOP_K));
}

/* ---- marks ----------------------------------------------------------------------------------- */

static struct turn *answer_of(struct conversation *c, const char *const *words)
{
    struct turn *t = conversation_add(c, NULL, ROLE_ASSISTANT, "");

    for (int32_t i = 0; words[i] != NULL; i++) {
        struct answer_token token = {.id = i};
        turn_add_token(t, &token, words[i], strlen(words[i]));
    }
    return t;
}

static const char *const words[] = {"The",  " rain", " t",     "aps",  " out", " a",    " code",
                                    " on",  " the",  " tin",   ",",    " a",   " drum", " learns",
                                    " to",  " play", " it",    " now", " and", " then", " rests",
                                    " for", " a",    " while", NULL};

static void test_marks(void **state)
{
    struct conversation *c = conversation_new();
    struct turn *t = answer_of(c, words);
    struct mark m[8];
    (void)state;

    assert_int_equal(marks_of(t, m, 8), 0);
    turn_add_knob(t, 3, KNOB_TEMPERATURE, 0.8, 0.9); /* no token between: one mark */
    turn_add_knob(t, 3, KNOB_TEMPERATURE, 0.9, 1.6);
    turn_add_knob(t, 3, KNOB_TOP_K, 50, 0);
    turn_add_knob(t, 20, KNOB_REPETITION_PENALTY, 1.1, 1.2);
    turn_add_knob(t, 20, KNOB_REPETITION_PENALTY, 1.2, 1.1); /* taken back: none */
    turn_add_knob(t, 21, KNOB_TEMPERATURE, 1.6, 0);
    assert_int_equal(marks_of(t, m, 8), 3);
    assert_int_equal(m[0].n, 3);
    assert_int_equal(m[0].letter, 'T');
    assert_string_equal(m[0].label, "temp 0.80▸1.60");
    assert_int_equal(m[1].letter, 'K');
    assert_string_equal(m[1].label, "top-k 50▸off");
    assert_int_equal(m[2].n, 21);
    assert_string_equal(m[2].label, "temp 1.60▸greedy");
    assert_int_equal(marks_of(t, m, 1), 3); /* how many there are, whatever fits */
    assert_int_equal(marks_of(t, NULL, 0), 3);
    conversation_free(c);
}

static void test_rides(void **state)
{
    struct conversation *c = conversation_new();
    struct turn *t = answer_of(c, words);
    struct mark m[8];
    (void)state;

    turn_add_knob(t, 1, KNOB_TEMPERATURE, 0.8, 1.0);
    turn_add_knob(t, 5, KNOB_TEMPERATURE, 1.0, 1.4);
    turn_add_knob(t, 11, KNOB_TEMPERATURE, 1.4, 1.6);
    turn_add_knob(t, 22, KNOB_TEMPERATURE, 1.6, 1.7); /* eleven tokens later: another */
    assert_int_equal(marks_of(t, m, 8), 2);
    assert_int_equal(m[0].n, 1);
    assert_int_equal(m[0].last, 11);
    assert_string_equal(m[0].label,
                        "temp 0.80▸1.60 over 8 words"); /* " t" "aps" and "," are no words */
    assert_string_equal(m[1].label, "temp 1.60▸1.70");

    struct turn *back = answer_of(c, words);
    turn_add_knob(back, 1, KNOB_TEMPERATURE, 0.8, 1.6);
    turn_add_knob(back, 2, KNOB_TEMPERATURE, 1.6, 0.8);
    assert_int_equal(marks_of(back, m, 8), 1);
    assert_string_equal(m[0].label, "temp 0.80▸1.60▸0.80 over 1 word");
    conversation_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial),
        cmocka_unit_test(test_travel),
        cmocka_unit_test(test_top_k_stops),
        cmocka_unit_test(test_nudges_are_decimals),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_mouse),
        cmocka_unit_test(test_mute_reset_undo),
        cmocka_unit_test(test_undo_of_a_drag),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_value_text),
        cmocka_unit_test(test_greedy_idles_what_stands_below),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_rides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
