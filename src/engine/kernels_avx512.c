/* Kernels for AVX-512 with VNNI: matrices of codes; all else is AVX2's. vpdpbusd adds four products
 * of an unsigned and a signed byte straight to 32 bits, so nothing has to be kept from overflowing.
 * Two groups of rows share a 512-bit register. The skeleton is that of avx2_codes.h. */
#include "config.h"

#include "engine/kernels_avx2.h"
#include "engine/kernels_avx512.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK };

typedef uint32_t words __attribute__((vector_size(64)));

/* 32 columns of two groups, unpacked: word r of w[j] holds columns 4j .. 4j + 3 of row r. */
struct tile {
    __m512i w[8]; /* unsigned */
    __m512 d, m;
    __m512i scales[2]; /* of a half: 32 bits a row */
    __m512i mins;      /* pairs of 16 bits, of the halves */
};

/* The same place in both groups. */
struct place {
    const uint8_t *p, *p2;
};

INLINE struct place after(struct place at, size_t bytes)
{
    return (struct place){at.p + bytes, at.p2 + bytes};
}

/* What is added to codes to make them unsigned. */
INLINE int shift_of(enum pack pack)
{
    return pack_traits[pack].planes == PLANE_BYTES || pack_traits[pack].code_value != NULL ? 128
                                                                                           : 0;
}

/* ---- unpacking ------------------------------------------------------------------------------ */

INLINE __m512i load_plane(struct place at)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)at.p);

    return _mm512_inserti64x4(_mm512_castsi256_si512(low),
                              _mm256_loadu_si256((const __m256i *)at.p2), 1);
}

/* 16 bytes of each. */
INLINE __m256i load_halves_of(struct place at)
{
    __m128i low = _mm_loadu_si128((const __m128i *)at.p);

    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   _mm_loadu_si128((const __m128i *)at.p2), 1);
}

/* 8 bytes of each. */
INLINE __m128i load_quarters_of(struct place at)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)at.p),
                              _mm_loadl_epi64((const __m128i *)at.p2));
}

/* `width` bits from bit `from` on of every byte, moved to bit `to`; the others are 0. Shifted by the
 * compiler's own operator: the intrinsic's count must be constant without optimisation too. */
INLINE __m512i take_bits(__m512i v, unsigned from, unsigned width, unsigned to)
{
    __m512i mask = _mm512_set1_epi8((char)(((1u << width) - 1) << to));
    words moved = from > to ? (words)v >> (from - to) : (words)v << (to - from);

    return _mm512_and_si512((__m512i)moved, mask);
}

/* A plane of `width` bits a code joins the codes at bit `to`. Returns what comes after it. */
INLINE struct place add_plane(__m512i w[8], struct place at, unsigned width, unsigned to)
{
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) {
        /* Bits and pairs go on within a vector, nibbles from vector to vector. */
        size_t vector = width == 4 ? j % 4 : j * width / 8;
        unsigned from = (unsigned)(width == 4 ? j / 4 * 4 : j * width % 8);
        w[j] =
            _mm512_or_si512(w[j], take_bits(load_plane(after(at, 32 * vector)), from, width, to));
    }
    return after(at, 32 * width);
}

INLINE void unpack_codes(__m512i w[8], struct place at, enum pack pack)
{
    const struct pack_traits *t = &pack_traits[pack];
    unsigned low = (t->planes & PLANE_NIBBLES) != 0 ? 4 : 0;
    __m512i shift = _mm512_set1_epi8((char)shift_of(pack));

#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++)
        w[j] = t->planes == PLANE_BYTES ? _mm512_xor_si512(load_plane(after(at, 32 * j)), shift)
                                        : _mm512_setzero_si512();
    if ((t->planes & PLANE_BITS) != 0)
        at = add_plane(w, at, 1, low + ((t->planes & PLANE_PAIRS) != 0 ? 2 : 0));
    if ((t->planes & PLANE_PAIRS) != 0)
        at = add_plane(w, at, 2, low);
    if (low != 0)
        at = add_plane(w, at, 4, 0);
    if (t->code_value != NULL) {
        __m512i values = _mm512_xor_si512(
            _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)t->code_value)), shift);
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++)
            w[j] = _mm512_shuffle_epi8(values, w[j]);
    }
}

