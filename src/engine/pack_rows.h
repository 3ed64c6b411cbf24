/* From blocks of rows to packs (pack.h): what both instruction sets share. Packing is transposing:
 * the same 32-bit word of 8 rows, which the file has far apart, comes to lie side by side; shifts and
 * masks then go for all rows, and 4 columns, at once. Loops are unrolled: the words live in
 * registers.
 *
 * The file that includes this has defined INLINE, and
 *   words, WORDS_ROWS   a vector of a word of 4 or 8 rows
 *   words_read          16 bytes of each of WORDS_ROWS / 4 rows, 4 rows apart
 *   words_zip           two vectors, in each 16 bytes a0 a1 a2 a3 and b0 b1 b2 b3, become
 *                       a0 b0 a1 b1 and a2 b2 a3 b3
 *   words_store_bytes   of a word of 8 rows: the first byte of all to `out`, the second one `gap`
 *                       bytes on, ...
 *   words_store_shorts  the same with its two halves */
#ifndef FADER_ENGINE_PACK_ROWS_H
#define FADER_ENGINE_PACK_ROWS_H

#include <stddef.h>
#include <string.h>

#include "engine/quant_impl.h"

enum { LANES = KERNEL_LANES, VECTORS = LANES / WORDS_ROWS, PLANE = 4 * LANES };

/* Byte `at` of a row of the blocks. */
INLINE const uint8_t *row_at(struct pack_rows rows, size_t r, size_t at)
{
    return rows.first + r * rows.stride + at;
}

/* n words (4 or 8) at byte `at` of the rows of vector number v. */
INLINE void load(struct pack_rows rows, size_t v, size_t at, size_t n, words *w)
{
#pragma GCC unroll 2
    for (size_t k = 0; k < n; k += 4) {
        const uint8_t *p = row_at(rows, WORDS_ROWS * v, at + 4 * k);
        words a = words_read(p, rows.stride), b = words_read(p + rows.stride, rows.stride);
        words c = words_read(p + 2 * rows.stride, rows.stride);
        words d = words_read(p + 3 * rows.stride, rows.stride);
        words_zip(&a, &c);
        words_zip(&b, &d);
        words_zip(&a, &b);
        words_zip(&c, &d);
        w[k] = a;
        w[k + 1] = b;
        w[k + 2] = c;
        w[k + 3] = d;
    }
}

/* n words become vector v's share of as many planes, `gap` bytes apart. */
INLINE void store(const words *w, size_t n, size_t v, uint8_t *out, size_t gap)
{
#pragma GCC unroll 8
    for (size_t k = 0; k < n; k++)
        memcpy(out + k * gap + v * sizeof *w, &w[k], sizeof *w);
}

/* In words that lie `apart`: the upper of each two fields of so many bits of the first changes places
 * with the lower of the second. */
INLINE void swap(words w[8], size_t apart, unsigned bits)
{
    const uint32_t lower = 0xFFFFFFFF / ((1u << bits) + 1);

#pragma GCC unroll 8
    for (size_t i = 0; i < 4; i++) {
        size_t k = i / apart * 2 * apart + i % apart;
        words differ = (w[k] >> bits ^ w[k + apart]) & lower;
        w[k] ^= differ << bits;
        w[k + apart] ^= differ;
    }
}

/* ---- what packs consist of ------------------------------------------------------------------- */

/* From one part of 32 columns to the next, in a block of 256. */
INLINE size_t gap_of(enum pack pack)
{
    const struct pack_traits *t = &pack_traits[pack];

    return (t->bytes - (t->has_min ? 4u : 2u) * LANES) / (t->columns / KERNEL_BLOCK);
}

/* 16 bits of each row. Returns where it stopped. */
INLINE uint8_t *pack_half(struct pack_rows rows, size_t at, uint8_t *out)
{
#pragma GCC unroll 8
    for (size_t r = 0; r < LANES; r++)
        memcpy(out + 2 * r, row_at(rows, r, at), 2);
    return out + 2 * LANES;
}

/* 32 bits of each row: all of the first 16, all of the others. Returns where it stopped. */
INLINE uint8_t *pack_two_halves(struct pack_rows rows, size_t at, uint8_t *out)
{
    words w[4], two[VECTORS];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, 4, w);
        two[v] = w[0];
    }
    words_store_shorts(two, out, 2 * LANES);
    return out + 4 * LANES;
}

