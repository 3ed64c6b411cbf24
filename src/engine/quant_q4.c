/* Q4_0, Q4_1, Q5_0, Q5_1: blocks of 32, a scale d and perhaps a minimum m in halves. Low nibbles
 * are the first 16 elements, high ones the others, which is how packs have them too; bit i of
 * `high` is the fifth bit of element i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 32 };

struct block_q4_0 { /* d * (q - 8) */
    uint16_t d;
    uint8_t q[BLOCK / 2];
};
struct block_q4_1 { /* d * q + m */
    uint16_t d, m;
    uint8_t q[BLOCK / 2];
};
struct block_q5_0 { /* d * (q - 16) */
    uint16_t d;
    uint8_t high[4];
    uint8_t q[BLOCK / 2];
};
struct block_q5_1 { /* d * q + m */
    uint16_t d, m;
    uint8_t high[4];
    uint8_t q[BLOCK / 2];
};

_Static_assert(sizeof(struct block_q4_0) == 18, "as in the file");
_Static_assert(sizeof(struct block_q4_1) == 20, "as in the file");
_Static_assert(sizeof(struct block_q5_0) == 22, "as in the file");
_Static_assert(sizeof(struct block_q5_1) == 24, "as in the file");

static int code_at(const uint8_t *q, const uint8_t *high, size_t i)
{
    int low = i < BLOCK / 2 ? q[i] & 15 : q[i - BLOCK / 2] >> 4;

    return high == NULL ? low : low | (high[i / 8] >> i % 8 & 1) << 4;
}

static void dequantize_block(float d, int offset, const uint8_t *q, const uint8_t *high, float *dst)
{
    for (size_t i = 0; i < BLOCK; i++)
        dst[i] = d * (float)(code_at(q, high, i) - offset);
}

static void dequantize_block_min(float d, float m, const uint8_t *q, const uint8_t *high,
                                 float *dst)
{
    for (size_t i = 0; i < BLOCK; i++)
        dst[i] = d * (float)code_at(q, high, i) + m;
}

static void dequantize_q4_0(const void *src, float *dst, size_t n)
{
    struct block_q4_0 b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dequantize_block(quant_f16_to_f32(b.d), 8, b.q, NULL, dst + i * BLOCK);
    }
}

static void dequantize_q4_1(const void *src, float *dst, size_t n)
{
    struct block_q4_1 b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dequantize_block_min(quant_f16_to_f32(b.d), quant_f16_to_f32(b.m), b.q, NULL,
                             dst + i * BLOCK);
    }
}

static void dequantize_q5_0(const void *src, float *dst, size_t n)
{
    struct block_q5_0 b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dequantize_block(quant_f16_to_f32(b.d), 16, b.q, b.high, dst + i * BLOCK);
    }
}

static void dequantize_q5_1(const void *src, float *dst, size_t n)
{
    struct block_q5_1 b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dequantize_block_min(quant_f16_to_f32(b.d), quant_f16_to_f32(b.m), b.q, b.high,
                             dst + i * BLOCK);
    }
}

/* ---- packing -------------------------------------------------------------------------------- */

static void pack_q4_0(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    out = quant_pack_half(rows, offsetof(struct block_q4_0, d), out);
    quant_pack_words(rows, offsetof(struct block_q4_0, q), 4, out);
}

static void pack_q4_1(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    out = quant_pack_half(rows, offsetof(struct block_q4_1, d), out);
    out = quant_pack_half(rows, offsetof(struct block_q4_1, m), out);
    quant_pack_words(rows, offsetof(struct block_q4_1, q), 4, out);
}

/* Bits of `words` under `mask` change places with those `shift` further up. */
static uint64_t swap_bits(uint64_t words, unsigned shift, uint64_t mask)
{
    uint64_t differ = (words >> shift ^ words) & mask;

    return words ^ differ ^ differ << shift;
}

/* From bit 4j + c of a word to bit j of its byte c, that is 8c + j. Each step exchanges two binary
 * digits of the bits' numbers, in the words of two rows. */
static uint8_t *pack_high(const uint8_t *const rows[QUANT_LANES], size_t at, uint8_t *out)
{
    for (size_t r = 0; r < QUANT_LANES; r += 2, out += 8) {
        uint32_t word[2];
        memcpy(&word[0], rows[r] + at, 4);
        memcpy(&word[1], rows[r + 1] + at, 4);
        uint64_t both = word[0] | (uint64_t)word[1] << 32;
        both = swap_bits(both, 3, 0x0A0A0A0A0A0A0A0A);
        both = swap_bits(both, 6, 0x00CC00CC00CC00CC);
        both = swap_bits(both, 12, 0x0000F0F00000F0F0);
        quant_write_u64(out, swap_bits(both, 8, 0x0000FF000000FF00));
    }
    return out;
}

static void pack_q5_0(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    out = quant_pack_half(rows, offsetof(struct block_q5_0, d), out);
    out = pack_high(rows, offsetof(struct block_q5_0, high), out);
    quant_pack_words(rows, offsetof(struct block_q5_0, q), 4, out);
}

static void pack_q5_1(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    out = quant_pack_half(rows, offsetof(struct block_q5_1, d), out);
    out = quant_pack_half(rows, offsetof(struct block_q5_1, m), out);
    out = pack_high(rows, offsetof(struct block_q5_1, high), out);
    quant_pack_words(rows, offsetof(struct block_q5_1, q), 4, out);
}

const struct quant_traits quant_q4_0 = {
    QUANT_Q4_0, "Q4_0", BLOCK, sizeof(struct block_q4_0), dequantize_q4_0, PACK_Q4_0, pack_q4_0};
const struct quant_traits quant_q4_1 = {
    QUANT_Q4_1, "Q4_1", BLOCK, sizeof(struct block_q4_1), dequantize_q4_1, PACK_Q4_1, pack_q4_1};
const struct quant_traits quant_q5_0 = {
    QUANT_Q5_0, "Q5_0", BLOCK, sizeof(struct block_q5_0), dequantize_q5_0, PACK_Q5_0, pack_q5_0};
const struct quant_traits quant_q5_1 = {
    QUANT_Q5_1, "Q5_1", BLOCK, sizeof(struct block_q5_1), dequantize_q5_1, PACK_Q5_1, pack_q5_1};
