/* Kernels for AVX-512 with VNNI: matrices of codes; all else is AVX2's. vpdpbusd adds four products
 * of an unsigned and a signed byte straight to 32 bits, so nothing has to be kept from overflowing.
 * Two groups of rows share a 512-bit register. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK, PREFETCH = 512 };

/* A block of 32 columns of two groups: word r of w<j> holds columns 4j .. 4j+3 of row
 * r, unsigned. */
struct tile {
    __m512i w0, w1, w2, w3, w4, w5, w6, w7;
    __m512 d, m;
};

/* The same place in both groups. */
INLINE __m512i load_codes(const uint8_t *p, const uint8_t *p2)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)p);

    return _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_loadu_si256((const __m256i *)p2),
                              1);
}

INLINE __m512 load_halves(const uint8_t *p, const uint8_t *p2)
{
    __m128i low = _mm_loadu_si128((const __m128i *)p);

    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                                   _mm_loadu_si128((const __m128i *)p2), 1));
}

INLINE __m512i low_nibbles(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

INLINE __m512i high_nibbles(__m512i v)
{
    return low_nibbles(_mm512_srli_epi16(v, 4));
}

INLINE struct tile unpack_q4(const uint8_t *p, const uint8_t *p2, bool has_min)
{
    size_t head = has_min ? 32 : 16;
    __m512 d = load_halves(p, p2);
    __m512 m = has_min ? load_halves(p + 16, p2 + 16) : _mm512_mul_ps(d, _mm512_set1_ps(-8.0f));

    p += head;
    p2 += head;
    __m512i a = load_codes(p, p2), b = load_codes(p + 32, p2 + 32);
    __m512i c = load_codes(p + 64, p2 + 64), e = load_codes(p + 96, p2 + 96);
    return (struct tile){low_nibbles(a),
                         low_nibbles(b),
                         low_nibbles(c),
                         low_nibbles(e),
                         high_nibbles(a),
                         high_nibbles(b),
                         high_nibbles(c),
                         high_nibbles(e),
                         d,
                         m};
}

/* Signed codes plus 128; what that adds to the sum is taken away in `accumulate`. */
INLINE __m512i load_shifted(const uint8_t *p, const uint8_t *p2)
{
    return _mm512_xor_si512(load_codes(p, p2), _mm512_set1_epi8((char)0x80));
}

INLINE struct tile unpack_q8(const uint8_t *p, const uint8_t *p2)
{
    const uint8_t *w = p + 16, *v = p2 + 16;

    return (struct tile){load_shifted(w, v),
                         load_shifted(w + 32, v + 32),
                         load_shifted(w + 64, v + 64),
                         load_shifted(w + 96, v + 96),
                         load_shifted(w + 128, v + 128),
                         load_shifted(w + 160, v + 160),
                         load_shifted(w + 192, v + 192),
                         load_shifted(w + 224, v + 224),
                         load_halves(p, p2),
                         _mm512_setzero_ps()};
}

INLINE __m512i dot_words(__m512i sum, __m512i w, const int8_t *q)
{
    int32_t word;

    memcpy(&word, q, sizeof word);
    return _mm512_dpbusd_epi32(sum, w, _mm512_set1_epi32(word));
}

INLINE __m512 accumulate(__m512 acc, const struct tile *t, const int8_t *q,
                         const struct act_scale *s, bool q8)
{
    __m512i a = q8 ? _mm512_set1_epi32(-128 * s->isum) : _mm512_setzero_si512();
    __m512i b = _mm512_setzero_si512();

    a = dot_words(a, t->w0, q);
    b = dot_words(b, t->w1, q + 4);
    a = dot_words(a, t->w2, q + 8);
    b = dot_words(b, t->w3, q + 12);
    a = dot_words(a, t->w4, q + 16);
    b = dot_words(b, t->w5, q + 20);
    a = dot_words(a, t->w6, q + 24);
    b = dot_words(b, t->w7, q + 28);
    __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(a, b));
    acc = _mm512_fmadd_ps(sum, _mm512_mul_ps(t->d, _mm512_set1_ps(s->d)), acc);
    return q8 ? acc : _mm512_fmadd_ps(t->m, _mm512_set1_ps(s->sum), acc);
}

