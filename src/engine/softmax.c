#include "config.h"

#include "engine/softmax.h"

#include <stdint.h>
#include <string.h>

/* As in scan.h, but the Taylor series has degree 13: the first term left out is below 5e-18. */
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
