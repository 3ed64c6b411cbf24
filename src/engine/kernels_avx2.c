/* Kernels for AVX2, FMA and F16C. Each does what its twin in kernels_scalar.c does, in the same order. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "engine/exp.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK, PREFETCH = 512 };

INLINE float lane_sum(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE float lane_max(__m256 v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

INLINE __m256 load_halves(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

/* ---- matrices of codes ---------------------------------------------------------------------- */

/* A block of 8 rows x 32 columns, unpacked: word r of w[j] holds columns 4j .. 4j+3 of row r. Loops over it
 * are written out: it must live in registers. */
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
    return (struct tile){low_nibbles(a),  low_nibbles(b),  low_nibbles(c),  low_nibbles(e),
                         high_nibbles(a), high_nibbles(b), high_nibbles(c), high_nibbles(e),
                         d,               m};
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

/* maddubs wants one side unsigned: the weight's sign goes over to the activation. Twice 128 * 127 fit. */
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

/* ---- matrices of floats --------------------------------------------------------------------- */

INLINE __m256 load_column(const uint8_t *p, enum pack pack)
{
    if (pack == PACK_F16)
        return load_halves(p);
    if (pack == PACK_F32)
        return _mm256_loadu_ps((const float *)(const void *)p);
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* Sums of one token: even and odd columns apart. */
struct sums {
    __m256 even, odd;
};

INLINE void add_columns(struct sums *s, __m256 w0, __m256 w1, const float *x)
{
    s->even = _mm256_fmadd_ps(w0, _mm256_set1_ps(x[0]), s->even);
    s->odd = _mm256_fmadd_ps(w1, _mm256_set1_ps(x[1]), s->odd);
}

/* One group times `n` tokens, a constant of at most 4. */
INLINE void dot_floats(const uint8_t *p, const float *x, size_t cols, size_t n, float *out,
                       enum pack pack)
{
    size_t bytes = LANES * (pack == PACK_F32 ? 4 : 2);
    struct sums s0 = {_mm256_setzero_ps(), _mm256_setzero_ps()}, s1 = s0, s2 = s0, s3 = s0;

    for (size_t c = 0; c < cols; c += 2, p += 2 * bytes, x += 2) {
        _mm_prefetch((const char *)(p + PREFETCH), _MM_HINT_T0);
        __m256 w0 = load_column(p, pack), w1 = load_column(p + bytes, pack);
        add_columns(&s0, w0, w1, x);
        if (n > 1) {
            add_columns(&s1, w0, w1, x + cols);
            add_columns(&s2, w0, w1, x + 2 * cols);
            add_columns(&s3, w0, w1, x + 3 * cols);
        }
    }
    _mm256_storeu_ps(out, _mm256_add_ps(s0.even, s0.odd));
    if (n > 1) {
        _mm256_storeu_ps(out + LANES, _mm256_add_ps(s1.even, s1.odd));
        _mm256_storeu_ps(out + 2 * LANES, _mm256_add_ps(s2.even, s2.odd));
        _mm256_storeu_ps(out + 3 * LANES, _mm256_add_ps(s3.even, s3.odd));
    }
}

INLINE void matmul_floats(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                          enum pack pack)
{
    size_t bytes = a->cols * LANES * (pack == PACK_F32 ? 4 : 2);

    for (size_t g = 0; g < n_groups; g++, groups += bytes) {
        size_t t = 0;
        for (; t + 4 <= a->n; t += 4, out += 4 * LANES)
            dot_floats(groups, a->f32 + t * a->cols, a->cols, 4, out, pack);
        for (; t < a->n; t++, out += LANES)
            dot_floats(groups, a->f32 + t * a->cols, a->cols, 1, out, pack);
    }
}

void avx2_matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F16);
}

void avx2_matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_BF16);
}

void avx2_matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F32);
}

/* ---- vectors -------------------------------------------------------------------------------- */

void avx2_rms_norm(const float *x, const float *weight, size_t n, float eps, float *out)
{
    size_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    __m256 acc[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                     _mm256_setzero_ps()};

    for (size_t i = 0; i < padded; i += BLOCK) {
        for (size_t j = 0; j < 4; j++) {
            __m256 v = _mm256_loadu_ps(x + i + j * LANES);
            acc[j] = _mm256_fmadd_ps(v, v, acc[j]);
        }
    }
    float sum = lane_sum(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), _mm256_add_ps(acc[2], acc[3])));
    __m256 factor = _mm256_set1_ps(1.0f / sqrtf(sum / (float)n + eps));
    for (size_t i = 0; i < padded; i += LANES) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
        _mm256_storeu_ps(out + i, _mm256_mul_ps(v, _mm256_loadu_ps(weight + i)));
    }
}

