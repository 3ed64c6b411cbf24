#include "config.h"

#include "engine/quant_impl.h"

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

/* ---- the table ----------------------------------------------------------------------------- */

static const struct quant_traits *const supported[] = {
    &quant_f32,  &quant_f16,  &quant_bf16, &quant_q8_0,   &quant_q4_0,
    &quant_q4_1, &quant_q5_0, &quant_q5_1, &quant_q2_k,   &quant_q3_k,
    &quant_q4_k, &quant_q5_k, &quant_q6_k, &quant_iq4_nl, &quant_iq4_xs};

/* Known, and refused by name. */
static const struct quant_traits refused[] = {
    {.id = 9, .name = "Q8_1", .block_elements = 32, .block_bytes = 36},
    {.id = 15, .name = "Q8_K", .block_elements = 256, .block_bytes = 292},
    {.id = 16, .name = "IQ2_XXS", .block_elements = 256, .block_bytes = 66},
    {.id = 17, .name = "IQ2_XS", .block_elements = 256, .block_bytes = 74},
    {.id = 18, .name = "IQ3_XXS", .block_elements = 256, .block_bytes = 98},
    {.id = 19, .name = "IQ1_S", .block_elements = 256, .block_bytes = 50},
    {.id = 21, .name = "IQ3_S", .block_elements = 256, .block_bytes = 110},
    {.id = 22, .name = "IQ2_S", .block_elements = 256, .block_bytes = 82},
    {.id = 24, .name = "I8", .block_elements = 1, .block_bytes = 1},
    {.id = 25, .name = "I16", .block_elements = 1, .block_bytes = 2},
    {.id = 26, .name = "I32", .block_elements = 1, .block_bytes = 4},
    {.id = 27, .name = "I64", .block_elements = 1, .block_bytes = 8},
    {.id = 28, .name = "F64", .block_elements = 1, .block_bytes = 8},
    {.id = 29, .name = "IQ1_M", .block_elements = 256, .block_bytes = 56},
    {.id = 34, .name = "TQ1_0", .block_elements = 256, .block_bytes = 54},
    {.id = 35, .name = "TQ2_0", .block_elements = 256, .block_bytes = 66},
    {.id = 39, .name = "MXFP4", .block_elements = 32, .block_bytes = 17},
    {.id = 40, .name = "NVFP4", .block_elements = 64, .block_bytes = 36},
    {.id = 41, .name = "Q1_0", .block_elements = 128, .block_bytes = 18},
};

const struct quant_traits *quant_find(uint32_t id)
{
    for (size_t i = 0; i < sizeof supported / sizeof *supported; i++) {
        if (supported[i]->id == id)
            return supported[i];
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (refused[i].id == id)
            return &refused[i];
    }
    return NULL;
}
