/* The order of the vocabulary, likeliest first, without sorting it.
 *
 * The order is by value, the largest first, and by id where values are equal, the lowest first. Two
 * questions are asked of it: which are its first k (top-k), and on which element does a mass fall
 * when their weights are laid end to end (the nucleus' edge, the draw). Small k are answered by a
 * threshold that the largest values of blocks give. The rest is looked for where a sample says that
 * it is: one pass sums what lies above that piece of the order and takes the piece out, and a radix
 * search, which sums the weights of whole buckets, finds the element in it. Where the sample was
 * wrong, a second pass takes the right side out; the answer does not depend on it.
 *
 * Arrays are as scan.h has them; -infinity stands for "not there". `maxima` are the largest of each
 * block. */
#ifndef FADER_ENGINE_ORDER_H
#define FADER_ENGINE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/scan.h"

/* Scratch for arrays of one length. */
struct order {
    const struct scan *scan;
    size_t blocks;
    float *floats;                           /* [n] */
    struct entry *entries, *spare, *scratch; /* [n + SCAN_LANES] */
    double *mass;                            /* a histogram */
    struct entry *sample;                    /* [n_sample] of `sampled`, in order */
    size_t n_sample;
    const float *sampled; /* NULL: no sample was taken yet */
};

/* Scratch for `blocks` blocks. */
void order_init(struct order *o, size_t blocks);
void order_done(struct order *o);

void order_values_changed(struct order *o); /* call it when they did, in place */

/* The k-th largest of `alive` values above -infinity, 1 <= k <= alive. */
float order_kth(struct order *o, const float *value, const float *maxima, size_t alive, size_t k);

/* Writes the first k (1 <= k <= alive) to `out` [n + SCAN_LANES], in order. */
void order_first(struct order *o, const float *value, const float *maxima, size_t alive, size_t k,
                 struct entry *out);

/* Writes all that come no later than `last` to `out` [n], in order. Returns how many. */
size_t order_until(struct order *o, const float *value, const float *maxima, struct entry last,
                   struct entry *out);

/* The first element whose weight, added to all before it, makes more than `target`; where rounding
 * leaves none, the last with a weight. Some weight must be above 0; `total` is their sum. `within`
 * becomes the tally of all up to and with it. */
struct entry order_find(struct order *o, const struct field *f, const float *maxima, double total,
                        double target, struct tally *within);

#endif
