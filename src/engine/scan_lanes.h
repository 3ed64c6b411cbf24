/* The passes for one instruction set. Whoever includes this has defined, for vectors of VEC floats:
 *   vec, mask               VEC floats; a truth for each lane
 *   vec_load, vec_store, vec_set, vec_add, vec_sub, vec_mul, vec_fma, vec_min
 *   vec_max                 the second where the first is a NaN
 *   vec_top                 the largest lane
 *   mask_above, mask_but    a > b; a and not b
 *   mask_keep, mask_choose  x or 0; x or y
 *   mask_pow2               x times 2 to the whole number in the low bits of `shifted`, or 0
 *   mask_any, mask_count    whether any is set; how many
 *   dvec, dvec_add          VEC / 2 numbers in f64
 *   dvec_low, dvec_high     the halves of a vec as such
 *   pack                    writes the numbers from `i` on whose mask is set; returns how many
 *   SCAN_NAME               what the set of passes is called
 * Four vectors go at a time: the steps of exp wait for each other, those of four do not. */
#ifndef FADER_ENGINE_SCAN_LANES_H
#define FADER_ENGINE_SCAN_LANES_H

#include <float.h>
#include <string.h>

enum { BLOCK = SCAN_BLOCK, MANY = 4, STEP = MANY * VEC, PARTS = SCAN_LANES / VEC };

struct sums { /* lanes 0 - 15 */
    dvec part[2 * PARTS];
};

/* Adds vector number `at` of a step. */
INLINE void add(struct sums *s, size_t at, vec x)
{
    dvec *part = &s->part[2 * (at % PARTS)];

    part[0] = dvec_add(part[0], dvec_low(x));
    part[1] = dvec_add(part[1], dvec_high(x));
}

INLINE double total(const struct sums *s)
{
    double part[SCAN_LANES];

    memcpy(part, s->part, sizeof part);
    return scan_total(part);
}

static size_t take(const float *logits, size_t blocks, float *raw, float *maxima)
{
    const vec least = vec_set(-INFINITY);
    size_t alive = 0;

    for (size_t b = 0; b < blocks; b++) {
        vec top = least;
#pragma GCC unroll 8
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i += VEC) {
            const vec there = vec_max(vec_load(logits + i), least);
            const vec x = vec_add(vec_min(there, vec_set(FLT_MAX)), vec_set(0));
            alive += mask_count(mask_above(x, least));
            top = vec_max(x, top);
            vec_store(raw + i, x);
        }
        maxima[b] = vec_top(top);
    }
    return alive;
}

static void bar(const float *raw, size_t blocks, struct entry last, float *value)
{
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = 0; i < blocks * BLOCK; i += STEP) {
        const float *limit = limits_from(&limits, i);
#pragma GCC unroll 4
        for (size_t j = 0; j < STEP; j += VEC) {
            const vec v = vec_load(raw + i + j);
            const mask in = mask_above(v, vec_load(limit + j));
            vec_store(value + i + j, mask_choose(in, v, vec_set(-INFINITY)));
        }
    }
}

static void tops(const float *value, size_t blocks, float *maxima)
{
    for (size_t b = 0; b < blocks; b++) {
        vec top = vec_load(value + b * BLOCK);
#pragma GCC unroll 8
        for (size_t i = VEC; i < BLOCK; i += VEC)
            top = vec_max(top, vec_load(value + b * BLOCK + i));
        maxima[b] = vec_top(top);
    }
}

/* -87 at least. */
INLINE vec exponent(vec value, vec top, vec scale)
{
    return vec_max(vec_mul(vec_sub(value, top), scale), vec_set(SCAN_LEAST));
}

INLINE void exp_many(const vec x[MANY], const mask in[MANY], vec e[MANY])
{
    static const float series[] = SCAN_SERIES;
    vec shifted[MANY], f[MANY];

#pragma GCC unroll 8
    for (size_t j = 0; j < MANY; j++)
        shifted[j] = vec_fma(x[j], vec_set(SCAN_LOG2E), vec_set(SCAN_MAGIC));
#pragma GCC unroll 8
    for (size_t j = 0; j < MANY; j++) {
        const vec k = vec_sub(shifted[j], vec_set(SCAN_MAGIC));
        f[j] = vec_fma(k, vec_set(-SCAN_LN2_HI), x[j]);
        f[j] = vec_fma(k, vec_set(-SCAN_LN2_LO), f[j]);
        e[j] = vec_set(series[0]);
    }
#pragma GCC unroll 8
    for (int i = 1; i < 8; i++) {
#pragma GCC unroll 8
        for (size_t j = 0; j < MANY; j++)
            e[j] = vec_fma(e[j], f[j], vec_set(series[i]));
    }
#pragma GCC unroll 8
    for (size_t j = 0; j < MANY; j++)
        e[j] = mask_pow2(in[j], e[j], shifted[j]);
}

