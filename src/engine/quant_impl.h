/* What the files of weight types share: their traits, and how blocks of 8 rows are packed (the
 * planes and heads of pack.h).
 *
 * Packing works on 32-bit words: word k of the same block of 8 rows side by side, so that shifts and
 * masks go for all rows, and 4 columns, at once. Hosts are little-endian, as GGUF is. */
#ifndef FADER_ENGINE_QUANT_IMPL_H
#define FADER_ENGINE_QUANT_IMPL_H

#include "engine/pack.h"
#include "engine/quant.h"

extern const struct quant_traits quant_f32, quant_f16, quant_bf16;
extern const struct quant_traits quant_q8_0, quant_q4_0, quant_q4_1, quant_q5_0, quant_q5_1;
extern const struct quant_traits quant_q2_k, quant_q3_k, quant_q4_k, quant_q5_k, quant_q6_k;
extern const struct quant_traits quant_iq4_nl, quant_iq4_xs;

enum { QUANT_LANES = KERNEL_LANES };

typedef uint32_t quant_words[QUANT_LANES]; /* the same word of 8 rows */

/* Words at byte `at` of 8 blocks. */
static inline void quant_load(const uint8_t *const rows[QUANT_LANES], size_t at, size_t n,
                              quant_words *words)
{
    for (size_t r = 0; r < QUANT_LANES; r++) {
        for (size_t k = 0; k < n; k++)
            memcpy(&words[k][r], rows[r] + at + 4 * k, 4);
    }
}

/* The pack functions append to `out` and return where they stopped. */

/* Words of the blocks as they are. */
static inline uint8_t *quant_pack_words(const uint8_t *const rows[QUANT_LANES], size_t at, size_t n,
                                        uint8_t *out)
{
    for (size_t r = 0; r < QUANT_LANES; r++) {
        for (size_t k = 0; k < n; k++)
            memcpy(out + 4 * (QUANT_LANES * k + r), rows[r] + at + 4 * k, 4);
    }
    return out + 4 * QUANT_LANES * n;
}

static inline uint8_t *quant_pack_half(const uint8_t *const rows[QUANT_LANES], size_t at,
                                       uint8_t *out)
{
    for (size_t r = 0; r < QUANT_LANES; r++)
        memcpy(out + 2 * r, rows[r] + at, 2);
    return out + 2 * QUANT_LANES;
}

static inline uint8_t *quant_pack_plane(const quant_words *words, size_t n, uint8_t *out)
{
    memcpy(out, words, n * sizeof *words);
    return out + n * sizeof *words;
}

/* The planes of 32 columns, from a byte a column (8 words), of which the lowest bits count after
 * they have been moved right by `shift`. */

static inline uint8_t *quant_pack_bits(const quant_words q[8], unsigned shift, uint8_t *out)
{
    quant_words plane = {0};

    for (size_t j = 0; j < 8; j++) {
        for (size_t r = 0; r < QUANT_LANES; r++)
            plane[r] |= (q[j][r] >> shift & 0x01010101) << j;
    }
    return quant_pack_plane(&plane, 1, out);
}

static inline uint8_t *quant_pack_pairs(const quant_words q[8], unsigned shift, uint8_t *out)
{
    quant_words planes[2] = {{0}};

    for (size_t j = 0; j < 8; j++) {
        for (size_t r = 0; r < QUANT_LANES; r++)
            planes[j / 4][r] |= (q[j][r] >> shift & 0x03030303) << j % 4 * 2;
    }
    return quant_pack_plane(planes, 2, out);
}

static inline uint8_t *quant_pack_nibbles(const quant_words q[8], unsigned shift, uint8_t *out)
{
    quant_words planes[4];

    for (size_t j = 0; j < 4; j++) {
        for (size_t r = 0; r < QUANT_LANES; r++)
            planes[j][r] = (q[j][r] >> shift & 0x0F0F0F0F) | (q[j + 4][r] >> shift & 0x0F0F0F0F)
                                                                 << 4;
    }
    return quant_pack_plane(planes, 4, out);
}

/* Byte (or 16 bits) number `i` of each row's scales. */

static inline uint8_t *quant_pack_scale(const quant_words *scales, size_t i, uint8_t *out)
{
    for (size_t r = 0; r < QUANT_LANES; r++)
        out[r] = (uint8_t)(scales[i / 4][r] >> i % 4 * 8);
    return out + QUANT_LANES;
}

static inline uint8_t *quant_pack_scale_pair(const quant_words *scales, size_t i, uint8_t *out)
{
    for (size_t r = 0; r < QUANT_LANES; r++) {
        uint16_t pair = (uint16_t)(scales[i / 2][r] >> i % 2 * 16);
        memcpy(out + 2 * r, &pair, sizeof pair);
    }
    return out + 2 * QUANT_LANES;
}

/* Takes 32 from four bytes that are below 64. */
static inline uint32_t quant_minus_32(uint32_t bytes)
{
    return ((bytes | 0x80808080) - 0x20202020) ^ 0x80808080;
}

#endif
