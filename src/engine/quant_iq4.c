/* IQ4_NL, IQ4_XS: nibbles that stand for 16 fixed values. */
#include "config.h"

#include "engine/quant_impl.h"

/* IQ4_XS has a scale for each 32: 4 bits in scales_low, 2 in scales_high. */
enum { BLOCK = 32, SUPER = 256 };

static void dequantize_block(float d, const uint8_t *q, float *dst)
{
    for (size_t i = 0; i < BLOCK / 2; i++) {
        dst[i] = d * (float)pack_iq4_value[q[i] & 15];
        dst[i + BLOCK / 2] = d * (float)pack_iq4_value[q[i] >> 4];
    }
}

static void dequantize_iq4_nl(const void *src, float *dst, size_t n)
{
    struct block_iq4_nl b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dequantize_block(quant_f16_to_f32(b.d), b.q, dst + i * BLOCK);
    }
}

static int scale_at(const struct block_iq4_xs *b, size_t i)
{
    return ((b->scales_low[i / 2] >> i % 2 * 4 & 15) | (b->scales_high >> 2 * i & 3) << 4) - 32;
}

static void dequantize_iq4_xs(const void *src, float *dst, size_t n)
{
    struct block_iq4_xs b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        size_t part = i % (SUPER / BLOCK);
        if (part == 0)
            memcpy(&b, (const char *)src + i / (SUPER / BLOCK) * sizeof b, sizeof b);
        float d = quant_f16_to_f32(b.d) * (float)scale_at(&b, part);
        dequantize_block(d, b.q + part * (BLOCK / 2), dst + i * BLOCK);
    }
}

const struct quant_traits quant_iq4_nl = {
    QUANT_IQ4_NL, "IQ4_NL", BLOCK, sizeof(struct block_iq4_nl), dequantize_iq4_nl, PACK_IQ4_NL};
const struct quant_traits quant_iq4_xs = {
    QUANT_IQ4_XS, "IQ4_XS", SUPER, sizeof(struct block_iq4_xs), dequantize_iq4_xs, PACK_IQ4_XS};