INLINE void prefetch_block(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)(p + PREFETCH + i), _MM_HINT_T0);
}

/* Two groups times the panel. A tile stays in registers for all tokens, their sums wait in L1. */
INLINE void pair_times_panel(const uint8_t *group, size_t group_bytes, const struct panel *a,
                             float *out, enum pack pack, size_t bytes)
{
    const int8_t *q = a->q;
    const struct act_scale *s = a->scale;
    __m512 acc[KERNEL_PANEL];
    bool q8 = pack == PACK_Q8_0;

    for (size_t i = 0; i < a->n; i++)
        acc[i] = _mm512_setzero_ps();
    for (size_t b = 0; b < a->cols / BLOCK; b++, group += bytes) {
        const uint8_t *second = group + group_bytes;
        prefetch_block(group, bytes);
        prefetch_block(second, bytes);
        struct tile t = q8 ? unpack_q8(group, second) : unpack_q4(group, second, pack == PACK_Q4_1);
        for (size_t i = 0; i < a->n; i++, q += BLOCK, s++)
            acc[i] = accumulate(acc[i], &t, q, s, q8);
    }
    for (size_t i = 0; i < a->n; i++) {
        _mm256_storeu_ps(out + i * LANES, _mm512_castps512_ps256(acc[i]));
        _mm256_storeu_ps(out + (a->n + i) * LANES,
                         _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(acc[i]), 1)));
    }
}

/* A single token has nothing to share a tile with, and an odd group no partner: those
 * are AVX2's. */
INLINE void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack, size_t bytes)
{
    size_t group_bytes = a->cols / BLOCK * bytes, pairs = a->n > 1 ? n_groups / 2 : 0;

    for (size_t i = 0; i < pairs; i++, groups += 2 * group_bytes, out += 2 * a->n * LANES)
        pair_times_panel(groups, group_bytes, a, out, pack, bytes);
    if (2 * pairs < n_groups)
        kernels_avx2.matmul[pack](groups, n_groups - 2 * pairs, a, out);
}

static void matmul_q4_0(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q4_0, 144);
}

static void matmul_q4_1(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q4_1, 160);
}

static void matmul_q8_0(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q8_0, 272);
}

const struct kernels kernels_avx512 = {
    .name = "avx512",
    .matmul = {[PACK_Q4_0] = matmul_q4_0,
               [PACK_Q4_1] = matmul_q4_1,
               [PACK_Q8_0] = matmul_q8_0,
               [PACK_Q5_0] = avx2_matmul_q5_0,
               [PACK_Q5_1] = avx2_matmul_q5_1,
               [PACK_IQ4_NL] = avx2_matmul_iq4_nl,
               [PACK_Q4_K] = avx2_matmul_q4_k,
               [PACK_Q5_K] = avx2_matmul_q5_k,
               [PACK_Q6_K] = avx2_matmul_q6_k,
               [PACK_Q3_K] = avx2_matmul_q3_k,
               [PACK_Q2_K] = avx2_matmul_q2_k,
               [PACK_IQ4_XS] = avx2_matmul_iq4_xs,
               [PACK_F16] = avx2_matmul_f16,
               [PACK_BF16] = avx2_matmul_bf16,
               [PACK_F32] = avx2_matmul_f32},
    .rms_norm = avx2_rms_norm,
    .quantize = avx2_quantize,
    .silu_mul = avx2_silu_mul,
    .add = avx2_add,
    .rope = avx2_rope,
    .attend_f16 = avx2_attend_f16,
    .attend_f32 = avx2_attend_f32,
    .attend_q8 = avx2_attend_q8,
    .merge = avx2_merge,
    .scale = avx2_scale,
    .half_to_float = avx2_half_to_float,
    .float_to_half = avx2_float_to_half,
    .expand_codes = avx2_expand_codes,
};
