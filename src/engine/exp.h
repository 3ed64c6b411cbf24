/* exp(x) for kernels: the same bits in every kernel set, relative error below 2e-7. The polynomial
 * is that of Cephes' expf (S. Moshier); its vector twin stands in kernels_avx2.c. */
#ifndef FADER_ENGINE_EXP_H
#define FADER_ENGINE_EXP_H

#include <math.h>

#include "engine/quant.h"

#define EXP_MIN    (-86.0f)  /* below it the result is 0 */
#define EXP_MAX    88.0f     /* above it that of 88 */
#define EXP_MAGIC  0x1.8p23f /* added and taken away: rounds to a whole number */
#define EXP_LOG2E  1.44269504088896341f
#define EXP_LN2_HI 0.693359375f
#define EXP_LN2_LO (-2.12194440e-4f)
#define EXP_P0     1.9875691500e-4f
#define EXP_P1     1.3981999507e-3f
#define EXP_P2     8.3334519073e-3f
#define EXP_P3     4.1665795894e-2f
#define EXP_P4     1.6666665459e-1f
#define EXP_P5     5.0000001201e-1f

static inline float exp_approx(float x)
{
    float y = x > EXP_MIN ? x : EXP_MIN;

    y = y < EXP_MAX ? y : EXP_MAX;
    float t = fmaf(y, EXP_LOG2E, EXP_MAGIC), n = t - EXP_MAGIC;
    float r = fmaf(n, -EXP_LN2_LO, fmaf(n, -EXP_LN2_HI, y));
    float p = fmaf(EXP_P0, r, EXP_P1);
    p = fmaf(p, r, EXP_P2);
    p = fmaf(p, r, EXP_P3);
    p = fmaf(p, r, EXP_P4);
    p = fmaf(p, r, EXP_P5);
    p = fmaf(p, r * r, r) + 1.0f;
    /* The low bits of t are n: put them on p's exponent. */
    float value = quant_f32_from_bits(quant_f32_bits(p) + (quant_f32_bits(t) << 23));
    return x >= EXP_MIN ? value : 0.0f;
}

#endif
