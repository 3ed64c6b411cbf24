/* Q3_K: blocks of 256 = 8 parts of 32, a scale of 6 bits for each 16. Bits 2i and 2i + 1 of a byte
 * of `low` belong to part i of its half of the block; bit i of byte c of `high` is the third bit of
 * element c of part i. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 256, PART = 32, PARTS = BLOCK / PART };

struct block_q3_k { /* d * (scale - 32) * (q - 4) */
    uint8_t high[BLOCK / 8];
    uint8_t low[BLOCK / 4];
    uint8_t scales[12];
    uint16_t d;
};

_Static_assert(sizeof(struct block_q3_k) == 110, "as in the file");

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

/* scale_at for all of 8 rows, a byte each. */
static void load_scales(const uint8_t *const rows[QUANT_LANES], quant_words out[4])
{
    quant_words s[4]; /* three of scales; the first has the last codes */

    quant_load(rows, offsetof(struct block_q3_k, scales) - 4, 4, s);
    for (unsigned k = 0; k < 4; k++) {
        for (size_t r = 0; r < QUANT_LANES; r++) {
            uint32_t low = s[1 + k % 2][r] >> k / 2 * 4 & 0x0F0F0F0F;
            out[k][r] = quant_minus_32(low | (s[3][r] >> 2 * k & 0x03030303) << 4);
        }
    }
}

static void pack(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    quant_words scales[4], low[8], high[8];

    out = quant_pack_half(rows, offsetof(struct block_q3_k, d), out);
    load_scales(rows, scales);
    quant_load_bits(rows, offsetof(struct block_q3_k, high), high);
    for (size_t part = 0; part < PARTS; part++) {
        if (part % 4 == 0)
            quant_load_pairs(rows, offsetof(struct block_q3_k, low) + part / 4 * PART, low);
        out = quant_pack_scale_pair(scales, part, out);
        out = quant_pack_plane(high + part, 1, out);
        out = quant_pack_pairs(low, part % 4, out);
    }
}

const struct quant_traits quant_q3_k = {QUANT_Q3_K, "Q3_K",    BLOCK, sizeof(struct block_q3_k),
                                        dequantize, PACK_Q3_K, pack};
