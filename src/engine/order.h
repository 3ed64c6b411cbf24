/* The order of the vocabulary, likeliest first, without sorting it.
 *
 * The order is by value, the largest first, and by id where values are equal, the lowest first. Two
 * questions are asked of it: which are its first k (top-k), and on which element does a mass fall
 * when their weights are laid end to end (the nucleus' edge, the draw). The first is answered by a
 * threshold that the maxima of blocks give, the second by a radix search over the bits of the
 * values, which sums the weights of whole buckets and only looks into the one that the mass falls
 * in.
 *
 * Values are never NaN; -infinity stands for "not there", and pads arrays to ORDER_BLOCK. */
#ifndef FADER_ENGINE_ORDER_H
#define FADER_ENGINE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDER_BLOCK = 64 };

struct entry {
    float value;
    int32_t id;
};

/* Scratch for arrays of up to n values; n a multiple of ORDER_BLOCK. */
struct order {
    size_t n;
    float *maxima;         /* [n / ORDER_BLOCK] */
    struct entry *entries; /* [n] */
    double *mass;          /* one histogram, in several copies */
};

/* Scratch for `n` values. */
void order_init(struct order *o, size_t n);
void order_done(struct order *o);

/* Writes the first k (1 <= k <= values above -infinity) and all that equal the k-th to `out` [n],
 * in order. Returns how many. */
size_t order_top(struct order *o, const float *value, size_t k, struct entry *out);

/* Writes all that come no later than `last` to `out` [n], in order. Returns how many. */
size_t order_until(struct order *o, const float *value, struct entry last, struct entry *out);

/* The first element whose weight, added to all before it, makes more than `target`; where rounding
 * leaves none, the last with a weight. Some weight must be above 0; weight NULL: 1 each. */
struct entry order_find(struct order *o, const float *value, const float *weight, double target);

/* Whether `a` comes no later than `b`. */
static inline bool order_within(struct entry a, struct entry b)
{
    return a.value > b.value || (a.value == b.value && a.id <= b.id);
}

#endif
