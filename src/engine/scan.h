/* Passes over the vocabulary: what the sampler does to every token, once for each instruction set.
 *
 * Arrays are of whole blocks of SCAN_BLOCK values, padded with -infinity; no value is a NaN. A sum
 * has SCAN_LANES parts, element i in part i % SCAN_LANES, in f64, which are added from the first to
 * the last at the end: so each set gives the same bits. The order is by value, the largest first,
 * and by position among equals, the lowest first. */
#ifndef FADER_ENGINE_SCAN_H
#define FADER_ENGINE_SCAN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_BLOCK = 64, SCAN_LANES = 16 };

struct entry { /* a token with its value */
    float value;
    int32_t id;
};

/* Values, and what they weigh: exp((value - top) * scale), none above `top`. */
struct field {
    size_t blocks;
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
    /* Copies to `raw`: a NaN becomes -infinity, +infinity the largest number and -0 0. The largest
     * of each block goes to `maxima` [blocks]. Returns how many are above -infinity. */
    size_t (*take)(const float *logits, size_t blocks, float *raw, float *maxima);

    /* Copies those that come no later than `last`, and -infinity for the others. */
    void (*bar)(const float *raw, size_t blocks, struct entry last, float *value);

    /* The largest of each block. */
    void (*tops)(const float *value, size_t blocks, float *maxima);

    /* What those weigh that come no later than `last`, f32, into `weight`, 0 for the others. Returns
     * the sum, and in `moment` (or NULL) that of a tally. */
    double (*weigh)(const struct field *f, struct entry last, float *weight, double *moment);

    /* Over all that come no later than `last`, the moment only where it is asked for. */
    struct tally (*within)(const struct field *f, struct entry last, bool moment);

    /* Over all that come no later than `after`; the positions of those that come later, but no later
     * than `last`, are written to `out`, ascending, *n of them. `out` has room for SCAN_LANES more
     * than there are. */
    struct tally (*split)(const struct field *f, struct entry after, struct entry last, bool moment,
                          int32_t *out, size_t *n);

    /* Writes the positions of all that come no later than `last` to `out`, ascending; returns how
     * many. Room as above. Blocks whose largest value comes later are not looked at. */
    size_t (*gather)(const float *value, const float *maxima, size_t blocks, struct entry last,
                     int32_t *out);

    /* How many are above `x`. */
    size_t (*count)(const float *value, size_t blocks, float x);

    /* The first position from block number `block` on whose `raw` is above `than`, and which comes
     * later than `last` in the order of `value`; -1: none. */
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

/* What a value must be above to come no later than an entry, for each place in a block: before the
 * entry's block, in it, after it. So no pass compares ids. */
struct limits {
    float row[3][SCAN_BLOCK];
    ptrdiff_t block; /* the entry's */
};

static inline void limits_init(struct limits *l, struct entry last)
{
    const float as_large = nextafterf(last.value, -INFINITY);

    l->block = last.id < 0 ? -1 : last.id / SCAN_BLOCK;
    for (int i = 0; i < SCAN_BLOCK; i++) {
        l->row[0][i] = as_large;
        l->row[1][i] = i <= last.id % SCAN_BLOCK ? as_large : last.value;
        l->row[2][i] = last.value;
    }
}

/* Those of position `i` and what follows it in its block. */
static inline const float *limits_from(const struct limits *l, size_t i)
{
    const ptrdiff_t block = (ptrdiff_t)(i / SCAN_BLOCK);

    return &l->row[(block >= l->block) + (block > l->block)][i % SCAN_BLOCK];
}

/* exp(x) for x <= 0 is 2^k * exp(f), k the whole number nearest to x / ln 2, |f| <= ln(2) / 2. ln 2
 * is taken in two parts, the first with so few bits that k times it is exact. exp(f) is its Taylor
 * series of degree 7: the first term left out is below 6e-9; multiply-adds are fused. exp(0) is
 * exactly 1, so that equal values weigh exactly the same. x is -87 at least: 2^k stays a normal
 * number, and what should weigh less weighs next to nothing. */
#define SCAN_LEAST  (-87.0f)
#define SCAN_LOG2E  1.44269504f
#define SCAN_MAGIC  12582912.0f /* 1.5 * 2^23: adding it rounds to whole */
#define SCAN_LN2_HI 0.693359375f
#define SCAN_LN2_LO (-2.12194440e-4f)
#define SCAN_SERIES                                                                                \
    {                                                                                              \
        1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f                 \
    }

/* (value - top) * scale, -87 at least. */
static inline float scan_exponent(float value, float top, float scale)
{
    const float x = (value - top) * scale;

    return x > SCAN_LEAST ? x : SCAN_LEAST;
}

#endif
