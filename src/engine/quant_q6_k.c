/* Q6_K: blocks of 256 = two halves of four parts of 32, a scale for each 16. Parts 0 and 1 of a
 * half have the low nibbles of its first and last 32 bytes of `low`, parts 2 and 3 the high ones;
 * bits 2i and 2i + 1 of its bytes of `high` belong to part i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

struct block_q6_k { /* d * scale * (q - 32) */
    uint8_t low[BLOCK / 2];
    uint8_t high[BLOCK / 4];
    int8_t scales[BLOCK / 16];
    uint16_t d;
};

_Static_assert(sizeof(struct block_q6_k) == 210, "as in the file");

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

static void pack(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    quant_words scales[4], low[2][8], high[8];

    out = quant_pack_half(rows, offsetof(struct block_q6_k, d), out);
    quant_load(rows, offsetof(struct block_q6_k, scales), 4, scales);
    for (size_t part = 0; part < PARTS; part++) {
        if (part % 4 == 0) {
            quant_load_nibbles(rows, offsetof(struct block_q6_k, low) + low_at(part), low[0]);
            quant_load_nibbles(rows, offsetof(struct block_q6_k, low) + low_at(part + 1), low[1]);
            quant_load_pairs(rows, offsetof(struct block_q6_k, high) + part / 4 * PART, high);
        }
        out = quant_pack_scale_pair(scales, part, out);
        out = quant_pack_pairs(high, part % 4, out);
        out = quant_pack_plane(low[part % 2] + low_shift(part), 4, out);
    }
}

const struct quant_traits quant_q6_k = {QUANT_Q6_K, "Q6_K",    BLOCK, sizeof(struct block_q6_k),
                                        dequantize, PACK_Q6_K, pack};
