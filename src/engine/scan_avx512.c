/* The passes for AVX-512: 16 lanes are one register, their sums two, and a mask does what takes
 * three instructions elsewhere. */
#include "config.h"

#include "engine/scan.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = SCAN_LANES, BLOCK = SCAN_BLOCK };

struct sums { /* lanes 0 - 7, 8 - 15 */
    __m512d lo, hi;
};

static inline __m512 all(float x)
{
    return _mm512_set1_ps(x);
}

static inline __m512i all_bits(int32_t x)
{
    return _mm512_set1_epi32(x);
}

static inline __m512i size_of(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), all_bits(0x7FFFFFFF));
}

static inline void add(struct sums *s, __m512 x)
{
    __m256 hi = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));

    s->lo = _mm512_add_pd(s->lo, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    s->hi = _mm512_add_pd(s->hi, _mm512_cvtps_pd(hi));
}

static inline double total(const struct sums *s)
{
    double part[SCAN_LANES];

    memcpy(part, s, sizeof part);
    return scan_total(part);
}

static bool take(const float *logits, size_t blocks, float *raw, float *value, float *maxima)
{
    __mmask16 special = 0;

    for (size_t b = 0; b < blocks; b++) {
        __m512 top = all(-__builtin_inff());
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i += LANES) {
            __m512 x = _mm512_add_ps(_mm512_loadu_ps(logits + i), _mm512_setzero_ps());
            special |= _mm512_cmpge_epi32_mask(size_of(x), all_bits(0x7F800000));
            top = _mm512_max_ps(x, top);
            _mm512_storeu_ps(raw + i, x);
            if (value != NULL)
                _mm512_storeu_ps(value + i, x);
        }
        maxima[b] = _mm512_reduce_max_ps(top);
    }
    return special != 0;
}

/* -87 at least. */
static inline __m512 exponent(__m512 value, __m512 top, __m512 scale)
{
    __m512i size = size_of(_mm512_mul_ps(_mm512_sub_ps(value, top), scale));

    return _mm512_castsi512_ps(
        _mm512_or_si512(_mm512_min_epi32(size, all_bits(SCAN_87_BITS)), all_bits(INT32_MIN)));
}

static inline __m512 exp_f32(__m512 x)
{
    static const float series[] = SCAN_SERIES;
    __mmask16 alive = _mm512_cmplt_epi32_mask(size_of(x), all_bits(SCAN_87_BITS));
    __m512 shifted = _mm512_fmadd_ps(x, all(SCAN_LOG2E), all(SCAN_MAGIC));
    __m512 k = _mm512_sub_ps(shifted, all(SCAN_MAGIC));
    __m512 f = _mm512_fmadd_ps(k, all(-SCAN_LN2_HI), x), p = all(series[0]);

    f = _mm512_fmadd_ps(k, all(-SCAN_LN2_LO), f);
    for (int i = 1; i < 8; i++)
        p = _mm512_fmadd_ps(p, f, all(series[i]));
    /* The low bits of the shifted number are k: put them on p's exponent. */
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(
        alive, _mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
}

static double weigh(const float *value, size_t blocks, float top, float scale, float *weight,
                    double *moment)
{
    struct sums sum = {0}, moments = {0};

    for (size_t i = 0; i < blocks * BLOCK; i += LANES) {
        __m512 x = exponent(_mm512_loadu_ps(value + i), all(top), all(scale)), e = exp_f32(x);
        add(&sum, e);
        if (moment != NULL)
            add(&moments, _mm512_mul_ps(e, x));
        if (weight != NULL)
            _mm512_storeu_ps(weight + i, e);
    }
    if (moment != NULL)
        *moment = total(&moments);
    return total(&sum);
}

/* Adds those whose mask is set to a tally. */
static inline void tally_up(const struct field *f, size_t i, __m512 v, __mmask16 mask,
                            struct sums *sum, struct sums *moment)
{
    __m512 w = _mm512_maskz_loadu_ps(mask, f->weight + i);

    add(sum, w);
    if (moment != NULL)
        add(moment, _mm512_mul_ps(w, exponent(v, all(f->top), all(f->scale))));
}

static inline __m512i ids_from(size_t i)
{
    static const int32_t steps[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

    return _mm512_add_epi32(_mm512_loadu_si512(steps), all_bits((int32_t)i));
}

static struct tally within(const struct field *f, size_t blocks, struct entry last)
{
    struct sums sum = {0}, moment = {0};
    size_t count = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += LANES) {
        __m512 v = _mm512_loadu_ps(f->value + i);
        __mmask16 ties = _mm512_cmp_ps_mask(v, all(last.value), _CMP_EQ_OQ);
        __mmask16 in = _mm512_cmp_ps_mask(v, all(last.value), _CMP_GT_OQ) |
                       _mm512_mask_cmple_epi32_mask(ties, ids_from(i), all_bits(last.id));
        count += (size_t)__builtin_popcount(in);
        tally_up(f, i, v, in, &sum, &moment);
    }
    return (struct tally){count, total(&sum), total(&moment)};
}

/* Writes those whose mask is set to `out`, packed, each value with its id beside it. */
static inline void write_entries(struct entry *out, __m512 v, __m512i id, __mmask16 mask)
{
    static const int32_t lower[LANES] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23},
                         upper[LANES] = {8,  24, 9,  25, 10, 26, 11, 27,
                                         12, 28, 13, 29, 14, 30, 15, 31};
    __m512i a = _mm512_maskz_compress_epi32(mask, _mm512_castps_si512(v));
    __m512i b = _mm512_maskz_compress_epi32(mask, id);

    _mm512_storeu_si512(out, _mm512_permutex2var_epi32(a, _mm512_loadu_si512(lower), b));
    if (__builtin_popcount(mask) > LANES / 2)
        _mm512_storeu_si512(out + LANES / 2,
                            _mm512_permutex2var_epi32(a, _mm512_loadu_si512(upper), b));
}