/* n words of each row, as they are. */
INLINE void pack_words(struct pack_rows rows, size_t at, size_t n, uint8_t *out)
{
    words w[8];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, n, w);
        store(w, n, v, out, PLANE);
    }
}

/* 32 bytes of each row, a byte a column, hold nibbles, pairs or bits of 2, 4 or 8 parts, whose planes
 * lie `gap` apart: fields of a byte change places with words. */

INLINE void pack_nibbles(struct pack_rows rows, size_t at, uint8_t *out, size_t gap)
{
    words w[8];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, 8, w);
        swap(w, 4, 4);
        store(w, 4, v, out, PLANE);
        store(w + 4, 4, v, out + gap, PLANE);
    }
}

INLINE void pack_pairs(struct pack_rows rows, size_t at, uint8_t *out, size_t gap)
{
    words w[8];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, 8, w);
        swap(w, 2, 4);
        swap(w, 1, 2);
        store(w, 4, v, out, gap);
        store(w + 4, 4, v, out + PLANE, gap);
    }
}

INLINE void pack_bits(struct pack_rows rows, size_t at, uint8_t *out, size_t gap)
{
    words w[8];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, 8, w);
        swap(w, 4, 4);
        swap(w, 2, 2);
        swap(w, 1, 1);
        store(w, 8, v, out, gap);
    }
}

/* Two scales for each of 8 parts, 16 bytes in all. */
INLINE void pack_scale_pairs(struct pack_rows rows, size_t at, uint8_t *out, size_t gap)
{
    words w[4], s[4][VECTORS];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, 4, w);
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++)
            s[k][v] = w[k];
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++)
        words_store_shorts(s[k], out + 2 * k * gap, gap);
}

/* Takes 32 from four bytes that are below 64. */
INLINE words minus_32(words bytes)
{
    return ((bytes | 0x80808080) - 0x20202020) ^ 0x80808080;
}

/* ---- blocks of 32 ---------------------------------------------------------------------------- */

INLINE void pack_q4_0(struct pack_rows rows, uint8_t *out)
{
    out = pack_half(rows, offsetof(struct block_q4_0, d), out);
    pack_words(rows, offsetof(struct block_q4_0, q), 4, out);
}

INLINE void pack_q4_1(struct pack_rows rows, uint8_t *out)
{
    out = pack_two_halves(rows, offsetof(struct block_q4_1, d), out);
    pack_words(rows, offsetof(struct block_q4_1, q), 4, out);
}

/* Bits of `w` under `mask` change places with those `shift` further up. */
INLINE words swap_bits(words w, unsigned shift, uint32_t mask)
{
    words differ = (w >> shift ^ w) & mask;

    return w ^ differ ^ differ << shift;
}

/* From bit 4j + c of a word to bit j of its byte c, that is 8c + j. Each step exchanges two binary
 * digits of the bits' numbers. */
INLINE uint8_t *pack_high(struct pack_rows rows, size_t at, uint8_t *out)
{
    words w[4];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, at, 4, w);
        w[0] = swap_bits(w[0], 3, 0x0A0A0A0A);
        w[0] = swap_bits(w[0], 6, 0x00CC00CC);
        w[0] = swap_bits(w[0], 12, 0x0000F0F0);
        w[0] = swap_bits(w[0], 8, 0x0000FF00);
        store(w, 1, v, out, 0);
    }
    return out + PLANE;
}

INLINE void pack_q5_0(struct pack_rows rows, uint8_t *out)
{
    out = pack_half(rows, offsetof(struct block_q5_0, d), out);
    out = pack_high(rows, offsetof(struct block_q5_0, high), out);
    pack_words(rows, offsetof(struct block_q5_0, q), 4, out);
}

INLINE void pack_q5_1(struct pack_rows rows, uint8_t *out)
{
    out = pack_two_halves(rows, offsetof(struct block_q5_1, d), out);
    out = pack_high(rows, offsetof(struct block_q5_1, high), out);
    pack_words(rows, offsetof(struct block_q5_1, q), 4, out);
}

INLINE void pack_q8_0(struct pack_rows rows, uint8_t *out)
{
    out = pack_half(rows, offsetof(struct block_q8_0, d), out);
    pack_words(rows, offsetof(struct block_q8_0, q), 8, out);
}

INLINE void pack_iq4_nl(struct pack_rows rows, uint8_t *out)
{
    out = pack_half(rows, offsetof(struct block_iq4_nl, d), out);
    pack_words(rows, offsetof(struct block_iq4_nl, q), 4, out);
}

