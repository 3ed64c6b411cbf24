/* Kernels: the inner loops of the forward pass, once as portable C (the truth) and once per
 * instruction set.
 *
 * Every set computes the same bits. That holds because each operation is defined down to its order:
 *   - vectors are KERNEL_LANES floats; where a sum crosses lanes, it is that of lane_sum in
 *     kernels_scalar.c, in every set;
 *   - products of codes are exact integers (int8 activations, codes of at most 8 bits, 32 columns);
 *     what they are multiplied by is written down at struct act_scale;
 *   - floats are accumulated per lane, in ascending order of blocks, columns or positions, by fused
 *     multiply-adds that are written out (fmaf, vfmadd): the compiler contracts nothing by itself;
 *   - exp is our own polynomial; there is no libm but the correctly rounded sqrt and fmaf.
 * Lane = row (of a matrix), = position (of a score), = dimension (of a value), so a result never
 * depends on how many rows, tokens or queries are computed beside it.
 *
 * Weights come repacked (pack.h, repack.h) in groups of 8 interleaved rows, one chunk or more of
 * them; activations in panels of up to KERNEL_PANEL tokens. Nothing here needs a scalar tail: what
 * is narrower than a vector is padded with zeros. */
#ifndef FADER_ENGINE_KERNELS_H
#define FADER_ENGINE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/pack.h"

enum {
    KERNEL_PANEL = 128,    /* most tokens in a panel */
    KERNEL_POSITIONS = 32, /* positions in a block of the KV cache */
    KERNEL_SEGMENT = 256,  /* positions that attention sums at once; segments are joined in order */
    KERNEL_SEGMENT_BLOCKS = KERNEL_SEGMENT / KERNEL_POSITIONS,
    KERNEL_LINE = 64, /* bytes of 32 halves, or of 32 pairs of codes */
    KERNEL_HALVES = KERNEL_POSITIONS * KERNEL_LINE,          /* a group of dimensions: f16 ... */
    KERNEL_CODES = (1 + KERNEL_POSITIONS / 2) * KERNEL_LINE, /* ... q8_0 */
    KERNEL_DIM_MAX = 1024                                    /* of a head */
};

/* One row times one token, block of 32 columns after block, acc = 0 to begin with. `dot` is the sum
 * of code times activation code; of a half, of 16 of them; o is the offset of the pack.
 *   a scale for 32 columns (all but Q6_K, Q3_K, Q2_K):
 *       D = d, or d * (float)scale;  M = m, or -(m * (float)min), or d * (float)-o
 *       acc = fma((float)dot, D * act.d, acc)
 *       acc = fma(M, act.sum, acc), where there is a min or an offset
 *   a scale for 16 columns: v and u are whole numbers
 *       v = sum over halves of scale * (dot - o * act.half);  u = that of min * act.half
 *       acc = fma((float)v, d * act.d, acc)
 *       acc = fma((float)u, -(m * act.d), acc), where there is a min */
struct act_scale {   /* of one token in one block of 32 columns */
    float d;         /* x is about d * q */
    float sum;       /* d * isum */
    int32_t isum;    /* sum of the 32 codes */
    int16_t half[2]; /* sums of the first and the second 16 */
};

struct panel { /* activations of n tokens, cols columns (a multiple of 32) */
    size_t n, cols;
    const int8_t *q;               /* [cols / 32][n][32]; integer weights read these ... */
    const struct act_scale *scale; /* [cols / 32][n] */
    const float *f32;              /* [cols / 32][n][32]: ... and float weights this */
};

/* One segment of the KV cache, seen by some queries of one KV head: m is the largest score of a
 * query, l the sum of exp(score - m), o the sum of exp(score - m) * V.
 *
 * A block holds KERNEL_POSITIONS positions of K or of V, in groups of 32 dimensions, of lines of 64
 * bytes:
 *   f16   K: line d is dimension d of all positions; V: line p is all dimensions of position p
 *   q8_0  first a line with the scales of all positions, halves, none negative; then codes in pairs:
 *         line i of K is dimensions 2i and 2i + 1 of all positions (position by position);
 *         of V, positions 2i and 2i + 1 of all dimensions
 * For q8_0 a query, and the products of a segment's weights and V's scales, become 16-bit codes, so
 * that both sums are sums of whole numbers. */
struct attend {
    const uint8_t *k[KERNEL_SEGMENT_BLOCKS], *v[KERNEL_SEGMENT_BLOCKS];
    const uint8_t *next[KERNEL_SEGMENT_BLOCKS]; /* what will be wanted next: a hint */
    size_t dim;                                 /* of a head, a multiple of 32 */
    size_t n;                                   /* queries */
    const float *q;                             /* [n][dim], scaled */
    const uint16_t *visible; /* [n]: how many positions each sees, 1 - KERNEL_SEGMENT */
    float *m, *l;            /* [n] */
    float *o;                /* [n][dim] */
};

/* n blocks of 8 rows as files have them (at any alignment), or n times 16 bytes of floats, become as
 * many blocks of the pack, or columns. */
struct pack_rows {
    const uint8_t *first;
    size_t stride;        /* from a row to the next */
    const uint8_t *ahead; /* what will be packed later; a hint, nothing has to be there */
    size_t gap;           /* of floats: from a packed column to the next */
};
typedef void pack_kernel(struct pack_rows rows, size_t n, uint8_t *out);

/* out [n_groups][panel->n][8] = weights [n_groups * 8 rows] times the panel. */
typedef void matmul_kernel(const uint8_t *groups, size_t n_groups, const struct panel *panel,
                           float *out);

struct kernels {
    const char *name;
    pack_kernel *const *pack; /* [PACK_COUNT]: pack_rows.h */
    matmul_kernel *matmul[PACK_COUNT];

    /* out = x / sqrt(mean(x^2) + eps) * weight over n values; all three padded with zeros to 32. */
    void (*rms_norm)(const float *x, const float *weight, size_t n, float eps, float *out);

    /* Codes of one token: block b of x goes to q + b * stride * 32 and scale[b * stride]. */
    void (*quantize)(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                     struct act_scale *scale);

    void (*silu_mul)(float *gate, const float *up, size_t n); /* gate = silu(gate) * up */
    void (*add)(float *x, const float *y, size_t n);          /* x += y */

    /* x [dim] turned in place: x = x * cos + partner(x) * sin, where the partner is the neighbour,
     * or, with `halves`, the value dim / 2 away; cos and sin [dim], the sign of the rotation is in
     * sin. */
    void (*rope)(float *x, const float *cos, const float *sin, size_t dim, bool halves);

    void (*attend_f16)(const struct attend *a);
    void (*attend_q8)(const struct attend *a);

    /* Joins a later run of positions (m2, l2, o2) to an earlier one. */
    void (*merge)(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim);

    void (*scale)(float *x, float by, size_t n);
    void (*float_to_half)(const float *src, uint16_t *dst, size_t n); /* beyond +-65504: that */
};

extern const struct kernels kernels_scalar;
#ifdef HAVE_AVX2
extern const struct kernels kernels_avx2;
#endif
#ifdef HAVE_AVX512
extern const struct kernels kernels_avx512;
#endif
#ifdef HAVE_NEON
extern const struct kernels kernels_neon;
#endif
#ifdef HAVE_DOTPROD
extern const struct kernels kernels_dotprod; /* NEON, with SDOT */
#endif

/* The set for this machine: the best that CPU and system bear, or the one named by FADER_KERNELS.
 * NULL with `err` when that one is unknown, not built in or not borne. */
const struct kernels *kernels_choose(struct error *err);

#endif
