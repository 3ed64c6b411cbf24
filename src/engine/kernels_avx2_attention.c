/* Kernels for AVX2, FMA and F16C: attention over a segment of the cache. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include "engine/avx2_lanes.h"

enum { VEC = 8 };

typedef __m256 vec;
typedef __m256i words, pairs;

#define vec_load   _mm256_loadu_ps
#define vec_store  _mm256_storeu_ps
#define vec_set    _mm256_set1_ps
#define vec_add    _mm256_add_ps
#define vec_sub    _mm256_sub_ps
#define vec_mul    _mm256_mul_ps
#define vec_fma    _mm256_fmadd_ps
#define vec_max    _mm256_max_ps
#define vec_exp    exp_lanes
#define vec_top    lane_max
#define vec_halves load_halves
#define vec_words  _mm256_cvtepi32_ps
#define words_zero _mm256_setzero_si256

INLINE vec vec_abs(vec v)
{
    return _mm256_andnot_ps(vec_set(-0.0f), v);
}

INLINE vec vec_seen(vec v, size_t n)
{
    const vec lane = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);

    return _mm256_blendv_ps(vec_set(-INFINITY), v,
                            _mm256_cmp_ps(lane, vec_set((float)n), _CMP_LT_OQ));
}

INLINE float vec_total(const vec sum[2])
{
    return lane_sum(vec_add(sum[0], sum[1]));
}

INLINE words words_dot(words sum, words w, int32_t pair)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(w, _mm256_set1_epi32(pair)));
}

INLINE words codes_load(const void *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}

INLINE void codes_store(int16_t *p, vec v)
{
    __m256i w = _mm256_cvtps_epi32(v);

    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_packs_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}

#include "engine/attention_lanes.h"

void avx2_attend_f16(const struct attend *a)
{
    attend(a, false);
}

void avx2_attend_q8(const struct attend *a)
{
    attend(a, true);
}

void avx2_merge(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim)
{
    float largest = m2 > *m ? m2 : *m;
    __m256 c1 = exp_lanes(_mm256_set1_ps(*m - largest)),
           c2 = exp_lanes(_mm256_set1_ps(m2 - largest));

    *m = largest;
    *l = fmaf(l2, _mm256_cvtss_f32(c2), *l * _mm256_cvtss_f32(c1));
    for (size_t d = 0; d < dim; d += LANES) {
        __m256 old = _mm256_mul_ps(_mm256_loadu_ps(o + d), c1);
        _mm256_storeu_ps(o + d, _mm256_fmadd_ps(_mm256_loadu_ps(o2 + d), c2, old));
    }
}