/* Rounds x * inverse to bytes; returns their sum. */
INLINE int32_t round_codes(const __m256 x[4], float inverse, int8_t *q)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256 magic = _mm256_set1_ps(EXP_MAGIC), by = _mm256_set1_ps(inverse);
    const __m256i byte = _mm256_set1_epi32(0xFF), bias = _mm256_set1_epi8((char)0x80);
    __m256i v[4];

    for (int j = 0; j < 4; j++) {
        __m256 rounded = _mm256_add_ps(_mm256_mul_ps(x[j], by), magic);
        v[j] = _mm256_and_si256(_mm256_castps_si256(rounded), byte);
    }
    __m256i codes = _mm256_packus_epi16(_mm256_packus_epi32(v[0], v[1]),
                                        _mm256_packus_epi32(v[2], v[3]));
    codes = _mm256_permutevar8x32_epi32(codes, order);
    _mm256_storeu_si256((__m256i *)q, codes);
    /* sad sums unsigned bytes: shift the codes up by 128 each, take 32 * 128 away again. */
    __m256i sums = _mm256_sad_epu8(_mm256_xor_si256(codes, bias), _mm256_setzero_si256());
    __m128i s = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_cvtsi128_si32(s) + _mm_extract_epi32(s, 2) - BLOCK * 128;
}

void avx2_quantize(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                   struct act_scale *scale)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);

    for (size_t b = 0; b < n_blocks; b++, x += BLOCK, q += stride * BLOCK, scale += stride) {
        __m256 v[4], largest = _mm256_setzero_ps();
        for (size_t j = 0; j < 4; j++) {
            v[j] = _mm256_loadu_ps(x + j * LANES);
            largest = _mm256_max_ps(_mm256_andnot_ps(sign, v[j]), largest);
        }
        float top = lane_max(largest);
        bool none = !(top > 1e-30f);
        float d = none ? 0.0f : top / 127.0f;
        int32_t sum = round_codes(v, none ? 0.0f : 127.0f / top, q);
        *scale = (struct act_scale){d, d * (float)sum, sum};
    }
}

INLINE __m256 exp_lanes(__m256 x)
{
    const __m256 magic = _mm256_set1_ps(EXP_MAGIC);
    __m256 y = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(EXP_MIN)), _mm256_set1_ps(EXP_MAX));
    __m256 t = _mm256_fmadd_ps(y, _mm256_set1_ps(EXP_LOG2E), magic), n = _mm256_sub_ps(t, magic);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_HI), y);

    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_LO), r);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(EXP_P0), r, _mm256_set1_ps(EXP_P1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P5));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(p),
                                    _mm256_slli_epi32(_mm256_castps_si256(t), 23));
    __m256 seen = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_MIN), _CMP_GE_OQ);
    return _mm256_and_ps(_mm256_castsi256_ps(bits), seen);
}

void avx2_silu_mul(float *gate, const float *up, size_t n)
{
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 e = _mm256_add_ps(one, exp_lanes(_mm256_xor_ps(g, sign)));
        _mm256_storeu_ps(gate + i, _mm256_mul_ps(_mm256_div_ps(g, e), _mm256_loadu_ps(up + i)));
    }
    if (i < n)
        kernels_scalar.silu_mul(gate + i, up + i, n - i);
}

void avx2_add(float *x, const float *y, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    for (; i < n; i++)
        x[i] += y[i];
}

void avx2_scale(float *x, float by, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(by)));
    for (; i < n; i++)
        x[i] *= by;
}

INLINE __m256 turn(__m256 x, __m256 partner, const float *cosine, const float *sine)
{
    return _mm256_fmadd_ps(x, _mm256_loadu_ps(cosine),
                           _mm256_mul_ps(partner, _mm256_loadu_ps(sine)));
}