/* The integer scales in front of the planes; d and m are the block's. Returns the planes. */
INLINE struct place unpack_scales(struct tile *t, struct place at, __m512 d, __m512 m,
                                  enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    __m512i pairs;

    t->d = d;
    t->m = traits->has_min ? m : _mm512_mul_ps(d, _mm512_set1_ps(-(float)traits->offset));
    switch (traits->scales) {
    case SCALES_NONE:
        return at;
    case SCALES_U8_MINS:
        t->d = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_quarters_of(at))));
        at = after(at, 8);
        t->m = _mm512_mul_ps(m, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_quarters_of(at))));
        return after(at, 8);
    case SCALES_I8:
        t->d = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_quarters_of(at))));
        return after(at, 8);
    case SCALES_I8_HALVES:
        pairs = _mm512_cvtepi8_epi16(load_halves_of(at));
        break;
    case SCALES_U4_MINS_HALVES:
        pairs = _mm512_cvtepu8_epi16(load_halves_of(at));
        t->mins = _mm512_srli_epi16(pairs, 4);
        pairs = _mm512_and_si512(pairs, _mm512_set1_epi16(15));
    }
    t->scales[0] = _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16);
    t->scales[1] = _mm512_srai_epi32(pairs, 16);
    return after(at, 16);
}

/* ---- products ------------------------------------------------------------------------------- */

/* sum + the products of columns 4 * from .. 4 * to - 1, four a lane. */
INLINE __m512i dot(__m512i sum, const struct tile *t, const int8_t *q, size_t from, size_t to)
{
#pragma GCC unroll 8
    for (size_t j = from; j < to; j++) {
        int32_t word;
        memcpy(&word, q + 4 * j, sizeof word);
        sum = _mm512_dpbusd_epi32(sum, t->w[j], _mm512_set1_epi32(word));
    }
    return sum;
}

/* One token's 32 columns on top of `acc`: what struct act_scale defines. */
INLINE __m512 accumulate(__m512 acc, const struct tile *t, const int8_t *q,
                         const struct act_scale *s, enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    __m512 d = _mm512_mul_ps(t->d, _mm512_set1_ps(s->d));

    if (!pack_has_halves(pack)) {
        __m512i first = shift_of(pack) != 0 ? _mm512_set1_epi32(-shift_of(pack) * s->isum)
                                            : _mm512_setzero_si512();
        __m512i sum =
            _mm512_add_epi32(dot(first, t, q, 0, 4), dot(_mm512_setzero_si512(), t, q, 4, 8));
        acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), d, acc);
        bool shifted = traits->has_min || traits->offset != 0;
        return shifted ? _mm512_fmadd_ps(t->m, _mm512_set1_ps(s->sum), acc) : acc;
    }
    __m512i sum[2];
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        __m512i first = _mm512_set1_epi32(-traits->offset * s->half[h]);
        sum[h] = _mm512_mullo_epi32(dot(first, t, q, 4 * h, 4 * h + 4), t->scales[h]);
    }
    acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum[0], sum[1])), d, acc);
    if (!traits->has_min)
        return acc;
    int32_t halves;
    memcpy(&halves, s->half, sizeof halves);
    __m512i min = _mm512_madd_epi16(t->mins, _mm512_set1_epi32(halves));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(min), _mm512_mul_ps(t->m, _mm512_set1_ps(s->d)), acc);
}

/* ---- matrices ------------------------------------------------------------------------------- */

/* What two groups further on has the same place, into L2. Two runs side by side are more than the
 * hardware foresees; in this order all is read as one. */
INLINE void prefetch(struct place at, size_t bytes)
{
    size_t ahead = 2 * (size_t)(at.p2 - at.p);

    for (size_t i = 0; i < bytes; i += 64) {
        _mm_prefetch((const char *)(at.p + ahead + i), _MM_HINT_T1);
        _mm_prefetch((const char *)(at.p2 + ahead + i), _MM_HINT_T1);
    }
}

