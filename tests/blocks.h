/* Weight types for tests, and what their blocks are made of: random bytes are all right as codes
 * and integer scales, but not as the halves beside them. */
#ifndef FADER_TESTS_BLOCKS_H
#define FADER_TESTS_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/quant.h"

static const uint32_t weight_types[] = {/* all that there are */
                                        QUANT_F32,  QUANT_F16,    QUANT_BF16,  QUANT_Q8_0,
                                        QUANT_Q4_0, QUANT_Q4_1,   QUANT_Q5_0,  QUANT_Q5_1,
                                        QUANT_Q2_K, QUANT_Q3_K,   QUANT_Q4_K,  QUANT_Q5_K,
                                        QUANT_Q6_K, QUANT_IQ4_NL, QUANT_IQ4_XS};

enum { N_WEIGHT_TYPES = sizeof weight_types / sizeof *weight_types, BLOCK_BYTES_MAX = 256 };

struct block_parts {
    uint32_t type;
    size_t d_at, m_at;          /* where the halves are in a block; m_at 0: there is none */
    size_t scales_at, n_scales; /* and the bytes of integer scales */
    float spread; /* standard deviation of the values of random bytes, for d = 1 and ... */
    float centre; /* ... m = d * centre, which makes their mean 0 */
};

/* NULL for floats. */
static inline const struct block_parts *block_parts_find(uint32_t type)
{
    static const struct block_parts all[] = {
        {QUANT_Q8_0, 0, 0, 0, 0, 74, 0},        {QUANT_Q4_0, 0, 0, 0, 0, 4.6f, 0},
        {QUANT_Q4_1, 0, 2, 0, 0, 4.6f, -7.5f},  {QUANT_Q5_0, 0, 0, 0, 0, 9.2f, 0},
        {QUANT_Q5_1, 0, 2, 0, 0, 9.2f, -15.5f}, {QUANT_Q2_K, 80, 82, 0, 16, 14, 1.5f},
        {QUANT_Q3_K, 108, 0, 96, 12, 43, 0},    {QUANT_Q4_K, 0, 2, 4, 12, 258, 7.5f},
        {QUANT_Q5_K, 0, 2, 4, 12, 527, 15.5f},  {QUANT_Q6_K, 208, 0, 192, 16, 1366, 0},
        {QUANT_IQ4_NL, 0, 0, 0, 0, 67, 0},      {QUANT_IQ4_XS, 0, 0, 2, 6, 1246, 0},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].type == type)
            return &all[i];
    }
    return NULL;
}

static inline void block_set_half(uint8_t *at, float value)
{
    uint16_t half = quant_f32_to_f16(value);

    memcpy(at, &half, sizeof half);
}

#endif