void avx2_rope(float *x, const float *cosine, const float *sine, size_t dim, bool halves)
{
    size_t half = dim / 2;

    if (dim % LANES != 0 || (halves && half % LANES != 0)) {
        kernels_scalar.rope(x, cosine, sine, dim, halves);
    } else if (halves) {
        for (size_t i = 0; i < half; i += LANES) {
            __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + half + i);
            _mm256_storeu_ps(x + i, turn(a, b, cosine + i, sine + i));
            _mm256_storeu_ps(x + half + i, turn(b, a, cosine + half + i, sine + half + i));
        }
    } else {
        for (size_t i = 0; i < dim; i += LANES) {
            __m256 a = _mm256_loadu_ps(x + i);
            _mm256_storeu_ps(x + i, turn(a, _mm256_permute_ps(a, 0xB1), cosine + i, sine + i));
        }
    }
}

void avx2_half_to_float(const uint16_t *src, float *dst, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(dst + i, load_halves(src + i));
    if (i < n)
        kernels_scalar.half_to_float(src + i, dst + i, n - i);
}

void avx2_float_to_half(const float *src, uint16_t *dst, size_t n)
{
    const __m256 most = _mm256_set1_ps(65504.0f), least = _mm256_set1_ps(-65504.0f);
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        __m256 x = _mm256_max_ps(_mm256_min_ps(_mm256_loadu_ps(src + i), most), least);
        _mm_storeu_si128((__m128i *)(dst + i), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
    if (i < n)
        kernels_scalar.float_to_half(src + i, dst + i, n - i);
}

void avx2_expand_codes(const int8_t *codes, const uint16_t *scales, bool shared, float *dst,
                       size_t n)
{
    __m256 all = _mm256_set1_ps(_cvtsh_ss(scales[0]));
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        __m256i q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(codes + i)));
        __m256 by = shared ? all : load_halves(scales + i);
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(_mm256_cvtepi32_ps(q), by));
    }
    if (i < n)
        kernels_scalar.expand_codes(codes + i, shared ? scales : scales + i, shared, dst + i, n - i);
}

/* ---- attention ------------------------------------------------------------------------------ */

enum { TOGETHER = 3 };           /* queries that share the loads of K and V: 12 accumulators */

/* 32 positions of a score, or 32 dimensions of a value. Named and not an array: they live in registers. */
struct four {
    __m256 a, b, c, d;
};

INLINE __m256 load_cache(const void *values, size_t i, bool half)
{
    return half ? load_halves((const uint16_t *)values + i)
                : _mm256_loadu_ps((const float *)values + i);
}

INLINE struct four load_four(const float *p)
{
    return (struct four){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16),
                         _mm256_loadu_ps(p + 24)};
}

INLINE void store_four(float *p, struct four v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
    _mm256_storeu_ps(p + 16, v.c);
    _mm256_storeu_ps(p + 24, v.d);
}

INLINE struct four scale_four(struct four v, __m256 by)
{
    return (struct four){_mm256_mul_ps(v.a, by), _mm256_mul_ps(v.b, by), _mm256_mul_ps(v.c, by),
                         _mm256_mul_ps(v.d, by)};
}

/* Adds x_i times the 32 values at `i` to each of the n sums, vector by vector: 16 registers suffice. */
INLINE void add_four(struct four *s0, struct four *s1, struct four *s2, size_t n, __m256 x0,
                     __m256 x1, __m256 x2, const void *values, size_t i, bool half)
{
    __m256 v = load_cache(values, i, half);
    s0->a = _mm256_fmadd_ps(x0, v, s0->a);
    s1->a = n > 1 ? _mm256_fmadd_ps(x1, v, s1->a) : s1->a;
    s2->a = n > 2 ? _mm256_fmadd_ps(x2, v, s2->a) : s2->a;
    v = load_cache(values, i + 8, half);
    s0->b = _mm256_fmadd_ps(x0, v, s0->b);
    s1->b = n > 1 ? _mm256_fmadd_ps(x1, v, s1->b) : s1->b;
    s2->b = n > 2 ? _mm256_fmadd_ps(x2, v, s2->b) : s2->b;
    v = load_cache(values, i + 16, half);
    s0->c = _mm256_fmadd_ps(x0, v, s0->c);
    s1->c = n > 1 ? _mm256_fmadd_ps(x1, v, s1->c) : s1->c;
    s2->c = n > 2 ? _mm256_fmadd_ps(x2, v, s2->c) : s2->c;
    v = load_cache(values, i + 24, half);
    s0->d = _mm256_fmadd_ps(x0, v, s0->d);
    s1->d = n > 1 ? _mm256_fmadd_ps(x1, v, s1->d) : s1->d;
    s2->d = n > 2 ? _mm256_fmadd_ps(x2, v, s2->d) : s2->d;
}

