/* The AVX2 kernels by name, for kernel sets that replace only some of them. */
#ifndef FADER_ENGINE_KERNELS_AVX2_H
#define FADER_ENGINE_KERNELS_AVX2_H

#include "engine/kernels.h"

extern pack_kernel *const pack_rows_avx2[PACK_COUNT];

void avx2_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void avx2_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void avx2_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void avx2_rms_norm(const float *x, const float *weight, size_t n, float eps, float *out);
void avx2_quantize(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                   struct act_scale *scale);
void avx2_silu_mul(float *gate, const float *up, size_t n);
void avx2_add(float *x, const float *y, size_t n);
void avx2_scale(float *x, float by, size_t n);
void avx2_rope(float *x, const float *cosine, const float *sine, size_t dim, bool halves);
void avx2_float_to_half(const float *src, uint16_t *dst, size_t n);
void avx2_attend_f16(const struct attend *a);
void avx2_attend_q8(const struct attend *a);
void avx2_merge(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim);

#endif
