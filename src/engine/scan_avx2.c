/* The passes for AVX2: 16 lanes are two registers, their sums four. */
#include "config.h"

#include "engine/scan.h"

#include <immintrin.h>
#include <string.h>

enum { HALF = SCAN_LANES / 2, BLOCK = SCAN_BLOCK };

struct sums { /* lanes 0 - 15 */
    __m256d part[4];
};

static inline __m256 all(float x)
{
    return _mm256_set1_ps(x);
}

static inline __m256i all_bits(int32_t x)
{
    return _mm256_set1_epi32(x);
}

static inline __m256i size_of(__m256 x)
{
    return _mm256_and_si256(_mm256_castps_si256(x), all_bits(0x7FFFFFFF));
}

/* Adds to the lanes of one half. */
static inline void add(struct sums *s, int half, __m256 x)
{
    __m256d lo = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    __m256d hi = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));

    s->part[2 * half] = _mm256_add_pd(s->part[2 * half], lo);
    s->part[2 * half + 1] = _mm256_add_pd(s->part[2 * half + 1], hi);
}

static inline double total(const struct sums *s)
{
    double part[SCAN_LANES];

    memcpy(part, s->part, sizeof part);
    return scan_total(part);
}

static inline float largest(__m256 x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

static bool take(const float *logits, size_t blocks, float *raw, float *value, float *maxima)
{
    __m256i special = _mm256_setzero_si256();

    for (size_t b = 0; b < blocks; b++) {
        __m256 top = all(-__builtin_inff());
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i += HALF) {
            __m256 x = _mm256_add_ps(_mm256_loadu_ps(logits + i), _mm256_setzero_ps());
            special =
                _mm256_or_si256(special, _mm256_cmpgt_epi32(size_of(x), all_bits(0x7F800000 - 1)));
            top = _mm256_max_ps(x, top);
            _mm256_storeu_ps(raw + i, x);
            if (value != NULL)
                _mm256_storeu_ps(value + i, x);
        }
        maxima[b] = largest(top);
    }
    return _mm256_movemask_epi8(special) != 0;
}

/* -87 at least. */
static inline __m256 exponent(__m256 value, __m256 top, __m256 scale)
{
    __m256i size = size_of(_mm256_mul_ps(_mm256_sub_ps(value, top), scale));

    return _mm256_castsi256_ps(
        _mm256_or_si256(_mm256_min_epi32(size, all_bits(SCAN_87_BITS)), all_bits(INT32_MIN)));
}

static inline __m256 exp_f32(__m256 x)
{
    static const float series[] = SCAN_SERIES;
    __m256i alive = _mm256_cmpgt_epi32(all_bits(SCAN_87_BITS), size_of(x));
    __m256 shifted = _mm256_fmadd_ps(x, all(SCAN_LOG2E), all(SCAN_MAGIC));
    __m256 k = _mm256_sub_ps(shifted, all(SCAN_MAGIC));
    __m256 f = _mm256_fmadd_ps(k, all(-SCAN_LN2_HI), x), p = all(series[0]);

    f = _mm256_fmadd_ps(k, all(-SCAN_LN2_LO), f);
    for (int i = 1; i < 8; i++)
        p = _mm256_fmadd_ps(p, f, all(series[i]));
    /* The low bits of the shifted number are k: put them on p's exponent. */
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(p),
                                    _mm256_slli_epi32(_mm256_castps_si256(shifted), 23));
    return _mm256_castsi256_ps(_mm256_and_si256(bits, alive));
}

static double weigh(const float *value, size_t blocks, float top, float scale, float *weight,
                    double *moment)
{
    struct sums sum = {0}, moments = {0};

    for (size_t i = 0; i < blocks * BLOCK; i += SCAN_LANES) {
        for (int half = 0; half < 2; half++) {
            const size_t at = i + (size_t)half * HALF;
            __m256 x = exponent(_mm256_loadu_ps(value + at), all(top), all(scale));
            __m256 e = exp_f32(x);
            add(&sum, half, e);
            if (moment != NULL)
                add(&moments, half, _mm256_mul_ps(e, x));
            if (weight != NULL)
                _mm256_storeu_ps(weight + at, e);
        }
    }
    if (moment != NULL)
        *moment = total(&moments);
    return total(&sum);
}

