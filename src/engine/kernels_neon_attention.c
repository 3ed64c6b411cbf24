/* Kernels for AArch64: attention over a segment of the cache. */
#include "config.h"

#include "engine/kernels_neon.h"

#include <math.h>

#include "engine/neon_lanes.h"

enum { VEC = LANES };

#define vec_top lane_max

/* VEC pairs of 16-bit numbers: the first of each, and the second. */
typedef struct {
    int16x8_t first, second;
} pairs;

INLINE vec vec_seen(vec v, size_t n)
{
    static const uint32_t lane[LANES] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint32x4_t end = vdupq_n_u32((uint32_t)n);
    const float32x4_t none = vdupq_n_f32(-INFINITY);

    return (vec){vbslq_f32(vcltq_u32(vld1q_u32(lane), end), v.lo, none),
                 vbslq_f32(vcltq_u32(vld1q_u32(lane + 4), end), v.hi, none)};
}

INLINE float vec_total(const vec sum[2])
{
    return lane_sum(vec_add(sum[0], sum[1]));
}

INLINE words words_dot(words sum, pairs w, int32_t pair)
{
    int16x4_t x = vreinterpret_s16_s32(vdup_n_s32(pair));

    sum.lo = vmlal_lane_s16(sum.lo, vget_low_s16(w.first), x, 0);
    sum.hi = vmlal_high_lane_s16(sum.hi, w.first, x, 0);
    sum.lo = vmlal_lane_s16(sum.lo, vget_low_s16(w.second), x, 1);
    sum.hi = vmlal_high_lane_s16(sum.hi, w.second, x, 1);
    return sum;
}

INLINE pairs codes_load(const void *p)
{
    int16x8_t both = vreinterpretq_s16_u8(vld1q_u8(p));

    return (pairs){vshrq_n_s16(vshlq_n_s16(both, 8), 8), vshrq_n_s16(both, 8)};
}

INLINE void codes_store(int16_t *p, vec v)
{
    vst1q_s16(p, vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v.lo)), vmovn_s32(vcvtnq_s32_f32(v.hi))));
}

#include "engine/attention_lanes.h"

void neon_attend_f16(const struct attend *a)
{
    attend(a, false);
}

void neon_attend_q8(const struct attend *a)
{
    attend(a, true);
}

void neon_merge(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim)
{
    float largest = m2 > *m ? m2 : *m;
    vec c1 = vec_exp(vec_set(*m - largest)), c2 = vec_exp(vec_set(m2 - largest));

    *m = largest;
    *l = fmaf(l2, vgetq_lane_f32(c2.lo, 0), *l * vgetq_lane_f32(c1.lo, 0));
    for (size_t d = 0; d < dim; d += LANES)
        vec_store(o + d, vec_fma(vec_load(o2 + d), c2, vec_mul(vec_load(o + d), c1)));
}
