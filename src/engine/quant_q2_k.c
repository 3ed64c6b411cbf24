/* Q2_K: blocks of 256 = 8 parts of 32, a scale and a min of 4 bits for each 16, in one byte. Bits
 * 2i and 2i + 1 of a byte of `q` belong to part i of its half of the block. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

struct block_q2_k { /* d * scale * q - dmin * min */
    uint8_t scales[BLOCK / 16];
    uint8_t q[BLOCK / 4];
    uint16_t d, dmin;
};

_Static_assert(sizeof(struct block_q2_k) == 84, "as in the file");

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

static void pack(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    quant_words scales[4], q[8];

    out = quant_pack_half(rows, offsetof(struct block_q2_k, d), out);
    out = quant_pack_half(rows, offsetof(struct block_q2_k, dmin), out);
    quant_load(rows, offsetof(struct block_q2_k, scales), 4, scales);
    for (size_t part = 0; part < PARTS; part++) {
        if (part % 4 == 0)
            quant_load_pairs(rows, offsetof(struct block_q2_k, q) + part / 4 * PART, q);
        out = quant_pack_scale_pair(scales, part, out);
        out = quant_pack_pairs(q, part % 4, out);
    }
}

const struct quant_traits quant_q2_k = {QUANT_Q2_K, "Q2_K",    BLOCK, sizeof(struct block_q2_k),
                                        dequantize, PACK_Q2_K, pack};
