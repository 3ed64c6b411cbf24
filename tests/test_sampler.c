/* The sampler against the worked examples and against exact probabilities, and what must not happen.
 * Against a twin: test_sampler_twin.c. */
#include "test.h"

#include <float.h>
#include <math.h>

#include "engine/rng.h"
#include "engine/sampler.h"
#include "numbers.h"
#include "sampler_rig.h"

/* Index of a stage in the order in which it ran. */
static int stage_at(const struct sampler *s, enum stage stage)
{
    int i = 0;

    while (sampler_stages(s)[i].stage != stage)
        i++;
    return i;
}

/* ---- worked examples ------------------------------------------------------------------------ */

static const float cities[] = {4.0f, 3.0f, 2.0f, 0.1f};

static void test_penalty_example(void **state)
{
    struct sampler *s = sampler_new(5);
    struct knobs k = neutral();
    const float logits[] = {4.0f, 3.0f, 2.0f, 0.1f, -2.0f};
    const int32_t seen[] = {0, 4, 0, 0};
    double after[5];
    uint8_t kept[5];
    (void)state;

    k.value[KNOB_REPETITION_PENALTY] = 1.2;
    run(s, logits, &k, seen, LEN(seen));
    trace(s, 0, logits, 5, after, kept);
    assert_near(after[0], 3.3333, 0.0001); /* once, not three times */
    assert_near(after[1], 3.0, 1e-9);
    assert_near(after[4], -2.4, 1e-9);
    assert_int_equal(sampler_stages(s)[0].changed, 2);
    sampler_free(s);
}

static void test_temperature_examples(void **state)
{
    struct sampler *s = sampler_new(4);
    struct knobs k = neutral();
    const double hot[] = {2.0, 1.5, 1.0, 0.05}, cold[] = {8.0, 6.0, 4.0, 0.2};
    double after[4];
    uint8_t kept[4];
    (void)state;

    k.value[KNOB_TEMPERATURE] = 2;
    run(s, cities, &k, NULL, 0);
    trace(s, 1, cities, 4, after, kept);
    for (int i = 0; i < 4; i++)
        assert_near(after[i], hot[i], 1e-7);
    k.value[KNOB_TEMPERATURE] = 0.5;
    run(s, cities, &k, NULL, 0);
    trace(s, 1, cities, 4, after, kept);
    for (int i = 0; i < 4; i++)
        assert_near(after[i], cold[i], 1e-7);
    sampler_free(s);
}

static void test_nucleus_example(void **state)
{
    struct sampler *s = sampler_new(4);
    struct knobs k = neutral();
    const float logits[] = {logf(0.60f), logf(0.25f), logf(0.10f), logf(0.05f)};
    struct sampler_candidate c[4];
    (void)state;

    k.value[KNOB_TOP_P] = 0.8;
    run(s, logits, &k, NULL, 0);
    const struct sampler_stage *stage = &sampler_stages(s)[stage_at(s, STAGE_TOP_P)];
    assert_int_equal(stage->kept, 2);
    assert_int_equal(stage->changed, 2);
    assert_near(stage->cut_share, 0.15, 1e-6);
    assert_int_equal(sampler_survivors(s, c, 4), 2);
    assert_int_equal(c[0].id, 0);
    assert_int_equal(c[1].id, 1);
    assert_near(c[0].now, 0.60 / 0.85, 1e-6);
    assert_near(c[1].model, 0.25, 1e-6);
    assert_int_equal(sampler_cut(s, STAGE_TOP_P, c, 4), 2);
    assert_int_equal(c[0].id, 2);
    assert_int_equal(c[0].cut_by, STAGE_TOP_P);
    assert_near(c[0].model, 0.10, 1e-6);
    k.value[KNOB_TOP_P] = 0; /* the first always stays */
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_survivors(s, c, 4), 1);
    sampler_free(s);
}

static void test_top_k_keeps_ties(void **state)
{
    struct sampler *s = sampler_new(6);
    struct knobs k = neutral();
    const float logits[] = {1, 3, 2, 2, 2, 0};
    struct sampler_candidate c[6];
    (void)state;

    k.value[KNOB_TOP_K] = 2;
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_survivors(s, c, 6), 4);
    assert_int_equal(c[0].id, 1);
    assert_int_equal(c[1].id, 2); /* the lowest id first */
    assert_int_equal(c[2].id, 3);
    assert_int_equal(c[3].id, 4);
    k.value[KNOB_TOP_K] = 100; /* clamped to the vocabulary */
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_survivors(s, c, 6), 6);
    sampler_free(s);
}

