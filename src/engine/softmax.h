/* exp for the sampler: the same bits on every machine, because it is nothing but adds, multiplies and
 * integer shifts in a fixed order (no libm, no contraction). That of whole vocabularies, in f32, is
 * scan.h's. */
#ifndef FADER_ENGINE_SOFTMAX_H
#define FADER_ENGINE_SOFTMAX_H

/* exp(x) for x <= 0 in f64, within 1e-15 relative; 0 below -700. */
double softmax_exp(double x);

#endif
