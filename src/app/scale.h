/* Scales: how the value of a knob lies on the travel of its fader, and where keys and the mouse
 * stop. Pure functions, private to app; fader_travel (desk.h) is their public face.
 *
 *   temperature  linear, 0 - 2                                     0.05, coarse 0.2
 *   top-k        logarithmic, 1 - vocabulary, then "off"           a stop (1 2 3 5 7 10 ...), three
 *   top-p        0 - 0.8 on the first half, 0.8 - 1 on the second  0.01, coarse 0.05
 *   penalty      linear, 1.00 - 1.50                               0.01, coarse 0.05
 *   min-p        "off", then logarithmic, 0.001 - 1                a stop, three */
#ifndef FADER_APP_SCALE_H
#define FADER_APP_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/sampler.h"

enum { SCALE_VOCAB_UNKNOWN = 50000 }; /* the end of top-k's scale before a model is open */

/* Where on its scale (0 - 1) a value stands; *beyond (may be NULL): it lies past an end, which the
 * travel then is. */
double scale_travel(enum knob knob, double value, int32_t n_vocab, bool *beyond);

/* The stop nearest to a travel of 0 - 1. */
double scale_snap(enum knob knob, double travel, int32_t n_vocab);

/* The value after `steps` steps. Past an end of the scale a value only moves inwards. */
double scale_step(enum knob knob, double value, int steps, bool coarse, int32_t n_vocab);

/* The decimal nearest to `value` with `decimals` places. */
double scale_round(double value, int decimals);

#endif
