/* Kernels for AArch64: matrices of codes, and the table. Compiled twice: with KERNELS_DOTPROD for
 * processors that add four products of bytes straight to 32 bits (ARMv8.2), without it for all.
 * The integer sums are the same. Each does what its twin in kernels_scalar.c does, in the same order.
 *
 * One skeleton serves all packs: it is inlined with the pack as a constant, and pack_traits says
 * which planes, scales and offsets there are. Loops over a tile are unrolled: it must live in
 * registers. */
#include "config.h"

#include "engine/kernels_neon.h"
#include "engine/kernels_scalar.h"

#include <string.h>

#include "engine/neon_lanes.h"

enum { PREFETCH = 256 }; /* bytes ahead */

/* 32 columns of 8 rows, unpacked: word r of w[0][j] holds columns 4j .. 4j + 3 of row r, of w[1][j]
 * of row r + 4. */
struct tile {
    int8x16_t w[2][8];
    vec d, m;
    words scales[2];   /* of a half */
    int16x8_t mins[2]; /* the same */
};

/* ---- unpacking ------------------------------------------------------------------------------ */

/* `width` bits from bit `from` on of every byte of v join the codes at bit `to`, where these are 0.
 * Shifted by the compiler's own operator: the intrinsic's count must be constant without optimisation
 * too. */
INLINE int8x16_t add_bits(int8x16_t codes, uint8x16_t v, unsigned from, unsigned width, unsigned to)
{
    uint8x16_t w = vreinterpretq_u8_s8(codes),
               mask = vdupq_n_u8((uint8_t)(((1u << width) - 1) << to));
    uint8x16_t moved = from > to ? v >> (uint8_t)(from - to) : v << (uint8_t)(to - from);
    bool alone = to == 0 && from + width == 8; /* the shift has left nothing else */

    return vreinterpretq_s8_u8(alone ? vorrq_u8(w, moved) : vbslq_u8(mask, moved, w));
}

/* A plane of `width` bits a code joins the codes at bit `to`. Returns what comes after it. */
INLINE const uint8_t *add_plane(struct tile *t, const uint8_t *p, unsigned width, unsigned to)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) {
        size_t rows = i / 8, j = i % 8;
        /* Bits and pairs go on within a vector, nibbles from vector to vector. */
        size_t vector = width == 4 ? j % 4 : j * width / 8;
        unsigned from = (unsigned)(width == 4 ? j / 4 * 4 : j * width % 8);
        t->w[rows][j] =
            add_bits(t->w[rows][j], vld1q_u8(p + 32 * vector + 16 * rows), from, width, to);
    }
    return p + 32 * width;
}

INLINE void unpack_codes(struct tile *t, const uint8_t *p, enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    unsigned low = (traits->planes & PLANE_NIBBLES) != 0 ? 4 : 0;

#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) {
        size_t at = i % 8 * 32 + i / 8 * 16;
        t->w[i / 8][i % 8] =
            traits->planes == PLANE_BYTES ? vreinterpretq_s8_u8(vld1q_u8(p + at)) : vdupq_n_s8(0);
    }
    if ((traits->planes & PLANE_BITS) != 0)
        p = add_plane(t, p, 1, low + ((traits->planes & PLANE_PAIRS) != 0 ? 2 : 0));
    if ((traits->planes & PLANE_PAIRS) != 0)
        p = add_plane(t, p, 2, low);
    if (low != 0)
        p = add_plane(t, p, 4, 0);
    if (traits->code_value != NULL) {
        int8x16_t values = vld1q_s8(traits->code_value);
#pragma GCC unroll 16
        for (size_t i = 0; i < 16; i++) {
            int8x16_t *w = &t->w[i / 8][i % 8];
            *w = vqtbl1q_s8(values, vreinterpretq_u8_s8(*w));
        }
    }
}

INLINE int16x8_t widen_u8(uint8x8_t v)
{
    return vreinterpretq_s16_u16(vmovl_u8(v));
}