/* Two groups times n tokens; where they go is `out` and `out2`. A tile is unpacked once and stays in
 * registers for all tokens; their sums wait in L1, or, where n is a constant, in registers too. */
INLINE void multiply_pair(struct place at, const struct panel *a, size_t n, float *out, float *out2,
                          enum pack pack)
{
    const struct pack_traits *traits = &pack_traits[pack];
    size_t head = traits->has_min ? 4 * LANES : 2 * LANES, parts = traits->columns / BLOCK;
    size_t part_bytes = (traits->bytes - head) / parts;
    const __m512 sign = _mm512_set1_ps(traits->scales == SCALES_NONE ? 1.0f : -1.0f);
    const int8_t *q = a->q;
    const struct act_scale *s = a->scale;
    __m512 acc[KERNEL_PANEL];

    for (size_t i = 0; i < n; i++)
        acc[i] = _mm512_setzero_ps();
    for (size_t b = 0; b < a->cols / traits->columns; b++) {
        __m512 d = _mm512_cvtph_ps(load_halves_of(at)), m = _mm512_setzero_ps();
        if (traits->has_min)
            m = _mm512_mul_ps(_mm512_cvtph_ps(load_halves_of(after(at, 2 * LANES))), sign);
        at = after(at, head);
        for (size_t k = 0; k < parts; k++, at = after(at, part_bytes)) {
            struct tile t;
            prefetch(at, traits->bytes / parts);
            unpack_codes(t.w, unpack_scales(&t, at, d, m, pack), pack);
            for (size_t i = 0; i < n; i++, q += BLOCK, s++)
                acc[i] = accumulate(acc[i], &t, q, s, pack);
        }
    }
    for (size_t i = 0; i < n; i++) {
        __m512d both = _mm512_castps_pd(acc[i]);
        _mm256_storeu_ps(out2 + i * LANES, _mm256_castpd_ps(_mm512_extractf64x4_pd(both, 1)));
        _mm256_storeu_ps(out + i * LANES, _mm512_castps512_ps256(acc[i]));
    }
}

/* An odd group at the end is its own partner. */
INLINE void multiply_pairs(const uint8_t *groups, size_t n_groups, const struct panel *a, size_t n,
                           float *out, enum pack pack)
{
    size_t bytes = a->cols / pack_traits[pack].columns * pack_traits[pack].bytes;

    for (size_t g = 0; g < n_groups; g += 2) {
        size_t next = g + 1 < n_groups ? g + 1 : g;
        struct place at = {groups + g * bytes, groups + next * bytes};
        multiply_pair(at, a, n, out + g * n * LANES, out + next * n * LANES, pack);
    }
}

/* For a single token memory is what counts, and it hands out one run of weights faster than two:
 * kernels_avx512_one.c. */
INLINE void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    switch (a->n) {
    case 1:
        avx512_matmul_one[pack](groups, n_groups, a, out);
        break;
    case 2:
        multiply_pairs(groups, n_groups, a, 2, out, pack);
        break;
    case 3:
        multiply_pairs(groups, n_groups, a, 3, out, pack);
        break;
    case 4:
        multiply_pairs(groups, n_groups, a, 4, out, pack);
        break;
    default:
        multiply_pairs(groups, n_groups, a, a->n, out, pack);
    }
}

#include "engine/kernels_codes.h"

const struct kernels kernels_avx512 = {
    .name = "avx512",
    .pack = pack_rows_avx2,
    .matmul = {[PACK_F16] = avx512_matmul_f16,
               [PACK_BF16] = avx512_matmul_bf16,
               [PACK_F32] = avx512_matmul_f32,
               FOR_PACKS_OF_CODES(MATMUL_ENTRY)},
    .rms_norm = avx2_rms_norm,
    .quantize = avx2_quantize,
    .silu_mul = avx2_silu_mul,
    .add = avx2_add,
    .rope = avx2_rope,
    .attend_f16 = avx512_attend_f16,
    .attend_q8 = avx512_attend_q8,
    .merge = avx2_merge,
    .scale = avx2_scale,
    .float_to_half = avx2_float_to_half,
};
