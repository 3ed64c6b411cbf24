/* F32, F16, BF16: no blocks. */
#include "config.h"

#include "engine/quant_impl.h"

static void dequantize_f32(const void *src, float *dst, size_t n)
{
    memcpy(dst, src, n * sizeof *dst);
}

static void dequantize_f16(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, (const char *)src + i * sizeof half, sizeof half);
        dst[i] = quant_f16_to_f32(half);
    }
}

static void dequantize_bf16(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t value;
        memcpy(&value, (const char *)src + i * sizeof value, sizeof value);
        dst[i] = quant_bf16_to_f32(value);
    }
}

static void pack_words(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    quant_pack_words(rows, 0, 4, out);
}

/* a and b hold 4 halves each: `even` becomes a0 b0 a2 b2, `odd` a1 b1 a3 b3. */
static void interleave(uint64_t a, uint64_t b, uint64_t *even, uint64_t *odd)
{
    const uint64_t low = 0x0000FFFF0000FFFF;

    *even = (a & low) | (b & low) << 16;
    *odd = (a >> 16 & low) | (b & ~low);
}

/* 4 rows x 4 columns at a time. */
static void pack_halves(const uint8_t *const rows[QUANT_LANES], uint8_t *out)
{
    enum { COLUMN = 2 * QUANT_LANES };
    uint64_t even[2], odd[2];

    for (size_t r = 0; r < QUANT_LANES; r += 4, out += COLUMN / 2) {
        for (size_t k = 0; k < 2; k++)
            interleave(quant_read_u64(rows[r + 2 * k]), quant_read_u64(rows[r + 2 * k + 1]),
                       &even[k], &odd[k]);
        quant_write_u64(out, (even[0] & 0xFFFFFFFF) | even[1] << 32);
        quant_write_u64(out + COLUMN, (odd[0] & 0xFFFFFFFF) | odd[1] << 32);
        quant_write_u64(out + 2 * COLUMN, even[0] >> 32 | (even[1] >> 32 << 32));
        quant_write_u64(out + 3 * COLUMN, odd[0] >> 32 | (odd[1] >> 32 << 32));
    }
}

const struct quant_traits quant_f32 = {QUANT_F32,      "F32",    1,         4,
                                       dequantize_f32, PACK_F32, pack_words};
const struct quant_traits quant_f16 = {QUANT_F16,      "F16",    1,          2,
                                       dequantize_f16, PACK_F16, pack_halves};
const struct quant_traits quant_bf16 = {QUANT_BF16,      "BF16",    1,          2,
                                        dequantize_bf16, PACK_BF16, pack_halves};
