/* The passes in plain C: what the others must give the bits of. */
#include "config.h"

#include "engine/scan.h"

#include <math.h>
#include <string.h>

#include "engine/kernels.h"

enum { LANES = SCAN_LANES, BLOCK = SCAN_BLOCK, SIZE = 0x7FFFFFFF, INFINITE = 0x7F800000 };

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

static bool take(const float *logits, size_t blocks, float *raw, float *value, float *maxima)
{
    int32_t special = 0;

    for (size_t b = 0; b < blocks; b++, logits += BLOCK, raw += BLOCK) {
        float top[LANES];

        for (size_t i = 0; i < BLOCK; i++) {
            raw[i] = logits[i] + 0.0f;
            special |= (bits_of(raw[i]) & SIZE) >= INFINITE ? 1 : 0;
        }
        memcpy(top, raw, sizeof top);
        for (size_t i = LANES; i < BLOCK; i++)
            top[i % LANES] = raw[i] > top[i % LANES] ? raw[i] : top[i % LANES];
        for (size_t i = 1; i < LANES; i++)
            top[0] = top[i] > top[0] ? top[i] : top[0];
        maxima[b] = top[0];
        if (value != NULL)
            memcpy(value + b * BLOCK, raw, BLOCK * sizeof *raw);
    }
    return special != 0;
}

static inline float exp_f32(float x)
{
    static const float series[] = SCAN_SERIES;
    int32_t alive = (bits_of(x) & SIZE) < SCAN_87_BITS ? -1 : 0;
    float shifted = fmaf(x, SCAN_LOG2E, SCAN_MAGIC), k = shifted - SCAN_MAGIC;
    float f = fmaf(k, -SCAN_LN2_LO, fmaf(k, -SCAN_LN2_HI, x)), p = series[0];

    for (int i = 1; i < 8; i++)
        p = fmaf(p, f, series[i]);
    return float_of((bits_of(p) + (int32_t)k * (1 << 23)) & alive);
}

static double weigh(const float *value, size_t blocks, float top, float scale, float *weight,
                    double *moment)
{
    double sum[LANES] = {0}, moments[LANES] = {0};

    for (size_t i = 0; i < blocks * BLOCK; i += LANES) {
        float x[LANES], e[LANES];

        for (size_t j = 0; j < LANES; j++) {
            x[j] = scan_exponent(value[i + j], top, scale);
            e[j] = exp_f32(x[j]);
        }
        for (size_t j = 0; j < LANES; j++) {
            sum[j] += (double)e[j];
            moments[j] += (double)(e[j] * x[j]);
        }
        if (weight != NULL)
            memcpy(weight + i, e, sizeof e);
    }
    if (moment != NULL)
        *moment = scan_total(moments);
    return scan_total(sum);
}

static struct tally within(const struct field *f, size_t blocks, struct entry last)
{
    double sum[LANES] = {0}, moment[LANES] = {0};
    size_t count = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            const float v = f->value[i + j];
            const bool in = order_within((struct entry){v, (int32_t)(i + j)}, last);
            const float w = in ? f->weight[i + j] : 0.0f;
            count += in;
            sum[j] += (double)w;
            moment[j] += (double)(w * scan_exponent(v, f->top, f->scale));
        }
    }
    return (struct tally){count, scan_total(sum), scan_total(moment)};
}

static struct tally split(const struct field *f, size_t blocks, float lo, float hi, bool moment,
                          struct entry *out, size_t *n)
{
    double sum[LANES] = {0}, moments[LANES] = {0};
    size_t count = 0, found = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            const float v = f->value[i + j];
            out[found] = (struct entry){v, (int32_t)(i + j)};
            found += v >= lo && v <= hi;
            count += v > hi;
            if (f->weight == NULL)
                continue;
            const float w = v > hi ? f->weight[i + j] : 0.0f;
            sum[j] += (double)w;
            if (moment)
                moments[j] += (double)(w * scan_exponent(v, f->top, f->scale));
        }
    }
    *n = found;
    if (f->weight == NULL)
        return (struct tally){count, (double)count, 0};
    return (struct tally){count, scan_total(sum), scan_total(moments)};
}

static size_t count(const float *value, size_t blocks, float x)
{
    size_t n = 0;

    for (size_t b = 0; b < blocks; b++, value += BLOCK) {
        int32_t in_block = 0;
        for (size_t i = 0; i < BLOCK; i++)
            in_block += value[i] >= x ? 1 : 0;
        n += (size_t)in_block;
    }
    return n;
}

static int32_t next_cut(const float *value, const float *raw, size_t block, size_t blocks,
                        float than, struct entry last)
{
    for (size_t b = block; b < blocks; b++) {
        int32_t any = 0;
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++)
            any |= (raw[i] > than ? 1 : 0) & (value[i] <= last.value ? 1 : 0);
        for (size_t i = b * BLOCK; any && i < (b + 1) * BLOCK; i++) {
            if (raw[i] > than && !order_within((struct entry){value[i], (int32_t)i}, last))
                return (int32_t)i;
        }
    }
    return -1;
}

const struct scan scan_scalar = {take, weigh, within, split, count, next_cut};

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
