/* The passes for AVX-512: 16 lanes are one register. */
#include "config.h"

#include "engine/scan.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { VEC = 16 };

typedef __m512 vec;
typedef __m512d dvec;
typedef __mmask16 mask;

#define vec_load             _mm512_loadu_ps
#define vec_store            _mm512_storeu_ps
#define vec_set              _mm512_set1_ps
#define vec_add              _mm512_add_ps
#define vec_sub              _mm512_sub_ps
#define vec_mul              _mm512_mul_ps
#define vec_fma              _mm512_fmadd_ps
#define vec_min              _mm512_min_ps
#define vec_max              _mm512_max_ps
#define vec_top              _mm512_reduce_max_ps
#define dvec_add             _mm512_add_pd
#define mask_keep            _mm512_maskz_mov_ps
#define mask_choose(m, x, y) _mm512_mask_blend_ps(m, y, x)

INLINE mask mask_above(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

INLINE mask mask_but(mask a, mask b)
{
    return (mask)(a & ~b);
}

INLINE bool mask_any(mask m)
{
    return m != 0;
}

INLINE size_t mask_count(mask m)
{
    return (size_t)__builtin_popcount(m);
}

INLINE vec mask_pow2(mask m, vec x, vec shifted)
{
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(
        m, _mm512_castps_si512(x), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
}

INLINE dvec dvec_low(vec x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

INLINE dvec dvec_high(vec x)
{
    return _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
}

/* Seldom none, and seldom many. */
INLINE size_t pack(int32_t *out, size_t i, mask m)
{
    static const int32_t steps[VEC] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const __m512i at = _mm512_add_epi32(_mm512_loadu_si512(steps), _mm512_set1_epi32((int32_t)i));
    const __m512i packed = _mm512_maskz_compress_epi32(m, at);
    const size_t n = mask_count(m);

    _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(packed));
    if (n > VEC / 2)
        _mm512_storeu_si512(out, packed);
    return n;
}

#define SCAN_NAME scan_avx512
#include "engine/scan_lanes.h"