static void test_greedy_guard(void **state)
{
    struct sampler *s = sampler_new(4);
    struct knobs k = knobs_default();
    const float logits[] = {1, 5, 5, 2};
    const int32_t seen[] = {1};
    struct sampler_candidate c[4];
    (void)state;

    k.exempt_mode = EXEMPT_NONE;
    k.value[KNOB_REPETITION_PENALTY] = 1;
    k.value[KNOB_TEMPERATURE] = 1e-4;
    run(s, logits, &k, NULL, 0);
    assert_true(sampler_is_greedy(s));
    for (double u = 0; u < 1; u += 0.09) {
        assert_int_equal(sampler_pick(s, u).id, 1);
        assert_near(sampler_pick(s, u).p, 1, 0);
    }
    assert_int_equal(sampler_cut(s, STAGE_TEMPERATURE, c, 4), 3);
    assert_int_equal(c[0].id, 2);
    for (int i = stage_at(s, STAGE_TEMPERATURE) + 1; i < STAGE_COUNT; i++) {
        assert_true(sampler_stages(s)[i].skipped);
        assert_int_equal(sampler_stages(s)[i].kept, 1);
    }
    k.value[KNOB_REPETITION_PENALTY] = 1.1; /* the penalty runs before the guard */
    run(s, logits, &k, seen, 1);
    assert_int_equal(sampler_pick(s, 0.9).id, 2);
    k.value[KNOB_TEMPERATURE] = 1.1e-4;
    run(s, logits, &k, seen, 1);
    assert_false(sampler_is_greedy(s));
    sampler_free(s);
}

/* ---- what must not happen ------------------------------------------------------------------- */

static void test_hostile_logits(void **state)
{
    struct sampler *s = sampler_new(70);
    struct knobs k = knobs_default();
    float logits[70];
    struct sampler_candidate c[70];
    const int32_t context[] = {1, -5, 70, INT32_MAX};
    (void)state;

    for (int i = 0; i < 70; i++)
        logits[i] = NAN;
    for (int off = 0; off < 2; off++) {
        run(s, logits, &k, context, LEN(context)); /* nothing but NaN: all are equal */
        struct sampler_draw d = sampler_pick(s, 0.5);
        assert_in_range(d.id, 0, 69);
        assert_true(d.p > 0);
        k = neutral();
    }
    for (int i = 0; i < 70; i++)
        logits[i] = -INFINITY;
    run(s, logits, &k, context, LEN(context));
    assert_in_range(sampler_pick(s, 0.999999).id, 0, 69);

    logits[3] = 1;
    logits[4] = NAN;
    logits[69] = 2;
    for (int off = 0; off < 2; off++) {
        k = off ? neutral() : knobs_default();
        run(s, logits, &k, context, LEN(context));
        assert_int_equal(sampler_survivors(s, c, 70), 2);
        for (double u = 0; u < 1; u += 0.01) {
            int32_t id = sampler_pick(s, u).id;
            assert_true(id == 3 || id == 69);
        }
        assert_int_equal(sampler_pick(s, 1 - 0x1p-53).id, 3);
        assert_near(sampler_look(s, 4).p, 0, 0);
    }
    logits[5] = INFINITY;
    logits[6] = -FLT_MAX;
    run(s, logits, &k, context, LEN(context));
    assert_int_equal(sampler_pick(s, 0.99).id, 5);
    sampler_free(s);
}

static void test_equal_vocabulary(void **state)
{
    enum { N = 4096 };
    struct sampler *s = sampler_new(N);
    struct knobs k = neutral();
    float *logits = calloc(N, sizeof *logits);
    (void)state;

    run(s, logits, &k, NULL, 0);
    for (int i = 0; i < N; i += 17) /* laid end to end by id, each exactly 1/N wide */
        assert_int_equal(sampler_pick(s, ((double)i + 0.5) / N).id, i);
    assert_near(sampler_stages(s)[STAGE_COUNT - 1].entropy, 12, 1e-9);
    k.value[KNOB_TOP_P] = 0.5; /* exactly half is not yet more than half */
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_stages(s)[stage_at(s, STAGE_TOP_P)].kept, N / 2 + 1);
    k.value[KNOB_TOP_K] = 1; /* all tie with the first */
    k.value[KNOB_TOP_P] = 1;
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_stages(s)[stage_at(s, STAGE_TOP_K)].kept, N);
    free(logits);
    sampler_free(s);
}

