/* The NEON kernels by name, for the two sets that differ in how they multiply codes. */
#ifndef FADER_ENGINE_KERNELS_NEON_H
#define FADER_ENGINE_KERNELS_NEON_H

#include "engine/kernels.h"

void neon_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void neon_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void neon_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void neon_rms_norm(const float *x, const float *weight, size_t n, float eps, float *out);
void neon_quantize(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                   struct act_scale *scale);
void neon_silu_mul(float *gate, const float *up, size_t n);
void neon_add(float *x, const float *y, size_t n);
void neon_scale(float *x, float by, size_t n);
void neon_rope(float *x, const float *cosine, const float *sine, size_t dim, bool halves);
void neon_float_to_half(const float *src, uint16_t *dst, size_t n);
void neon_attend_f16(const struct attend *a);
void neon_attend_q8(const struct attend *a);
void neon_merge(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim);

#endif
