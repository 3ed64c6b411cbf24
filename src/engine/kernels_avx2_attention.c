/* Kernels for AVX2, FMA and F16C: attention over a block of the cache. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include <math.h>

#include "engine/avx2_lanes.h"

enum { TOGETHER = 3 }; /* queries that share the loads of K and V: 12 accumulators */

/* How values stand in the cache: codes are multiplied by their scales. */
enum form { HALVES, FLOATS, CODES };

INLINE __m256 load_cache(const void *values, size_t i, enum form form, __m256 scale)
{
    if (form == HALVES)
        return load_halves((const uint16_t *)values + i);
    if (form == FLOATS)
        return _mm256_loadu_ps((const float *)values + i);
    __m128i codes = _mm_loadl_epi64((const __m128i *)(const void *)((const int8_t *)values + i));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), scale);
}

INLINE struct four scale_four(struct four v, __m256 by)
{
    return (struct four){_mm256_mul_ps(v.a, by), _mm256_mul_ps(v.b, by), _mm256_mul_ps(v.c, by),
                         _mm256_mul_ps(v.d, by)};
}

/* A block is too short for the hardware to learn its way: fetch the next one's while this one's is
 * used, line for line (not of floats), to the second level, which has room for the misses. */
INLINE void prefetch(const struct attend *a, size_t i, enum form form)
{
    if (form != FLOATS && a->next != NULL)
        _mm_prefetch((const char *)a->next + i * (form == CODES ? 1 : 2), _MM_HINT_T1);
}

INLINE struct four load_scales(const uint16_t *p)
{
    return (struct four){load_halves(p), load_halves(p + 8), load_halves(p + 16),
                         load_halves(p + 24)};
}

/* Scales of one position's V. */
INLINE size_t n_scales(const struct attend *a)
{
    return (a->dim + BLOCK - 1) / BLOCK;
}

INLINE struct four spread(__m256 v)
{
    return (struct four){v, v, v, v};
}

INLINE __m256 load_scale(const uint16_t *p)
{
    return _mm256_set1_ps(_cvtsh_ss(*p));
}

/* Adds x_i times the 32 values at `i` to each of the n sums, vector by vector: 16 registers
 * suffice. */
INLINE void add_four(struct four *s0, struct four *s1, struct four *s2, size_t n, __m256 x0,
                     __m256 x1, __m256 x2, const void *values, size_t i, enum form form,
                     struct four scale)
{
    __m256 v = load_cache(values, i, form, scale.a);
    s0->a = _mm256_fmadd_ps(x0, v, s0->a);
    s1->a = n > 1 ? _mm256_fmadd_ps(x1, v, s1->a) : s1->a;
    s2->a = n > 2 ? _mm256_fmadd_ps(x2, v, s2->a) : s2->a;
    v = load_cache(values, i + 8, form, scale.b);
    s0->b = _mm256_fmadd_ps(x0, v, s0->b);
    s1->b = n > 1 ? _mm256_fmadd_ps(x1, v, s1->b) : s1->b;
    s2->b = n > 2 ? _mm256_fmadd_ps(x2, v, s2->b) : s2->b;
    v = load_cache(values, i + 16, form, scale.c);
    s0->c = _mm256_fmadd_ps(x0, v, s0->c);
    s1->c = n > 1 ? _mm256_fmadd_ps(x1, v, s1->c) : s1->c;
    s2->c = n > 2 ? _mm256_fmadd_ps(x2, v, s2->c) : s2->c;
    v = load_cache(values, i + 24, form, scale.d);
    s0->d = _mm256_fmadd_ps(x0, v, s0->d);
    s1->d = n > 1 ? _mm256_fmadd_ps(x1, v, s1->d) : s1->d;
    s2->d = n > 2 ? _mm256_fmadd_ps(x2, v, s2->d) : s2->d;
}

/* Scores of queries at .. at + n - 1. */
INLINE void get_scores(const struct attend *a, size_t at, size_t n, enum form form,
                       float score[TOGETHER][KERNEL_POSITIONS])
{
    const float *q0 = a->q + at * a->dim, *q1 = n > 1 ? q0 + a->dim : q0;
    const float *q2 = n > 2 ? q1 + a->dim : q0;
    __m256 zero = _mm256_setzero_ps();
    struct four s0 = spread(zero), s1 = s0, s2 = s0, scale = s0;

    for (size_t d = 0; d < a->dim; d++) {
        if (form == CODES && d % BLOCK == 0)
            scale = load_scales(a->k_scales + d / BLOCK * KERNEL_POSITIONS);
        prefetch(a, d * KERNEL_POSITIONS, form);
        add_four(&s0, &s1, &s2, n, _mm256_set1_ps(q0[d]), _mm256_set1_ps(q1[d]),
                 _mm256_set1_ps(q2[d]), a->k, d * KERNEL_POSITIONS, form, scale);
    }
    store_four(score[0], s0);
    if (n > 1)
        store_four(score[1], s1);
    if (n > 2)
        store_four(score[2], s2);
}

INLINE struct four mask_four(struct four v, size_t visible)
{
    const __m256 lane = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), none = _mm256_set1_ps(-INFINITY);
    const __m256 end = _mm256_set1_ps((float)visible), step = _mm256_set1_ps(8.0f);

    v.a = _mm256_blendv_ps(none, v.a, _mm256_cmp_ps(lane, end, _CMP_LT_OQ));
    __m256 at = _mm256_add_ps(lane, step);
    v.b = _mm256_blendv_ps(none, v.b, _mm256_cmp_ps(at, end, _CMP_LT_OQ));
    at = _mm256_add_ps(at, step);
    v.c = _mm256_blendv_ps(none, v.c, _mm256_cmp_ps(at, end, _CMP_LT_OQ));
    at = _mm256_add_ps(at, step);
    v.d = _mm256_blendv_ps(none, v.d, _mm256_cmp_ps(at, end, _CMP_LT_OQ));
    return v;
}

