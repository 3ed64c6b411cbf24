/* What a model is inside the engine: the checked file, its shape, its tensors by role, and the
 * parts that model_load adds. model.c and model_meta.c fill all of it but `loaded`.
 *
 * After model_open every tensor here has a supported type and the shape that the table in model.c
 * demands, so that whoever computes need not look again:
 * a matrix is [rows, cols], row-major: dims[1] rows of dims[0] columns, cols a multiple of the
 * type's block; norms, biases and rope_freqs are vectors of F32. head_dim * n_head may differ from
 * n_embd. */
#ifndef FADER_ENGINE_MODEL_H
#define FADER_ENGINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/gguf.h"
#include "engine/quant.h"

enum rope_kind {
    ROPE_NORM, /* rotates neighbouring pairs */
    ROPE_NEOX  /* pairs i with i + rope_dim / 2 */
};

/* One architecture: another one is another row of the table in model.c. */
struct arch_traits {
    const char *name; /* general.architecture */
    enum rope_kind rope;
};

struct hparams {
    float norm_eps;   /* of RMSNorm */
    float rope_base;  /* theta */
    float rope_scale; /* positions are multiplied by it: 1 / factor of linear scaling; 1: none */
    int32_t rope_dim; /* leading dimensions of a head that are rotated; even, <= head_dim */
};

struct model_layer {
    const struct gguf_tensor *attn_norm;         /* [n_embd] */
    const struct gguf_tensor *attn_q;            /* [n_head * head_dim, n_embd] */
    const struct gguf_tensor *attn_k, *attn_v;   /* [n_kv_head * head_dim, n_embd] */
    const struct gguf_tensor *attn_output;       /* [n_embd, n_head * head_dim] */
    const struct gguf_tensor *ffn_norm;          /* [n_embd] */
    const struct gguf_tensor *ffn_gate, *ffn_up; /* [n_ff, n_embd] */
    const struct gguf_tensor *ffn_down;          /* [n_embd, n_ff] */
    /* NULL where the file has none: */
    const struct gguf_tensor *attn_q_bias, *attn_k_bias, *attn_v_bias, *attn_output_bias;
    const struct gguf_tensor *ffn_gate_bias, *ffn_up_bias, *ffn_down_bias;
};

struct loaded; /* repacked weights and the compute pool: whoever implements model_load */

struct model {
    struct gguf *file;
    struct model_info info;
    const struct arch_traits *arch;
    struct hparams hparams;

    const struct gguf_tensor *token_embd;  /* [n_vocab, n_embd] */
    const struct gguf_tensor *output_norm; /* [n_embd] */
    const struct gguf_tensor *output;      /* [n_vocab, n_embd]; token_embd itself when tied */
    const struct gguf_tensor *rope_freqs;  /* [rope_dim / 2]: angles are divided by them; or NULL */
    struct model_layer *layers;            /* [info.n_layer], owned */

    struct tokenizer *tokenizer; /* owned; NULL until model_tokenizer built it */

    struct loaded *loaded;           /* NULL until model_load */
    void (*unload)(struct model *m); /* set with `loaded`; model_close calls it first */

    char *strings[8]; /* owned: what info's texts point to */
    size_t n_strings;
};

/* The texts and numbers that do not bear on what is computed (model_meta.c): label, chat
 * template, the file's own sampling defaults. */
bool model_read_meta(struct model *m, struct error *err);

/* The value of a string key as an owned C string, up to its first NUL; NULL where there is none. */
bool model_read_text(const struct model *m, const char *key, char **text, struct error *err);

#endif
