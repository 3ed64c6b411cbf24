/* Kernels for AArch64: matrices of floats. Like kernels_scalar.c, each sum has one accumulator to
 * which columns are added in ascending order; what makes it fast is how many sums are under way at
 * once. */
#include "config.h"

#include "engine/kernels_neon.h"

#include "engine/neon_lanes.h"

enum {
    PREFETCH = 256, /* bytes ahead */
    COLUMNS = 4,    /* at once: their x, of one token, are a register */
    TILE_TOKENS = 5 /* with two groups that is 20 registers of sums, 5 of x and 4 of weights */
};

INLINE vec load_column(const uint8_t *p, enum pack pack)
{
    if (pack == PACK_F16)
        return vec_halves(p);
    if (pack == PACK_F32)
        return vec_load((const float *)(const void *)p);
    uint16x8_t v = vreinterpretq_u16_u8(vld1q_u8(p));
    return (vec){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(v), 16)),
                 vreinterpretq_f32_u32(vshll_high_n_u16(v, 16))};
}

/* `groups` groups, of columns that are `step` bytes apart, times `tokens` tokens from `first` on:
 * `groups` and `tokens` are constants. */
INLINE void multiply(const uint8_t *p, size_t step, size_t groups, const struct panel *a,
                     size_t first, size_t tokens, float *out, enum pack pack)
{
    const size_t bytes = pack_traits[pack].bytes;
    const float *x = a->f32 + first * BLOCK;
    vec sum[2 * TILE_TOKENS];

#pragma GCC unroll 10
    for (size_t i = 0; i < groups * tokens; i++)
        sum[i] = vec_set(0.0f);
    for (size_t b = 0; b < a->cols / BLOCK; b++, x += a->n * BLOCK) {
        for (size_t c = 0; c < BLOCK; c += COLUMNS) {
            float32x4_t values[TILE_TOKENS];
#pragma GCC unroll 5
            for (size_t t = 0; t < tokens; t++)
                values[t] = vld1q_f32(x + t * BLOCK + c);
#pragma GCC unroll 4
            for (size_t k = 0; k < COLUMNS; k++, p += step) {
                for (size_t i = 0; i < groups * bytes; i += 64)
                    __builtin_prefetch(p + PREFETCH + i);
#pragma GCC unroll 4
                for (size_t g = 0; g < groups; g++) {
                    vec w = load_column(p + g * bytes, pack);
#pragma GCC unroll 5
                    for (size_t t = 0; t < tokens; t++)
                        sum[t * groups + g] =
                            vec_fma(w, vec_set(values[t][k]), sum[t * groups + g]);
                }
            }
        }
    }
#pragma GCC unroll 10
    for (size_t i = 0; i < groups * tokens; i++)
        vec_store(out + (i % groups * a->n + first + i / groups) * LANES, sum[i]);
}

/* The panel in tiles that differ by one token at most. */
INLINE void multiply_panel(const uint8_t *p, size_t step, size_t groups, const struct panel *a,
                           float *out, enum pack pack)
{
    size_t tiles = (a->n + TILE_TOKENS - 1) / TILE_TOKENS;

    for (size_t t = 0, n; t < a->n; t += n, tiles--) {
        n = (a->n - t + tiles - 1) / tiles;
        switch (n) {
        case 1:
            multiply(p, step, groups, a, t, 1, out, pack);
            break;
        case 2:
            multiply(p, step, groups, a, t, 2, out, pack);
            break;
        case 3:
            multiply(p, step, groups, a, t, 3, out, pack);
            break;
        case 4:
            multiply(p, step, groups, a, t, 4, out, pack);
            break;
        default:
            multiply(p, step, groups, a, t, TILE_TOKENS, out, pack);
        }
    }
}

/* A chunk of `width` groups. All four at once for a token or two: that is one run of memory. */
INLINE void multiply_chunk(const uint8_t *p, size_t width, const struct panel *a, float *out,
                           enum pack pack)
{
    const size_t bytes = pack_traits[pack].bytes, step = width * bytes;
    size_t g = 0;

    if (width == 4 && a->n == 1) {
        multiply(p, step, 4, a, 0, 1, out, pack);
        return;
    }
    if (width == 4 && a->n == 2) {
        multiply(p, step, 4, a, 0, 2, out, pack);
        return;
    }
    for (; g + 2 <= width; g += 2)
        multiply_panel(p + g * bytes, step, 2, a, out + g * a->n * LANES, pack);
    if (g < width)
        multiply_panel(p + g * bytes, step, 1, a, out + g * a->n * LANES, pack);
}

INLINE void matmul_floats(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                          enum pack pack)
{
    const size_t bytes = a->cols * pack_traits[pack].bytes;
    size_t g = 0;

    for (; g + KERNEL_CHUNK <= n_groups; g += KERNEL_CHUNK)
        multiply_chunk(groups + g * bytes, KERNEL_CHUNK, a, out + g * a->n * LANES, pack);
    if (g < n_groups)
        multiply_chunk(groups + g * bytes, n_groups - g, a, out + g * a->n * LANES, pack);
}

void neon_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F16);
}

void neon_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_BF16);
}

void neon_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F32);
}