/* ---- blocks of 256 --------------------------------------------------------------------------- */

INLINE void pack_q2_k(struct pack_rows rows, uint8_t *out)
{
    const size_t gap = gap_of(PACK_Q2_K), pairs = 2 * LANES;

    out = pack_half(rows, offsetof(struct block_q2_k, d), out);
    out = pack_half(rows, offsetof(struct block_q2_k, dmin), out);
    pack_scale_pairs(rows, offsetof(struct block_q2_k, scales), out, gap);
    for (size_t half = 0; half < 2; half++)
        pack_pairs(rows, offsetof(struct block_q2_k, q) + 32 * half, out + 4 * half * gap + pairs,
                   gap);
}

INLINE void pack_q3_k(struct pack_rows rows, uint8_t *out)
{
    const size_t gap = gap_of(PACK_Q3_K), bits = 2 * LANES, pairs = bits + PLANE;
    words w[4], s[4][VECTORS]; /* two parts each */

    out = pack_half(rows, offsetof(struct block_q3_k, d), out);
#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        /* Three words of scales; in front of them the last codes. */
        load(rows, v, offsetof(struct block_q3_k, scales) - 4, 4, w);
#pragma GCC unroll 4
        for (unsigned k = 0; k < 4; k++) {
            words low = w[1 + k % 2] >> k / 2 * 4 & 0x0F0F0F0F;
            s[k][v] = minus_32(low | (w[3] >> 2 * k & 0x03030303) << 4);
        }
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++)
        words_store_shorts(s[k], out + 2 * k * gap, gap);
    pack_bits(rows, offsetof(struct block_q3_k, high), out + bits, gap);
    for (size_t half = 0; half < 2; half++)
        pack_pairs(rows, offsetof(struct block_q3_k, low) + 32 * half, out + 4 * half * gap + pairs,
                   gap);
}

/* What Q4_K and Q5_K have in common. Each part's nibbles come behind `skip` bytes of it. */
INLINE void pack_q45_k(struct pack_rows rows, size_t q, size_t skip, size_t gap, uint8_t *out)
{
    words w[4], head[VECTORS], scale[2][VECTORS], min[2][VECTORS]; /* of parts 0 - 3, 4 - 7 */

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, 0, 4, w); /* d and dmin, and three words of scales */
        head[v] = w[0];
        scale[0][v] = w[1] & 0x3F3F3F3F;
        scale[1][v] = (w[3] & 0x0F0F0F0F) | (w[1] >> 2 & 0x30303030);
        min[0][v] = w[2] & 0x3F3F3F3F;
        min[1][v] = (w[3] >> 4 & 0x0F0F0F0F) | (w[2] >> 2 & 0x30303030);
    }
    words_store_shorts(head, out, 2 * LANES);
    out += 4 * LANES;
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
        words_store_bytes(scale[i], out + 4 * i * gap, gap);
        words_store_bytes(min[i], out + 4 * i * gap + LANES, gap);
    }
    for (size_t part = 0; part < 8; part += 2)
        pack_nibbles(rows, q + 16 * part, out + part * gap + skip, gap);
}

INLINE void pack_q4_k(struct pack_rows rows, uint8_t *out)
{
    pack_q45_k(rows, offsetof(struct block_q4_k, q), 2 * LANES, gap_of(PACK_Q4_K), out);
}

INLINE void pack_q5_k(struct pack_rows rows, uint8_t *out)
{
    const size_t gap = gap_of(PACK_Q5_K), bits = 2 * LANES;

    pack_q45_k(rows, offsetof(struct block_q5_k, q), bits + PLANE, gap, out);
    pack_bits(rows, offsetof(struct block_q5_k, high), out + 4 * LANES + bits, gap);
}

/* Of a half of four parts, the first 32 bytes of `low` have parts 0 and 2, the last ones 1 and 3. */
INLINE void pack_q6_k(struct pack_rows rows, uint8_t *out)
{
    const size_t gap = gap_of(PACK_Q6_K), pairs = 2 * LANES, nibbles = pairs + 2 * PLANE;

    out = pack_half(rows, offsetof(struct block_q6_k, d), out);
    pack_scale_pairs(rows, offsetof(struct block_q6_k, scales), out, gap);
    for (size_t half = 0; half < 2; half++, out += 4 * gap) {
        size_t low = offsetof(struct block_q6_k, low) + 64 * half;
        pack_pairs(rows, offsetof(struct block_q6_k, high) + 32 * half, out + pairs, gap);
        pack_nibbles(rows, low, out + nibbles, 2 * gap);
        pack_nibbles(rows, low + 32, out + gap + nibbles, 2 * gap);
    }
}

