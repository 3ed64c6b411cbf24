/* What the parts of the forward pass share: forward.c, forward_matmul.c, forward_attention.c. */
#ifndef FADER_ENGINE_FORWARD_IMPL_H
#define FADER_ENGINE_FORWARD_IMPL_H

#include "engine/forward.h"
#include "engine/loaded.h"

/* One worker's view of the pass. */
struct step {
    const struct pass *p;
    const struct model *m;
    struct loaded *l;
    const struct kernels *k;
    struct worker *w;
    struct worker_scratch *s;
};

/* ---- forward_matmul.c ------------------------------------------------------------------------ */

/* out [n][stride] = act times the matrix, + bias; or added to what is there. */
struct matmul {
    const struct matrix *matrix;
    const struct act *act;
    size_t n; /* tokens; 0: nothing to do */
    float *out;
    size_t stride;
    float *const *rows; /* instead of out: where each token's row goes; or NULL */
    const float *bias;  /* or NULL */
    bool add;
};

size_t matmul_tasks(const struct loaded *l, const struct matmul *list, size_t n_list);
void matmul_run(const struct step *s, const struct matmul *list, size_t task);

/* ff = silu(gate) * up, as activations of n tokens. */
size_t ff_tasks(const struct loaded *l, const struct loaded_layer *layer, size_t n);
void ff_run(const struct step *s, const struct loaded_layer *layer, const struct act *act, size_t n,
            size_t task);

/* ---- forward_attention.c --------------------------------------------------------------------- */

/* For a pass whose tokens are sessions of their own (or its single last token): tasks of one token,
 * KV head and segment, which also store K and V unless `written`; then attention_join makes a row
 * of it. Token t of the pass is row t - first of q and attn. */
size_t lane_tasks(const struct pass *p, size_t first);
void lane_run(const struct step *s, size_t layer, size_t first, bool written, size_t task);
void lane_join(const struct step *s, size_t first, size_t token, float *row);

/* Floats that lane_run's partial results take. */
size_t lane_parts(const struct pass *p, size_t first);

/* For many tokens of one session: K and V of all are stored first. */
size_t store_tasks(const struct pass *p);
void store_run(const struct step *s, size_t layer, size_t task);
size_t tile_tasks(const struct pass *p);
void tile_run(const struct step *s, size_t layer, size_t task);

#endif