/* The integer scales in front of the planes; d and m are the block's. Returns the planes. */
INLINE const uint8_t *unpack_scales(struct tile *t, const uint8_t *p, vec d, vec m, enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    uint8x16_t bytes;

    t->d = d;
    t->m = traits->has_min ? m : vec_mul(d, vec_set(-(float)traits->offset));
    switch (traits->scales) {
    case SCALES_NONE:
        return p;
    case SCALES_U8_MINS:
        t->d = vec_mul(d, vec_words(words_widen(widen_u8(vld1_u8(p)))));
        t->m = vec_mul(m, vec_words(words_widen(widen_u8(vld1_u8(p + LANES)))));
        return p + 16;
    case SCALES_I8:
        t->d = vec_mul(d, vec_words(words_widen(vmovl_s8(vreinterpret_s8_u8(vld1_u8(p))))));
        return p + 8;
    case SCALES_I8_HALVES:
    case SCALES_U4_MINS_HALVES:
        break;
    }
    bytes = vld1q_u8(p);
    uint8x8_t half[2] = {vget_low_u8(vuzp1q_u8(bytes, bytes)),
                         vget_low_u8(vuzp2q_u8(bytes, bytes))};
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        if (traits->scales == SCALES_I8_HALVES) {
            t->scales[h] = words_widen(vmovl_s8(vreinterpret_s8_u8(half[h])));
        } else {
            t->scales[h] = words_widen(widen_u8(vand_u8(half[h], vdup_n_u8(15))));
            t->mins[h] = widen_u8(vshr_n_u8(half[h], 4));
        }
    }
    return p + 16;
}

/* ---- products ------------------------------------------------------------------------------- */

#ifdef KERNELS_DOTPROD

/* `sum` + the products of columns 16 * half ..., for four rows. */
INLINE int32x4_t dot_half(int32x4_t sum, const int8x16_t w[8], const int8_t *q, size_t half)
{
    int8x16_t x = vld1q_s8(q + 16 * half);

    sum = vdotq_laneq_s32(sum, w[4 * half], x, 0);
    sum = vdotq_laneq_s32(sum, w[4 * half + 1], x, 1);
    sum = vdotq_laneq_s32(sum, w[4 * half + 2], x, 2);
    return vdotq_laneq_s32(sum, w[4 * half + 3], x, 3);
}

/* `first` + the products of the halves from .. to - 1, for four rows. */
INLINE int32x4_t dot(int32_t first, const int8x16_t w[8], const int8_t *q, size_t from, size_t to,
                     enum pack pack)
{
    int32x4_t sum = vdupq_n_s32(first);

    (void)pack;
#pragma GCC unroll 2
    for (size_t h = from; h < to; h++)
        sum = dot_half(sum, w, q, h);
    return sum;
}

#else

/* Four codes of a token, for every row. */
INLINE int8x16_t broadcast4(const int8_t *q)
{
    int32_t word;

    memcpy(&word, q, sizeof word);
    return vreinterpretq_s8_s32(vdupq_n_s32(word));
}

/* How many products can be added in 16 bits, whatever the activations: those of codes below 32
 * eight times (8 * 31 * 127 = 31496), below 64 four times, signed bytes twice (2 * 128 * 127).
 * A sum never leaves its half. */
INLINE size_t products_of(enum pack pack)
{
    if (pack_traits[pack].planes == PLANE_BYTES || pack_traits[pack].code_value != NULL)
        return 2;
    return pack_has_halves(pack) ? 4 : 8;
}

/* `first` + the products of the halves from .. to - 1, for four rows. */
INLINE int32x4_t dot(int32_t first, const int8x16_t w[8], const int8_t *q, size_t from, size_t to,
                     enum pack pack)
{
    size_t run = products_of(pack);
    int32x4_t low = vdupq_n_s32(0), high = low; /* two a row: rows 0, 1 and rows 2, 3 */

#pragma GCC unroll 8
    for (size_t j = 4 * from; j < 4 * to; j += run) {
        int8x16_t x = broadcast4(q + 4 * j);
        int16x8_t a = vmull_s8(vget_low_s8(w[j]), vget_low_s8(x)), b = vmull_high_s8(w[j], x);
#pragma GCC unroll 8
        for (size_t i = j + 1; i < j + run; i++) {
            x = broadcast4(q + 4 * i);
            a = vmlal_s8(a, vget_low_s8(w[i]), vget_low_s8(x));
            b = vmlal_high_s8(b, w[i], x);
        }
        low = vpadalq_s16(low, a);
        high = vpadalq_s16(high, b);
    }
    return vaddq_s32(vpaddq_s32(low, high), vdupq_n_s32(first));
}

#endif

INLINE words dot_rows(int32_t first, const struct tile *t, const int8_t *q, size_t from, size_t to,
                      enum pack pack)
{
    return (words){dot(first, t->w[0], q, from, to, pack), dot(first, t->w[1], q, from, to, pack)};
}

