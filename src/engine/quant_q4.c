/* Q4_0, Q4_1, Q5_0, Q5_1: blocks of 32, a scale d and perhaps a minimum m in halves. Low nibbles
 * are the first 16 elements, high ones the others, which is how packs have them too; bit i of
 * `high` is the fifth bit of element i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 32 };

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

const struct quant_traits quant_q4_0 = {QUANT_Q4_0,      "Q4_0",   BLOCK, sizeof(struct block_q4_0),
                                        dequantize_q4_0, PACK_Q4_0};
const struct quant_traits quant_q4_1 = {QUANT_Q4_1,      "Q4_1",   BLOCK, sizeof(struct block_q4_1),
                                        dequantize_q4_1, PACK_Q4_1};
const struct quant_traits quant_q5_0 = {QUANT_Q5_0,      "Q5_0",   BLOCK, sizeof(struct block_q5_0),
                                        dequantize_q5_0, PACK_Q5_0};
const struct quant_traits quant_q5_1 = {QUANT_Q5_1,      "Q5_1",   BLOCK, sizeof(struct block_q5_1),
                                        dequantize_q5_1, PACK_Q5_1};
