/* The skeleton that multiplies matrices of codes in 256-bit registers: one group of 8 rows. It is
 * inlined with the pack as a constant, and pack_traits says which planes, scales and offsets there
 * are. Loops over a tile are unrolled: it must live in registers. Each step does what its twin in
 * kernels_scalar.c does, in the same order.
 *
 * Compiled for VNNI as well, which adds products straight to 32 bits; the sums are the same. */
#ifndef FADER_ENGINE_AVX2_CODES_H
#define FADER_ENGINE_AVX2_CODES_H

#include <string.h>

#include "engine/avx2_lanes.h"

enum { PREFETCH = 256 }; /* bytes ahead */

/* 32 columns of 8 rows, unpacked: word r of w[j] holds columns 4j .. 4j + 3 of row r. */
struct tile {
    __m256i w[8];
    __m256 d, m;
    __m256i scales[2]; /* of a half: 16 bits, twice a row */
    __m256i shifts;    /* pairs, of the halves: scale * offset, or the min */
};

INLINE bool is_signed(enum pack pack)
{
    return pack_traits[pack].planes == PLANE_BYTES || pack_traits[pack].code_value != NULL;
}

/* ---- unpacking ------------------------------------------------------------------------------ */

INLINE __m256i load_plane(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* `width` bits from bit `from` on of every byte, moved to bit `to`; the others are 0. */
INLINE __m256i take_bits(__m256i v, unsigned from, unsigned width, unsigned to)
{
    __m256i mask = _mm256_set1_epi8((char)(((1u << width) - 1) << to));
    __m256i moved =
        from > to ? _mm256_srli_epi16(v, (int)(from - to)) : _mm256_slli_epi16(v, (int)(to - from));

    return _mm256_and_si256(moved, mask);
}

/* A plane of `width` bits a code joins the codes at bit `to`. Returns what comes after it. */
INLINE const uint8_t *add_plane(__m256i w[8], const uint8_t *p, unsigned width, unsigned to)
{
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) {
        /* Bits and pairs go on within a vector, nibbles from vector to vector. */
        size_t vector = width == 4 ? j % 4 : j * width / 8;
        unsigned from = (unsigned)(width == 4 ? j / 4 * 4 : j * width % 8);
        w[j] = _mm256_or_si256(w[j], take_bits(load_plane(p + 32 * vector), from, width, to));
    }
    return p + 32 * width;
}

INLINE void unpack_codes(__m256i w[8], const uint8_t *p, enum pack pack)
{
    const struct pack_traits *t = &pack_traits[pack];
    unsigned low = (t->planes & PLANE_NIBBLES) != 0 ? 4 : 0;

#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++)
        w[j] = t->planes == PLANE_BYTES ? load_plane(p + 32 * j) : _mm256_setzero_si256();
    if ((t->planes & PLANE_BITS) != 0)
        p = add_plane(w, p, 1, low + ((t->planes & PLANE_PAIRS) != 0 ? 2 : 0));
    if ((t->planes & PLANE_PAIRS) != 0)
        p = add_plane(w, p, 2, low);
    if (low != 0)
        p = add_plane(w, p, 4, 0);
    if (t->code_value != NULL) {
        __m256i values =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)t->code_value));
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++)
            w[j] = _mm256_shuffle_epi8(values, w[j]);
    }
}

/* The integer scales in front of the planes; d and m are the block's. Returns the planes. */
INLINE const uint8_t *unpack_scales(struct tile *t, const uint8_t *p, __m256 d, __m256 m,
                                    enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    __m256i pairs = _mm256_cvtepi8_epi16(bytes);

    t->d = d;
    t->m = traits->has_min ? m : _mm256_mul_ps(d, _mm256_set1_ps(-(float)traits->offset));
    switch (traits->scales) {
    case SCALES_NONE:
        return p;
    case SCALES_U8_MINS:
        t->d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
        t->m = _mm256_mul_ps(
            m, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, KERNEL_LANES))));
        return p + 16;
    case SCALES_I8:
        t->d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
        return p + 8;
    case SCALES_I8_HALVES:
        t->shifts = _mm256_mullo_epi16(pairs, _mm256_set1_epi16(traits->offset));
        break;
    case SCALES_U4_MINS_HALVES:
        pairs = _mm256_cvtepu8_epi16(bytes);
        t->shifts = _mm256_srli_epi16(pairs, 4);
        pairs = _mm256_and_si256(pairs, _mm256_set1_epi16(15));
    }
    t->scales[0] = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(pairs, 0xA0), 0xA0);
    t->scales[1] = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(pairs, 0xF5), 0xF5);
    return p + 16;
}

/* ---- products ------------------------------------------------------------------------------- */

/* Four codes of a token, for every row. */
INLINE __m256i broadcast4(const int8_t *q)
{
    int32_t word;

    memcpy(&word, q, sizeof word);
    return _mm256_set1_epi32(word);
}

/* maddubs wants one side unsigned: where weights are signed, their sign goes over to the
 * activation. */
INLINE __m256i multiply(__m256i w, const int8_t *q, bool with_sign)
{
    __m256i x = broadcast4(q);

    return with_sign ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                     : _mm256_maddubs_epi16(w, x);
}

/* sum + the products of pairs. */
INLINE __m256i add_pairs(__m256i sum, __m256i a, __m256i b)
{
#ifdef __AVX512VNNI__
    return _mm256_dpwssd_epi32(sum, a, b);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}

/* How many products of two can be added in 16 bits, whatever the activations: those of codes below
 * 16 eight times (8 * 2 * 15 * 127 = 30480), below 32 four times, below 64 twice, signed bytes not
 * at all (2 * 128 * 127). A sum never leaves its half. */
