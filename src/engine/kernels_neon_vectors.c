/* Kernels for AArch64: vectors. */
#include "config.h"

#include "engine/kernels_neon.h"

#include <math.h>

#include "engine/neon_lanes.h"

void neon_rms_norm(const float *x, const float *weight, size_t n, float eps, float *out)
{
    size_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    vec a = vec_set(0.0f), b = a, c = a, d = a;

    for (size_t i = 0; i < padded; i += BLOCK) {
        a = vec_fma(vec_load(x + i), vec_load(x + i), a);
        b = vec_fma(vec_load(x + i + 8), vec_load(x + i + 8), b);
        c = vec_fma(vec_load(x + i + 16), vec_load(x + i + 16), c);
        d = vec_fma(vec_load(x + i + 24), vec_load(x + i + 24), d);
    }
    float sum = lane_sum(vec_add(vec_add(a, b), vec_add(c, d)));
    vec factor = vec_set(1.0f / sqrtf(sum / (float)n + eps));
    for (size_t i = 0; i < padded; i += LANES)
        vec_store(out + i, vec_mul(vec_mul(vec_load(x + i), factor), vec_load(weight + i)));
}

/* The low 16 bits of the nearest whole numbers. */
INLINE uint16x8_t round_codes(vec x, vec inverse)
{
    vec rounded = vec_add(vec_mul(x, inverse), vec_set(EXP_MAGIC));

    return vuzp1q_u16(vreinterpretq_u16_f32(rounded.lo), vreinterpretq_u16_f32(rounded.hi));
}

/* Rounds 16 values to bytes; returns their sum. */
INLINE int16_t quantize_half(const float *x, vec inverse, int8_t *q)
{
    uint16x8_t first = round_codes(vec_load(x), inverse),
               second = round_codes(vec_load(x + 8), inverse);
    int8x16_t codes = vuzp1q_s8(vreinterpretq_s8_u16(first), vreinterpretq_s8_u16(second));

    vst1q_s8(q, codes);
    return vaddlvq_s8(codes);
}

void neon_quantize(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                   struct act_scale *scale)
{
    for (size_t b = 0; b < n_blocks; b++, x += BLOCK, q += stride * BLOCK, scale += stride) {
        vec ab = vec_max(vec_abs(vec_load(x)), vec_abs(vec_load(x + 8)));
        vec cd = vec_max(vec_abs(vec_load(x + 16)), vec_abs(vec_load(x + 24)));
        float top = lane_max(vec_max(ab, cd));
        bool none = !(top > 1e-30f);
        float d = none ? 0.0f : top / 127.0f;
        vec inverse = vec_set(none ? 0.0f : 127.0f / top);
        int16_t first = quantize_half(x, inverse, q),
                second = quantize_half(x + 16, inverse, q + 16);
        int32_t sum = first + second;
        *scale = (struct act_scale){d, d * (float)sum, sum, {first, second}};
    }
}

INLINE float32x4_t silu_four(float32x4_t g)
{
    return vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), exp_four(vnegq_f32(g))));
}

void neon_silu_mul(float *gate, const float *up, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        vec g = vec_load(gate + i);
        vec silu = {silu_four(g.lo), silu_four(g.hi)};
        vec_store(gate + i, vec_mul(silu, vec_load(up + i)));
    }
    if (i < n)
        kernels_scalar.silu_mul(gate + i, up + i, n - i);
}

void neon_add(float *x, const float *y, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        vec_store(x + i, vec_add(vec_load(x + i), vec_load(y + i)));
    for (; i < n; i++)
        x[i] += y[i];
}

void neon_scale(float *x, float by, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        vec_store(x + i, vec_mul(vec_load(x + i), vec_set(by)));
    for (; i < n; i++)
        x[i] *= by;
}

INLINE vec turn(vec x, vec partner, const float *cosine, const float *sine)
{
    return vec_fma(x, vec_load(cosine), vec_mul(partner, vec_load(sine)));
}

void neon_rope(float *x, const float *cosine, const float *sine, size_t dim, bool halves)
{
    size_t half = dim / 2;

    if (dim % LANES != 0 || (halves && half % LANES != 0)) {
        kernels_scalar.rope(x, cosine, sine, dim, halves);
    } else if (halves) {
        for (size_t i = 0; i < half; i += LANES) {
            vec a = vec_load(x + i), b = vec_load(x + half + i);
            vec_store(x + i, turn(a, b, cosine + i, sine + i));
            vec_store(x + half + i, turn(b, a, cosine + half + i, sine + half + i));
        }
    } else {
        for (size_t i = 0; i < dim; i += LANES) {
            vec a = vec_load(x + i), swapped = {vrev64q_f32(a.lo), vrev64q_f32(a.hi)};
            vec_store(x + i, turn(a, swapped, cosine + i, sine + i));
        }
    }
}

/* A half, as its bits. */
INLINE uint16x4_t halve(float32x4_t x)
{
    const float32x4_t most = vdupq_n_f32(65504.0f);

    x = vmaxnmq_f32(vminnmq_f32(x, most), vnegq_f32(most));
    return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

void neon_float_to_half(const float *src, uint16_t *dst, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        vec x = vec_load(src + i);
        vst1q_u16(dst + i, vcombine_u16(halve(x.lo), halve(x.hi)));
    }
    if (i < n)
        kernels_scalar.float_to_half(src + i, dst + i, n - i);
}
