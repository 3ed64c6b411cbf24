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

const struct quant_traits quant_f32 = {QUANT_F32, "F32", 1, 4, dequantize_f32, PACK_F32};
const struct quant_traits quant_f16 = {QUANT_F16, "F16", 1, 2, dequantize_f16, PACK_F16};
const struct quant_traits quant_bf16 = {QUANT_BF16, "BF16", 1, 2, dequantize_bf16, PACK_BF16};
