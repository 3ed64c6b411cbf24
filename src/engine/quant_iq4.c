/* IQ4_NL, IQ4_XS: nibbles that stand for 16 fixed values. */
#include "config.h"

#include "engine/quant_impl.h"

enum { BLOCK = 32, SUPER = 256 };

struct block_iq4_nl { /* d * value[q] */
    uint16_t d;
    uint8_t q[BLOCK / 2];
};

/* d * (scale - 32) * value[q], a scale for each 32: 4 bits in scales_low, 2 in scales_high. */
struct block_iq4_xs {
    uint16_t d;
    uint16_t scales_high;
    uint8_t scales_low[SUPER / 64];
    uint8_t q[SUPER / 2];
};

_Static_assert(sizeof(struct block_iq4_nl) == 18, "as in the file");
_Static_assert(sizeof(struct block_iq4_xs) == 136, "as in the file");

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

static void pack_iq4_nl(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    out = quant_pack_half(rows, offsetof(struct block_iq4_nl, d), out);
    quant_pack_words(rows, offsetof(struct block_iq4_nl, q), 4, out);
}

static void pack_iq4_xs(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    int8_t scales[SUPER / BLOCK][QUANT_LANES];
    struct block_iq4_xs head;

    for (size_t r = 0; r < QUANT_LANES; r++) {
        memcpy(&head, rows[r], offsetof(struct block_iq4_xs, q));
        for (size_t i = 0; i < SUPER / BLOCK; i++)
            scales[i][r] = (int8_t)scale_at(&head, i);
    }
    out = quant_pack_half(rows, offsetof(struct block_iq4_xs, d), out);
    for (size_t i = 0; i < SUPER / BLOCK; i++) {
        memcpy(out, scales[i], sizeof scales[i]);
        out = quant_pack_words(rows, offsetof(struct block_iq4_xs, q) + i * (BLOCK / 2), 4,
                               out + sizeof scales[i]);
    }
}

const struct quant_traits quant_iq4_nl = {
    QUANT_IQ4_NL,      "IQ4_NL",    BLOCK,      sizeof(struct block_iq4_nl),
    dequantize_iq4_nl, PACK_IQ4_NL, pack_iq4_nl};
const struct quant_traits quant_iq4_xs = {
    QUANT_IQ4_XS,      "IQ4_XS",    SUPER,      sizeof(struct block_iq4_xs),
    dequantize_iq4_xs, PACK_IQ4_XS, pack_iq4_xs};