/* Scores of queries at .. at + n - 1. */
INLINE void get_scores(const struct attend *a, size_t at, size_t n, bool half,
                       float score[TOGETHER][KERNEL_POSITIONS])
{
    const float *q0 = a->q + at * a->dim, *q1 = n > 1 ? q0 + a->dim : q0;
    const float *q2 = n > 2 ? q1 + a->dim : q0;
    __m256 zero = _mm256_setzero_ps();
    struct four s0 = {zero, zero, zero, zero}, s1 = s0, s2 = s0;

    for (size_t d = 0; d < a->dim; d++)
        add_four(&s0, &s1, &s2, n, _mm256_set1_ps(q0[d]), _mm256_set1_ps(q1[d]),
                 _mm256_set1_ps(q2[d]), a->k, d * KERNEL_POSITIONS, half);
    store_four(score[0], s0);
    if (n > 1)
        store_four(score[1], s1);
    if (n > 2)
        store_four(score[2], s2);
}

INLINE struct four mask_four(struct four v, size_t visible)
{
    const __m256 lane = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), none = _mm256_set1_ps(-INFINITY);
    const __m256 end = _mm256_set1_ps((float)visible), step = _mm256_set1_ps(8.0f);

    v.a = _mm256_blendv_ps(none, v.a, _mm256_cmp_ps(lane, end, _CMP_LT_OQ));
    __m256 at = _mm256_add_ps(lane, step);
    v.b = _mm256_blendv_ps(none, v.b, _mm256_cmp_ps(at, end, _CMP_LT_OQ));
    at = _mm256_add_ps(at, step);
    v.c = _mm256_blendv_ps(none, v.c, _mm256_cmp_ps(at, end, _CMP_LT_OQ));
    at = _mm256_add_ps(at, step);
    v.d = _mm256_blendv_ps(none, v.d, _mm256_cmp_ps(at, end, _CMP_LT_OQ));
    return v;
}

/* As softmax_step of the scalar twin. */
INLINE float softmax_step(float score[KERNEL_POSITIONS], size_t visible, float *m, float *l)
{
    struct four v = load_four(score);
    __m256 largest = _mm256_set1_ps(*m);

    if (visible < KERNEL_POSITIONS)
        v = mask_four(v, visible);
    largest = _mm256_max_ps(v.d, _mm256_max_ps(v.c, _mm256_max_ps(v.b, _mm256_max_ps(v.a, largest))));
    float top = lane_max(largest);
    __m256 by = _mm256_set1_ps(top);
    v.a = exp_lanes(_mm256_sub_ps(v.a, by));
    v.b = exp_lanes(_mm256_sub_ps(v.b, by));
    v.c = exp_lanes(_mm256_sub_ps(v.c, by));
    v.d = exp_lanes(_mm256_sub_ps(v.d, by));
    store_four(score, v);
    float correction = *m == top ? 1.0f
                                 : _mm256_cvtss_f32(exp_lanes(_mm256_set1_ps(*m - top)));
    float sum = lane_sum(_mm256_add_ps(_mm256_add_ps(v.a, v.b), _mm256_add_ps(v.c, v.d)));
    *l = fmaf(*l, correction, sum);
    *m = top;
    return correction;
}

/* Adds the weighted values of 32 dimensions from `d` on. */
INLINE void add_values(const struct attend *a, size_t at, size_t n, bool half, size_t d,
                       const float correction[TOGETHER],
                       float weight[TOGETHER][KERNEL_POSITIONS])
{
    float *o0 = a->o + at * a->dim + d, *o1 = n > 1 ? o0 + a->dim : o0;
    float *o2 = n > 2 ? o1 + a->dim : o0;
    const float *w0 = weight[0], *w1 = weight[n > 1 ? 1 : 0], *w2 = weight[n > 2 ? 2 : 0];
    struct four s0 = scale_four(load_four(o0), _mm256_set1_ps(correction[0])), s1 = s0, s2 = s0;

    if (n > 1)
        s1 = scale_four(load_four(o1), _mm256_set1_ps(correction[1]));
    if (n > 2)
        s2 = scale_four(load_four(o2), _mm256_set1_ps(correction[2]));
    for (size_t p = 0; p < KERNEL_POSITIONS; p++)
        add_four(&s0, &s1, &s2, n, _mm256_set1_ps(w0[p]), _mm256_set1_ps(w1[p]),
                 _mm256_set1_ps(w2[p]), a->v, p * a->dim + d, half);
    store_four(o0, s0);
    if (n > 1)
        store_four(o1, s1);
    if (n > 2)
        store_four(o2, s2);
}

