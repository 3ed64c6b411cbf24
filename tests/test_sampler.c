/* The sampler against the worked examples, against a naive twin in f64, and against exact
 * probabilities. */
#include "test.h"

#include <float.h>
#include <math.h>

#include "engine/kernels.h"
#include "engine/order.h"
#include "engine/rng.h"
#include "engine/sampler.h"
#include "engine/softmax.h"

#define LEN(a) (sizeof(a) / sizeof *(a))

static struct knobs neutral(void)
{
    struct knobs k = knobs_default();

    for (int i = 0; i < KNOB_COUNT; i++)
        k.value[i] = knob_traits[i].neutral;
    k.exempt_mode = EXEMPT_NONE;
    return k;
}

static void run(struct sampler *s, const float *logits, const struct knobs *k,
                const int32_t *context, size_t n_context)
{
    const struct sampler_input in = {.logits = logits,
                                     .context = context,
                                     .n_context = n_context,
                                     .knobs = k,
                                     .want_stats = true};
    sampler_run(s, &in);
}

static void trace(struct sampler *s, int i, const float *logits, size_t n, double *after,
                  uint8_t *kept)
{
    for (size_t id = 0; id < n; id++)
        after[id] = (double)logits[id];
    sampler_trace(s, i, after, kept);
}

/* Index of a stage in the order in which it ran. */
static int stage_at(const struct sampler *s, enum stage stage)
{
    int i = 0;

    while (sampler_stages(s)[i].stage != stage)
        i++;
    return i;
}

/* ---- a small deterministic source of numbers for the tests ---------------------------------- */

static uint32_t lcg;

static double rnd(void)
{
    lcg = lcg * 1664525u + 1013904223u;
    return (double)(lcg >> 8) * 0x1p-24;
}

static float rnd_normal(double sd)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += rnd();
    return (float)((sum - 6) * sd);
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

/* ---- against a naive twin ------------------------------------------------------------------- */

struct naive {
    int32_t n;
    double *value;
    uint8_t *kept;
    int32_t *by_value; /* ids in order */
};

static const double *naive_values;

