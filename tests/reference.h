/* The forward pass as the books have it: f64, no cache, one row after the other. Slow; for tiny
 * models. */
#ifndef FADER_TESTS_REFERENCE_H
#define FADER_TESTS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model.h"

/* Logits [n][n_vocab] of every position; the caller frees. */
double *reference_logits(const struct model *m, const int32_t *ids, size_t n);

#endif
