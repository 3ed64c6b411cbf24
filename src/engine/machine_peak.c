/* Multiply-adds from registers, one pair of loops for each kernel set. Ten sums are under way at
 * once: more than the latency times the width of any unit of today. They begin with different values,
 * and the factors pass through an empty asm: what is the same, or does not change, the compiler
 * would compute once. */
#include "config.h"

#include "engine/machine.h"

#include <math.h>
#include <string.h>

#include "engine/kernels.h"

#if defined(HAVE_AVX2) || defined(HAVE_AVX512)
#include <immintrin.h>
#endif
#ifdef HAVE_NEON
#include <arm_neon.h>
#endif

enum { SUMS = MACHINE_SUMS };
#define FOR_SUMS _Pragma("GCC unroll 10") for (int k = 0; k < SUMS; k++)

/* ---- portable C: as the compiler makes the best of it ---------------------------------------- */

static float scalar_codes(uint32_t rounds)
{
    int8_t q[KERNEL_BLOCK], w[KERNEL_BLOCK];
    int32_t sum = 0;

    memset(q, 3, sizeof q);
    memset(w, -5, sizeof w);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : : "r"(q), "r"(w) : "memory");
        for (int k = 0; k < KERNEL_BLOCK; k++)
            sum += q[k] * w[k];
    }
    return (float)sum;
}

static float scalar_floats(uint32_t rounds)
{
    float s[SUMS], a = 0.5f, all = 0;

    FOR_SUMS s[k] = (float)k;
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+m"(a));
        FOR_SUMS s[k] = fmaf(a, a, s[k]);
    }
    FOR_SUMS all += s[k];
    return all;
}

/* ---- AVX2: vpmaddubsw into 16-bit sums, as narrow codes allow; vfmadd ------------------------- */

#ifdef HAVE_AVX2
#define AVX2 __attribute__((target("avx2,fma")))

AVX2 static float avx2_codes(uint32_t rounds)
{
    __m256i q = _mm256_set1_epi8(3), w = _mm256_set1_epi8(-5), s[SUMS];
    __m256i all = _mm256_setzero_si256();

    FOR_SUMS s[k] = _mm256_set1_epi16((short)k);
    for (uint32_t i = 0; i < rounds; i++) {
        FOR_SUMS
        {
            __m256i product; /* by hand: that of the same factors would be computed once */
            __asm__ volatile("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
                             : "+x"(s[k]), "=&x"(product)
                             : "x"(q), "x"(w));
        }
    }
    FOR_SUMS all = _mm256_add_epi16(all, s[k]);
    return (float)(int16_t)_mm256_extract_epi16(all, 0);
}

AVX2 static float avx2_floats(uint32_t rounds)
{
    __m256 a = _mm256_set1_ps(0.5f), all = _mm256_setzero_ps(), s[SUMS];

    FOR_SUMS s[k] = _mm256_set1_ps((float)k);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+x"(a));
        FOR_SUMS s[k] = _mm256_fmadd_ps(a, a, s[k]);
    }
    FOR_SUMS all = _mm256_add_ps(all, s[k]);
    return _mm256_cvtss_f32(all);
}
#endif

/* ---- AVX-512: vpdpbusd; vfmadd --------------------------------------------------------------- */

#ifdef HAVE_AVX512
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

AVX512 static float avx512_codes(uint32_t rounds)
{
    __m512i q = _mm512_set1_epi8(3), w = _mm512_set1_epi8(-5), s[SUMS];
    __m512i all = _mm512_setzero_si512();

    FOR_SUMS s[k] = _mm512_set1_epi32(k);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+v"(q));
        FOR_SUMS s[k] = _mm512_dpbusd_epi32(s[k], q, w);
    }
    FOR_SUMS all = _mm512_add_epi32(all, s[k]);
    return (float)_mm_cvtsi128_si32(_mm512_castsi512_si128(all));
}

AVX512 static float avx512_floats(uint32_t rounds)
{
    __m512 a = _mm512_set1_ps(0.5f), all = _mm512_setzero_ps(), s[SUMS];

    FOR_SUMS s[k] = _mm512_set1_ps((float)k);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+v"(a));
        FOR_SUMS s[k] = _mm512_fmadd_ps(a, a, s[k]);
    }
    FOR_SUMS all = _mm512_add_ps(all, s[k]);
    return _mm512_cvtss_f32(all);
}
#endif

/* ---- NEON: smlal into 16-bit sums, as narrow codes allow; fmla ------------------------------- */

#ifdef HAVE_NEON
static float neon_codes(uint32_t rounds)
{
    int8x8_t q = vdup_n_s8(3), w = vdup_n_s8(-5);
    int16x8_t s[SUMS], all = vdupq_n_s16(0);

    FOR_SUMS s[k] = vdupq_n_s16((int16_t)k);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+w"(q));
        FOR_SUMS s[k] = vmlal_s8(s[k], q, w);
    }
    FOR_SUMS all = vaddq_s16(all, s[k]);
    return (float)vgetq_lane_s16(all, 0);
}

static float neon_floats(uint32_t rounds)
{
    float32x4_t a = vdupq_n_f32(0.5f), all = vdupq_n_f32(0.0f), s[SUMS];

    FOR_SUMS s[k] = vdupq_n_f32((float)k);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+w"(a));
        FOR_SUMS s[k] = vfmaq_f32(s[k], a, a);
    }
    FOR_SUMS all = vaddq_f32(all, s[k]);
    return vgetq_lane_f32(all, 0);
}
#endif

/* ---- all sets -------------------------------------------------------------------------------- */

static const struct machine_peak peaks[] = {
#ifdef HAVE_AVX512
    {"avx512", avx512_codes, avx512_floats, 64 * SUMS, 16 * SUMS},
#endif
#ifdef HAVE_AVX2
    {"avx2", avx2_codes, avx2_floats, 32 * SUMS, 8 * SUMS},
#endif
#ifdef HAVE_DOTPROD
    {"dotprod", machine_dotprod_codes, neon_floats, 16 * SUMS, 4 * SUMS},
#endif
#ifdef HAVE_NEON
    {"neon", neon_codes, neon_floats, 8 * SUMS, 4 * SUMS},
#endif
    {"scalar", scalar_codes, scalar_floats, KERNEL_BLOCK, SUMS},
};

const struct machine_peak *machine_find_peak(const char *kernels)
{
    const size_t n = sizeof peaks / sizeof *peaks;

    for (size_t i = 0; i + 1 < n; i++) {
        if (strcmp(peaks[i].kernels, kernels) == 0)
            return &peaks[i];
    }
    return &peaks[n - 1];
}