/* Adds those of a half whose mask is set to a tally. */
static inline void tally_up(const struct field *f, size_t at, int half, __m256 v, __m256 mask,
                            struct sums *sum, struct sums *moment)
{
    __m256 w = _mm256_and_ps(_mm256_loadu_ps(f->weight + at), mask);

    add(sum, half, w);
    if (moment != NULL)
        add(moment, half, _mm256_mul_ps(w, exponent(v, all(f->top), all(f->scale))));
}

static inline unsigned bits_of(__m256 mask)
{
    return (unsigned)_mm256_movemask_ps(mask);
}

static const int32_t steps[HALF] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct tally within(const struct field *f, size_t blocks, struct entry last)
{
    struct sums sum = {0}, moment = {0};
    size_t count = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += SCAN_LANES) {
        for (int half = 0; half < 2; half++) {
            const size_t at = i + (size_t)half * HALF;
            __m256 v = _mm256_loadu_ps(f->value + at);
            __m256i id =
                _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)steps), all_bits((int32_t)at));
            __m256 later = _mm256_castsi256_ps(_mm256_cmpgt_epi32(id, all_bits(last.id)));
            __m256 ties = _mm256_cmp_ps(v, all(last.value), _CMP_EQ_OQ);
            __m256 in = _mm256_or_ps(_mm256_cmp_ps(v, all(last.value), _CMP_GT_OQ),
                                     _mm256_andnot_ps(later, ties));
            count += (size_t)__builtin_popcount(bits_of(in));
            tally_up(f, at, half, v, in, &sum, &moment);
        }
    }
    return (struct tally){count, total(&sum), total(&moment)};
}

static struct tally split(const struct field *f, size_t blocks, float lo, float hi, bool moment,
                          struct entry *out, size_t *n)
{
    struct sums sum = {0}, moments = {0};
    size_t count = 0, found = 0;

    for (size_t i = 0; i < blocks * BLOCK; i += SCAN_LANES) {
        for (int half = 0; half < 2; half++) {
            const size_t at = i + (size_t)half * HALF;
            __m256 v = _mm256_loadu_ps(f->value + at);
            __m256 above = _mm256_cmp_ps(v, all(hi), _CMP_GT_OQ);
            __m256 least = _mm256_cmp_ps(v, all(lo), _CMP_GE_OQ);
            count += (size_t)__builtin_popcount(bits_of(above));
            for (unsigned m = bits_of(_mm256_andnot_ps(above, least)); m != 0; m &= m - 1) {
                const size_t id = at + (size_t)__builtin_ctz(m);
                out[found++] = (struct entry){f->value[id], (int32_t)id};
            }
            if (f->weight != NULL)
                tally_up(f, at, half, v, above, &sum, moment ? &moments : NULL);
        }
    }
    *n = found;
    if (f->weight == NULL)
        return (struct tally){count, (double)count, 0};
    return (struct tally){count, total(&sum), total(&moments)};
}

static size_t count(const float *value, size_t blocks, float x)
{
    size_t n = 0;

    for (size_t b = 0; b < blocks; b++, value += BLOCK) {
        __m256i found = _mm256_setzero_si256();
        for (size_t i = 0; i < BLOCK; i += HALF) {
            __m256 in = _mm256_cmp_ps(_mm256_loadu_ps(value + i), all(x), _CMP_GE_OQ);
            found = _mm256_sub_epi32(found, _mm256_castps_si256(in));
        }
        int32_t part[HALF];
        memcpy(part, &found, sizeof part);
        for (int i = 0; i < HALF; i++)
            n += (size_t)part[i];
    }
    return n;
}

static int32_t next_cut(const float *value, const float *raw, size_t block, size_t blocks,
                        float than, struct entry last)
{
    for (size_t i = block * BLOCK; i < blocks * BLOCK; i += HALF) {
        __m256 above = _mm256_cmp_ps(_mm256_loadu_ps(raw + i), all(than), _CMP_GT_OQ);
        __m256 no_more = _mm256_cmp_ps(_mm256_loadu_ps(value + i), all(last.value), _CMP_LE_OQ);
        for (unsigned m = bits_of(_mm256_and_ps(above, no_more)); m != 0; m &= m - 1) {
            const size_t id = i + (size_t)__builtin_ctz(m);
            if (!order_within((struct entry){value[id], (int32_t)id}, last))
                return (int32_t)id;
        }
    }
    return -1;
}

const struct scan scan_avx2 = {take, weigh, within, split, count, next_cut};