INLINE void pack_iq4_xs(struct pack_rows rows, uint8_t *out)
{
    const size_t gap = gap_of(PACK_IQ4_XS);
    words w[4], even[VECTORS], odd[VECTORS]; /* parts */

    out = pack_half(rows, offsetof(struct block_iq4_xs, d), out);
#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, 0, 4, w);  /* d and scales_high, scales_low; the rest are codes */
        words high = w[0] >> 16; /* spread to two parts a byte, as scales_low has them */
        high = (high | high << 8) & 0x00FF00FF;
        high = (high | high << 4) & 0x0F0F0F0F;
        even[v] = minus_32((w[1] & 0x0F0F0F0F) | (high << 4 & 0x30303030));
        odd[v] = minus_32((w[1] >> 4 & 0x0F0F0F0F) | (high << 2 & 0x30303030));
    }
    words_store_bytes(even, out, 2 * gap);
    words_store_bytes(odd, out + gap, 2 * gap);
    for (size_t part = 0; part < 8; part++, out += gap)
        pack_words(rows, offsetof(struct block_iq4_xs, q) + 16 * part, 4, out + LANES);
}

/* ---- floats: 16 bytes of a row at once ------------------------------------------------------- */

INLINE void pack_floats(struct pack_rows rows, uint8_t *out)
{
    words w[4];

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, 0, 4, w);
        store(w, 4, v, out, rows.gap);
    }
}

INLINE void pack_halves(struct pack_rows rows, uint8_t *out)
{
    words w[4], two[4][VECTORS]; /* columns */

#pragma GCC unroll 2
    for (size_t v = 0; v < VECTORS; v++) {
        load(rows, v, 0, 4, w);
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++)
            two[k][v] = w[k];
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++)
        words_store_shorts(two[k], out + 2 * k * rows.gap, rows.gap);
}

/* ---- n blocks -------------------------------------------------------------------------------- */

/* What lies ahead is fetched into L2: as many bytes as are read. */
INLINE void pack_each(void (*one)(struct pack_rows rows, uint8_t *out), size_t bytes,
                      size_t out_bytes, struct pack_rows rows, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
#pragma GCC unroll 32
        for (size_t k = 0; k < LANES * bytes; k += 64)
            __builtin_prefetch(rows.ahead + k, 0, 2);
        one(rows, out);
        rows.first += bytes;
        rows.ahead += LANES * bytes;
        out += out_bytes;
    }
}

#define FOR_PACKS_OF_ROWS(X)                                                                       \
    X(Q4_0, q4_0)                                                                                  \
    X(Q4_1, q4_1)                                                                                  \
    X(Q5_0, q5_0)                                                                                  \
    X(Q5_1, q5_1)                                                                                  \
    X(Q8_0, q8_0)                                                                                  \
    X(IQ4_NL, iq4_nl)                                                                              \
    X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k) X(Q3_K, q3_k) X(Q2_K, q2_k) X(IQ4_XS, iq4_xs)

#define PACK_BLOCKS(pack, name)                                                                    \
    static void pack_blocks_##name(struct pack_rows rows, size_t n, uint8_t *out)                  \
    {                                                                                              \
        pack_each(pack_##name, sizeof(struct block_##name), pack_traits[PACK_##pack].bytes, rows,  \
                  n, out);                                                                         \
    }
FOR_PACKS_OF_ROWS(PACK_BLOCKS)

static void pack_blocks_halves(struct pack_rows rows, size_t n, uint8_t *out)
{
    pack_each(pack_halves, 16, 8 * rows.gap, rows, n, out);
}

static void pack_blocks_floats(struct pack_rows rows, size_t n, uint8_t *out)
{
    pack_each(pack_floats, 16, 4 * rows.gap, rows, n, out);
}

#define PACK_ENTRY(pack, name) [PACK_##pack] = pack_blocks_##name,

/* For the set's table. */
#define PACK_ENTRIES                                                                               \
    FOR_PACKS_OF_ROWS(PACK_ENTRY)                                                                  \
    [PACK_F16] = pack_blocks_halves, [PACK_BF16] = pack_blocks_halves,                             \
    [PACK_F32] = pack_blocks_floats

#endif
