/* Kernels for AVX-512: matrices of floats. Like kernels_scalar.c, each sum has one accumulator to
 * which columns are added in ascending order; what makes it fast is how many sums are under way at
 * once. A column of a whole chunk is two registers; of less, AVX2's kernels take care. */
#include "config.h"

#include "engine/kernels_avx2.h"
#include "engine/kernels_avx512.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES = KERNEL_LANES,
    BLOCK = KERNEL_BLOCK,
    WIDE = 2 * KERNEL_LANES, /* rows in a register: two make a column */
    TILE_TOKENS = 12,        /* 24 sums, the weights and x fill the registers */
    SPAN = 8,                /* blocks that are widened at once */
    PREFETCH = 512           /* bytes ahead */
};

/* Floats of a chunk: where they are read, and where they are left as f32, or NULL. */
struct weights {
    const uint8_t *p;
    float *wide;
};

INLINE __m512 load_half_column(const uint8_t *p, size_t half, enum pack pack)
{
    if (pack == PACK_F32)
        return _mm512_loadu_ps(p + half * WIDE * 4);
    __m256i words = _mm256_loadu_si256((const __m256i *)(p + half * WIDE * 2));
    if (pack == PACK_F16)
        return _mm512_cvtph_ps(words);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

/* The sums of a token in two groups. */
INLINE __m512 load_sums(const float *group, const float *next)
{
    __m256d low = _mm256_castps_pd(_mm256_loadu_ps(group));

    return _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512(low),
                                               _mm256_castps_pd(_mm256_loadu_ps(next)), 1));
}

INLINE void store_sums(float *group, float *next, __m512 sums)
{
    __m512d both = _mm512_castps_pd(sums);

    _mm256_storeu_ps(group, _mm512_castps512_ps256(sums));
    _mm256_storeu_ps(next, _mm256_castpd_ps(_mm512_extractf64x4_pd(both, 1)));
}

/* Blocks b .. end - 1 of a chunk times `tokens` (a constant) tokens from `first` on. */
INLINE void multiply(struct weights w, const struct panel *a, size_t b, size_t end, size_t first,
                     size_t tokens, float *out, enum pack pack)
{
    const size_t column = KERNEL_CHUNK * pack_traits[pack].bytes, group = a->n * LANES;
    const float *x = a->f32 + (b * a->n + first) * BLOCK;
    float *sums = out + first * LANES;
    __m512 low[TILE_TOKENS], high[TILE_TOKENS];

#pragma GCC unroll 12
    for (size_t t = 0; t < tokens; t++, sums += LANES) {
        low[t] = b == 0 ? _mm512_setzero_ps() : load_sums(sums, sums + group);
        high[t] = b == 0 ? _mm512_setzero_ps() : load_sums(sums + 2 * group, sums + 3 * group);
    }
    for (; b < end; b++, x += a->n * BLOCK) {
        for (size_t c = 0; c < BLOCK; c++, w.p += column) {
            __m512 w0 = load_half_column(w.p, 0, pack), w1 = load_half_column(w.p, 1, pack);
            for (size_t i = 0; i < column; i += 64)
                _mm_prefetch((const char *)(w.p + PREFETCH + i), _MM_HINT_T0);
            if (w.wide != NULL) {
                _mm512_storeu_ps(w.wide, w0);
                _mm512_storeu_ps(w.wide + WIDE, w1);
                w.wide += 2 * WIDE;
            }
#pragma GCC unroll 12
            for (size_t t = 0; t < tokens; t++) {
                __m512 value = _mm512_set1_ps(x[t * BLOCK + c]);
                low[t] = _mm512_fmadd_ps(w0, value, low[t]);
                high[t] = _mm512_fmadd_ps(w1, value, high[t]);
            }
        }
    }
    sums = out + first * LANES;
#pragma GCC unroll 12
    for (size_t t = 0; t < tokens; t++, sums += LANES) {
        store_sums(sums, sums + group, low[t]);
        store_sums(sums + 2 * group, sums + 3 * group, high[t]);
    }
}

/* Tokens first .. first + n - 1, TILE_TOKENS at most. */
INLINE void multiply_tile(struct weights w, const struct panel *a, size_t b, size_t end,
                          size_t first, size_t n, float *out, enum pack pack)
{
#define TILE(tokens)                                                                               \
    case tokens:                                                                                   \
        multiply(w, a, b, end, first, tokens, out, pack);                                          \
        break;
    switch (n) {
        TILE(1)
        TILE(2)
        TILE(3)
        TILE(4)
        TILE(5)
        TILE(6)
        TILE(7)
        TILE(8)
        TILE(9)
        TILE(10)
        TILE(11)
        TILE(12)
    }
#undef TILE
}

static void multiply_f32_tile(const uint8_t *p, const struct panel *a, size_t b, size_t end,
                              size_t first, size_t n, float *out)
{
    multiply_tile((struct weights){p, NULL}, a, b, end, first, n, out, PACK_F32);
}

/* More tokens than a tile takes, in tiles that differ by one at most. To widen halves takes the units
 * that multiply: the first tile leaves them as f32 for the others. */
INLINE void multiply_tiles(const uint8_t *p, const struct panel *a, float *out, enum pack pack)
{
    const size_t blocks = a->cols / BLOCK, bytes = BLOCK * KERNEL_CHUNK * pack_traits[pack].bytes;
    _Alignas(64) float wide[SPAN * BLOCK * KERNEL_CHUNK * LANES];
    struct weights as_given = {p, pack == PACK_F32 ? NULL : wide};

    for (size_t b = 0, end; b < blocks; b = end, as_given.p += SPAN * bytes) {
        size_t tiles = (a->n + TILE_TOKENS - 1) / TILE_TOKENS, n = a->n / tiles;
        const uint8_t *f32 = pack == PACK_F32 ? as_given.p : (const uint8_t *)wide;
        end = b + SPAN < blocks ? b + SPAN : blocks;
        multiply_tile(as_given, a, b, end, 0, n, out, pack);
        for (size_t t = n; t < a->n; t += n) {
            n = (a->n - t) / --tiles;
            multiply_f32_tile(f32, a, b, end, t, n, out);
        }
    }
}

INLINE void matmul_floats(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                          enum pack pack)
{
    const size_t bytes = KERNEL_CHUNK * a->cols * pack_traits[pack].bytes;

    for (; n_groups >= KERNEL_CHUNK; n_groups -= KERNEL_CHUNK) {
        if (a->n > TILE_TOKENS)
            multiply_tiles(groups, a, out, pack);
        else
            multiply_tile((struct weights){groups, NULL}, a, 0, a->cols / BLOCK, 0, a->n, out,
                          pack);
        groups += bytes;
        out += KERNEL_CHUNK * a->n * LANES;
    }
    if (n_groups > 0)
        kernels_avx2.matmul[pack](groups, n_groups, a, out);
}

void avx512_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F16);
}

void avx512_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_BF16);
}

void avx512_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F32);
}
