/* Kernels for AVX2, FMA and F16C: vectors. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include <math.h>

#include "engine/avx2_lanes.h"

void avx2_rms_norm(const float *x, const float *weight, size_t n, float eps, float *out)
{
    size_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    __m256 zero = _mm256_setzero_ps();
    struct four acc = {zero, zero, zero, zero};

    for (size_t i = 0; i < padded; i += BLOCK) {
        struct four v = load_four(x + i);
        acc.a = _mm256_fmadd_ps(v.a, v.a, acc.a);
        acc.b = _mm256_fmadd_ps(v.b, v.b, acc.b);
        acc.c = _mm256_fmadd_ps(v.c, v.c, acc.c);
        acc.d = _mm256_fmadd_ps(v.d, v.d, acc.d);
    }
    float sum = lane_sum(_mm256_add_ps(_mm256_add_ps(acc.a, acc.b), _mm256_add_ps(acc.c, acc.d)));
    __m256 factor = _mm256_set1_ps(1.0f / sqrtf(sum / (float)n + eps));
    for (size_t i = 0; i < padded; i += LANES) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
        _mm256_storeu_ps(out + i, _mm256_mul_ps(v, _mm256_loadu_ps(weight + i)));
    }
}

/* The low byte of the nearest whole number, in 32 bits. */
INLINE __m256i round_code(__m256 x, __m256 inverse)
{
    __m256 rounded = _mm256_add_ps(_mm256_mul_ps(x, inverse), _mm256_set1_ps(EXP_MAGIC));

    return _mm256_and_si256(_mm256_castps_si256(rounded), _mm256_set1_epi32(0xFF));
}

/* Rounds x * inverse to bytes; `half` becomes the sums of the first and the second 16. */
INLINE void round_codes(struct four x, float inverse, int8_t *q, int16_t half[2])
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bias = _mm256_set1_epi8((char)0x80);
    const __m256 by = _mm256_set1_ps(inverse);
    __m256i low = _mm256_packus_epi32(round_code(x.a, by), round_code(x.b, by));
    __m256i high = _mm256_packus_epi32(round_code(x.c, by), round_code(x.d, by));
    __m256i codes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);

    _mm256_storeu_si256((__m256i *)q, codes);
    /* sad sums unsigned bytes, 8 at a time: shift the codes up by 128 each, take that away again.
     */
    __m256i sums = _mm256_sad_epu8(_mm256_xor_si256(codes, bias), _mm256_setzero_si256());
    sums = _mm256_add_epi64(sums, _mm256_unpackhi_epi64(sums, sums));
    half[0] = (int16_t)(_mm256_extract_epi16(sums, 0) - 16 * 128);
    half[1] = (int16_t)(_mm256_extract_epi16(sums, 8) - 16 * 128);
}

INLINE float largest_of(struct four v)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 ab = _mm256_max_ps(_mm256_andnot_ps(sign, v.a), _mm256_andnot_ps(sign, v.b));
    __m256 cd = _mm256_max_ps(_mm256_andnot_ps(sign, v.c), _mm256_andnot_ps(sign, v.d));

    return lane_max(_mm256_max_ps(ab, cd));
}

void avx2_quantize(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                   struct act_scale *scale)
{
    for (size_t b = 0; b < n_blocks; b++, x += BLOCK, q += stride * BLOCK, scale += stride) {
        struct four v = load_four(x);
        float top = largest_of(v);
        bool none = !(top > 1e-30f);
        float d = none ? 0.0f : top / 127.0f;
        int16_t half[2];
        round_codes(v, none ? 0.0f : 127.0f / top, q, half);
        int32_t sum = half[0] + half[1];
        *scale = (struct act_scale){d, d * (float)sum, sum, {half[0], half[1]}};
    }
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

