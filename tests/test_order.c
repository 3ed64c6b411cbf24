/* The passes over a vocabulary against their definitions and against each other, and the order
 * against a sort. */
#include "test.h"

#include <float.h>
#include <math.h>

#include "engine/kernels.h"
#include "engine/order.h"
#include "engine/softmax.h"
#include "numbers.h"

#define LEN(a) (sizeof(a) / sizeof *(a))

/* Calls `check` under each set of kernels that this computer bears. */
static void for_each_set(void (*check)(void))
{
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    const char *before = getenv("FADER_KERNELS");

    for (size_t i = 0; i < LEN(names); i++) {
        struct error err;
        assert_int_equal(setenv("FADER_KERNELS", names[i], 1), 0);
        if (kernels_choose(&err) == NULL)
            continue;
        assert_true(i == 0 || scan_choose() != &scan_scalar);
        check();
    }
    if (before != NULL)
        setenv("FADER_KERNELS", before, 1);
    else
        unsetenv("FADER_KERNELS");
}

static void check_exp(void)
{
    enum { N = 16 * 64 };
    static float value[N], w[N];
    const struct field f = {N / SCAN_BLOCK, value, NULL, 0, 1};

    for (int i = 0; i < N; i++)
        value[i] = -(float)i * 0.08f;
    scan_choose()->weigh(&f, order_end, w, NULL);
    for (int i = 0; i < N; i++)
        assert_near((double)w[i] / exp((double)value[i]), 1, 3e-7);
    assert_true(w[0] == 1.0f);
    value[5] = -1e30f; /* next to nothing, but there */
    value[6] = -INFINITY;
    scan_choose()->weigh(&f, order_end, w, NULL);
    assert_near(w[5], 0, 1e-37);
    assert_true(w[5] > 0 && w[6] == 0);
}

static void test_exp(void **state)
{
    (void)state;
    for_each_set(check_exp);
    for (double x = 0; x > -690; x -= 0.37)
        assert_near(softmax_exp(x) / exp(x), 1, 2e-15);
    assert_true(softmax_exp(0) == 1);
    assert_true(softmax_exp(-INFINITY) == 0);
}

/* ---- the passes ------------------------------------------------------------------------------ */

enum { BLOCKS = 37, N = BLOCKS * SCAN_BLOCK };

static float value[N], weight[N], maxima[BLOCKS];

/* One vocabulary with ties, and with values at the end that are not there. */
static void make_values(void)
{
    for (int i = 0; i < N; i++)
        value[i] = i > N - 9    ? -INFINITY
                   : i % 3 == 0 ? floorf(numbers_normal(3))
                                : numbers_normal(3);
    value[77] = -FLT_MAX;
    value[1234] = 9;
    for (int i = 0; i < N; i++)
        value[i] += 0.0f;
}

static const struct entry edges[] = {
    {0, 1000}, {-1, 0},        {2, 64 * 9 + 63},      {2, 64 * 9}, {9, INT32_MAX},
    {1, 5000}, {INFINITY, -1}, {-FLT_MAX, INT32_MAX}, {0.25f, 70}};

static void check_take(const struct scan *s)
{
    static float logits[N], raw[N];
    size_t alive = 0;

    memcpy(logits, value, sizeof logits);
    logits[3] = NAN;
    logits[100] = -NAN;
    logits[200] = INFINITY;
    logits[300] = -0.0f;
    for (int i = 0; i < N; i++)
        alive += logits[i] > -INFINITY;
    assert_int_equal(s->take(logits, BLOCKS, raw, maxima), alive);
    for (int i = 0; i < N; i++) {
        const float want = i == 3 || i == 100 ? -INFINITY : i == 200 ? FLT_MAX : value[i];
        if (i != 300)
            assert_memory_equal(&raw[i], &want, sizeof want);
    }
    assert_true(raw[300] == 0 && !signbit(raw[300]));
    for (int b = 0; b < BLOCKS; b++) {
        float top = -INFINITY;
        for (int i = b * SCAN_BLOCK; i < (b + 1) * SCAN_BLOCK; i++)
            top = raw[i] > top ? raw[i] : top;
        assert_true(maxima[b] == top);
    }
    s->take(value, BLOCKS, raw, maxima);
}

static void check_bar(const struct scan *s, struct entry last)
{
    static float own[N], tops[BLOCKS];

    s->bar(value, BLOCKS, last, own);
    s->tops(own, BLOCKS, tops);
    for (int b = 0; b < BLOCKS; b++) {
        float top = -INFINITY;
        for (int i = b * SCAN_BLOCK; i < (b + 1) * SCAN_BLOCK; i++) {
            const bool in = order_within((struct entry){value[i], i}, last);
            assert_true(own[i] == (in ? value[i] : -INFINITY));
            top = own[i] > top ? own[i] : top;
        }
        assert_true(tops[b] == top);
    }
}

