/* What the files of weight types share: their traits, and how blocks of 8 rows are packed (the
 * planes and heads of pack.h).
 *
 * Packing works on 32-bit words: word k of the same block of 8 rows side by side, so that shifts
 * and masks go for all rows, and 4 columns, at once. Hosts are little-endian, as GGUF is. */
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

static inline uint64_t quant_read_u64(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof value);
    return value;
}

static inline void quant_write_u64(uint8_t *p, uint64_t value)
{
    memcpy(p, &value, sizeof value);
}

/* n words (an even number) at byte `at` of each of 8 blocks, word after word: two rows and two
 * words at a time. Returns where it stopped. */
static inline uint8_t *quant_pack_words(const uint8_t *const rows[QUANT_LANES], size_t at, size_t n,
                                        uint8_t *out)
{
    enum { STEP = 4 * QUANT_LANES };

    for (size_t r = 0; r < QUANT_LANES; r += 2) {
        for (size_t k = 0; k < n; k += 2) {
            uint64_t a = quant_read_u64(rows[r] + at + 4 * k);
            uint64_t b = quant_read_u64(rows[r + 1] + at + 4 * k);
            quant_write_u64(out + k * STEP + 4 * r, (a & 0xFFFFFFFF) | b << 32);
            quant_write_u64(out + (k + 1) * STEP + 4 * r, a >> 32 | (b >> 32 << 32));
        }
    }
    return out + n * STEP;
}

/* The same, to be computed with. */
static inline void quant_load(const uint8_t *const rows[QUANT_LANES], size_t at, size_t n,
                              quant_words *words)
{
    quant_pack_words(rows, at, n, (uint8_t *)words);
}

/* The pack functions append to `out` and return where they stopped. */

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

/* In words that lie d apart: the upper of each two parts of `shift` bits of the first changes
 * places with the lower of the second. */
static inline void quant_swap(quant_words words[8], size_t d, unsigned shift)
{
    uint32_t lower = 0xFFFFFFFF / ((1u << shift) + 1);

    for (size_t i = 0; i < 8; i += 2 * d) {
        for (size_t k = i; k < i + d; k++) {
            for (size_t r = 0; r < QUANT_LANES; r++) {
                uint32_t differ = (words[k][r] >> shift ^ words[k + d][r]) & lower;
                words[k][r] ^= differ << shift;
                words[k + d][r] ^= differ;
            }
        }
    }
}

/* 32 bytes of each row, a byte a column, that hold nibbles, pairs or bits of 2, 4 or 8 parts of a
 * block, are read as planes of those parts: fields of a byte against words, transposed. */

static inline void quant_load_nibbles(const uint8_t *const rows[QUANT_LANES], size_t at,
                                      quant_words planes[8]) /* part i: from 4i */
{
    quant_load(rows, at, 8, planes);
    quant_swap(planes, 4, 4);
}

static inline void quant_load_pairs(const uint8_t *const rows[QUANT_LANES], size_t at,
                                    quant_words planes[8]) /* part i: i and 4 + i */
{
    quant_load(rows, at, 8, planes);
    quant_swap(planes, 2, 4);
    quant_swap(planes, 1, 2);
}

static inline void quant_load_bits(const uint8_t *const rows[QUANT_LANES], size_t at,
                                   quant_words planes[8]) /* part i: i */
{
    quant_load(rows, at, 8, planes);
    quant_swap(planes, 4, 4);
    quant_swap(planes, 2, 2);
    quant_swap(planes, 1, 1);
}

/* The two vectors of pairs of a part. */
static inline uint8_t *quant_pack_pairs(const quant_words planes[8], size_t part, uint8_t *out)
{
    out = quant_pack_plane(planes + part, 1, out);
    return quant_pack_plane(planes + 4 + part, 1, out);
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
