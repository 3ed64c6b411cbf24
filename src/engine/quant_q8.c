/* Q8_0: blocks of 32 signed bytes with a scale. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 32 };

static void dequantize(const void *src, float *dst, size_t n)
{
    struct block_q8_0 b;

    for (size_t i = 0; i < n / BLOCK; i++, dst += BLOCK) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        float d = quant_f16_to_f32(b.d);
        for (size_t k = 0; k < BLOCK; k++)
            dst[k] = d * (float)b.q[k];
    }
}

const struct quant_traits quant_q8_0 = {QUANT_Q8_0, "Q8_0",   BLOCK, sizeof(struct block_q8_0),
                                        dequantize, PACK_Q8_0};