/* What lies within `a` goes into the tally, what lies between `a` and `b` is written. */
static void check_split(const struct scan *s, const struct field *f, struct entry a, struct entry b)
{
    static int32_t out[N + SCAN_LANES], all[N + SCAN_LANES];
    double sum = 0, moment = 0;
    size_t count = 0, n = 0, found;
    const struct tally t = s->split(f, a, b, true, out, &found);
    const struct tally w = s->within(f, a, true), none = s->within(f, a, false);

    for (int i = 0; i < N; i++) {
        const struct entry e = {value[i], i};
        if (order_within(e, a)) {
            const double each = f->weight != NULL ? (double)f->weight[i] : 1;
            count++;
            sum += each;
            moment += each * (double)scan_exponent(value[i], f->top, f->scale);
        } else if (order_within(e, b)) {
            assert_true(n < found);
            assert_int_equal(out[n++], i);
        }
    }
    assert_int_equal(n, found);
    assert_int_equal(t.count, count);
    assert_near(t.sum, sum, 1e-9 * (1 + sum));
    if (f->weight != NULL)
        assert_near(t.moment, moment, 1e-5 * (1 + fabs(moment)));
    assert_memory_equal(&t, &w, sizeof t);
    assert_int_equal(none.count, count);
    assert_true(none.sum == t.sum && none.moment == 0);
    found = s->gather(value, maxima, BLOCKS, a, all);
    assert_int_equal(found, count);
    for (size_t i = 0; i < found; i++)
        assert_true(order_within((struct entry){value[all[i]], all[i]}, a) &&
                    (i == 0 || all[i] > all[i - 1]));
}

static void check_next_cut(const struct scan *s, float than, struct entry last)
{
    int32_t want = -1;

    for (int32_t i = N - 1; i >= 2 * SCAN_BLOCK; i--) {
        if (weight[i] > than && !order_within((struct entry){value[i], i}, last))
            want = i;
    }
    assert_int_equal(s->next_cut(value, weight, 2, BLOCKS, than, last), want);
}

static void check_passes(void)
{
    const struct scan *s = scan_choose();
    const struct field f = {BLOCKS, value, weight, 9, 0.7f},
                       each = {.blocks = BLOCKS, .value = value};

    numbers_seed = 11;
    for (int round = 0; round < 4; round++) {
        make_values();
        check_take(s);
        for (size_t i = 0; i < LEN(edges); i++) {
            double moment, twin_moment;
            static float twin[N];
            const double sum = s->weigh(&f, edges[i], weight, &moment);
            assert_true(sum == scan_scalar.weigh(&f, edges[i], twin, &twin_moment));
            assert_true(moment == twin_moment);
            assert_memory_equal(weight, twin, sizeof twin);
            for (int k = 0; k < N; k++)
                assert_true((weight[k] > 0) == order_within((struct entry){value[k], k}, edges[i]));
            check_bar(s, edges[i]);
            s->weigh(&f, order_end, weight, NULL);
            for (size_t k = 0; k < LEN(edges); k++) {
                check_split(s, &f, edges[i], edges[k]);
                check_split(s, &each, edges[i], edges[k]);
                const struct tally t = s->within(&f, edges[k], true);
                const struct tally u = scan_scalar.within(&f, edges[k], true);
                assert_memory_equal(&t, &u, sizeof t);
                check_next_cut(s, (float)k / 100, edges[i]);
            }
            assert_int_equal(s->count(value, BLOCKS, edges[i].value),
                             scan_scalar.count(value, BLOCKS, edges[i].value));
        }
    }
    assert_int_equal(s->count(value, BLOCKS, -INFINITY), N - 8);
}

