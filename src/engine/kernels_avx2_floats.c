/* Kernels for AVX2: matrices of floats. Like kernels_scalar.c, each sum has one accumulator to which
 * columns are added in ascending order; what makes it fast is how many sums are under way at once. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include "engine/avx2_lanes.h"

enum {
    PREFETCH = 256, /* bytes ahead */
    TILE_TOKENS =
        6 /* with two groups that is 12 sums: they, the weights and x fill the registers */
};

INLINE __m256 load_column(const uint8_t *p, enum pack pack)
{
    if (pack == PACK_F16)
        return load_halves(p);
    if (pack == PACK_F32)
        return _mm256_loadu_ps((const float *)(const void *)p);
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* `groups` groups, of columns that are `step` bytes apart, times `tokens` tokens from `first` on:
 * `groups` and `tokens` are constants. */
INLINE void multiply(const uint8_t *p, size_t step, size_t groups, const struct panel *a,
                     size_t first, size_t tokens, float *out, enum pack pack)
{
    const size_t bytes = pack_traits[pack].bytes;
    const float *x = a->f32 + first * BLOCK;
    __m256 sum[12];

#pragma GCC unroll 12
    for (size_t i = 0; i < groups * tokens; i++)
        sum[i] = _mm256_setzero_ps();
    for (size_t b = 0; b < a->cols / BLOCK; b++, x += a->n * BLOCK) {
        for (size_t c = 0; c < BLOCK; c++, p += step) {
            __m256 w[4];
            for (size_t i = 0; i < groups * bytes; i += 64)
                _mm_prefetch((const char *)(p + PREFETCH + i), _MM_HINT_T0);
#pragma GCC unroll 4
            for (size_t g = 0; g < groups; g++)
                w[g] = load_column(p + g * bytes, pack);
#pragma GCC unroll 6
            for (size_t t = 0; t < tokens; t++) {
                __m256 value = _mm256_set1_ps(x[t * BLOCK + c]);
#pragma GCC unroll 4
                for (size_t g = 0; g < groups; g++)
                    sum[t * groups + g] = _mm256_fmadd_ps(w[g], value, sum[t * groups + g]);
            }
        }
    }
#pragma GCC unroll 12
    for (size_t i = 0; i < groups * tokens; i++)
        _mm256_storeu_ps(out + (i % groups * a->n + first + i / groups) * LANES, sum[i]);
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
        case 5:
            multiply(p, step, groups, a, t, 5, out, pack);
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

void avx2_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F16);
}

void avx2_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_BF16);
}

void avx2_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F32);
}
