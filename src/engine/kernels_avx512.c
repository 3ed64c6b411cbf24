/* Kernels for AVX-512 with VNNI: matrices of codes. The rest is AVX2's. */
#include "config.h"

#include "engine/kernels_avx2.h"

const struct kernels kernels_avx512 = {
    .name = "avx512",
    .matmul = {[PACK_Q4_0] = avx2_matmul_q4_0, [PACK_Q4_1] = avx2_matmul_q4_1,
               [PACK_Q8_0] = avx2_matmul_q8_0, [PACK_F16] = avx2_matmul_f16,
               [PACK_BF16] = avx2_matmul_bf16, [PACK_F32] = avx2_matmul_f32},
    .rms_norm = avx2_rms_norm,
    .quantize = avx2_quantize,
    .silu_mul = avx2_silu_mul,
    .add = avx2_add,
    .rope = avx2_rope,
    .attend_f16 = avx2_attend_f16,
    .attend_f32 = avx2_attend_f32,
    .merge = avx2_merge,
    .scale = avx2_scale,
    .half_to_float = avx2_half_to_float,
    .float_to_half = avx2_float_to_half,
    .expand_codes = avx2_expand_codes,
};
