/* Kernels for AVX2, FMA and F16C: matrices of codes (avx2_codes.h), and the table. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include "engine/avx2_codes.h"

INLINE void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    size_t bytes = a->cols / pack_traits[pack].columns * pack_traits[pack].bytes;

    for (size_t g = 0; g < n_groups; g++, groups += bytes, out += a->n * LANES) {
        if (a->n == 1)
            multiply_group(groups, a, 1, out, pack);
        else
            multiply_group(groups, a, a->n, out, pack);
    }
}

#include "engine/kernels_codes.h"

const struct kernels kernels_avx2 = {
    .name = "avx2",
    .pack = pack_rows_avx2,
    .matmul = {[PACK_F16] = avx2_matmul_f16,
               [PACK_BF16] = avx2_matmul_bf16,
               [PACK_F32] = avx2_matmul_f32,
               FOR_PACKS_OF_CODES(MATMUL_ENTRY)},
    .rms_norm = avx2_rms_norm,
    .quantize = avx2_quantize,
    .silu_mul = avx2_silu_mul,
    .add = avx2_add,
    .rope = avx2_rope,
    .attend_f16 = avx2_attend_f16,
    .attend_q8 = avx2_attend_q8,
    .merge = avx2_merge,
    .scale = avx2_scale,
    .float_to_half = avx2_float_to_half,
};