/* What falls exactly on an edge belongs to what comes after it; what equals a limit stays. */
static void test_edges(void **state)
{
    enum { N = 16 };
    struct sampler *s = sampler_new(N);
    struct knobs k = neutral();
    float logits[N] = {0};
    (void)state;

    run(s, logits, &k, NULL, 0);
    for (int i = 0; i < N; i++) /* first from the field, then from the list */
        assert_int_equal(sampler_pick(s, (double)i / N).id, i);
    for (int i = 8; i < N; i++)
        logits[i] = -50; /* too light to move what lies in front */
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_pick(s, 0.5).id, 4);
    k.value[KNOB_TOP_K] = 8;
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_pick(s, 0.5).id, 4);
    k = neutral();
    k.value[KNOB_MIN_P] = 1;
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_stages(s)[stage_at(s, STAGE_MIN_P)].kept, 8);
    k.value[KNOB_TOP_K] = 9;
    run(s, logits, &k, NULL, 0);
    assert_int_equal(sampler_stages(s)[stage_at(s, STAGE_MIN_P)].kept, 8);
    sampler_free(s);
}

static void test_punctuation_exempt(void **state)
{
    struct sampler *s = sampler_new(4);
    struct knobs k = knobs_default();
    const uint8_t punctuation[] = {0, 1, 0, 0};
    const int32_t context[] = {0, 1, 2};
    struct sampler_input in = {cities, context, 3, punctuation, &k, true};
    (void)state;

    sampler_run(s, &in);
    assert_int_equal(sampler_stages(s)[0].changed, 2);
    k.exempt_mode = EXEMPT_NONE;
    sampler_run(s, &in);
    assert_int_equal(sampler_stages(s)[0].changed, 3);
    k.exempt_mode = EXEMPT_LIST;
    k.n_exempt = 2;
    k.exempt[0] = 0;
    k.exempt[1] = 2;
    sampler_run(s, &in);
    assert_int_equal(sampler_stages(s)[0].changed, 1);
    k.value[KNOB_REPEAT_LAST_N] = 1; /* token 2 only, and that is exempt */
    sampler_run(s, &in);
    assert_int_equal(sampler_stages(s)[0].changed, 0);
    sampler_free(s);
}

/* The same logits and knobs, with and without the stages' figures: the same draws, bit for bit. */
static void test_stats_change_nothing(void **state)
{
    enum { N = 3000 };
    struct sampler *a = sampler_new(N), *b = sampler_new(N);
    float *logits = calloc(N, sizeof *logits);
    (void)state;

    numbers_seed = 9;
    for (int round = 0; round < 60; round++) {
        struct knobs k;
        for (int i = 0; i < N; i++)
            logits[i] = numbers_normal(3);
        random_knobs(&k, N);
        struct sampler_input in = {.logits = logits, .knobs = &k};
        sampler_run(a, &in);
        in.want_stats = true;
        sampler_run(b, &in);
        for (int i = 0; i < 20; i++) {
            double u = numbers_uniform();
            struct sampler_draw x = sampler_pick(a, u), y = sampler_pick(b, u);
            assert_int_equal(x.id, y.id);
            assert_memory_equal(&x.p, &y.p, sizeof x.p);
        }
        assert_near(sampler_stages(a)[4].entropy, sampler_stages(b)[4].entropy, 0);
    }
    free(logits);
    sampler_free(a);
    sampler_free(b);
}

/* ---- the draw's distribution ---------------------------------------------------------------- */

