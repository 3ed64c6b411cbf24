/* Passes over the vocabulary: what the sampler does to every token, once for each instruction set.
 *
 * Arrays are of whole blocks of SCAN_BLOCK values, padded with -infinity; no value is a NaN. A sum
 * has SCAN_LANES parts, element i in part i % SCAN_LANES, in f64, which are added from the first to
 * the last at the end: so each set gives the same bits. */
#ifndef FADER_ENGINE_SCAN_H
#define FADER_ENGINE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SCAN_BLOCK = 64, SCAN_LANES = 16 };

struct entry { /* a token with its value */
    float value;
    int32_t id;
};

/* Values, and what they weigh: exp((value - top) * scale), none above `top`. */
struct field {
    const float *value, *weight; /* weight NULL: each value counts 1 */
    float top, scale;
};

/* Over some of the tokens: their number, their weight, and the sum of weight times
 * (value - top) * scale. */
struct tally {
    size_t count;
    double sum, moment;
};

struct scan {
    /* Copies to `raw`, and where it is wanted (else NULL) to `value`; -0 becomes 0. The largest of
     * each block goes to `maxima` [blocks]. True when there was a NaN or an infinity. */
    bool (*take)(const float *logits, size_t blocks, float *raw, float *value, float *maxima);

    /* exp((value - top) * scale), f32, into `weight` (or NULL); returns the sum, and in `moment` (or
     * NULL) that of a tally. */
    double (*weigh)(const float *value, size_t blocks, float top, float scale, float *weight,
                    double *moment);

    /* Over all that come no later than `last` in the order: by value, then by id. */
    struct tally (*within)(const struct field *f, size_t blocks, struct entry last);

    /* Over all above `hi`, the moment only when it is asked for; those from `lo` to `hi` are written
     * to `out`, by ascending id, *n of them. `out` has room for SCAN_LANES more than there are. */
    struct tally (*split)(const struct field *f, size_t blocks, float lo, float hi, bool moment,
                          struct entry *out, size_t *n);

    /* How many are at least `x`. */
    size_t (*count)(const float *value, size_t blocks, float x);

    /* The first id from block number `block` on whose `raw` is above `than`, and which comes later
     * than `last` in the order of `value`; -1: none. */
    int32_t (*next_cut)(const float *value, const float *raw, size_t block, size_t blocks,
                        float than, struct entry last);
};

extern const struct scan scan_scalar;
#ifdef HAVE_AVX2
extern const struct scan scan_avx2;
#endif
#ifdef HAVE_AVX512
extern const struct scan scan_avx512;
#endif

/* The set that belongs to the kernels of this process (kernels_choose). */
const struct scan *scan_choose(void);

/* Whether `a` comes no later than `b`. */
static inline bool order_within(struct entry a, struct entry b)
{
    return a.value > b.value || (a.value == b.value && a.id <= b.id);
}

/* The parts of a sum, from the first to the last. */
static inline double scan_total(const double part[SCAN_LANES])
{
    double total = 0;

    for (int i = 0; i < SCAN_LANES; i++)
        total += part[i];
    return total;
}

/* exp(x) for x <= 0 is 2^k * exp(f), k the whole number nearest to x / ln 2, |f| <= ln(2) / 2. ln 2
 * is taken in two parts, the first with so few bits that k times it is exact. exp(f) is its Taylor
 * series of degree 7: the first term left out is below 6e-9; multiply-adds are fused. exp(0) is exactly 1, so that equal
 * values weigh exactly the same. Below -87 the result is 0; above it, 2^k is a normal number. */
#define SCAN_87_BITS 0x42AE0000 /* 87 as the bits of a float */
#define SCAN_LOG2E   1.44269504f
#define SCAN_MAGIC   12582912.0f /* 1.5 * 2^23: adding it rounds to whole */
#define SCAN_LN2_HI  0.693359375f
#define SCAN_LN2_LO  (-2.12194440e-4f)
#define SCAN_SERIES                                                                                \
    {                                                                                              \
        1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f                 \
    }

/* (value - top) * scale, -87 at least. Selected by whole numbers, of which a compiler can make
 * vectors: a choice between floats could raise an exception that the branch would not have. */
static inline float scan_exponent(float value, float top, float scale)
{
    float x = (value - top) * scale;
    int32_t size;

    memcpy(&size, &x, sizeof size);
    size &= INT32_MAX;
    size = (size < SCAN_87_BITS ? size : SCAN_87_BITS) | INT32_MIN;
    memcpy(&x, &size, sizeof x);
    return x;
}

#endif
