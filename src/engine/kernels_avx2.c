/* Kernels for AVX2, FMA and F16C: matrices of codes, and the table. Each does what its twin in
 * kernels_scalar.c does, in the same order. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include <string.h>

#include "engine/avx2_lanes.h"

enum { PREFETCH = 512 }; /* bytes ahead; measured best on the machines at hand */

/* A block of 8 rows x 32 columns, unpacked: word r of w[j] holds columns 4j .. 4j+3 of row r. Loops
 * over it are written out: it must live in registers. */
struct tile {
    __m256i w0, w1, w2, w3, w4, w5, w6, w7;
    __m256 d, m;
};

INLINE __m256i load_codes(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m256i low_nibbles(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

INLINE __m256i high_nibbles(__m256i v)
{
    return low_nibbles(_mm256_srli_epi16(v, 4));
}

INLINE struct tile unpack_q4(const uint8_t *p, bool has_min)
{
    __m256 d = load_halves(p);
    __m256 m = has_min ? load_halves(p + 16) : _mm256_mul_ps(d, _mm256_set1_ps(-8.0f));

    p += has_min ? 32 : 16;
    __m256i a = load_codes(p), b = load_codes(p + 32), c = load_codes(p + 64);
    __m256i e = load_codes(p + 96);
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

INLINE struct tile unpack_q8(const uint8_t *p)
{
    const uint8_t *w = p + 16;

    return (struct tile){load_codes(w),       load_codes(w + 32),  load_codes(w + 64),
                         load_codes(w + 96),  load_codes(w + 128), load_codes(w + 160),
                         load_codes(w + 192), load_codes(w + 224), load_halves(p),
                         _mm256_setzero_ps()};
}

INLINE __m256i broadcast4(const int8_t *q)
{
    int32_t word;

    memcpy(&word, q, sizeof word);
    return _mm256_set1_epi32(word);
}

/* Codes are 0 .. 15, so eight products of two still fit 16 bits: 8 * 2 * 15 * 127 = 30480. */
INLINE __m256i dot_q4(const struct tile *t, const int8_t *q)
{
    __m256i a = _mm256_maddubs_epi16(t->w0, broadcast4(q));
    __m256i b = _mm256_maddubs_epi16(t->w1, broadcast4(q + 4));

    a = _mm256_add_epi16(a, _mm256_maddubs_epi16(t->w2, broadcast4(q + 8)));
    b = _mm256_add_epi16(b, _mm256_maddubs_epi16(t->w3, broadcast4(q + 12)));
    a = _mm256_add_epi16(a, _mm256_maddubs_epi16(t->w4, broadcast4(q + 16)));
    b = _mm256_add_epi16(b, _mm256_maddubs_epi16(t->w5, broadcast4(q + 20)));
    a = _mm256_add_epi16(a, _mm256_maddubs_epi16(t->w6, broadcast4(q + 24)));
    b = _mm256_add_epi16(b, _mm256_maddubs_epi16(t->w7, broadcast4(q + 28)));
    return _mm256_madd_epi16(_mm256_add_epi16(a, b), _mm256_set1_epi16(1));
}

/* maddubs wants one side unsigned: the weight's sign goes over to the activation. Twice 128 * 127
 * fit. */
INLINE __m256i dot_q8_words(__m256i w, const int8_t *q)
{
    __m256i x = _mm256_sign_epi8(broadcast4(q), w);

    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w), x), _mm256_set1_epi16(1));
}

INLINE __m256i dot_q8(const struct tile *t, const int8_t *q)
{
    __m256i a = _mm256_add_epi32(dot_q8_words(t->w0, q), dot_q8_words(t->w1, q + 4));
    __m256i b = _mm256_add_epi32(dot_q8_words(t->w2, q + 8), dot_q8_words(t->w3, q + 12));

    a = _mm256_add_epi32(a, dot_q8_words(t->w4, q + 16));
    b = _mm256_add_epi32(b, dot_q8_words(t->w5, q + 20));
    a = _mm256_add_epi32(a, dot_q8_words(t->w6, q + 24));
    b = _mm256_add_epi32(b, dot_q8_words(t->w7, q + 28));
    return _mm256_add_epi32(a, b);
}

