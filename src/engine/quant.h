/* Weight types: one table of what every GGUF tensor type is. A type that fader cannot compute with
 * is in it too, so that it can be refused by its name.
 *
 * A row of `n` elements is n / block_elements blocks of block_bytes, end to end. Layouts are those
 * of the GGUF format (little-endian, as the hosts that fader runs on). A family of types is one
 * file, quant_*.c, with its exact values; how its blocks are packed for the kernels (pack.h) is in
 * pack_rows.h. */
#ifndef FADER_ENGINE_QUANT_H
#define FADER_ENGINE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/pack.h"

enum quant_type { /* ids as GGUF files have them */
                  QUANT_F32 = 0,
                  QUANT_F16 = 1,
                  QUANT_Q4_0 = 2,
                  QUANT_Q4_1 = 3,
                  QUANT_Q5_0 = 6,
                  QUANT_Q5_1 = 7,
                  QUANT_Q8_0 = 8,
                  QUANT_Q2_K = 10,
                  QUANT_Q3_K = 11,
                  QUANT_Q4_K = 12,
                  QUANT_Q5_K = 13,
                  QUANT_Q6_K = 14,
                  QUANT_IQ4_NL = 20,
                  QUANT_IQ4_XS = 23,
                  QUANT_BF16 = 30
};

struct quant_traits {
    uint32_t id;
    const char *name; /* "Q4_1" */
    uint32_t block_elements;
    uint32_t block_bytes;

    /* The rest is zero for types that fader cannot compute with. */

    /* The exact values, n a multiple of block_elements; the scalar truth. `src` needs no alignment.
     */
    void (*dequantize_row)(const void *src, float *dst, size_t n);
    enum pack pack; /* what kernels make of it */
};

/* The traits of a type id, or NULL for an id that no known GGUF has. */
const struct quant_traits *quant_find(uint32_t id);

static inline bool quant_supported(const struct quant_traits *traits)
{
    return traits->dequantize_row != NULL;
}

/* Elements of a row that a kernel packs at once: a block, or 16 bytes of floats. */
static inline size_t quant_pack_elements(const struct quant_traits *traits)
{
    return traits->block_elements == 1 ? 16 / traits->block_bytes : traits->block_elements;
}

/* Bytes of a row of `n` elements (a multiple of block_elements), without a check for overflow. */
static inline size_t quant_row_bytes(const struct quant_traits *traits, size_t n)
{
    return n / traits->block_elements * traits->block_bytes;
}

static inline float quant_f32_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t quant_f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Half precision (IEEE binary16) to single: exact, for every value including subnormals and NaN. */
float quant_f16_to_f32(uint16_t half);

/* Single to half, to nearest, ties to even; as F16C does it. A NaN stays a quiet NaN. */
uint16_t quant_f32_to_f16(float value);

static inline float quant_bf16_to_f32(uint16_t value)
{
    return quant_f32_from_bits((uint32_t)value << 16);
}

uint16_t quant_f32_to_bf16(float value); /* to nearest, ties to even */

#endif
