/* Q3_K: blocks of 256 = 8 parts of 32, a scale of 6 bits for each 16. Bits 2i and 2i + 1 of a byte
 * of `low` belong to part i of its half of the block; bit i of byte c of `high` is the third bit of
 * element c of part i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

/* The low 4 bits of scales 0 - 7 are the low nibbles of the first 8 bytes, those of 8 - 15 the high
 * ones; the upper bits of scale i are pair i / 4 of byte 8 + i % 4. */
static int scale_at(const uint8_t *s, size_t i)
{
    return ((s[i % 8] >> i / 8 * 4 & 15) | (s[8 + i % 4] >> i / 4 * 2 & 3) << 4) - 32;
}

static void dequantize(const void *src, float *dst, size_t n)
{
    struct block_q3_k b;

    for (size_t i = 0; i < n / PART; i++) {
        size_t part = i % PARTS;
        if (part == 0)
            memcpy(&b, (const char *)src + i / PARTS * sizeof b, sizeof b);
        for (size_t c = 0; c < PART; c++) {
            float d = quant_f16_to_f32(b.d) * (float)scale_at(b.scales, 2 * part + c / 16);
            int code = b.low[part / 4 * PART + c] >> part % 4 * 2 & 3;
            code |= (b.high[c] >> part & 1) << 2;
            *dst++ = d * (float)(code - 4);
        }
    }
}

const struct quant_traits quant_q3_k = {QUANT_Q3_K, "Q3_K",   BLOCK, sizeof(struct block_q3_k),
                                        dequantize, PACK_Q3_K};
