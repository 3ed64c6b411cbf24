#include "config.h"

#include "engine/order.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    DIGIT_BITS = 11, /* a radix search takes 11, 11 and 10 bits of a key at a time */
    BUCKETS = 1 << DIGIT_BITS,
    SMALL = 96,      /* entries that insertion sorts fastest */
    FEW_BLOCKS = 64, /* of so few all is looked through at once */
    HEAD_MAX = 256,  /* first elements that are looked at before a sample is taken */
    SAMPLE = 2048    /* values at most */
};
static const unsigned digit_shift[] = {21, 10, 0};
static const uint32_t digit_mask[] = {BUCKETS - 1, BUCKETS - 1, BUCKETS / 2 - 1};

void order_init(struct order *o, size_t blocks)
{
    const size_t n = blocks * SCAN_BLOCK;

    o->scan = scan_choose();
    o->blocks = blocks;
    o->floats = mem_array(n, sizeof *o->floats);
    o->entries = mem_array(n + SCAN_LANES, sizeof *o->entries);
    o->spare = mem_array(n + SCAN_LANES, sizeof *o->spare);
    o->sample = mem_array(SAMPLE, sizeof *o->sample);
    o->sampled = NULL;
    o->scratch = mem_array(n + SCAN_LANES, sizeof *o->scratch);
    o->mass = mem_array(BUCKETS, sizeof *o->mass);
}

void order_done(struct order *o)
{
    free(o->floats);
    free(o->entries);
    free(o->spare);
    free(o->scratch);
    free(o->sample);
    free(o->mass);
}

void order_values_changed(struct order *o)
{
    o->sampled = NULL;
}

/* Whole numbers that ascend where values descend: the bits of a float are ordered like its size. */
static inline uint32_t key_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    uint32_t negative = (uint32_t) - (int32_t)(bits >> 31);
    return bits ^ (~negative & 0x7FFFFFFFu);
}

static inline size_t digit_of(float value, int digit)
{
    return key_of(value) >> digit_shift[digit] & digit_mask[digit];
}

/* ---- sorting what was selected --------------------------------------------------------------- */

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