/* As softmax_step of the scalar twin. */
INLINE float softmax_step(float score[KERNEL_POSITIONS], size_t visible, float *m, float *l)
{
    struct four v = load_four(score);
    __m256 largest = _mm256_set1_ps(*m);

    if (visible < KERNEL_POSITIONS)
        v = mask_four(v, visible);
    largest =
        _mm256_max_ps(v.d, _mm256_max_ps(v.c, _mm256_max_ps(v.b, _mm256_max_ps(v.a, largest))));
    float top = lane_max(largest);
    __m256 by = _mm256_set1_ps(top);
    v.a = exp_lanes(_mm256_sub_ps(v.a, by));
    v.b = exp_lanes(_mm256_sub_ps(v.b, by));
    v.c = exp_lanes(_mm256_sub_ps(v.c, by));
    v.d = exp_lanes(_mm256_sub_ps(v.d, by));
    store_four(score, v);
    float correction = *m == top ? 1.0f : _mm256_cvtss_f32(exp_lanes(_mm256_set1_ps(*m - top)));
    float sum = lane_sum(_mm256_add_ps(_mm256_add_ps(v.a, v.b), _mm256_add_ps(v.c, v.d)));
    *l = fmaf(*l, correction, sum);
    *m = top;
    return correction;
}

/* Adds the weighted values of 32 dimensions from `d` on. */
INLINE void add_values(const struct attend *a, size_t at, size_t n, enum form form, size_t d,
                       const float correction[TOGETHER], float weight[TOGETHER][KERNEL_POSITIONS])
{
    float *o0 = a->o + at * a->dim + d, *o1 = n > 1 ? o0 + a->dim : o0;
    float *o2 = n > 2 ? o1 + a->dim : o0;
    const float *w0 = weight[0], *w1 = weight[n > 1 ? 1 : 0], *w2 = weight[n > 2 ? 2 : 0];
    struct four s0 = scale_four(load_four(o0), _mm256_set1_ps(correction[0])), s1 = s0, s2 = s0;
    struct four scale = s0;

    if (n > 1)
        s1 = scale_four(load_four(o1), _mm256_set1_ps(correction[1]));
    if (n > 2)
        s2 = scale_four(load_four(o2), _mm256_set1_ps(correction[2]));
    for (size_t p = 0; p < KERNEL_POSITIONS; p++) {
        if (form == CODES)
            scale = spread(load_scale(a->v_scales + p * n_scales(a) + d / BLOCK));
        prefetch(a, (KERNEL_POSITIONS + p) * a->dim + d, form);
        add_four(&s0, &s1, &s2, n, _mm256_set1_ps(w0[p]), _mm256_set1_ps(w1[p]),
                 _mm256_set1_ps(w2[p]), a->v, p * a->dim + d, form, scale);
    }
    store_four(o0, s0);
    if (n > 1)
        store_four(o1, s1);
    if (n > 2)
        store_four(o2, s2);
}

/* The same for 8 dimensions of one query: what 32 leave over in an unusual head. */
INLINE void add_values_narrow(const struct attend *a, size_t at, enum form form, size_t d,
                              float correction, const float weight[KERNEL_POSITIONS])
{
    float *o = a->o + at * a->dim + d;
    __m256 sum = _mm256_mul_ps(_mm256_loadu_ps(o), _mm256_set1_ps(correction));

    for (size_t p = 0; p < KERNEL_POSITIONS; p++) {
        __m256 scale = form == CODES ? load_scale(a->v_scales + p * n_scales(a) + d / BLOCK) : sum;
        __m256 v = load_cache(a->v, p * a->dim + d, form, scale);
        sum = _mm256_fmadd_ps(_mm256_set1_ps(weight[p]), v, sum);
    }
    _mm256_storeu_ps(o, sum);
}

/* Queries at .. at + n - 1, n a constant of at most TOGETHER. */
INLINE void attend_some(const struct attend *a, size_t at, size_t n, enum form form)
{
    float weight[TOGETHER][KERNEL_POSITIONS], correction[TOGETHER];
    size_t d = 0;

    get_scores(a, at, n, form, weight);
    for (size_t i = 0; i < n; i++)
        correction[i] = softmax_step(weight[i], a->visible[at + i], &a->m[at + i], &a->l[at + i]);
    for (; d + 32 <= a->dim; d += 32)
        add_values(a, at, n, form, d, correction, weight);
    for (; d < a->dim; d += LANES) {
        for (size_t i = 0; i < n; i++)
            add_values_narrow(a, at + i, form, d, correction[i], weight[i]);
    }
}

INLINE void attend(const struct attend *a, enum form form)
{
    size_t i = 0;

    for (; i + 3 <= a->n; i += 3)
        attend_some(a, i, 3, form);
    if (a->n - i == 2)
        attend_some(a, i, 2, form);
    else if (a->n - i == 1)
        attend_some(a, i, 1, form);
}

void avx2_attend_f16(const struct attend *a)
{
    attend(a, HALVES);
}

void avx2_attend_f32(const struct attend *a)
{
    attend(a, FLOATS);
}

void avx2_attend_q8(const struct attend *a)
{
    size_t codes = 2 * KERNEL_POSITIONS * a->dim;
    size_t scales = 2 * KERNEL_POSITIONS * n_scales(a) * sizeof(uint16_t);

    for (size_t i = 0; i < scales; i += 64)
        prefetch(a, codes + i, CODES);
    attend(a, CODES);
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
