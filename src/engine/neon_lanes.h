/* What the NEON kernels are made of: vectors of KERNEL_LANES numbers, which are two registers. Named
 * halves and not an array: they live in registers. */
#ifndef FADER_ENGINE_NEON_LANES_H
#define FADER_ENGINE_NEON_LANES_H

#include <arm_neon.h>

#include "engine/exp.h"
#include "engine/kernels_neon.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK };

typedef struct {
    float32x4_t lo, hi;
} vec;

typedef struct {
    int32x4_t lo, hi;
} words;

INLINE vec vec_load(const float *p)
{
    return (vec){vld1q_f32(p), vld1q_f32(p + 4)};
}

INLINE void vec_store(float *p, vec v)
{
    vst1q_f32(p, v.lo);
    vst1q_f32(p + 4, v.hi);
}

INLINE vec vec_set(float x)
{
    return (vec){vdupq_n_f32(x), vdupq_n_f32(x)};
}

INLINE vec vec_add(vec a, vec b)
{
    return (vec){vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)};
}

INLINE vec vec_sub(vec a, vec b)
{
    return (vec){vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)};
}

INLINE vec vec_mul(vec a, vec b)
{
    return (vec){vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)};
}

/* a * b + c, rounded once. */
INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec){vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
}

/* The other one of a number and a NaN. */
INLINE vec vec_max(vec a, vec b)
{
    return (vec){vmaxnmq_f32(a.lo, b.lo), vmaxnmq_f32(a.hi, b.hi)};
}

INLINE vec vec_abs(vec v)
{
    return (vec){vabsq_f32(v.lo), vabsq_f32(v.hi)};
}

INLINE vec vec_words(words w)
{
    return (vec){vcvtq_f32_s32(w.lo), vcvtq_f32_s32(w.hi)};
}

INLINE vec vec_halves(const void *p)
{
    float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(p));

    return (vec){vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}

INLINE float lane_max(vec v)
{
    return vmaxnmvq_f32(vmaxnmq_f32(v.lo, v.hi));
}

/* In the scalar twin's order, which is not that of vaddvq_f32. */
INLINE float lane_sum(vec v)
{
    float32x4_t s = vaddq_f32(v.lo, v.hi);

    return vpadds_f32(vadd_f32(vget_low_f32(s), vget_high_f32(s)));
}

INLINE words words_zero(void)
{
    return (words){vdupq_n_s32(0), vdupq_n_s32(0)};
}

INLINE words words_widen(int16x8_t v)
{
    return (words){vmovl_s16(vget_low_s16(v)), vmovl_high_s16(v)};
}

/* exp_approx (exp.h) of four values. */
INLINE float32x4_t exp_four(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(EXP_MAGIC);
    float32x4_t y = vminnmq_f32(vmaxnmq_f32(x, vdupq_n_f32(EXP_MIN)), vdupq_n_f32(EXP_MAX));
    float32x4_t t = vfmaq_n_f32(magic, y, EXP_LOG2E), n = vsubq_f32(t, magic);
    float32x4_t r = vfmaq_n_f32(vfmaq_n_f32(y, n, -EXP_LN2_HI), n, -EXP_LN2_LO);
    float32x4_t p = vfmaq_n_f32(vdupq_n_f32(EXP_P1), r, EXP_P0);

    p = vfmaq_f32(vdupq_n_f32(EXP_P2), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_P3), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_P4), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_P5), p, r);
    p = vaddq_f32(vfmaq_f32(r, p, vmulq_f32(r, r)), vdupq_n_f32(1.0f));
    uint32x4_t bits =
        vaddq_u32(vreinterpretq_u32_f32(p), vshlq_n_u32(vreinterpretq_u32_f32(t), 23));
    return vreinterpretq_f32_u32(vandq_u32(bits, vcgeq_f32(x, vdupq_n_f32(EXP_MIN))));
}

INLINE vec vec_exp(vec v)
{
    return (vec){exp_four(v.lo), exp_four(v.hi)};
}

#endif