static struct tally split(const struct field *f, size_t blocks, float lo, float hi, bool moment,
                          struct entry *out, size_t *n)
{
    struct sums sum = {0}, moments = {0};
    size_t count = 0, found = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += LANES) {
        __m512 v = _mm512_loadu_ps(f->value + i);
        __mmask16 above = _mm512_cmp_ps_mask(v, all(hi), _CMP_GT_OQ);
        __mmask16 mask = _mm512_cmp_ps_mask(v, all(lo), _CMP_GE_OQ) & ~above;
        count += (size_t)__builtin_popcount(above);
        write_entries(out + found, v, ids_from(i), mask); /* seldom none: no branch */
        found += (size_t)__builtin_popcount(mask);
        if (f->weight != NULL)
            tally_up(f, i, v, above, &sum, moment ? &moments : NULL);
    }
    *n = found;
    if (f->weight == NULL)
        return (struct tally){count, (double)count, 0};
    return (struct tally){count, total(&sum), total(&moments)};
}

static size_t count(const float *value, size_t blocks, float x)
{
    size_t n = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += LANES)
        n += (size_t)__builtin_popcount(
            _mm512_cmp_ps_mask(_mm512_loadu_ps(value + i), all(x), _CMP_GE_OQ));
    return n;
}

static int32_t next_cut(const float *value, const float *raw, size_t block, size_t blocks,
                        float than, struct entry last)
{
    for (size_t i = block * BLOCK; i < blocks * BLOCK; i += LANES) {
        __m512 v = _mm512_loadu_ps(value + i);
        __mmask16 above = _mm512_cmp_ps_mask(_mm512_loadu_ps(raw + i), all(than), _CMP_GT_OQ);
        __mmask16 ties = _mm512_mask_cmp_ps_mask(above, v, all(last.value), _CMP_EQ_OQ);
        __mmask16 cut = _mm512_mask_cmp_ps_mask(above, v, all(last.value), _CMP_LT_OQ) |
                        _mm512_mask_cmpgt_epi32_mask(ties, ids_from(i), all_bits(last.id));
        if (cut != 0)
            return (int32_t)i + __builtin_ctz(cut);
    }
    return -1;
}

const struct scan scan_avx512 = {take, weigh, within, split, count, next_cut};
