#include "config.h"

#include "engine/quant.h"

/* ---- half precision ------------------------------------------------------------------------ */

float quant_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1F, mantissa = half & 0x3FF;

    if (exponent == 0x1F) /* infinity; a NaN becomes quiet, as F16C makes it */
        return quant_f32_from_bits(sign | 0x7F800000 | mantissa << 13 |
                                   (mantissa != 0 ? 0x400000 : 0));
    if (exponent != 0)
        return quant_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float value = (float)mantissa * 0x1p-24f; /* zero or subnormal: exact */
    return quant_f32_from_bits(sign | quant_f32_bits(value));
}

/* `value` shifted right by `shift` (1 - 31), to nearest, ties to even. */
static uint32_t shift_round(uint32_t value, unsigned shift)
{
    uint32_t half = 1u << (shift - 1), rest = value & ((half << 1) - 1), whole = value >> shift;

    return whole + (rest > half || (rest == half && (whole & 1) != 0));
}

uint16_t quant_f32_to_f16(float value)
{
    uint32_t bits = quant_f32_bits(value), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

    if (magnitude > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000) /* 65520 and above rounds to infinity */
        return sign | 0x7C00;
    if (magnitude >= 0x38800000) /* normal: a carry out of the mantissa raises the exponent */
        return (uint16_t)(sign | (shift_round(magnitude, 13) - (112u << 10)));
    unsigned exponent = magnitude >> 23;
    if (exponent < 102) /* below half of the least subnormal */
        return sign;
    uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    return (uint16_t)(sign | shift_round(mantissa, 126 - exponent));
}

uint16_t quant_f32_to_bf16(float value)
{
    uint32_t bits = quant_f32_bits(value);

    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)(shift_round(bits, 16));
}

/* ---- rows to floats ------------------------------------------------------------------------ */

/* Blocks are copied out before they are read: `src` may have any alignment. */

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

static void dequantize_q8_0(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / QUANT_BLOCK; i++, dst += QUANT_BLOCK) {
        struct block_q8_0 b;
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        float d = quant_f16_to_f32(b.d);
        for (size_t k = 0; k < QUANT_BLOCK; k++)
            dst[k] = d * (float)b.q[k];
    }
}

static void dequantize_q4_0(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / QUANT_BLOCK; i++, dst += QUANT_BLOCK) {
        struct block_q4_0 b;
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        float d = quant_f16_to_f32(b.d);
        for (size_t k = 0; k < QUANT_BLOCK / 2; k++) {
            dst[k] = d * (float)((b.q[k] & 15) - 8);
            dst[k + QUANT_BLOCK / 2] = d * (float)((b.q[k] >> 4) - 8);
        }
    }
}

static void dequantize_q4_1(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / QUANT_BLOCK; i++, dst += QUANT_BLOCK) {
        struct block_q4_1 b;
        memcpy(&b, (const char *)src + i * sizeof b, sizeof b);
        float d = quant_f16_to_f32(b.d), m = quant_f16_to_f32(b.m);
        for (size_t k = 0; k < QUANT_BLOCK / 2; k++) {
            dst[k] = d * (float)(b.q[k] & 15) + m;
            dst[k + QUANT_BLOCK / 2] = d * (float)(b.q[k] >> 4) + m;
        }
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

_Static_assert(sizeof(struct block_q8_0) == 34, "as in the file");
_Static_assert(sizeof(struct block_q4_0) == 18, "as in the file");
_Static_assert(sizeof(struct block_q4_1) == 20, "as in the file");

static const struct quant_traits traits[] = {
    {QUANT_F32, "F32", 1, 4, true, dequantize_f32},
    {QUANT_F16, "F16", 1, 2, true, dequantize_f16},
    {QUANT_BF16, "BF16", 1, 2, true, dequantize_bf16},
    {QUANT_Q8_0, "Q8_0", QUANT_BLOCK, sizeof(struct block_q8_0), true, dequantize_q8_0},
    {QUANT_Q4_0, "Q4_0", QUANT_BLOCK, sizeof(struct block_q4_0), true, dequantize_q4_0},
    {QUANT_Q4_1, "Q4_1", QUANT_BLOCK, sizeof(struct block_q4_1), true, dequantize_q4_1},
    /* Known, and refused by name. */
    {6, "Q5_0", 32, 22, false, NULL},
    {7, "Q5_1", 32, 24, false, NULL},
    {9, "Q8_1", 32, 36, false, NULL},
    {10, "Q2_K", 256, 84, false, NULL},
    {11, "Q3_K", 256, 110, false, NULL},
    {12, "Q4_K", 256, 144, false, NULL},
    {13, "Q5_K", 256, 176, false, NULL},
    {14, "Q6_K", 256, 210, false, NULL},
    {15, "Q8_K", 256, 292, false, NULL},
    {16, "IQ2_XXS", 256, 66, false, NULL},
    {17, "IQ2_XS", 256, 74, false, NULL},
    {18, "IQ3_XXS", 256, 98, false, NULL},
    {19, "IQ1_S", 256, 50, false, NULL},
    {20, "IQ4_NL", 32, 18, false, NULL},
    {21, "IQ3_S", 256, 110, false, NULL},
    {22, "IQ2_S", 256, 82, false, NULL},
    {23, "IQ4_XS", 256, 136, false, NULL},
    {24, "I8", 1, 1, false, NULL},
    {25, "I16", 1, 2, false, NULL},
    {26, "I32", 1, 4, false, NULL},
    {27, "I64", 1, 8, false, NULL},
    {28, "F64", 1, 8, false, NULL},
    {29, "IQ1_M", 256, 56, false, NULL},
    {34, "TQ1_0", 256, 54, false, NULL},
    {35, "TQ2_0", 256, 66, false, NULL},
    {39, "MXFP4", 32, 17, false, NULL},
    {40, "NVFP4", 64, 36, false, NULL},
    {41, "Q1_0", 128, 18, false, NULL},
};

const struct quant_traits *quant_find(uint32_t id)
{
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++) {
        if (traits[i].id == id)
            return &traits[i];
    }
    return NULL;
}