INLINE size_t products_of(enum pack pack)
{
    unsigned planes = pack_traits[pack].planes;

    if (is_signed(pack))
        return 1;
    if (pack_has_halves(pack))
        return (planes & PLANE_NIBBLES) != 0 ? 2 : 4;
    return (planes & PLANE_BITS) != 0 ? 4 : 8;
}

/* Sums of the products of 32 columns, each half by its scale where it has one. */
INLINE __m256i dot_pairs(const struct tile *t, const int8_t *q, enum pack pack)
{
    size_t run = products_of(pack);
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};

#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j += run) {
        __m256i part = multiply(t->w[j], q + 4 * j, is_signed(pack));
#pragma GCC unroll 8
        for (size_t i = j + 1; i < j + run; i++)
            part = _mm256_add_epi16(part, multiply(t->w[i], q + 4 * i, is_signed(pack)));
        size_t s = j / run % 2;
        sum[s] = add_pairs(sum[s], part,
                           pack_has_halves(pack) ? t->scales[j / 4] : _mm256_set1_epi16(1));
    }
    return _mm256_add_epi32(sum[0], sum[1]);
}

#ifdef __AVX512VNNI__
/* The same without scales. vpdpbusd adds four products to 32 bits, nothing can overflow; signed
 * weights become unsigned by adding 128, and the sum of the activations takes that back. */
INLINE __m256i dot_quads(const struct tile *t, const int8_t *q, const struct act_scale *s,
                         enum pack pack)
{
    const __m256i shift = _mm256_set1_epi8(is_signed(pack) ? -128 : 0);
    __m256i sum[2] = {_mm256_set1_epi32(is_signed(pack) ? -128 * s->isum : 0),
                      _mm256_setzero_si256()};

#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++)
        sum[j % 2] = _mm256_dpbusd_epi32(sum[j % 2], _mm256_xor_si256(t->w[j], shift),
                                         broadcast4(q + 4 * j));
    return _mm256_add_epi32(sum[0], sum[1]);
}
#endif

INLINE __m256i dot(const struct tile *t, const int8_t *q, const struct act_scale *s, enum pack pack)
{
#ifdef __AVX512VNNI__
    if (!pack_has_halves(pack))
        return dot_quads(t, q, s, pack);
#endif
    (void)s;
    return dot_pairs(t, q, pack);
}

/* One token's 32 columns on top of `acc`: what struct act_scale defines. */
INLINE __m256 accumulate(__m256 acc, const struct tile *t, const int8_t *q,
                         const struct act_scale *s, enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    __m256i sum = dot(t, q, s, pack);
    __m256 d = _mm256_mul_ps(t->d, _mm256_set1_ps(s->d));

    if (!pack_has_halves(pack)) {
        acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), d, acc);
        bool shifted = traits->has_min || traits->offset != 0;
        return shifted ? _mm256_fmadd_ps(t->m, _mm256_set1_ps(s->sum), acc) : acc;
    }
    int32_t halves;
    memcpy(&halves, s->half, sizeof halves);
    __m256i shift = _mm256_madd_epi16(t->shifts, _mm256_set1_epi32(halves));
    if (!traits->has_min)
        return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sum, shift)), d, acc);
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), d, acc);
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(shift), _mm256_mul_ps(t->m, _mm256_set1_ps(s->d)),
                           acc);
}

/* ---- matrices ------------------------------------------------------------------------------- */

/* For one token memory sets the pace: into L1 at PREFETCH was up to 13 % slower where it is quick. */
INLINE void prefetch(const uint8_t *p, size_t bytes, size_t n)
{
    for (size_t i = 0; i < bytes; i += 64) {
        if (n == 1)
            _mm_prefetch((const char *)(p + 2 * PREFETCH + i), _MM_HINT_T1);
        else
            _mm_prefetch((const char *)(p + PREFETCH + i), _MM_HINT_T0);
    }
}

/* One group times n tokens. A tile is unpacked once and stays in registers for all of them; their
 * sums wait in L1, the sum of a single one (n is then a constant) in a register. */
INLINE void multiply_group(const uint8_t *block, const struct panel *a, size_t n, float *out,
                           enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    size_t head = traits->has_min ? 4 * LANES : 2 * LANES, parts = traits->columns / BLOCK;
    size_t part_bytes = (traits->bytes - head) / parts;
    const __m256 sign = _mm256_set1_ps(traits->scales == SCALES_NONE ? 1.0f : -1.0f);
    const int8_t *q = a->q;
    const struct act_scale *s = a->scale;
    __m256 acc[KERNEL_PANEL];

    for (size_t i = 0; i < n; i++)
        acc[i] = _mm256_setzero_ps();
    for (size_t b = 0; b < a->cols / traits->columns; b++) {
        __m256 d = load_halves(block), m = _mm256_setzero_ps();
        if (traits->has_min)
            m = _mm256_mul_ps(load_halves(block + 2 * LANES), sign);
        block += head;
        for (size_t k = 0; k < parts; k++, block += part_bytes) {
            struct tile t;
            prefetch(block, part_bytes, n);
            unpack_codes(t.w, unpack_scales(&t, block, d, m, pack), pack);
            for (size_t i = 0; i < n; i++, q += BLOCK, s++)
                acc[i] = accumulate(acc[i], &t, q, s, pack);
        }
    }
    for (size_t i = 0; i < n; i++)
        _mm256_storeu_ps(out + i * LANES, acc[i]);
}

#endif
