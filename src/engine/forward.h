/* The forward pass of one batch: some tokens of one session, or one token of each of several.
 *
 * It runs as one job of the pool, in phases (pool.h). Per layer, for one token or a few lanes:
 *   1. normalise (each worker for itself); Q, K, V
 *   2. rotate, store K and V, attend by segments
 *   3. join the segments (each for itself); output, added to the stream
 *   4. normalise (each for itself); gate, up, SiLU
 *   5. down, added to the stream
 * which makes five barriers. With more tokens, or many segments to join, what is redundant here
 * becomes phases of its own. In the last layer only the rows whose logits are wanted go on after K
 * and V. */
#ifndef FADER_ENGINE_FORWARD_H
#define FADER_ENGINE_FORWARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/kv.h"
#include "engine/model.h"

enum { PASS_LANES = 16 }; /* most sessions in a pass, and most rows of logits at once */

struct pass {
    struct model *m;
    size_t n;           /* tokens */
    const int32_t *ids; /* [n] */
    bool lanes;         /* each token is a session of its own; else all are kv[0]'s, in order */
    const struct kv_table *kv[PASS_LANES];
    size_t position[PASS_LANES]; /* of each lane's token, or of the first token */
    size_t wanted;               /* rows wanted .. n - 1 come out; n: only the cache is filled */
};

/* Fills the cache and leaves the wanted rows in the stream. Caches, rope table, batch buffers must
 * have been reserved. False: cancelled (what is in the cache beyond the old length is void), or
 * (never else) no memory for the attention's parts, then *no_memory. */
bool forward_run(struct pass *p, const atomic_bool *cancel, bool *no_memory);

/* Logits of rows first .. first + n - 1 of the last pass, n <= PASS_LANES; out[i] has room for
 * n_vocab rounded up to 32. False: cancelled. */
bool forward_logits(struct pass *p, size_t first, size_t n, float *const out[],
                    const atomic_bool *cancel);

#endif
