/* The passes for AVX2: 16 lanes are two registers. */
#include "config.h"

#include "engine/scan.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { VEC = 8 };

typedef __m256 vec, mask;
typedef __m256d dvec;

#define vec_load             _mm256_loadu_ps
#define vec_store            _mm256_storeu_ps
#define vec_set              _mm256_set1_ps
#define vec_add              _mm256_add_ps
#define vec_sub              _mm256_sub_ps
#define vec_mul              _mm256_mul_ps
#define vec_fma              _mm256_fmadd_ps
#define vec_min              _mm256_min_ps
#define vec_max              _mm256_max_ps
#define dvec_add             _mm256_add_pd
#define mask_keep            _mm256_and_ps
#define mask_but(a, b)       _mm256_andnot_ps(b, a)
#define mask_choose(m, x, y) _mm256_blendv_ps(y, x, m)

INLINE mask mask_above(vec a, vec b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}

INLINE unsigned mask_bits(mask m)
{
    return (unsigned)_mm256_movemask_ps(m);
}

INLINE bool mask_any(mask m)
{
    return mask_bits(m) != 0;
}

INLINE size_t mask_count(mask m)
{
    return (size_t)__builtin_popcount(mask_bits(m));
}

INLINE float vec_top(vec x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

INLINE vec mask_pow2(mask m, vec x, vec shifted)
{
    const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(x),
                                          _mm256_slli_epi32(_mm256_castps_si256(shifted), 23));

    return _mm256_and_ps(m, _mm256_castsi256_ps(bits));
}

INLINE dvec dvec_low(vec x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

INLINE dvec dvec_high(vec x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

INLINE size_t pack(int32_t *out, size_t i, mask in)
{
    size_t n = 0;

    for (unsigned m = mask_bits(in); m != 0; m &= m - 1)
        out[n++] = (int32_t)i + __builtin_ctz(m);
    return n;
}

#define SCAN_NAME scan_avx2
#include "engine/scan_lanes.h"
