/* Blocks of weights for tests: random bytes are all right as codes and integer scales, but not as
 * the halves beside them. */
#ifndef FADER_TESTS_BLOCKS_H
#define FADER_TESTS_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/quant.h"

enum { BLOCK_BYTES_MAX = 256 };

struct block_halves {
    uint32_t type;
    size_t d_at, m_at; /* where they are in a block; m_at 0: there is none */
    float spread;      /* standard deviation of the values of random bytes, for d = 1 and ... */
    float centre;      /* ... m = d * centre, which makes their mean 0 */
};

static const struct block_halves block_halves[] = {
    {QUANT_Q8_0, 0, 0, 74, 0},        {QUANT_Q4_0, 0, 0, 4.6f, 0},
    {QUANT_Q4_1, 0, 2, 4.6f, -7.5f},  {QUANT_Q5_0, 0, 0, 9.2f, 0},
    {QUANT_Q5_1, 0, 2, 9.2f, -15.5f}, {QUANT_Q2_K, 80, 82, 14, 1.5f},
    {QUANT_Q3_K, 108, 0, 43, 0},      {QUANT_Q4_K, 0, 2, 258, 7.5f},
    {QUANT_Q5_K, 0, 2, 527, 15.5f},   {QUANT_Q6_K, 208, 0, 1366, 0},
    {QUANT_IQ4_NL, 0, 0, 67, 0},      {QUANT_IQ4_XS, 0, 0, 1246, 0},
};

/* NULL for floats. */
static inline const struct block_halves *block_halves_find(uint32_t type)
{
    for (size_t i = 0; i < sizeof block_halves / sizeof *block_halves; i++) {
        if (block_halves[i].type == type)
            return &block_halves[i];
    }
    return NULL;
}

static inline void block_set_half(uint8_t *at, float value)
{
    uint16_t half = quant_f32_to_f16(value);

    memcpy(at, &half, sizeof half);
}

#endif