static double weigh(const struct field *f, struct entry last, float *weight, double *moment)
{
    const vec top = vec_set(f->top), scale = vec_set(f->scale);
    struct sums sum = {0}, moments = {0};
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = 0; i < f->blocks * BLOCK; i += STEP) {
        const float *limit = limits_from(&limits, i);
        vec x[MANY], e[MANY];
        mask in[MANY];
#pragma GCC unroll 8
        for (size_t j = 0; j < MANY; j++) {
            const vec v = vec_load(f->value + i + j * VEC);
            in[j] = mask_above(v, vec_load(limit + j * VEC));
            x[j] = exponent(v, top, scale);
        }
        exp_many(x, in, e);
#pragma GCC unroll 8
        for (size_t j = 0; j < MANY; j++) {
            vec_store(weight + i + j * VEC, e[j]);
            add(&sum, j, e[j]);
            if (moment != NULL)
                add(&moments, j, vec_mul(e[j], x[j]));
        }
    }
    if (moment != NULL)
        *moment = total(&moments);
    return total(&sum);
}

/* What a tally adds up. */
struct adding {
    size_t count;
    struct sums sum, moment;
};

/* Adds vector number `at` of the step from `i` on. */
INLINE void tally_up(struct adding *a, const struct field *f, size_t i, size_t at, vec v, mask in,
                     bool moment)
{
    a->count += mask_count(in);
    if (f->weight == NULL)
        return;
    const vec w = mask_keep(in, vec_load(f->weight + i + at * VEC));
    add(&a->sum, at, w);
    if (moment)
        add(&a->moment, at, vec_mul(w, exponent(v, vec_set(f->top), vec_set(f->scale))));
}

INLINE struct tally tally_of(const struct adding *a, const struct field *f)
{
    if (f->weight == NULL)
        return (struct tally){a->count, (double)a->count, 0};
    return (struct tally){a->count, total(&a->sum), total(&a->moment)};
}

static struct tally within(const struct field *f, struct entry last, bool moment)
{
    struct adding a = {0};
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = 0; i < f->blocks * BLOCK; i += STEP) {
        const float *limit = limits_from(&limits, i);
#pragma GCC unroll 8
        for (size_t j = 0; j < MANY; j++) {
            const vec v = vec_load(f->value + i + j * VEC);
            tally_up(&a, f, i, j, v, mask_above(v, vec_load(limit + j * VEC)), moment);
        }
    }
    return tally_of(&a, f);
}

static struct tally split(const struct field *f, struct entry after, struct entry last, bool moment,
                          int32_t *out, size_t *n)
{
    struct adding a = {0};
    struct limits first, end;
    size_t found = 0;

    limits_init(&first, after);
    limits_init(&end, last);
    for (size_t i = 0; i < f->blocks * BLOCK; i += STEP) {
        const float *above = limits_from(&first, i), *least = limits_from(&end, i);
#pragma GCC unroll 8
        for (size_t j = 0; j < MANY; j++) {
            const vec v = vec_load(f->value + i + j * VEC);
            const mask in = mask_above(v, vec_load(above + j * VEC));
            const mask found_here = mask_but(mask_above(v, vec_load(least + j * VEC)), in);
            tally_up(&a, f, i, j, v, in, moment);
            found += pack(out + found, i + j * VEC, found_here);
        }
    }
    *n = found;
    return tally_of(&a, f);
}

static size_t gather(const float *value, const float *maxima, size_t blocks, struct entry last,
                     int32_t *out)
{
    struct limits limits;
    size_t found = 0;

    limits_init(&limits, last);
    for (size_t b = 0; b < blocks; b++) {
        const float *limit = limits_from(&limits, b * BLOCK);
        if (!(maxima[b] > limit[0]))
            continue;
        for (size_t i = 0; i < BLOCK; i += VEC) {
            const vec v = vec_load(value + b * BLOCK + i);
            found += pack(out + found, b * BLOCK + i, mask_above(v, vec_load(limit + i)));
        }
    }
    return found;
}

static size_t count(const float *value, size_t blocks, float x)
{
    size_t n = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += STEP) {
#pragma GCC unroll 8
        for (size_t j = 0; j < MANY; j++)
            n += mask_count(mask_above(vec_load(value + i + j * VEC), vec_set(x)));
    }
    return n;
}

static int32_t next_cut(const float *value, const float *raw, size_t block, size_t blocks,
                        float than, struct entry last)
{
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = block * BLOCK; i < blocks * BLOCK; i += VEC) {
        const float *limit = limits_from(&limits, i);
        const mask above = mask_above(vec_load(raw + i), vec_set(than));
        if (!mask_any(mask_but(above, mask_above(vec_load(value + i), vec_load(limit)))))
            continue;
        size_t j = 0;
        while (!(raw[i + j] > than) || value[i + j] > limit[j])
            j++;
        return (int32_t)(i + j);
    }
    return -1;
}

const struct scan SCAN_NAME = {take, bar, tops, weigh, within, split, gather, count, next_cut};

#endif