INLINE __m256 accumulate(__m256 acc, const struct tile *t, const int8_t *q,
                         const struct act_scale *s, bool q8)
{
    __m256i sum = q8 ? dot_q8(t, q) : dot_q4(t, q);

    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(t->d, _mm256_set1_ps(s->d)), acc);
    return q8 ? acc : _mm256_fmadd_ps(t->m, _mm256_set1_ps(s->sum), acc);
}

INLINE void prefetch_block(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)(p + PREFETCH + i), _MM_HINT_T0);
}

INLINE struct tile unpack(const uint8_t *p, enum pack pack)
{
    return pack == PACK_Q8_0 ? unpack_q8(p) : unpack_q4(p, pack == PACK_Q4_1);
}

/* One token: its sums stay in a register. */
INLINE void group_times_one(const uint8_t *group, const struct panel *a, float *out, enum pack pack,
                            size_t bytes)
{
    __m256 acc = _mm256_setzero_ps();

    for (size_t b = 0; b < a->cols / BLOCK; b++, group += bytes) {
        prefetch_block(group, bytes);
        struct tile t = unpack(group, pack);
        acc = accumulate(acc, &t, a->q + b * BLOCK, &a->scale[b], pack == PACK_Q8_0);
    }
    _mm256_storeu_ps(out, acc);
}

/* Many: a tile is unpacked once and stays in registers for all of them, their sums wait in L1. */
INLINE void group_times_panel(const uint8_t *group, const struct panel *a, float *out,
                              enum pack pack, size_t bytes)
{
    const int8_t *q = a->q;
    const struct act_scale *s = a->scale;

    memset(out, 0, a->n * LANES * sizeof *out);
    for (size_t b = 0; b < a->cols / BLOCK; b++, group += bytes) {
        prefetch_block(group, bytes);
        struct tile t = unpack(group, pack);
        for (size_t i = 0; i < a->n; i++, q += BLOCK, s++) {
            __m256 acc = _mm256_loadu_ps(out + i * LANES);
            _mm256_storeu_ps(out + i * LANES, accumulate(acc, &t, q, s, pack == PACK_Q8_0));
        }
    }
}

INLINE void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    size_t bytes = pack == PACK_Q8_0 ? 272 : pack == PACK_Q4_1 ? 160 : 144;
    size_t group_bytes = a->cols / BLOCK * bytes;

    for (size_t g = 0; g < n_groups; g++, groups += group_bytes, out += a->n * LANES) {
        if (a->n == 1)
            group_times_one(groups, a, out, pack, bytes);
        else
            group_times_panel(groups, a, out, pack, bytes);
    }
}

void avx2_matmul_q4_0(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q4_0);
}

void avx2_matmul_q4_1(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q4_1);
}

void avx2_matmul_q8_0(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q8_0);
}

#define SCALAR(name, pack)                                                                         \
    void avx2_matmul_##name(const uint8_t *groups, size_t n_groups, const struct panel *a,         \
                            float *out)                                                            \
    {                                                                                              \
        kernels_scalar.matmul[pack](groups, n_groups, a, out);                                     \
    }

SCALAR(q5_0, PACK_Q5_0)
SCALAR(q5_1, PACK_Q5_1)
SCALAR(iq4_nl, PACK_IQ4_NL)
SCALAR(q4_k, PACK_Q4_K)
SCALAR(q5_k, PACK_Q5_K)
SCALAR(q6_k, PACK_Q6_K)
SCALAR(q3_k, PACK_Q3_K)
SCALAR(q2_k, PACK_Q2_K)
SCALAR(iq4_xs, PACK_IQ4_XS)

const struct kernels kernels_avx2 = {
    .name = "avx2",
    .matmul = {[PACK_Q4_0] = avx2_matmul_q4_0,
               [PACK_Q4_1] = avx2_matmul_q4_1,
               [PACK_Q8_0] = avx2_matmul_q8_0,
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