/* Stable, so that entries gathered by ascending id stay so among equals. `scratch` [n]. */
static void sort_entries(struct entry *e, size_t n, struct entry *scratch)
{
    struct entry *from = e, *to = scratch;

    if (n <= SMALL) {
        sort_small(e, n);
        return;
    }
    for (int digit = 2; digit >= 0; digit--) {
        size_t at[BUCKETS] = {0}, sum = 0;

        for (size_t i = 0; i < n; i++)
            at[digit_of(from[i].value, digit)]++;
        for (size_t b = 0; b < BUCKETS; b++) {
            size_t count = at[b];
            at[b] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[at[digit_of(from[i].value, digit)]++] = from[i];
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    memcpy(e, from, n * sizeof *e); /* three passes end in the scratch */
}

/* ---- the first k ----------------------------------------------------------------------------- */

/* The k-th largest of v [n], 1 <= k <= n (C. A. R. Hoare's "Find"). Changes v's order. */
static float select_float(float *v, size_t n, size_t k)
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

/* Those of at least `least`, by ascending id. */
static size_t gather(const struct order *o, const float *value, const float *maxima, float least,
                     struct entry *out)
{
    size_t n = 0;

    for (size_t b = 0; b < o->blocks; b++) {
        if (maxima[b] < least)
            continue;
        for (size_t i = b * SCAN_BLOCK; i < (b + 1) * SCAN_BLOCK; i++) {
            out[n] = (struct entry){value[i], (int32_t)i};
            n += value[i] >= least;
        }
    }
    return n;
}

/* k blocks have a largest value of at least the k-th of those: so have at least k values. Few more
 * do, while k is small against the number of blocks. Only then is this asked for. */
static bool has_threshold(const struct order *o, size_t k)
{
    return k <= o->blocks / 2;
}

static float threshold(struct order *o, const float *maxima, size_t k)
{
    memcpy(o->floats, maxima, o->blocks * sizeof *maxima);
    float least = select_float(o->floats, o->blocks, k);
    return least > -INFINITY ? least : -FLT_MAX;
}

static float largest(const struct order *o, const float *maxima)
{
    float top = maxima[0];

    for (size_t b = 1; b < o->blocks; b++)
        top = maxima[b] > top ? maxima[b] : top;
    return top;
}

float order_kth(struct order *o, const float *value, const float *maxima, size_t alive, size_t k)
{
    if (!has_threshold(o, k)) {
        const struct field each = {.value = value, .top = largest(o, maxima)};
        return order_find(o, &each, maxima, (double)alive, (double)k - 0.5, NULL).value;
    }
    size_t n = gather(o, value, maxima, threshold(o, maxima, k), o->entries);
    for (size_t i = 0; i < n; i++)
        o->floats[i] = o->entries[i].value;
    return select_float(o->floats, n, k);
}

void order_first(struct order *o, const float *value, const float *maxima, size_t alive, size_t k,
                 struct entry *out)
{
    const float kth = order_kth(o, value, maxima, alive, k);
    const size_t n = gather(o, value, maxima, kth, out);
    size_t above = 0, kept = 0;

    for (size_t i = 0; i < n; i++)
        above += out[i].value > kth;
    size_t ties = k - above; /* the first of those that equal the k-th */
    for (size_t i = 0; i < n; i++) {
        const bool tie = out[i].value == kth;
        if (tie && ties == 0)
            continue;
        ties -= tie;
        out[kept++] = out[i];
    }
    sort_entries(out, kept, o->scratch);
}

size_t order_until(struct order *o, const float *value, const float *maxima, struct entry last,
                   struct entry *out)
{
    const size_t n = gather(o, value, maxima, last.value, out);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (order_within(out[i], last))
            out[kept++] = out[i];
    }
    sort_entries(out, kept, o->scratch);
    return kept;
}

/* ---- where a mass falls ---------------------------------------------------------------------- */

static inline double weight_of(const struct field *f, int32_t id)
{
    return f->weight != NULL ? (double)f->weight[id] : 1.0;
}

/* Adds the first n of `e` that come no later than `last`; four sums, as one would wait for itself. */
static void count_in(struct tally *t, const struct field *f, const struct entry *e, size_t n,
                     struct entry last)
{
    double sum[4] = {0}, moment[4] = {0};

    for (size_t i = 0; i < n; i++) {
        const bool in = order_within(e[i], last);
        const double w = in ? weight_of(f, e[i].id) : 0;
        t->count += in;
        sum[i % 4] += w;
        moment[i % 4] += w * (double)scan_exponent(e[i].value, f->top, f->scale);
    }
    t->sum += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    t->moment += (moment[0] + moment[1]) + (moment[2] + moment[3]);
}

/* In entries that are in order: the one on which the mass falls, or else the last with a weight.
 * *before grows by all up to it. */
static struct entry walk(const struct field *f, const struct entry *e, size_t n, double target,
                         double *before)
{
    struct entry found = e[0];

    for (size_t i = 0; i < n && !(*before > target); i++) {
        const double w = weight_of(f, e[i].id);
        if (w > 0)
            found = e[i];
        *before += w;
    }
    return found;
}

/* ---- ... among the first ---- */

/* For a mass that may lie there: no weight is above 1. */
static bool find_in_head(struct order *o, const struct field *f, const float *maxima, double target,
                         struct entry *found, struct tally *within)
{
    const size_t k = o->blocks / 4 < HEAD_MAX ? o->blocks / 4 : HEAD_MAX;
    double before = 0;

    if (f->weight == NULL || target >= (double)k)
        return false;
    size_t n = gather(o, f->value, maxima, threshold(o, maxima, k), o->spare);
    sort_entries(o->spare, n, o->scratch);
    *found = walk(f, o->spare, n, target, &before);
    if (!(before > target))
        return false;
    if (within != NULL) {
        *within = (struct tally){0};
        count_in(within, f, o->spare, n, *found);
    }
    return true;
}

/* ---- ... or anywhere ---- */

/* A piece of the order, from `hi` down to `lo`; `bottom` is a value that only few lie below. */
struct piece {
    float hi, lo, bottom;
};

/* Values from all over, in order: taken once for the same values. */
static void take_sample(struct order *o, const float *value)
{
    const size_t step = (o->blocks * SCAN_BLOCK + SAMPLE - 1) / SAMPLE;

    if (o->sampled == value)
        return;
    o->sampled = value;
    o->n_sample = 0;
    for (size_t i = 0, k = 0; i + step <= o->blocks * SCAN_BLOCK; i += step, k += 29) {
        const size_t id = i + k % step;
        o->sample[o->n_sample] = (struct entry){value[id], (int32_t)id};
        o->n_sample += value[id] > -INFINITY;
    }
    sort_entries(o->sample, o->n_sample, o->scratch);
}

/* Where the mass should fall, by the sample. */
static struct piece estimate(struct order *o, const struct field *f, double total, double target)
{
    struct piece piece = {f->top, -FLT_MAX, f->top};
    double all = 0, sum = 0;

    if (o->blocks <= FEW_BLOCKS)
        return piece;
    take_sample(o, f->value);
    const struct entry *e = o->sample;
    const ptrdiff_t n = (ptrdiff_t)o->n_sample;
    const ptrdiff_t margin = 1 + (ptrdiff_t)(1.5 * sqrt((double)n)); /* three deviations */
    ptrdiff_t at = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        all += weight_of(f, e[i].id);
    while (at < n && sum + weight_of(f, e[at].id) <= target / total * all)
        sum += weight_of(f, e[at++].id);
    if (n > 0)
        piece.bottom = e[n - 1].value;
    if (at - margin >= 0)
        piece.hi = e[at - margin].value;
    if (at + margin < n)
        piece.lo = piece.bottom = e[at + margin].value;
    return piece;
}

/* Buckets of equal width over a piece: monotone, so that a bucket is a piece too. */
static inline size_t bucket_of(const struct piece *p, float scale, float value)
{
    const float at = (p->hi - value) * scale;

    return at < BUCKETS - 1 ? (size_t)(int32_t)at : BUCKETS - 1;
}

/* Leaves in `spare` those of the n entries that are in the bucket in which the mass falls; *before
 * grows by what lies in front of it. False when all of them do not make the mass: then it is the
 * last that weighs anything. */
static bool narrow(struct order *o, const struct field *f, const struct piece *p, double target,
                   size_t *n, double *before)
{
    const float width = p->hi - p->bottom, scale = width > 0 ? (BUCKETS - 1) / width : 0;
    size_t found = 0, kept = 0;
    double sum = *before;

    memset(o->mass, 0, BUCKETS * sizeof *o->mass);
    for (size_t i = 0; i < *n; i++)
        o->mass[bucket_of(p, scale, o->entries[i].value)] += weight_of(f, o->entries[i].id);
    for (size_t b = 0; b < BUCKETS && !(sum > target); b++) {
        if (!(o->mass[b] > 0))
            continue;
        found = b;
        *before = sum;
        sum += o->mass[b];
    }
    for (size_t i = 0; i < *n; i++) {
        o->spare[kept] = o->entries[i];
        kept += bucket_of(p, scale, o->entries[i].value) == found;
    }
    *n = kept;
    return sum > target;
}

static bool all_equal(const struct entry *e, size_t n)
{
    size_t i = 1;

    while (i < n && e[i].value == e[0].value)
        i++;
    return i >= n;
}

/* Takes the piece out into `entries`, *n of them, and looks in it. `within` is what lies above. */
static bool find_in_piece(struct order *o, const struct field *f, const struct piece *p,
                          double target, bool moment, struct entry *found, size_t *n,
                          struct tally *within)
{
    *within = o->scan->split(f, o->blocks, p->lo, p->hi, moment, o->entries, n);
    double before = within->sum;
    size_t left = *n;

    if (before > target || left == 0)
        return false;
    bool passed = narrow(o, f, p, target, &left, &before);
    if (!all_equal(o->spare, left))
        sort_entries(o->spare, left, o->scratch);
    *found = walk(f, o->spare, left, target, &before);
    return passed;
}

struct entry order_find(struct order *o, const struct field *f, const float *maxima, double total,
                        double target, struct tally *within)
{
    struct piece piece;
    struct tally above;
    struct entry found;
    size_t n;

    if (find_in_head(o, f, maxima, target, &found, within))
        return found;
    piece = estimate(o, f, total, target);
    if (!find_in_piece(o, f, &piece, target, within != NULL, &found, &n, &above)) {
        if (above.sum > target)
            piece = (struct piece){f->top, nextafterf(piece.hi, INFINITY), piece.hi};
        else
            piece = (struct piece){f->top, -FLT_MAX, piece.bottom};
        find_in_piece(o, f, &piece, target, within != NULL, &found, &n, &above);
    }
    if (within != NULL) {
        *within = above;
        count_in(within, f, o->entries, n, found);
    }
    return found;
}
