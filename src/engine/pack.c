#include "config.h"

#include "engine/pack.h"

#include <string.h>

#include "engine/quant.h"

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK, VECTOR = 4 * KERNEL_LANES };

static void decode_halves(const uint8_t *p, float sign, float out[LANES])
{
    for (size_t r = 0; r < LANES; r++) {
        uint16_t half;
        memcpy(&half, p + 2 * r, sizeof half);
        out[r] = sign * quant_f16_to_f32(half);
    }
}

/* The scales in front of the planes; returns where those begin. */
static const uint8_t *decode_scales(enum pack_scales scales, const uint8_t *p, struct pack_tile *t)
{
    static const size_t bytes[] = {[SCALES_NONE] = 0,
                                   [SCALES_U8_MINS] = 16,
                                   [SCALES_I8] = 8,
                                   [SCALES_I8_HALVES] = 16,
                                   [SCALES_U4_MINS_HALVES] = 16};

    for (size_t r = 0; r < LANES; r++) {
        for (size_t h = 0; h < 2; h++) {
            int32_t scale = 1, min = 1;
            if (scales == SCALES_U8_MINS) {
                scale = p[r];
                min = p[LANES + r];
            } else if (scales == SCALES_I8) {
                scale = (int8_t)p[r];
            } else if (scales == SCALES_I8_HALVES) {
                scale = (int8_t)p[2 * r + h];
            } else if (scales == SCALES_U4_MINS_HALVES) {
                scale = p[2 * r + h] & 15;
                min = p[2 * r + h] >> 4;
            }
            t->scale[h][r] = scale;
            t->min[h][r] = min;
        }
    }
    return p + bytes[scales];
}

/* Each plane goes on top of what those after it hold. */
static void decode_planes(const struct pack_traits *t, const uint8_t *p, int8_t q[8][VECTOR])
{
    bool pairs = (t->planes & PLANE_PAIRS) != 0, nibbles = (t->planes & PLANE_NIBBLES) != 0;
    unsigned pair_at = nibbles ? 4 : 0, bit_at = pair_at + (pairs ? 2 : 0);

    if (t->planes == PLANE_BYTES) {
        memcpy(q, p, 8 * VECTOR);
        return;
    }
    memset(q, 0, 8 * VECTOR);
    if ((t->planes & PLANE_BITS) != 0) {
        for (size_t j = 0; j < 8; j++) {
            for (size_t i = 0; i < VECTOR; i++)
                q[j][i] = (int8_t)((p[i] >> j & 1) << bit_at);
        }
        p += VECTOR;
    }
    if (pairs) {
        for (size_t j = 0; j < 8; j++) {
            for (size_t i = 0; i < VECTOR; i++)
                q[j][i] |= (int8_t)((p[j / 4 * VECTOR + i] >> j % 4 * 2 & 3) << pair_at);
        }
        p += 2 * VECTOR;
    }
    if (nibbles) {
        for (size_t j = 0; j < 8; j++) {
            for (size_t i = 0; i < VECTOR; i++)
                q[j][i] |= (int8_t)(p[j % 4 * VECTOR + i] >> j / 4 * 4 & 15);
        }
    }
}

void pack_decode(enum pack pack, const uint8_t *group, size_t i, struct pack_tile *tile)
{
    const struct pack_traits *t = &pack_traits[pack];
    size_t head = t->has_min ? 4 * LANES : 2 * LANES, parts = t->columns / BLOCK;
    const uint8_t *block = group + i / parts * t->bytes;
    const uint8_t *part = block + head + i % parts * ((t->bytes - head) / parts);

    decode_halves(block, 1.0f, tile->d);
    for (size_t r = 0; r < LANES; r++)
        tile->m[r] = -0.0f;
    if (t->has_min)
        decode_halves(block + 2 * LANES, t->scales == SCALES_NONE ? 1.0f : -1.0f, tile->m);
    part = decode_scales(t->scales, part, tile);
    decode_planes(t, part, tile->q);
    if (t->code_value != NULL) {
        for (size_t j = 0; j < 8; j++) {
            for (size_t k = 0; k < VECTOR; k++)
                tile->q[j][k] = t->code_value[tile->q[j][k]];
        }
    }
}
