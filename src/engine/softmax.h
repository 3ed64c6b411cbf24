/* Exponentials for the sampler: the same bits on every machine, because they are nothing but adds,
 * multiplies and integer shifts in a fixed order (no libm, no contraction). */
#ifndef FADER_ENGINE_SOFTMAX_H
#define FADER_ENGINE_SOFTMAX_H

#include <stddef.h>

enum { SOFTMAX_LANES = 16 }; /* lengths are padded to a multiple of it, with -infinity */

struct softmax_sum {
    double sum;     /* of w */
    double entropy; /* of w / sum, in nats */
};

/* w[i] = exp((value[i] - top) / temperature) for n (a multiple of SOFTMAX_LANES) values, none above
 * `top`; -infinity gives 0. `w` may be NULL. f32 terms (error below 2 ulp), f64 sums. */
struct softmax_sum softmax_weigh(const float *value, size_t n, float top, double temperature,
                                 float *w);

/* exp(x) for x <= 0 in f64, within 1e-15 relative; 0 below -700. */
double softmax_exp(double x);

/* The largest of n (a multiple of SOFTMAX_LANES) values, none of them NaN. */
float softmax_max(const float *value, size_t n);

#endif
