/* Packs: how the weights of a matrix are stored for the kernels.
 *
 * A group is 8 interleaved rows. Of codes, the unit is 32 columns: w_j (j = 0 .. 7) stands for 32
 * bytes, of which byte 4r + c belongs to column 4j + c of row r. They are stored in planes, the
 * highest bits first:
 *   bits     32 bytes: bit j of byte i belongs to w_j[i]
 *   pairs    64 bytes, two vectors h = 0, 1: bits 2k and 2k + 1 of byte i belong to w_{4h+k}[i]
 *   nibbles 128 bytes, four vectors j: the low nibble of byte i belongs to w_j[i], the high one to
 *           w_{j+4}[i]
 *   bytes   256 bytes: w_0 .. w_7, signed
 *
 * A block is 32 or 256 columns: halves d (and m) for 8 rows, then for each 32 columns integer
 * scales and the planes. What a code stands for:
 *
 *   pack       block   halves   each 32 columns: scales, then planes             value
 *   Q4_0      32: 144  d        nibbles                                          d (q - 8)
 *   Q4_1      32: 160  d, m     nibbles                                          d q + m
 *   Q5_0      32: 176  d        bits, nibbles                                    d (q - 16)
 *   Q5_1      32: 192  d, m     bits, nibbles                                    d q + m
 *   Q8_0      32: 272  d        bytes                                            d q
 *   IQ4_NL    32: 144  d        nibbles                                          d value[q]
 *   Q4_K    256: 1184  d, m     8 u8 scales, 8 u8 mins; nibbles                  d scale q - m min
 *   Q5_K    256: 1440  d, m     8 u8 scales, 8 u8 mins; bits, nibbles            d scale q - m min
 *   Q6_K    256: 1680  d        16 i8 scales [row][half]; pairs, nibbles         d scale (q - 32)
 *   Q3_K     256: 912  d        16 i8 scales [row][half]; bits, pairs            d scale (q - 4)
 *   Q2_K     256: 672  d, m     16 u8 scale | min << 4 [row][half]; pairs        d scale q - m min
 *   IQ4_XS  256: 1104  d        8 i8 scales; nibbles                             d scale value[q]
 *
 * Half 0 of 32 columns are the first 16 (w_0 .. w_3), half 1 the others. Floats (F16, BF16, F32)
 * are stored column after column, and each column for a whole chunk: KERNEL_CHUNK groups, or those
 * that are left at the end, 8 rows each. What is read at once is then one run of memory. */
#ifndef FADER_ENGINE_PACK_H
#define FADER_ENGINE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KERNEL_LANES = 8, /* rows of a group */
    KERNEL_CHUNK = 4, /* groups that lie together */
    KERNEL_BLOCK = 32 /* columns that share an activation scale */
};

enum pack {
    PACK_Q4_0,
    PACK_Q4_1,
    PACK_Q5_0,
    PACK_Q5_1,
    PACK_Q8_0,
    PACK_IQ4_NL,
    PACK_Q4_K,
    PACK_Q5_K,
    PACK_Q6_K,
    PACK_Q3_K,
    PACK_Q2_K,
    PACK_IQ4_XS,
    PACK_F16, /* from here on floats */
    PACK_BF16,
    PACK_F32,
    PACK_COUNT
};

enum pack_planes { PLANE_BITS = 1, PLANE_PAIRS = 2, PLANE_NIBBLES = 4, PLANE_BYTES = 8 };

enum pack_scales {
    SCALES_NONE,
    SCALES_U8_MINS,
    SCALES_I8,
    SCALES_I8_HALVES,
    SCALES_U4_MINS_HALVES
};

struct pack_traits {
    uint16_t columns, bytes;  /* of a block (of floats: one column), for 8 rows */
    bool has_min;             /* halves m beside the d */
    enum pack_scales scales;  /* in front of the planes of each 32 columns */
    uint8_t planes;           /* enum pack_planes */
    uint8_t offset;           /* what is taken from a code */
    const int8_t *code_value; /* [16]: what codes stand for, or NULL */
};

