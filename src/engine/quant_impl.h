/* What the files of weight types share: their traits, and the blocks as files have them. What the
 * fields hold is said in quant_*.c, where values are made of them; pack_rows.h packs them.
 * All are little-endian, as hosts are, and may lie at any address. */
#ifndef FADER_ENGINE_QUANT_IMPL_H
#define FADER_ENGINE_QUANT_IMPL_H

#include "engine/quant.h"

extern const struct quant_traits quant_f32, quant_f16, quant_bf16;
extern const struct quant_traits quant_q8_0, quant_q4_0, quant_q4_1, quant_q5_0, quant_q5_1;
extern const struct quant_traits quant_q2_k, quant_q3_k, quant_q4_k, quant_q5_k, quant_q6_k;
extern const struct quant_traits quant_iq4_nl, quant_iq4_xs;

/* ---- 32 elements ----------------------------------------------------------------------------- */

struct block_q4_0 { /* d * (q - 8) */
    uint16_t d;
    uint8_t q[16];
};
struct block_q4_1 { /* d * q + m */
    uint16_t d, m;
    uint8_t q[16];
};
struct block_q5_0 { /* d * (q - 16) */
    uint16_t d;
    uint8_t high[4];
    uint8_t q[16];
};
struct block_q5_1 { /* d * q + m */
    uint16_t d, m;
    uint8_t high[4];
    uint8_t q[16];
};
struct block_q8_0 { /* d * q */
    uint16_t d;
    int8_t q[32];
};
struct block_iq4_nl { /* d * value[q] */
    uint16_t d;
    uint8_t q[16];
};

_Static_assert(sizeof(struct block_q4_0) == 18, "as in the file");
_Static_assert(sizeof(struct block_q4_1) == 20, "as in the file");
_Static_assert(sizeof(struct block_q5_0) == 22, "as in the file");
_Static_assert(sizeof(struct block_q5_1) == 24, "as in the file");
_Static_assert(sizeof(struct block_q8_0) == 34, "as in the file");
_Static_assert(sizeof(struct block_iq4_nl) == 18, "as in the file");

/* ---- 256 elements, 8 parts ------------------------------------------------------------------- */

struct block_q2_k { /* d * scale * q - dmin * min */
    uint8_t scales[16];
    uint8_t q[64];
    uint16_t d, dmin;
};
struct block_q3_k { /* d * (scale - 32) * (q - 4) */
    uint8_t high[32];
    uint8_t low[64];
    uint8_t scales[12];
    uint16_t d;
};
struct block_q4_k { /* d * scale * q - dmin * min */
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t q[128];
};
struct block_q5_k { /* the same */
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t high[32];
    uint8_t q[128];
};
struct block_q6_k { /* d * scale * (q - 32) */
    uint8_t low[128];
    uint8_t high[64];
    int8_t scales[16];
    uint16_t d;
};
struct block_iq4_xs { /* d * (scale - 32) * value[q] */
    uint16_t d;
    uint16_t scales_high;
    uint8_t scales_low[4];
    uint8_t q[128];
};

_Static_assert(sizeof(struct block_q2_k) == 84, "as in the file");
_Static_assert(sizeof(struct block_q3_k) == 110, "as in the file");
_Static_assert(sizeof(struct block_q4_k) == 144, "as in the file");
_Static_assert(sizeof(struct block_q5_k) == 176, "as in the file");
_Static_assert(sizeof(struct block_q6_k) == 210, "as in the file");
_Static_assert(sizeof(struct block_iq4_xs) == 136, "as in the file");

#endif