static int naive_compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    if (naive_values[x] != naive_values[y])
        return naive_values[x] > naive_values[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

static void naive_sort(struct naive *t)
{
    for (int32_t i = 0; i < t->n; i++)
        t->by_value[i] = i;
    naive_values = t->value;
    qsort(t->by_value, (size_t)t->n, sizeof *t->by_value, naive_compare);
}

/* Probabilities over what is kept, 0 elsewhere. */
static void naive_softmax(const struct naive *t, double *p)
{
    double top = -INFINITY, sum = 0;

    for (int32_t i = 0; i < t->n; i++)
        top = t->kept[i] && t->value[i] > top ? t->value[i] : top;
    for (int32_t i = 0; i < t->n; i++) {
        p[i] = t->kept[i] ? exp(t->value[i] - top) : 0;
        sum += p[i];
    }
    for (int32_t i = 0; i < t->n; i++)
        p[i] /= sum;
}

static void naive_penalty(struct naive *t, const struct knobs *k, const int32_t *context, size_t n)
{
    double r = k->value[KNOB_REPETITION_PENALTY], last = k->value[KNOB_REPEAT_LAST_N];
    uint8_t *seen = calloc((size_t)t->n, 1);

    for (size_t i = last < 0 || last > (double)n ? 0 : n - (size_t)last; i < n; i++)
        seen[context[i]] = 1;
    for (int i = 0; k->exempt_mode == EXEMPT_LIST && i < k->n_exempt; i++)
        seen[k->exempt[i]] = 0;
    for (int32_t i = 0; i < t->n; i++) {
        if (seen[i] && r != 1)
            t->value[i] = (double)(float)(t->value[i] < 0 ? t->value[i] * r : t->value[i] / r);
    }
    free(seen);
}

static void naive_cut(struct naive *t, enum stage stage, const struct knobs *k)
{
    double *p = calloc((size_t)t->n, sizeof *p), before = 0, top = 0;
    int32_t rank = 0;
    double kth = -INFINITY;

    naive_sort(t);
    naive_softmax(t, p);
    for (int32_t i = 0; i < t->n; i++)
        top = p[i] > top ? p[i] : top;
    for (int32_t i = 0; i < t->n; i++) {
        int32_t id = t->by_value[i];
        if (!t->kept[id])
            continue;
        if (++rank == (int32_t)k->value[KNOB_TOP_K])
            kth = t->value[id];
        if (stage == STAGE_TOP_K && k->value[KNOB_TOP_K] > 0)
            t->kept[id] = t->value[id] >= kth;
        if (stage == STAGE_TOP_P && k->value[KNOB_TOP_P] < 1)
            t->kept[id] = rank == 1 || !(before > k->value[KNOB_TOP_P]);
        if (stage == STAGE_MIN_P)
            t->kept[id] = p[id] >= k->value[KNOB_MIN_P] * top;
        before += p[id];
    }
    free(p);
}

static void naive_run(struct naive *t, const float *logits, const struct knobs *k,
                      const int32_t *context, size_t n_context, int stages)
{
    for (int32_t i = 0; i < t->n; i++) {
        t->value[i] = (double)logits[i];
        t->kept[i] = 1;
    }
    for (int i = 0; i < stages; i++) {
        enum stage stage = (enum stage)k->order[i];
        if (stage == STAGE_PENALTY)
            naive_penalty(t, k, context, n_context);
        else if (stage == STAGE_TEMPERATURE)
            for (int32_t id = 0; id < t->n; id++)
                t->value[id] /= k->value[KNOB_TEMPERATURE];
        else
            naive_cut(t, stage, k);
    }
}

static double naive_entropy(const struct naive *t, double *p)
{
    double bits = 0;

    naive_softmax(t, p);
    for (int32_t i = 0; i < t->n; i++)
        bits -= p[i] > 0 ? p[i] * log2(p[i]) : 0;
    return bits;
}

static int32_t naive_draw(struct naive *t, const double *p, double u)
{
    double sum = 0;

    naive_sort(t);
    for (int32_t i = 0; i < t->n; i++) {
        sum += p[t->by_value[i]];
        if (sum > u)
            return t->by_value[i];
    }
    return -1;
}

static void compare_stage(struct sampler *s, struct naive *t, int i, const float *raw, double *p)
{
    double *logits = calloc((size_t)t->n, sizeof *logits);
    uint8_t *kept = calloc((size_t)t->n, 1);
    int32_t n = 0;

    trace(s, i, raw, (size_t)t->n, logits, kept);
    for (int32_t id = 0; id < t->n; id++) {
        if (kept[id] != t->kept[id])
            fail_msg("stage %d (%s): token %d kept %d, should be %d", i,
                     stage_name(sampler_stages(s)[i].stage), id, kept[id], t->kept[id]);
        if (kept[id])
            assert_near(logits[id], t->value[id], 1e-6 * (1 + fabs(t->value[id])));
        n += kept[id];
    }
    assert_int_equal(sampler_stages(s)[i].kept, n);
    assert_near(sampler_stages(s)[i].entropy, naive_entropy(t, p), 1e-5);
    free(logits);
    free(kept);
}

static void compare_draws(struct sampler *s, struct naive *t, const float *logits, double *p)
{
    for (int i = 0; i < 50; i++) {
        double u = rnd();
        struct sampler_draw d = sampler_pick(s, u);
        /* Where u falls within rounding of an edge, either neighbour is right. */
        if (d.id != naive_draw(t, p, u) && d.id != naive_draw(t, p, u - 1e-6) &&
            d.id != naive_draw(t, p, u + 1e-6))
            fail_msg("u %.9f drew %d, should be %d", u, d.id, naive_draw(t, p, u));
        assert_near(d.p, p[d.id], 1e-6);
        int32_t rank = 0;
        double top = -INFINITY, sum = 0;
        for (int32_t id = 0; id < t->n; id++) {
            rank += logits[id] > logits[d.id];
            top = (double)logits[id] > top ? (double)logits[id] : top;
        }
        for (int32_t id = 0; id < t->n; id++)
            sum += exp((double)logits[id] - top);
        assert_int_equal(d.rank, rank);
        assert_near(d.logprob, (double)logits[d.id] - top - log(sum), 1e-6);
    }
}

static void compare_survivors(struct sampler *s, struct naive *t, const double *p)
{
    struct sampler_candidate c[40];
    size_t n = sampler_survivors(s, c, LEN(c)), at = 0;

    naive_sort(t);
    for (int32_t i = 0; i < t->n && at < n; i++) {
        int32_t id = t->by_value[i];
        if (!t->kept[id])
            continue;
        assert_int_equal(c[at].id, id);
        assert_near(c[at].now, p[id], 1e-6);
        at++;
    }
    assert_int_equal(at, n);
}

static void random_knobs(struct knobs *k, int32_t n_vocab)
{
    static const double temperatures[] = {0.1, 0.7, 1, 2, 5}, top_ps[] = {1, 0.999, 0.9, 0.5, 0.1};

    *k = neutral();
    k->value[KNOB_TEMPERATURE] = temperatures[(int)(rnd() * 5)];
    k->value[KNOB_REPETITION_PENALTY] = rnd() < 0.3 ? 1 : 0.5 + rnd() * 1.5;
    k->value[KNOB_REPEAT_LAST_N] = rnd() < 0.5 ? -1 : floor(rnd() * 40);
    k->value[KNOB_TOP_K] = rnd() < 0.5   ? 0
                           : rnd() < 0.7 ? floor(1 + rnd() * 60)
                                         : floor(1 + rnd() * (n_vocab - 1));
    k->value[KNOB_TOP_P] = top_ps[(int)(rnd() * 5)];
    k->value[KNOB_MIN_P] = rnd() < 0.6 ? 0 : pow(10, -4 * rnd());
    if (rnd() < 0.3) {
        k->exempt_mode = EXEMPT_LIST;
        k->n_exempt = 3;
        for (int i = 0; i < 3; i++)
            k->exempt[i] = (int32_t)(rnd() * n_vocab);
    }
    for (int i = STAGE_COUNT - 1; i > 0 && rnd() < 0.8; i--) {
        int j = (int)(rnd() * (i + 1));
        uint8_t swap = k->order[i];
        k->order[i] = k->order[j];
        k->order[j] = swap;
    }
}

/* Every stage, draw and list of random chains in random orders; `grain` > 0 makes ties. */
static void compare_many(int32_t n_vocab, int rounds, double sd, float grain)
{
    struct sampler *s = sampler_new(n_vocab);
    size_t n = (size_t)n_vocab;
    struct naive t = {n_vocab, calloc(n, sizeof(double)), calloc(n, 1), calloc(n, sizeof(int32_t))};
    float *logits = calloc(n, sizeof *logits);
    double *p = calloc(n, sizeof *p);
    int32_t context[60];

    for (int round = 0; round < rounds; round++) {
        struct knobs k;
        for (size_t i = 0; i < n; i++) {
            logits[i] = rnd_normal(sd);
            if (grain > 0)
                logits[i] = grain * floorf(logits[i] / grain);
        }
        for (size_t i = 0; i < LEN(context); i++)
            context[i] = (int32_t)(rnd() * rnd() * n_vocab);
        random_knobs(&k, n_vocab);
        run(s, logits, &k, context, LEN(context));
        for (int i = 0; i < STAGE_COUNT; i++) {
            naive_run(&t, logits, &k, context, LEN(context), i + 1);
            compare_stage(s, &t, i, logits, p);
        }
        compare_survivors(s, &t, p);
        compare_draws(s, &t, logits, p);
    }
    sampler_free(s);
    free(t.value);
    free(t.kept);
    free(t.by_value);
    free(logits);
    free(p);
}

static void test_twin_tiny(void **state)
{
    (void)state;
    lcg = 1;
    for (int32_t n = 1; n < 20; n++)
        compare_many(n, 40, 2, 0);
}

static void test_twin_middle(void **state)
{
    (void)state;
    lcg = 2;
    compare_many(1000, 100, 3, 0);
    compare_many(4096, 30, 3, 0);
}

static void test_twin_ties(void **state)
{
    (void)state;
    lcg = 3;
    compare_many(300, 100, 2, 1.0f);
    compare_many(5000, 20, 2, 0.25f);
}

static void test_twin_large(void **state)
{
    (void)state;
    lcg = 4;
    compare_many(49152, 8, 3, 0);
    compare_many(49152, 8, 0.1, 0); /* flat: nothing becomes a list */
    compare_many(20011, 8, 1, 0.5f);
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

/* Where a mass falls, between groups of equal values: exact numbers, so exact edges. */
static void test_order_find(void **state)
{
    enum { N = SCAN_BLOCK };
    struct order o;
    struct tally within;
    float value[N], weight[N], maxima = 3.0000002f;
    const struct field f = {value, weight, maxima, 1}, each = {.value = value, .top = maxima};
    (void)state;

    for (int i = 0; i < N; i++) {
        value[i] = i < 8 ? 3.0f : i < 16 ? 3.0000002f : i < 24 ? -1.0f : -INFINITY;
        weight[i] = i < 24 ? 1.0f : 0.0f;
    }
    order_init(&o, 1);
    for (int i = 0; i < 24; i++) {
        const int want = i < 8 ? i + 8 : i < 16 ? i - 8 : i;
        assert_int_equal(order_find(&o, &f, &maxima, 24, i, &within).id, want);
        assert_int_equal(within.count, i + 1);
        assert_near(within.sum, i + 1, 0);
        assert_int_equal(order_find(&o, &f, &maxima, 24, i + 0.5, &within).id, want);
        assert_int_equal(order_find(&o, &each, &maxima, 24, i, &within).id, want);
    }
    assert_int_equal(order_find(&o, &f, &maxima, 24, 24, &within).id, 23); /* rounding: the last */
    weight[23] = 0;
    assert_int_equal(order_find(&o, &f, &maxima, 23, 24, &within).id, 22);
    order_done(&o);
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

    lcg = 9;
    for (int round = 0; round < 60; round++) {
        struct knobs k;
        for (int i = 0; i < N; i++)
            logits[i] = rnd_normal(3);
        random_knobs(&k, N);
        struct sampler_input in = {.logits = logits, .knobs = &k};
        sampler_run(a, &in);
        in.want_stats = true;
        sampler_run(b, &in);
        for (int i = 0; i < 20; i++) {
            double u = rnd();
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

static void test_exp(void **state)
{
    enum { N = 16 * 64 };
    float value[N], w[N];
    (void)state;

    for (int i = 0; i < N; i++)
        value[i] = -(float)i * 0.08f;
    scan_choose()->weigh(value, N / SCAN_BLOCK, 0, 1, w, NULL);
    for (int i = 0; i < N; i++)
        assert_near((double)w[i] / exp((double)value[i]), 1, 3e-7);
    assert_true(w[0] == 1.0f);
    for (double x = 0; x > -690; x -= 0.37)
        assert_near(softmax_exp(x) / exp(x), 1, 2e-15);
    assert_true(softmax_exp(0) == 1);
    assert_true(softmax_exp(-INFINITY) == 0);
}

/* ---- the passes ----------------------------------------------------------------------------- */

enum { PASS_BLOCKS = 37, PASS_N = PASS_BLOCKS * SCAN_BLOCK };

/* One vocabulary with ties, and with values at the end that are not there. */
static void pass_values(float *value)
{
    for (int i = 0; i < PASS_N; i++)
        value[i] = i > PASS_N - 9 ? -INFINITY : i % 3 == 0 ? floorf(rnd_normal(3)) : rnd_normal(3);
    value[77] = -FLT_MAX;
    value[1234] = 9;
}

static void compare_passes(const struct scan *a, const struct scan *b)
{
    static float value[PASS_N], x[2][PASS_N], y[2][PASS_N], maxima[2][PASS_BLOCKS];
    static struct entry out[2][PASS_N + SCAN_LANES];
    const struct entry edges[] = {{0, 1000}, {-1, 0}, {9, INT32_MAX}, {-FLT_MAX, INT32_MAX}};
    double moment[2];
    size_t n[2];

    pass_values(value);
    for (int i = 0; i < 2; i++) {
        const struct scan *s = i == 0 ? a : b;
        assert_true(s->take(value, PASS_BLOCKS, x[i], y[i], maxima[i]));
        assert_false(s->take(value, 1, x[i], NULL, maxima[i]));
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_equal(y[0], value, sizeof value);
    assert_memory_equal(y[1], value, sizeof value);
    assert_memory_equal(maxima[0], maxima[1], sizeof maxima[0]);
    assert_true(a->weigh(value, PASS_BLOCKS, 9, 0.7f, x[0], &moment[0]) ==
                b->weigh(value, PASS_BLOCKS, 9, 0.7f, x[1], &moment[1]));
    assert_true(moment[0] == moment[1]);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    const struct field f = {value, x[0], 9, 0.7f}, each = {.value = value, .top = 9};
    for (size_t i = 0; i < LEN(edges); i++) {
        const float lo = edges[i].value, hi = lo + 2 * (float)i;
        struct tally s = a->within(&f, PASS_BLOCKS, edges[i]);
        struct tally t = b->within(&f, PASS_BLOCKS, edges[i]);
        assert_memory_equal(&s, &t, sizeof s);
        for (int k = 0; k < 3; k++) {
            const struct field *g = k == 0 ? &each : &f;
            s = a->split(g, PASS_BLOCKS, lo, hi, k == 2, out[0], &n[0]);
            t = b->split(g, PASS_BLOCKS, lo, hi, k == 2, out[1], &n[1]);
            assert_memory_equal(&s, &t, sizeof s);
            assert_int_equal(n[0], n[1]);
            assert_memory_equal(out[0], out[1], n[0] * sizeof **out);
        }
        assert_int_equal(a->count(value, PASS_BLOCKS, lo), b->count(value, PASS_BLOCKS, lo));
        for (int k = -2; k < 3; k++)
            assert_int_equal(a->next_cut(value, x[0], 2, PASS_BLOCKS, (float)k / 50, edges[i]),
                             b->next_cut(value, x[0], 2, PASS_BLOCKS, (float)k / 50, edges[i]));
    }
}

/* Every set that this computer bears gives the bits of the scalar one. */
static void test_passes(void **state)
{
    const char *before = getenv("FADER_KERNELS");
    (void)state;

    lcg = 11;
    for (const char *const *name = (const char *const[]){"avx2", "avx512", NULL}; *name; name++) {
        struct error err;
        assert_int_equal(setenv("FADER_KERNELS", *name, 1), 0);
        if (kernels_choose(&err) == NULL)
            continue;
        assert_ptr_not_equal(scan_choose(), &scan_scalar);
        for (int round = 0; round < 20; round++)
            compare_passes(&scan_scalar, scan_choose());
    }
    if (before != NULL)
        setenv("FADER_KERNELS", before, 1);
    else
        unsetenv("FADER_KERNELS");
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
        cmocka_unit_test(test_twin_tiny),
        cmocka_unit_test(test_twin_middle),
        cmocka_unit_test(test_twin_ties),
        cmocka_unit_test(test_twin_large),
        cmocka_unit_test(test_hostile_logits),
        cmocka_unit_test(test_equal_vocabulary),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_order_find),
        cmocka_unit_test(test_punctuation_exempt),
        cmocka_unit_test(test_stats_change_nothing),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_knobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
