#include "config.h"

#include "engine/order.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A radix search takes 11, 11 and 10 bits of a key at a time. Neighbours in the vocabulary often
 * fall in the same bucket, and an add must wait for the last one to the same place: so the first,
 * longest pass adds to several copies in turn. */
enum { DIGIT_BITS = 11, BUCKETS = 1 << DIGIT_BITS, COPIES = 4, SMALL = 96 };
static const unsigned digit_shift[] = {21, 10, 0};
static const uint32_t digit_mask[] = {BUCKETS - 1, BUCKETS - 1, BUCKETS / 2 - 1};

void order_init(struct order *o, size_t n)
{
    o->n = n;
    o->maxima = mem_array(n / ORDER_BLOCK, sizeof *o->maxima);
    o->entries = mem_array(n, sizeof *o->entries);
    o->mass = mem_array((size_t)BUCKETS * COPIES, sizeof *o->mass);
}

void order_done(struct order *o)
{
    free(o->maxima);
    free(o->entries);
    free(o->mass);
}

/* Whole numbers that ascend where values descend: the bits of a float are ordered like its size. */
static inline uint32_t key_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    uint32_t negative = (uint32_t) - (int32_t)(bits >> 31);
    return bits ^ (~negative & 0x7FFFFFFFu);
}

/* ---- sorting what was selected -------------------------------------------------------------- */

static void sort_small(struct entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct entry moving = e[i];
        size_t at = i;

        for (; at > 0 && e[at - 1].value < moving.value; at--)
            e[at] = e[at - 1];
        e[at] = moving;
    }
}

