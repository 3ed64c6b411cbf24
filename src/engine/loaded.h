/* What model_load adds to a model: repacked weights, the compute pool, and the buffers of the
 * forward pass, which all sessions share (one of them runs at a time). */
#ifndef FADER_ENGINE_LOADED_H
#define FADER_ENGINE_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/kernels.h"
#include "engine/kv.h"
#include "engine/model.h"
#include "engine/pool.h"
#include "engine/repack.h"

struct loaded_layer {
    float *attn_norm, *ffn_norm; /* [n_embd], padded as all vectors here */
    struct matrix q, k, v, out, gate, up, down;
    float *q_bias, *k_bias, *v_bias, *out_bias, *gate_bias, *up_bias, *down_bias; /* or NULL */
};

/* Activations of a batch in the form that matmul reads: panels of KERNEL_PANEL tokens,
 * end to end. */
struct act {
    size_t cols; /* padded to 32 */
    int8_t *q;
    struct act_scale *scale;
    float *f32;
};

/* cos and signed sin of every position and rotated dimension, grown with the longest session. */
struct rope_table {
    size_t dim, n;        /* positions filled */
    size_t cap;           /* positions allocated */
    float *cosine, *sine; /* [n][dim] */
};

struct worker_scratch {             /* one per worker */
    float *row;                     /* [widest activation] */
    struct act own;                 /* OWN_TOKENS of the widest activation */
    struct act last;                /* one token of the stream */
    uint8_t *groups;                /* packed on the fly; NULL when all is repacked */
    float *kv;                      /* K and V of a token's head */
    float *q, *o, *o_part;          /* [queries][dim] */
    float *m, *l, *m_part, *l_part; /* [queries] */
    uint16_t *visible;              /* [queries] */
};

struct loaded {
    const struct kernels *kernels;
    struct pool *pool;
    struct loaded_layer *layers;
    float *output_norm;
    struct matrix embd, head;
    uint8_t *weights; /* one map for all repacked matrices */
    size_t weights_bytes;
    float *vectors;   /* one block for all norms and biases */
    bool reads_map;   /* the forward pass still reads the file */
    char notice[128]; /* why the weights were left in the file, when nobody asked for it */
    struct rope_table rope;
    struct kv_store *kv[2]; /* by enum cache_type; NULL until needed */

    /* Widths of the residual stream, one head, the attention's and the FFN's rows, all padded
     * to 32. */
    size_t width, dim, attn_width, kv_width, ff_width;
    size_t group; /* query heads of a KV head */

    /* Buffers for `batch` tokens, in one map. */
    size_t batch;
    void *buffers;
    size_t buffers_bytes;
    float *x;                /* [batch][width]: the residual stream */
    float *q, *k, *v, *attn; /* [batch][attn_width or kv_width] */
    struct act norm, attn_act, ff;
    struct worker_scratch *scratch; /* [threads] */
    float *parts;                   /* attention by segments: forward_attention.c */
    size_t parts_cap;               /* floats */
};

enum {
    TASK_GROUPS = KERNEL_CHUNK, /* of rows in one task: 32 rows, one block of the next matrix */
    OWN_TOKENS = 8,             /* up to so many every worker prepares for itself */
    TILE_QUERIES = 48           /* queries that attend to a segment one after the other */
};

/* Repacks the weights, or leaves them where they are (load_weights.c). */
bool loaded_place_weights(struct model *m, const struct model_load_options *options,
                          struct error *err);
size_t loaded_widest_group(const struct model *m); /* bytes of the widest of all matrices' groups */

/* Makes the buffers hold `batch` tokens. False when memory lacks; the old ones stay. */
bool loaded_reserve_batch(struct model *m, size_t batch);
bool loaded_reserve_parts(struct loaded *l, size_t floats);

/* Fills the rope table up to `positions`. */
void loaded_reserve_rope(struct model *m, size_t positions);

/* Tokens that one attention task of a prefill takes, and the queries that makes. */
static inline size_t loaded_tile_tokens(const struct loaded *l)
{
    return l->group < TILE_QUERIES ? TILE_QUERIES / l->group : 1;
}

static inline size_t loaded_tile_queries(const struct loaded *l)
{
    return loaded_tile_tokens(l) * l->group;
}

/* Panel number `i` of an act that holds n tokens. */
struct panel act_panel(const struct act *a, size_t n, size_t i);

/* Writes token t of n, from x [cols], in the forms that are wanted. */
void act_set(const struct act *a, const struct kernels *kernels, size_t n, size_t t, const float *x,
             bool codes, bool floats);

/* 32 columns of it only, as codes or as floats: block number `block`, from x [32]. */
void act_set_block(const struct act *a, const struct kernels *kernels, size_t n, size_t t,
                   size_t block, const float *x, bool floats);

#endif