/* Each set does what it says, and with the bits of the scalar one. */
static void test_passes(void **state)
{
    (void)state;
    for_each_set(check_passes);
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Weights are multiples of 2^-20, so that every sum is exact, in whatever order. */
struct vocabulary {
    size_t blocks, n; /* all; those that are there */
    float *value, *weight, *maxima;
    struct entry *sorted, *out; /* [n], in order */
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void vocabulary_fill(struct vocabulary *v, enum shape shape, double temperature)
{
    const size_t all = v->blocks * SCAN_BLOCK;

    v->n = 0;
    for (size_t i = 0; i < all; i++)
        v->value[i] = i + 7 < all ? numbers_shaped(shape, i, all) : -INFINITY;
    for (size_t i = 0; i < all; i++) {
        if (v->value[i] > -INFINITY)
            v->sorted[v->n++] = (struct entry){v->value[i], (int32_t)i};
    }
    qsort(v->sorted, v->n, sizeof *v->sorted, compare);
    for (size_t i = 0; i < all; i++) {
        const double x = ((double)v->value[i] - (double)v->sorted[0].value) / temperature;
        v->weight[i] = (float)(floor(exp(x) * 0x1p20) * 0x1p-20);
    }
    scan_scalar.take(v->value, v->blocks, v->value, v->maxima);
}

/* Finds `target` among the first `n`. */
static void check_find(struct order *o, const struct vocabulary *v, size_t n, double total,
                       double target)
{
    const struct field f = {v->blocks, v->value, v->weight, v->sorted[0].value, 1};
    double before = 0, sum = 0;
    size_t want = 0;
    struct tally within;

    for (size_t i = 0; i < n && !(sum > target); i++) {
        sum += (double)v->weight[v->sorted[i].id];
        if (v->weight[v->sorted[i].id] > 0) {
            want = i;
            before = sum;
        }
    }
    const struct entry last = v->sorted[n - 1];
    const struct entry found = order_find(o, &f, v->maxima, last, total, target, &within);
    assert_int_equal(found.id, v->sorted[want].id);
    assert_true(found.value == v->sorted[want].value);
    assert_int_equal(within.count, want + 1);
    assert_near(within.sum, before, 0);
    assert_int_equal(order_find(o, &f, v->maxima, last, total, target, NULL).id, found.id);
}

static void check_order(struct order *o, struct vocabulary *v)
{
    order_values_changed(o);
    for (int round = 0; round < 6; round++) {
        const size_t n = round % 3 == 0 ? v->n : 1 + (size_t)(numbers_uniform() * (double)v->n);
        const size_t k = 1 + (size_t)(numbers_uniform() * (double)(n - 1));
        const struct entry last = v->sorted[n - 1];
        double total = 0, half = 0;

        for (size_t i = 0; i < n; i++) {
            total += (double)v->weight[v->sorted[i].id];
            half += i < n / 2 ? (double)v->weight[v->sorted[i].id] : 0;
        }
        check_find(o, v, n, total, numbers_uniform() * total);
        check_find(o, v, n, total, pow(numbers_uniform(), 4) * total);
        check_find(o, v, n, total, half); /* on an edge: the next */
        check_find(o, v, n, total, 0);
        check_find(o, v, n, total, total); /* where rounding leaves none */
        assert_int_equal(order_kth(o, v->value, v->maxima, last, n, k).id, v->sorted[k - 1].id);
        const size_t found = order_until(o, v->value, v->maxima, v->sorted[k - 1], v->out);
        assert_int_equal(found, k);
        for (size_t i = 0; i < k; i++)
            assert_int_equal(v->out[i].id, v->sorted[i].id);
    }
}

static void check_orders(void)
{
    static const size_t blocks[] = {1, 5, 40, 300};
    static const double temperatures[] = {0.1, 1, 20};

    numbers_seed = 5;
    for (size_t i = 0; i < LEN(blocks); i++) {
        const size_t all = blocks[i] * SCAN_BLOCK;
        struct vocabulary v = {blocks[i],
                               0,
                               calloc(all, sizeof(float)),
                               calloc(all, sizeof(float)),
                               calloc(blocks[i], sizeof(float)),
                               calloc(all, sizeof(struct entry)),
                               calloc(all, sizeof(struct entry))};
        struct order o;

        order_init(&o, blocks[i]);
        for (int shape = 0; shape < SHAPE_COUNT; shape++) {
            for (size_t t = 0; t < LEN(temperatures); t++) {
                vocabulary_fill(&v, (enum shape)shape, temperatures[t]);
                check_order(&o, &v);
            }
        }
        order_done(&o);
        free(v.value);
        free(v.weight);
        free(v.maxima);
        free(v.sorted);
        free(v.out);
    }
}

static void test_order(void **state)
{
    (void)state;
    for_each_set(check_orders);
}

/* Where a sample misleads, the answer is the same: all that it takes lies elsewhere. */
static void test_order_misled(void **state)
{
    enum { BIG = 600 };
    static float v[BIG * SCAN_BLOCK], w[BIG * SCAN_BLOCK], tops[BIG];
    const struct field f = {BIG, v, w, 2, 1};
    struct tally within;
    struct order o;
    double total = 0;
    (void)state;

    numbers_seed = 3;
    for (size_t i = 0; i < LEN(v); i++)
        v[i] = numbers_normal(0.01);
    order_init(&o, BIG);
    scan_scalar.take(v, BIG, v, tops);
    for (size_t i = 0; i < LEN(v); i++)
        w[i] = 1;
    assert_int_equal(order_find(&o, &f, tops, order_end, LEN(v), LEN(v) / 2, &within).id,
                     order_kth(&o, v, tops, order_end, LEN(v), LEN(v) / 2 + 1).id);
    for (size_t i = 0; i < LEN(v); i++)
        w[i] = 0.5f;
    for (size_t i = 0; i < o.whole.n; i++)
        w[o.whole.entries[i].id] = 1; /* and these are all that it sees */
    for (size_t i = 0; i < 20; i++) {
        w[o.whole.entries[i].id] = 0;
        w[o.whole.entries[o.whole.n - 1 - i].id] = 0;
    }
    for (size_t i = 0; i < LEN(v); i++)
        total += (double)w[i];
    for (double target = 0; target < total; target += total / 37) {
        const struct entry found = order_find(&o, &f, tops, order_end, total, target, &within);
        const struct tally want = scan_scalar.within(&f, found, false);
        assert_int_equal(within.count, want.count);
        assert_near(within.sum, want.sum, 0);
        assert_true(want.sum > target && want.sum - (double)w[found.id] <= target);
    }
    order_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_misled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