/* Stable, so that entries gathered by ascending id stay so among equals. */
static void sort_entries(struct order *o, struct entry *e, size_t n)
{
    struct entry *from = e, *to = o->entries;

    if (n <= SMALL) {
        sort_small(e, n);
        return;
    }
    for (int digit = 2; digit >= 0; digit--) {
        size_t at[BUCKETS] = {0}, sum = 0;

        for (size_t i = 0; i < n; i++)
            at[key_of(from[i].value) >> digit_shift[digit] & digit_mask[digit]]++;
        for (size_t b = 0; b < BUCKETS; b++) {
            size_t count = at[b];
            at[b] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[at[key_of(from[i].value) >> digit_shift[digit] & digit_mask[digit]]++] = from[i];
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    memcpy(e, from, n * sizeof *e); /* three passes end in the scratch */
}

/* ---- the first k ---------------------------------------------------------------------------- */

static void find_maxima(struct order *o, const float *value)
{
    enum { LANES = 8 };

    for (size_t b = 0; b < o->n / ORDER_BLOCK; b++) {
        const float *v = value + b * ORDER_BLOCK;
        float lane[LANES];

        memcpy(lane, v, sizeof lane);
        for (size_t i = LANES; i < ORDER_BLOCK; i += LANES) {
            for (size_t j = 0; j < LANES; j++)
                lane[j] = v[i + j] > lane[j] ? v[i + j] : lane[j];
        }
        float top = lane[0];
        for (size_t j = 1; j < LANES; j++)
            top = lane[j] > top ? lane[j] : top;
        o->maxima[b] = top;
    }
}

/* The k-th largest of v [n], 1 <= k <= n (C. A. R. Hoare's "Find"). Changes v's order. */
static float kth_largest(float *v, size_t n, size_t k)
{
    ptrdiff_t lo = 0, hi = (ptrdiff_t)n - 1, want = (ptrdiff_t)k - 1;

    while (lo < hi) {
        float pivot = v[lo + (hi - lo) / 2];
        ptrdiff_t i = lo, j = hi;

        while (i <= j) {
            while (v[i] > pivot)
                i++;
            while (v[j] < pivot)
                j--;
            if (i > j)
                break;
            float swap = v[i];
            v[i++] = v[j];
            v[j--] = swap;
        }
        if (want <= j)
            hi = j;
        else if (want >= i)
            lo = i;
        else
            break; /* between them all equal the pivot */
    }
    return v[want];
}

static size_t gather(struct order *o, const float *value, float at_least, struct entry *out)
{
    size_t n = 0;

    for (size_t b = 0; b < o->n; b += ORDER_BLOCK) {
        const float *v = value + b;
        unsigned any = 0;

        for (size_t i = 0; i < ORDER_BLOCK; i++)
            any |= v[i] >= at_least;
        if (!any)
            continue;
        for (size_t i = 0; i < ORDER_BLOCK; i++) {
            if (v[i] >= at_least)
                out[n++] = (struct entry){v[i], (int32_t)(b + i)};
        }
    }
    return n;
}

size_t order_top(struct order *o, const float *value, size_t k, struct entry *out)
{
    const size_t blocks = o->n / ORDER_BLOCK;
    float threshold;

    /* k blocks have a maximum of at least the k-th maximum: so have at least k values. Few more do,
     * while k is small against the number of blocks. */
    if (k <= blocks / 2) {
        find_maxima(o, value);
        threshold = kth_largest(o->maxima, blocks, k);
    } else {
        threshold = order_find(o, value, NULL, (double)k - 0.5).value;
    }
    size_t n = gather(o, value, threshold > -INFINITY ? threshold : -FLT_MAX, out);
    sort_entries(o, out, n);
    size_t kept = k < n ? k : n;
    while (kept < n && out[kept].value == out[kept - 1].value)
        kept++;
    return kept;
}

size_t order_until(struct order *o, const float *value, struct entry last, struct entry *out)
{
    size_t n = gather(o, value, last.value, out), kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (order_within(out[i], last))
            out[kept++] = out[i];
    }
    sort_entries(o, out, kept);
    return kept;
}

/* ---- where a mass falls --------------------------------------------------------------------- */

/* The bucket in which the running sum passes `target`, or the last that weighs anything; *before
 * grows by what lies in front of it. */
static size_t find_bucket(const double *mass, double target, double *before)
{
    double sum = *before;
    size_t last = 0;

    for (size_t b = 0; b < BUCKETS; b++) {
        if (!(mass[b] > 0))
            continue;
        last = b;
        *before = sum;
        sum += mass[b];
        if (sum > target)
            break;
    }
    return last;
}

static size_t find_first_digit(struct order *o, const float *value, const float *weight,
                               double target, double *before)
{
    double *mass = o->mass;

    memset(mass, 0, (size_t)BUCKETS * COPIES * sizeof *mass);
    for (size_t i = 0; i < o->n; i += COPIES) {
        for (size_t j = 0; j < COPIES; j++) {
            double w = weight != NULL ? (double)weight[i + j] : 1.0;
            mass[j * BUCKETS + (key_of(value[i + j]) >> digit_shift[0])] += w;
        }
    }
    for (size_t b = 0; b < BUCKETS; b++)
        mass[b] += mass[BUCKETS + b] + mass[2 * BUCKETS + b] + mass[3 * BUCKETS + b];
    return find_bucket(mass, target, before);
}

/* Keeps those of the n entries whose digit is `bucket`. */
static size_t keep_bucket(struct entry *e, size_t n, int digit, size_t bucket)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if ((key_of(e[i].value) >> digit_shift[digit] & digit_mask[digit]) == bucket)
            e[kept++] = e[i];
    }
    return kept;
}

struct entry order_find(struct order *o, const float *value, const float *weight, double target)
{
    struct entry *e = o->entries, found;
    double before = 0;
    size_t bucket = find_first_digit(o, value, weight, target, &before), n = 0;

    for (size_t i = 0; i < o->n; i++) {
        e[n] = (struct entry){value[i], (int32_t)i};
        n += key_of(value[i]) >> digit_shift[0] == bucket;
    }
    for (int digit = 1; digit <= 2; digit++) {
        memset(o->mass, 0, BUCKETS * sizeof *o->mass);
        for (size_t i = 0; i < n; i++)
            o->mass[key_of(e[i].value) >> digit_shift[digit] & digit_mask[digit]] +=
                weight != NULL ? (double)weight[e[i].id] : 1.0;
        n = keep_bucket(e, n, digit, find_bucket(o->mass, target, &before));
    }
    /* What is left is equal, and in the order of ids. */
    found = e[0];
    for (size_t i = 0; i < n && !(before > target); i++) {
        double w = weight != NULL ? (double)weight[e[i].id] : 1.0;
        if (w > 0)
            found = e[i];
        before += w;
    }
    return found;
}
