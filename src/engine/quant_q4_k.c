/* Q4_K, Q5_K: blocks of 256 = 8 parts of 32, each with a scale and a min of 6 bits. Part 2i has the
 * low nibbles of 32 bytes, part 2i + 1 the high ones; bit i of byte c of `high` is the fifth bit of
 * element c of part i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

_Static_assert(offsetof(struct block_q4_k, scales) == offsetof(struct block_q5_k, scales),
               "a head in common");

/* Scale and min of a part from the 12 bytes: the first four have all their bits in bytes 0 - 3 and
 * 4 - 7, whose top bits belong to the last four's, whose low ones are in bytes 8 - 11. */
static void scale_at(const uint8_t *s, size_t part, int *scale, int *min)
{
    if (part < 4) {
        *scale = s[part] & 63;
        *min = s[part + 4] & 63;
    } else {
        *scale = (s[part + 4] & 15) | s[part - 4] >> 6 << 4;
        *min = s[part + 4] >> 4 | s[part] >> 6 << 4;
    }
}

static void dequantize_block(const struct block_q4_k *b, const uint8_t *high, const uint8_t *q,
                             float *dst)
{
    for (size_t part = 0; part < PARTS; part++) {
        int scale, min;
        scale_at(b->scales, part, &scale, &min);
        float d = quant_f16_to_f32(b->d) * (float)scale;
        float m = quant_f16_to_f32(b->dmin) * (float)min;
        for (size_t c = 0; c < PART; c++) {
            int code = q[part / 2 * PART + c] >> part % 2 * 4 & 15;
            if (high != NULL)
                code |= (high[c] >> part & 1) << 4;
            *dst++ = d * (float)code - m;
        }
    }
}

static void dequantize_q4_k(const void *src, float *dst, size_t n)
{
    struct block_q4_k b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        dequantize_block(&b, NULL, b.q, dst + i * BLOCK);
    }
}

static void dequantize_q5_k(const void *src, float *dst, size_t n)
{
    struct block_q4_k head;
    struct block_q5_k b;

    for (size_t i = 0; i < n / BLOCK; i++) {
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        memcpy(&head, &b, offsetof(struct block_q4_k, q));
        dequantize_block(&head, b.high, b.q, dst + i * BLOCK);
    }
}

const struct quant_traits quant_q4_k = {QUANT_Q4_K,      "Q4_K",   BLOCK, sizeof(struct block_q4_k),
                                        dequantize_q4_k, PACK_Q4_K};
const struct quant_traits quant_q5_k = {QUANT_Q5_K,      "Q5_K",   BLOCK, sizeof(struct block_q5_k),
                                        dequantize_q5_k, PACK_Q5_K};
