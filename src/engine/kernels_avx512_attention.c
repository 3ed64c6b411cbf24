/* Kernels for AVX-512 with VNNI: attention over a segment of the cache. */
#include "config.h"

#include "engine/kernels_avx512.h"

#include <immintrin.h>

#include "engine/exp.h"

#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = KERNEL_BLOCK, VEC = 16 };

typedef __m512 vec;
typedef __m512i words, pairs;

#define vec_load   _mm512_loadu_ps
#define vec_store  _mm512_storeu_ps
#define vec_set    _mm512_set1_ps
#define vec_add    _mm512_add_ps
#define vec_sub    _mm512_sub_ps
#define vec_mul    _mm512_mul_ps
#define vec_fma    _mm512_fmadd_ps
#define vec_max    _mm512_max_ps
#define vec_abs    _mm512_abs_ps
#define vec_words  _mm512_cvtepi32_ps
#define words_zero _mm512_setzero_si512

INLINE words words_dot(words sum, words w, int32_t pair)
{
    return _mm512_dpwssd_epi32(sum, w, _mm512_set1_epi32(pair));
}

INLINE vec vec_halves(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

INLINE words codes_load(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
}

INLINE void codes_store(int16_t *p, vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(v)));
}

INLINE vec vec_seen(vec v, size_t n)
{
    return _mm512_mask_mov_ps(vec_set(-INFINITY), (__mmask16)((1u << n) - 1), v);
}

INLINE float vec_top(vec v)
{
    __m256 s = _mm256_max_ps(_mm512_castps512_ps256(v),
                             _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
    __m128 t = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));

    t = _mm_max_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_max_ss(t, _mm_movehdup_ps(t)));
}

INLINE float vec_total(const vec sum[1])
{
    __m256 s = _mm256_add_ps(_mm512_castps512_ps256(sum[0]),
                             _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum[0]), 1)));
    __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));

    t = _mm_add_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

/* exp_approx (exp.h). */
INLINE vec vec_exp(vec x)
{
    const vec magic = vec_set(EXP_MAGIC);
    vec y = _mm512_min_ps(_mm512_max_ps(x, vec_set(EXP_MIN)), vec_set(EXP_MAX));
    vec t = vec_fma(y, vec_set(EXP_LOG2E), magic), n = vec_sub(t, magic);
    vec r = vec_fma(n, vec_set(-EXP_LN2_HI), y);

    r = vec_fma(n, vec_set(-EXP_LN2_LO), r);
    vec p = vec_fma(vec_set(EXP_P0), r, vec_set(EXP_P1));
    p = vec_fma(p, r, vec_set(EXP_P2));
    p = vec_fma(p, r, vec_set(EXP_P3));
    p = vec_fma(p, r, vec_set(EXP_P4));
    p = vec_fma(p, r, vec_set(EXP_P5));
    p = vec_add(vec_fma(p, vec_mul(r, r), r), vec_set(1.0f));
    __m512i bits =
        _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23));
    __mmask16 seen = _mm512_cmp_ps_mask(x, vec_set(EXP_MIN), _CMP_GE_OQ);
    return _mm512_maskz_mov_ps(seen, _mm512_castsi512_ps(bits));
}

#include "engine/attention_lanes.h"

void avx512_attend_f16(const struct attend *a)
{
    attend(a, false);
}

void avx512_attend_q8(const struct attend *a)
{
    attend(a, true);
}
