#include "config.h"

#include "engine/softmax.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp(x) = 2^k * exp(f), k the whole number nearest to x / ln 2, |f| <= ln(2) / 2. ln 2 is taken in
 * two parts, the first with so few bits that k times it is exact. exp(f) is its Taylor series as
 * far as it takes: the first term left out is below 6e-9 (f32, degree 7) and 5e-18 (f64, degree
 * 13). exp(0) is exactly 1, so that equal logits have exactly equal shares. */

/* Below -87 the result is 0; above it, 2^k is a normal number. */
enum { F32_SIGN = INT32_MIN, F32_87 = 0x42AE0000 };

static inline int32_t bits_of(float x)
{
    int32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(int32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) for x <= 0; *used is the x that counted, -87 at least. What selects here are whole numbers
 * (the bits of positive floats ascend with them): a compiler may then make vectors of it, while a
 * choice between floats could raise an exception that the branch would not have. */
static inline float exp_f32(float x, float *used)
{
    const float log2e = 1.44269504f,
                round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to whole */
    const float ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
    int32_t size = bits_of(x) & ~F32_SIGN, alive = size < F32_87 ? -1 : 0;

    *used = x = float_of((size < F32_87 ? size : F32_87) | F32_SIGN);
    float k = x * log2e + round - round;
    float f = x - k * ln2_hi - k * ln2_lo;
    float p = 1.0f / 5040;
    p = p * f + 1.0f / 720;
    p = p * f + 1.0f / 120;
    p = p * f + 1.0f / 24;
    p = p * f + 1.0f / 6;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    return float_of((bits_of(p) + (int32_t)k * (1 << 23)) & alive);
}

struct softmax_sum softmax_weigh(const float *value, size_t n, float top, double temperature,
                                 float *w)
{
    const float scale = (float)(1.0 / temperature);
    double sum[SOFTMAX_LANES] = {0}, moment[SOFTMAX_LANES] = {0};

    for (size_t i = 0; i < n; i += SOFTMAX_LANES) {
        float x[SOFTMAX_LANES], e[SOFTMAX_LANES];

        for (int j = 0; j < SOFTMAX_LANES; j++)
            e[j] = exp_f32((value[i + (size_t)j] - top) * scale, &x[j]);
        for (int j = 0; j < SOFTMAX_LANES; j++) {
            sum[j] += (double)e[j];
            moment[j] += (double)(e[j] * x[j]);
        }
        if (w != NULL)
            memcpy(w + i, e, sizeof e);
    }
    double total = 0, total_moment = 0;
    for (int j = 0; j < SOFTMAX_LANES; j++) {
        total += sum[j];
        total_moment += moment[j];
    }
    double entropy = log(total) - total_moment / total;
    return (struct softmax_sum){total, entropy > 0 ? entropy : 0};
}

double softmax_exp(double x)
{
    static const double inverse_factorial[] = {1.0,
                                               1.0,
                                               1.0 / 2,
                                               1.0 / 6,
                                               1.0 / 24,
                                               1.0 / 120,
                                               1.0 / 720,
                                               1.0 / 5040,
                                               1.0 / 40320,
                                               1.0 / 362880,
                                               1.0 / 3628800,
                                               1.0 / 39916800,
                                               1.0 / 479001600,
                                               1.0 / 6227020800.0};
    const double log2e = 0x1.71547652b82fep+0, round = 0x1.8p+52;
    const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
    double p = 0;
    int64_t bits;

    if (!(x > -700.0))
        return 0;
    double k = x * log2e + round - round, f = x - k * ln2_hi - k * ln2_lo;
    for (int i = 13; i >= 0; i--)
        p = p * f + inverse_factorial[i];
    memcpy(&bits, &p, sizeof bits);
    bits += (int64_t)k * ((int64_t)1 << 52);
    memcpy(&p, &bits, sizeof p);
    return p;
}

float softmax_max(const float *value, size_t n)
{
    float lane[SOFTMAX_LANES], top;

    memcpy(lane, value, sizeof lane);
    for (size_t i = SOFTMAX_LANES; i < n; i += SOFTMAX_LANES) {
        for (int j = 0; j < SOFTMAX_LANES; j++)
            lane[j] = value[i + (size_t)j] > lane[j] ? value[i + (size_t)j] : lane[j];
    }
    top = lane[0];
    for (int j = 1; j < SOFTMAX_LANES; j++)
        top = lane[j] > top ? lane[j] : top;
    return top;
}
