#include "config.h"

#include "engine/softmax.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp(x) = 2^k * exp(f), k the whole number nearest to x / ln 2, |f| <= ln(2) / 2. ln 2 is taken in
 * two parts, the first with so few bits that k times it is exact. exp(f) is its Taylor series as far as it
 * takes: the first term left out is below 6e-9 (f32, degree 7) and 5e-18 (f64, degree 13).
 * exp(0) is exactly 1, so that equal logits have exactly equal shares. */

static const float f32_floor = -87.0f; /* below: 0. Above it, 2^k is a normal number. */

static inline float exp_f32(float x)
{
    const float log2e = 1.44269504f, round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to whole */
    const float ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
    float shifted = x * log2e + round, k = shifted - round;
    float f = x - k * ln2_hi - k * ln2_lo;
    float p = 1.0f / 5040;
    int32_t bits, exponent;

    p = p * f + 1.0f / 720;
    p = p * f + 1.0f / 120;
    p = p * f + 1.0f / 24;
    p = p * f + 1.0f / 6;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    memcpy(&bits, &p, sizeof bits);
    exponent = (int32_t)k * (1 << 23);
    bits += exponent;
    memcpy(&p, &bits, sizeof p);
    return p;
}

struct softmax_sum softmax_weigh(const float *value, size_t n, float top, double temperature,
                                 float *w)
{
    const float scale = (float)(1.0 / temperature);
    double sum[SOFTMAX_LANES] = {0}, moment[SOFTMAX_LANES] = {0};

    for (size_t i = 0; i < n; i += SOFTMAX_LANES) {
        float x[SOFTMAX_LANES], e[SOFTMAX_LANES];

        for (int j = 0; j < SOFTMAX_LANES; j++) {
            float scaled = (value[i + (size_t)j] - top) * scale;
            float bounded = scaled > f32_floor ? scaled : f32_floor;
            float power = exp_f32(bounded);
            x[j] = bounded;
            e[j] = scaled > f32_floor ? power : 0.0f;
        }
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
    static const double inverse_factorial[] = {
        1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
        1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
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