static void check_distribution(const struct knobs *k, double limit)
{
    enum { N = 12, DRAWS = 200000 };
    const float logits[N] = {2, 1.5f, 1, 0.5f, 0, -0.5f, -1, -1.5f, 0.25f, 0.25f, 1.25f, -0.75f};
    struct sampler *s = sampler_new(N);
    double counts[N] = {0}, p[N], chi = 0;
    int free_cells = -1;

    run(s, logits, k, NULL, 0);
    for (int i = 0; i < N; i++)
        p[i] = sampler_look(s, i).p;
    for (int n = 0; n < DRAWS; n++)
        counts[sampler_pick(s, sampler_uniform(4711, (uint64_t)n)).id]++;
    for (int i = 0; i < N; i++) {
        if (p[i] == 0) {
            assert_near(counts[i], 0, 0);
            continue;
        }
        chi += (counts[i] - p[i] * DRAWS) * (counts[i] - p[i] * DRAWS) / (p[i] * DRAWS);
        free_cells++;
    }
    /* mean free_cells, variance 2 free_cells: five deviations is out of the question */
    assert_true(free_cells > 0);
    assert_true(chi < free_cells + limit * sqrt(2.0 * free_cells));
    sampler_free(s);
}

static void test_distribution(void **state)
{
    struct knobs k = neutral();
    (void)state;

    check_distribution(&k, 5);
    k = knobs_default();
    check_distribution(&k, 5);
    k.value[KNOB_TEMPERATURE] = 2;
    k.value[KNOB_MIN_P] = 0.1;
    check_distribution(&k, 5);
}

/* Known answers of the authors' own distribution (Random123, kat_vectors). */
static void test_philox(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    (void)state;

    for (size_t i = 0; i < LEN(known); i++) {
        uint32_t out[4];
        rng_philox(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].want, sizeof out);
    }
    assert_near(sampler_uniform(0, 0), 0x6627e8d5p-32 + 0xe169c58dp-64, 0x1p-53);
    double sum = 0;
    for (uint64_t n = 0; n < 10000; n++) {
        double u = sampler_uniform(7, n);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_near(sum / 10000, 0.5, 0.015);
    assert_true(sampler_uniform(1, 5) != sampler_uniform(2, 5));
}

/* ---- knobs ---------------------------------------------------------------------------------- */

static void test_knobs(void **state)
{
    struct error err;
    char text[32];
    (void)state;

    assert_int_equal(knob_find("temperature"), KNOB_TEMPERATURE);
    assert_int_equal(knob_find("temp"), KNOB_TEMPERATURE);
    assert_int_equal(knob_find("rep_pen"), KNOB_REPETITION_PENALTY);
    assert_int_equal(knob_find("Repeat-Penalty"), KNOB_REPETITION_PENALTY);
    assert_int_equal(knob_find("top-k"), KNOB_TOP_K);
    assert_int_equal(knob_find("volume"), -1);
    assert_true(knob_check(KNOB_TEMPERATURE, 5, 0, &err));
    assert_false(knob_check(KNOB_TEMPERATURE, 5.01, 0, &err));
    assert_string_equal(err.text, "temperature: 5.01 is out of range (0 - 5)");
    assert_false(knob_check(KNOB_TEMPERATURE, NAN, 0, &err));
    assert_true(knob_check(KNOB_TOP_K, 100000, 0, &err));
    assert_false(knob_check(KNOB_TOP_K, 100000, 49152, &err));
    assert_string_equal(err.text, "top_k: 100000 is out of range (0 - 49152)");
    assert_false(knob_check(KNOB_TOP_K, 2.5, 0, &err));
    assert_string_equal(err.text, "top_k: 2.5 is not a whole number");
    assert_false(knob_check(KNOB_REPEAT_LAST_N, -2, 0, &err));
    knob_format(KNOB_TEMPERATURE, 0.8, text);
    assert_string_equal(text, "0.8");
    knob_format(KNOB_TOP_K, 200, text);
    assert_string_equal(text, "200");
    knob_format(KNOB_REPEAT_LAST_N, -1, text);
    assert_string_equal(text, "-1");
    knob_format(KNOB_TOP_P, 0.1 + 0.2, text);
    assert_true(strtod(text, NULL) == 0.1 + 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_penalty_example),
        cmocka_unit_test(test_temperature_examples),
        cmocka_unit_test(test_nucleus_example),
        cmocka_unit_test(test_top_k_keeps_ties),
        cmocka_unit_test(test_greedy_guard),
        cmocka_unit_test(test_hostile_logits),
        cmocka_unit_test(test_equal_vocabulary),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_punctuation_exempt),
        cmocka_unit_test(test_stats_change_nothing),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_knobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
