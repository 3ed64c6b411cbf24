/* The passes in plain C: what the others must give the bits of. */
#include "config.h"

#include "engine/scan.h"

#include <float.h>
#include <string.h>

#include "engine/kernels.h"

enum { LANES = SCAN_LANES, BLOCK = SCAN_BLOCK };

static inline int32_t bits_of(float x)
{
    int32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(int32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static float largest(const float *block)
{
    float top = block[0];

    for (int i = 1; i < BLOCK; i++)
        top = block[i] > top ? block[i] : top;
    return top;
}

static size_t take(const float *logits, size_t blocks, float *raw, float *maxima)
{
    size_t alive = 0;

    for (size_t b = 0; b < blocks; b++, logits += BLOCK, raw += BLOCK) {
        for (int i = 0; i < BLOCK; i++) {
            const float there = logits[i] > -INFINITY ? logits[i] : -INFINITY;
            raw[i] = (there < FLT_MAX ? there : FLT_MAX) + 0.0f;
            alive += raw[i] > -INFINITY;
        }
        maxima[b] = largest(raw);
    }
    return alive;
}

static void bar(const float *raw, size_t blocks, struct entry last, float *value)
{
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = 0; i < blocks * BLOCK; i++)
        value[i] = raw[i] > *limits_from(&limits, i) ? raw[i] : -INFINITY;
}

static void tops(const float *value, size_t blocks, float *maxima)
{
    for (size_t b = 0; b < blocks; b++)
        maxima[b] = largest(value + b * BLOCK);
}

static inline float exp_f32(float x)
{
    static const float series[] = SCAN_SERIES;
    float shifted = fmaf(x, SCAN_LOG2E, SCAN_MAGIC), k = shifted - SCAN_MAGIC;
    float f = fmaf(k, -SCAN_LN2_LO, fmaf(k, -SCAN_LN2_HI, x)), p = series[0];

    for (int i = 1; i < 8; i++)
        p = fmaf(p, f, series[i]);
    return float_of(bits_of(p) + (int32_t)k * (1 << 23));
}

static double weigh(const struct field *f, struct entry last, float *weight, double *moment)
{
    double sum[LANES] = {0}, moments[LANES] = {0};
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = 0; i < f->blocks * BLOCK; i += LANES) {
        const float *limit = limits_from(&limits, i);
        for (size_t j = 0; j < LANES; j++) {
            const float v = f->value[i + j], x = scan_exponent(v, f->top, f->scale);
            const float w = v > limit[j] ? exp_f32(x) : 0.0f;
            weight[i + j] = w;
            sum[j] += (double)w;
            moments[j] += (double)(w * x);
        }
    }
    if (moment != NULL)
        *moment = scan_total(moments);
    return scan_total(sum);
}

/* What a tally adds up. */
struct adding {
    size_t count;
    double sum[LANES], moment[LANES];
};

static void tally_up(struct adding *a, const struct field *f, size_t i, bool in, bool moment)
{
    a->count += in;
    if (f->weight == NULL || !in)
        return;
    const float w = f->weight[i];
    a->sum[i % LANES] += (double)w;
    if (moment)
        a->moment[i % LANES] += (double)(w * scan_exponent(f->value[i], f->top, f->scale));
}

static struct tally tally_of(const struct adding *a, const struct field *f)
{
    if (f->weight == NULL)
        return (struct tally){a->count, (double)a->count, 0};
    return (struct tally){a->count, scan_total(a->sum), scan_total(a->moment)};
}

static struct tally within(const struct field *f, struct entry last, bool moment)
{
    struct adding a = {0};
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = 0; i < f->blocks * BLOCK; i++)
        tally_up(&a, f, i, f->value[i] > *limits_from(&limits, i), moment);
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
    for (size_t i = 0; i < f->blocks * BLOCK; i++) {
        const bool in = f->value[i] > *limits_from(&first, i);
        tally_up(&a, f, i, in, moment);
        out[found] = (int32_t)i;
        found += !in && f->value[i] > *limits_from(&end, i);
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
        for (size_t i = 0; i < BLOCK && maxima[b] > limit[0]; i++) {
            out[found] = (int32_t)(b * BLOCK + i);
            found += value[b * BLOCK + i] > limit[i];
        }
    }
    return found;
}

static size_t count(const float *value, size_t blocks, float x)
{
    size_t n = 0;

    for (size_t i = 0; i < blocks * BLOCK; i++)
        n += value[i] > x;
    return n;
}

static int32_t next_cut(const float *value, const float *raw, size_t block, size_t blocks,
                        float than, struct entry last)
{
    struct limits limits;

    limits_init(&limits, last);
    for (size_t i = block * BLOCK; i < blocks * BLOCK; i++) {
        if (raw[i] > than && !(value[i] > *limits_from(&limits, i)))
            return (int32_t)i;
    }
    return -1;
}

const struct scan scan_scalar = {take, bar, tops, weigh, within, split, gather, count, next_cut};

const struct scan *scan_choose(void)
{
    struct error ignored;
    const struct kernels *k = kernels_choose(&ignored);

#ifdef HAVE_AVX512
    if (k == &kernels_avx512)
        return &scan_avx512;
#endif
#ifdef HAVE_AVX2
    if (k == &kernels_avx2)
        return &scan_avx2;
#endif
    (void)k;
    return &scan_scalar;
}
