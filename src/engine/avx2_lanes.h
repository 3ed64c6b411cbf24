/* What the AVX2 kernels are made of: sums across lanes, halves, exp, four vectors at a time. */
#ifndef FADER_ENGINE_AVX2_LANES_H
#define FADER_ENGINE_AVX2_LANES_H

#include <immintrin.h>

#include "engine/exp.h"
#include "engine/kernels_avx2.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK };

INLINE float lane_sum(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE float lane_max(__m256 v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

INLINE __m256 load_halves(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

/* exp_approx (exp.h) of eight values. */
INLINE __m256 exp_lanes(__m256 x)
{
    const __m256 magic = _mm256_set1_ps(EXP_MAGIC);
    __m256 y = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(EXP_MIN)), _mm256_set1_ps(EXP_MAX));
    __m256 t = _mm256_fmadd_ps(y, _mm256_set1_ps(EXP_LOG2E), magic), n = _mm256_sub_ps(t, magic);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_HI), y);

    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_LO), r);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(EXP_P0), r, _mm256_set1_ps(EXP_P1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P5));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    __m256i bits =
        _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23));
    __m256 seen = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_MIN), _CMP_GE_OQ);
    return _mm256_and_ps(_mm256_castsi256_ps(bits), seen);
}

/* 32 values: positions of a score, dimensions, a block of activations. Named and not an array: they
 * live in registers. */
struct four {
    __m256 a, b, c, d;
};

INLINE struct four load_four(const float *p)
{
    return (struct four){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16),
                         _mm256_loadu_ps(p + 24)};
}

INLINE void store_four(float *p, struct four v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
    _mm256_storeu_ps(p + 16, v.c);
    _mm256_storeu_ps(p + 24, v.d);
}

#endif