/* One token's 32 columns on top of `acc`: what struct act_scale defines. */
INLINE vec accumulate(vec acc, const struct tile *t, const int8_t *q, const struct act_scale *s,
                      enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    vec d = vec_mul(t->d, vec_set(s->d));

    if (!pack_has_halves(pack)) {
        acc = vec_fma(vec_words(dot_rows(0, t, q, 0, 2, pack)), d, acc);
        bool shifted = traits->has_min || traits->offset != 0;
        return shifted ? vec_fma(t->m, vec_set(s->sum), acc) : acc;
    }
    words sum = words_zero(), min = words_zero();
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        words part = dot_rows(-traits->offset * s->half[h], t, q, h, h + 1, pack);
        sum.lo = vmlaq_s32(sum.lo, part.lo, t->scales[h].lo);
        sum.hi = vmlaq_s32(sum.hi, part.hi, t->scales[h].hi);
    }
    acc = vec_fma(vec_words(sum), d, acc);
    if (!traits->has_min)
        return acc;
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        min.lo = vmlal_n_s16(min.lo, vget_low_s16(t->mins[h]), s->half[h]);
        min.hi = vmlal_high_n_s16(min.hi, t->mins[h], s->half[h]);
    }
    return vec_fma(vec_words(min), vec_mul(t->m, vec_set(s->d)), acc);
}

/* ---- matrices ------------------------------------------------------------------------------- */

INLINE void prefetch(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(p + PREFETCH + i);
}

/* Says that codes may have changed, so that nothing is worked out of them ahead of a loop: compilers
 * would take each register apart into halves there, and be out of registers. */
INLINE void hold(struct tile *t)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++)
        __asm__("" : "+w"(t->w[i / 8][i % 8]));
}

/* One group times n tokens. A tile is unpacked once and stays in registers for all of them; their
 * sums wait in L1, the sum of a single one (n is then a constant) in registers. */
INLINE void multiply_group(const uint8_t *block, const struct panel *a, size_t n, float *out,
                           enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    size_t head = traits->has_min ? 4 * LANES : 2 * LANES, parts = traits->columns / BLOCK;
    size_t part_bytes = (traits->bytes - head) / parts;
    const vec sign = vec_set(traits->scales == SCALES_NONE ? 1.0f : -1.0f);
    const int8_t *q = a->q;
    const struct act_scale *s = a->scale;
    vec acc[KERNEL_PANEL];

    for (size_t i = 0; i < n; i++)
        acc[i] = vec_set(0.0f);
    for (size_t b = 0; b < a->cols / traits->columns; b++) {
        vec d = vec_halves(block), m = vec_set(0.0f);
        if (traits->has_min)
            m = vec_mul(vec_halves(block + 2 * LANES), sign);
        block += head;
        for (size_t k = 0; k < parts; k++, block += part_bytes) {
            struct tile t;
            prefetch(block, part_bytes);
            unpack_codes(&t, unpack_scales(&t, block, d, m, pack), pack);
            for (size_t i = 0; i < n; i++, q += BLOCK, s++) {
                hold(&t);
                acc[i] = accumulate(acc[i], &t, q, s, pack);
            }
        }
    }
    for (size_t i = 0; i < n; i++)
        vec_store(out + i * LANES, acc[i]);
}

INLINE void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    size_t bytes = a->cols / pack_traits[pack].columns * pack_traits[pack].bytes;

    for (size_t g = 0; g < n_groups; g++, groups += bytes, out += a->n * LANES) {
        if (a->n == 1)
            multiply_group(groups, a, 1, out, pack);
        else
            multiply_group(groups, a, a->n, out, pack);
    }
}

#include "engine/kernels_codes.h"

#ifdef KERNELS_DOTPROD
#define KERNELS kernels_dotprod
#define NAME    "dotprod"
#else
#define KERNELS kernels_neon
#define NAME    "neon"
#endif

const struct kernels KERNELS = {
    .name = NAME,
    .pack = pack_rows_scalar,
    .matmul = {[PACK_F16] = neon_matmul_f16,
               [PACK_BF16] = neon_matmul_bf16,
               [PACK_F32] = neon_matmul_f32,
               FOR_PACKS_OF_CODES(MATMUL_ENTRY)},
    .rms_norm = neon_rms_norm,
    .quantize = neon_quantize,
    .silu_mul = neon_silu_mul,
    .add = neon_add,
    .rope = neon_rope,
    .attend_f16 = neon_attend_f16,
    .attend_q8 = neon_attend_q8,
    .merge = neon_merge,
    .scale = neon_scale,
    .float_to_half = neon_float_to_half,
};
