/* The AVX-512 kernels that have a file of their own. */
#ifndef FADER_ENGINE_KERNELS_AVX512_H
#define FADER_ENGINE_KERNELS_AVX512_H

#include "engine/kernels.h"

/* For panels of one token; packs of codes only. */
extern matmul_kernel *const avx512_matmul_one[PACK_COUNT];

void avx512_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void avx512_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void avx512_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out);
void avx512_attend_f16(const struct attend *a);
void avx512_attend_q8(const struct attend *a);

#endif
