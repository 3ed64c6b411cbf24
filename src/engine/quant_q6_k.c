/* Q6_K: blocks of 256 = two halves of four parts of 32, a scale for each 16. Parts 0 and 1 of a
 * half have the low nibbles of its first and last 32 bytes of `low`, parts 2 and 3 the high ones;
 * bits 2i and 2i + 1 of its bytes of `high` belong to part i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

static size_t low_at(size_t part) /* the first of a part's bytes */
{
    return (part / 4 * 2 + part % 2) * PART;
}

static unsigned low_shift(size_t part)
{
    return part % 4 < 2 ? 0 : 4;
}

static void dequantize(const void *src, float *dst, size_t n)
{
    struct block_q6_k b;

    for (size_t i = 0; i < n / PART; i++) {
        size_t part = i % PARTS;
        if (part == 0)
            memcpy(&b, (const char *)src + i / PARTS * sizeof b, sizeof b);
        for (size_t c = 0; c < PART; c++) {
            float d = quant_f16_to_f32(b.d) * (float)b.scales[2 * part + c / 16];
            int code = b.low[low_at(part) + c] >> low_shift(part) & 15;
            code |= (b.high[part / 4 * PART + c] >> part % 4 * 2 & 3) << 4;
            *dst++ = d * (float)(code - 32);
        }
    }
}

const struct quant_traits quant_q6_k = {QUANT_Q6_K, "Q6_K",   BLOCK, sizeof(struct block_q6_k),
                                        dequantize, PACK_Q6_K};
