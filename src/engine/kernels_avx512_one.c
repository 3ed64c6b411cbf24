/* Kernels for AVX-512 with VNNI: matrices of codes times one token. Memory is what counts there, and
 * one run of weights comes faster than two side by side: 256-bit registers, one group after the
 * other. */
#include "config.h"

#include "engine/avx2_codes.h"
#include "engine/kernels_avx512.h"

INLINE void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    size_t bytes = a->cols / pack_traits[pack].columns * pack_traits[pack].bytes;

    for (size_t g = 0; g < n_groups; g++)
        multiply_group(groups + g * bytes, a, 1, out + g * LANES, pack);
}

#include "engine/kernels_codes.h"

matmul_kernel *const avx512_matmul_one[PACK_COUNT] = {FOR_PACKS_OF_CODES(MATMUL_ENTRY)};
