/* The order of the vocabulary, likeliest first, without sorting it.
 *
 * The order is by value, the largest first, and by id where values are equal, the lowest first. Two
 * questions are asked of it: which is its k-th (top-k), and on which element does a mass fall when
 * their weights are laid end to end (the nucleus' edge, the draw). Both are the same one, where each
 * weighs 1. The answer is looked for where a sample says that it is: one pass sums what lies in
 * front of that piece of the order and takes the piece out, and in the piece the same goes on until
 * little enough is left to be sorted. Pieces end at entries and not at values, so that ties make none
 * of them long. Where the sample was wrong, another pass takes the right side out; the answer does
 * not depend on it. A small mass is looked for first in what the largest values of blocks tell to be
 * the front of the order.
 *
 * Arrays are as scan.h has them; -infinity stands for "not there". `maxima` are the largest of each
 * block. */
#ifndef FADER_ENGINE_ORDER_H
#define FADER_ENGINE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/scan.h"

/* Some elements, by ascending id; -infinity fills the last block. */
struct part {
    float *value, *weight;
    int32_t *id;
    size_t n;
};

/* Elements from all over, in order. */
struct sample {
    struct entry *entries;
    size_t n;
};

/* Scratch for arrays of one length. */
struct order {
    const struct scan *scan;
    size_t blocks;
    struct part parts[2];            /* what is left to look in, and where it came from */
    struct entry *entries, *scratch; /* [n] */
    struct sample whole, some;       /* of `sampled`; of a part of it */
    const float *sampled;            /* NULL: no sample was taken yet */
};

/* Scratch for `blocks` blocks. */
void order_init(struct order *o, size_t blocks);
void order_done(struct order *o);

void order_values_changed(struct order *o); /* call it when they did, in place */

/* What comes before all, and after. */
extern const struct entry order_begin, order_end;

/* The k-th of `alive` that come no later than `last`, 1 <= k <= alive. */
struct entry order_kth(struct order *o, const float *value, const float *maxima, struct entry last,
                       size_t alive, size_t k);

/* Writes all that come no later than `last` to `out`, in order. Returns how many. */
size_t order_until(struct order *o, const float *value, const float *maxima, struct entry last,
                   struct entry *out);

/* Of those that come no later than `last`, the first whose weight, added to all before it, makes more
 * than `target`; where rounding leaves none, the last with a weight. Some weight must be above 0;
 * `total` is their sum. `within` (or NULL) becomes the tally of all up to and with it. */
struct entry order_find(struct order *o, const struct field *f, const float *maxima,
                        struct entry last, double total, double target, struct tally *within);

#endif