/* What IQ4 codes stand for. */
static const int8_t pack_iq4_value[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/* In the header, so that kernels can be made for each pack from one source. */
static const struct pack_traits pack_traits[PACK_COUNT] = {
    [PACK_Q4_0] = {32, 144, false, SCALES_NONE, PLANE_NIBBLES, 8, NULL},
    [PACK_Q4_1] = {32, 160, true, SCALES_NONE, PLANE_NIBBLES, 0, NULL},
    [PACK_Q5_0] = {32, 176, false, SCALES_NONE, PLANE_BITS | PLANE_NIBBLES, 16, NULL},
    [PACK_Q5_1] = {32, 192, true, SCALES_NONE, PLANE_BITS | PLANE_NIBBLES, 0, NULL},
    [PACK_Q8_0] = {32, 272, false, SCALES_NONE, PLANE_BYTES, 0, NULL},
    [PACK_IQ4_NL] = {32, 144, false, SCALES_NONE, PLANE_NIBBLES, 0, pack_iq4_value},
    [PACK_Q4_K] = {256, 1184, true, SCALES_U8_MINS, PLANE_NIBBLES, 0, NULL},
    [PACK_Q5_K] = {256, 1440, true, SCALES_U8_MINS, PLANE_BITS | PLANE_NIBBLES, 0, NULL},
    [PACK_Q6_K] = {256, 1680, false, SCALES_I8_HALVES, PLANE_PAIRS | PLANE_NIBBLES, 32, NULL},
    [PACK_Q3_K] = {256, 912, false, SCALES_I8_HALVES, PLANE_BITS | PLANE_PAIRS, 4, NULL},
    [PACK_Q2_K] = {256, 672, true, SCALES_U4_MINS_HALVES, PLANE_PAIRS, 0, NULL},
    [PACK_IQ4_XS] = {256, 1104, false, SCALES_I8, PLANE_NIBBLES, 0, pack_iq4_value},
    [PACK_F16] = {1, 16, false, SCALES_NONE, 0, 0, NULL},
    [PACK_BF16] = {1, 16, false, SCALES_NONE, 0, 0, NULL},
    [PACK_F32] = {1, 32, false, SCALES_NONE, 0, 0, NULL},
};

static inline bool pack_is_float(enum pack pack)
{
    return pack >= PACK_F16;
}

/* Whether each half of 32 columns has scales of its own. */
static inline bool pack_has_halves(enum pack pack)
{
    return pack_traits[pack].scales == SCALES_I8_HALVES ||
           pack_traits[pack].scales == SCALES_U4_MINS_HALVES;
}

/* 32 columns of a group in numbers. A weight is d * scale * (q - offset) + m * min, where q is the
 * code or what it stands for. */
struct pack_tile {
    int8_t q[8][4 * KERNEL_LANES];  /* the vectors w_j */
    float d[KERNEL_LANES];          /* of a row */
    float m[KERNEL_LANES];          /* its sign turned where the value is "- m min"; -0 for none */
    int32_t scale[2][KERNEL_LANES]; /* of a half's rows; 1 for none */
    int32_t min[2][KERNEL_LANES];   /* the same */
};

/* Columns 32 * i .. 32 * i + 31 of a group of codes. */
void pack_decode(enum pack pack, const uint8_t *group, size_t i, struct pack_tile *tile);

/* A weight of a tile, exactly as the file's format defines it; its column is below 32. */
static inline float pack_value(enum pack pack, const struct pack_tile *t, size_t row, size_t column)
{
    size_t half = column / 16;
    float scale = t->d[row] * (float)t->scale[half][row];
    int q = t->q[column / 4][4 * row + column % 4] - pack_traits[pack].offset;

    return scale * (float)q + t->m[row] * (float)t->min[half][row];
}

#endif