/* The same for 8 dimensions of one query: what 32 leave over in an unusual head. */
INLINE void add_values_narrow(const struct attend *a, size_t at, bool half, size_t d,
                              float correction, const float weight[KERNEL_POSITIONS])
{
    float *o = a->o + at * a->dim + d;
    __m256 sum = _mm256_mul_ps(_mm256_loadu_ps(o), _mm256_set1_ps(correction));

    for (size_t p = 0; p < KERNEL_POSITIONS; p++)
        sum = _mm256_fmadd_ps(_mm256_set1_ps(weight[p]), load_cache(a->v, p * a->dim + d, half), sum);
    _mm256_storeu_ps(o, sum);
}

/* Queries at .. at + n - 1, n a constant of at most TOGETHER. */
INLINE void attend_some(const struct attend *a, size_t at, size_t n, bool half)
{
    float weight[TOGETHER][KERNEL_POSITIONS], correction[TOGETHER];
    size_t d = 0;

    get_scores(a, at, n, half, weight);
    for (size_t i = 0; i < n; i++)
        correction[i] = softmax_step(weight[i], a->visible[at + i], &a->m[at + i], &a->l[at + i]);
    for (; d + 32 <= a->dim; d += 32)
        add_values(a, at, n, half, d, correction, weight);
    for (; d < a->dim; d += LANES) {
        for (size_t i = 0; i < n; i++)
            add_values_narrow(a, at + i, half, d, correction[i], weight[i]);
    }
}

INLINE void attend(const struct attend *a, bool half)
{
    size_t i = 0;

    for (; i + 3 <= a->n; i += 3)
        attend_some(a, i, 3, half);
    if (a->n - i == 2)
        attend_some(a, i, 2, half);
    else if (a->n - i == 1)
        attend_some(a, i, 1, half);
}

void avx2_attend_f16(const struct attend *a)
{
    attend(a, true);
}

void avx2_attend_f32(const struct attend *a)
{
    attend(a, false);
}

void avx2_merge(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim)
{
    float largest = m2 > *m ? m2 : *m;
    __m256 c1 = exp_lanes(_mm256_set1_ps(*m - largest)), c2 = exp_lanes(_mm256_set1_ps(m2 - largest));

    *m = largest;
    *l = fmaf(l2, _mm256_cvtss_f32(c2), *l * _mm256_cvtss_f32(c1));
    for (size_t d = 0; d < dim; d += LANES) {
        __m256 old = _mm256_mul_ps(_mm256_loadu_ps(o + d), c1);
        _mm256_storeu_ps(o + d, _mm256_fmadd_ps(_mm256_loadu_ps(o2 + d), c2, old));
    }
}

const struct kernels kernels_avx2 = {
    .name = "avx2",
    .matmul = {[PACK_Q4_0] = avx2_matmul_q4_0, [PACK_Q4_1] = avx2_matmul_q4_1,
               [PACK_Q8_0] = avx2_matmul_q8_0, [PACK_F16] = avx2_matmul_f16,
               [PACK_BF16] = avx2_matmul_bf16, [PACK_F32] = avx2_matmul_f32},
    .rms_norm = avx2_rms_norm,
    .quantize = avx2_quantize,
    .silu_mul = avx2_silu_mul,
    .add = avx2_add,
    .rope = avx2_rope,
    .attend_f16 = avx2_attend_f16,
    .attend_f32 = avx2_attend_f32,
    .merge = avx2_merge,
    .scale = avx2_scale,
    .half_to_float = avx2_half_to_float,
    .float_to_half = avx2_float_to_half,
    .expand_codes = avx2_expand_codes,
};
