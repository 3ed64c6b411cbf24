/* Q2_K: blocks of 256 = 8 parts of 32, a scale and a min of 4 bits for each 16, in one byte. Bits
 * 2i and 2i + 1 of a byte of `q` belong to part i of its half of the block. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

static void dequantize(const void *src, float *dst, size_t n)
{
    struct block_q2_k b;

    for (size_t i = 0; i < n / PART; i++) {
        size_t part = i % PARTS;
        if (part == 0)
            memcpy(&b, (const char *)src + i / PARTS * sizeof b, sizeof b);
        for (size_t c = 0; c < PART; c++) {
            uint8_t scale = b.scales[2 * part + c / 16];
            float d = quant_f16_to_f32(b.d) * (float)(scale & 15);
            float m = quant_f16_to_f32(b.dmin) * (float)(scale >> 4);
            int code = b.q[part / 4 * PART + c] >> part % 4 * 2 & 3;
            *dst++ = d * (float)code - m;
        }
    }
}

const struct quant_traits quant_q2_k = {QUANT_Q2_K, "Q2_K",   BLOCK, sizeof(struct block_q2_k),
                                        dequantize, PACK_Q2_K};
