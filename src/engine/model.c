#include "config.h"

#include "engine/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/kernels.h"
#include "engine/tokenizer.h"

/* Bounds on a shape: far above any model there is, low enough that products of two fit int64 and
 * that a hostile header cannot ask for much. */
enum {
    LAYERS_MAX = 4096,
    WIDTH_MAX = 1 << 20,
    HEADS_MAX = 1 << 14,
    HEAD_DIM_MAX = KERNEL_DIM_MAX,
    VOCAB_MAX = 1 << 24,
    CTX_MAX = 1 << 30
};

/* ---- architectures ------------------------------------------------------------------------- */

static const struct arch_traits archs[] = {
    {"llama", ROPE_NORM},
};

static const struct arch_traits *arch_find(struct gguf_string name)
{
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        if (strlen(archs[i].name) == name.len && memcmp(archs[i].name, name.text, name.len) == 0)
            return &archs[i];
    }
    return NULL;
}

/* ---- the shape ----------------------------------------------------------------------------- */

/* "llama" and "block_count" give the key "llama.block_count". */
static const char *arch_key(const struct model *m, const char *name, char out[96])
{
    snprintf(out, 96, "%s.%s", m->arch->name, name);
    return out;
}

static bool read_size(const struct model *m, const char *name, bool required, int64_t max,
                      int32_t *value, struct error *err)
{
    char key[96];
    int64_t found = *value;

    if (!gguf_read_int(m->file, arch_key(m, name, key), required, 1, max, &found, err))
        return false;
    *value = (int32_t)found;
    return true;
}

static bool read_float(const struct model *m, const char *name, double min, double max,
                       double initial, float *value, struct error *err)
{
    char key[96];
    double found = initial;

    if (!gguf_read_number(m->file, arch_key(m, name, key), false, min, max, &found, err))
        return false;
    *value = (float)found;
    return true;
}

static bool read_heads(struct model *m, struct error *err)
{
    struct model_info *i = &m->info;
    int32_t value_dim;

    if (!read_size(m, "attention.head_count", true, HEADS_MAX, &i->n_head, err))
        return false;
    i->n_kv_head = i->n_head;
    if (!read_size(m, "attention.head_count_kv", false, HEADS_MAX, &i->n_kv_head, err))
        return false;
    if (i->n_head % i->n_kv_head != 0)
        return error_set(err, "%s: %d heads are not a multiple of %d key-value heads", i->path,
                         i->n_head, i->n_kv_head);
    i->head_dim = i->n_embd / i->n_head;
    if (!read_size(m, "attention.key_length", false, HEAD_DIM_MAX, &i->head_dim, err))
        return false;
    value_dim = i->head_dim;
    if (!read_size(m, "attention.value_length", false, HEAD_DIM_MAX, &value_dim, err))
        return false;
    if (i->head_dim < 2 || i->head_dim > HEAD_DIM_MAX || i->head_dim % 2 != 0)
        return error_set(err, "%s: heads of %d dimensions", i->path, i->head_dim);
    if (value_dim != i->head_dim)
        return error_set(err, "%s: keys of %d and values of %d dimensions are not supported yet",
                         i->path, i->head_dim, value_dim);
    return true;
}

/* Only what changes positions by one factor: "none" and "linear". */
static bool read_rope_scaling(struct model *m, struct error *err)
{
    char key[96], *type;
    float factor = 0;
    bool ok = true;

    m->hparams.rope_scale = 1;
    if (!model_read_text(m, arch_key(m, "rope.scaling.type", key), &type, err))
        return false;
    if (!read_float(m, "rope.scaling.factor", 0, 1e6, 0, &factor, err) ||
        (factor == 0 && !read_float(m, "rope.scale_linear", 0, 1e6, 0, &factor, err)))
        ok = false;
    else if (type != NULL && strcmp(type, "none") != 0 && strcmp(type, "linear") != 0)
        ok = error_set(err, "%s: rope scaling '%s' is not supported yet", m->info.path, type);
    else if (factor > 0 && (type == NULL || strcmp(type, "linear") == 0))
        m->hparams.rope_scale = 1 / factor;
    free(type);
    return ok;
}

static bool read_rope(struct model *m, struct error *err)
{
    struct hparams *h = &m->hparams;

    h->rope_dim = m->info.head_dim;
    if (!read_size(m, "rope.dimension_count", false, HEAD_DIM_MAX, &h->rope_dim, err) ||
        !read_float(m, "rope.freq_base", 1e-3, 1e15, 10000, &h->rope_base, err))
        return false;
    if (h->rope_dim > m->info.head_dim || h->rope_dim % 2 != 0)
        return error_set(err, "%s: %d of a head's %d dimensions are to be rotated", m->info.path,
                         h->rope_dim, m->info.head_dim);
    return read_rope_scaling(m, err);
}

static bool refuse_experts(const struct model *m, struct error *err)
{
    char key[96];
    int64_t experts = 0;

    if (!gguf_read_int(m->file, arch_key(m, "expert_count", key), false, 0, INT32_MAX, &experts,
                       err))
        return false;
    if (experts > 0 || gguf_find_tensor(m->file, "blk.0.ffn_gate_inp.weight") != NULL)
        return error_set(err, "%s: mixtures of experts are not supported yet", m->info.path);
    return true;
}

static bool read_shape(struct model *m, struct error *err)
{
    struct model_info *i = &m->info;

    return refuse_experts(m, err) &&
           read_size(m, "block_count", true, LAYERS_MAX, &i->n_layer, err) &&
           read_size(m, "embedding_length", true, WIDTH_MAX, &i->n_embd, err) &&
           read_size(m, "feed_forward_length", true, WIDTH_MAX, &i->n_ff, err) &&
           read_size(m, "context_length", true, CTX_MAX, &i->ctx_train, err) &&
           read_heads(m, err) && read_rope(m, err) &&
           read_float(m, "attention.layer_norm_rms_epsilon", 0, 1, 1e-5, &m->hparams.norm_eps, err);
}

/* ---- tensors by role ----------------------------------------------------------------------- */

enum extent { EXTENT_NONE, EXTENT_EMBD, EXTENT_Q, EXTENT_KV, EXTENT_FF, EXTENT_VOCAB, EXTENT_ROPE };

static uint64_t extent_of(const struct model *m, enum extent extent)
{
    const struct model_info *i = &m->info;

    switch (extent) {
    case EXTENT_EMBD:
        return (uint64_t)i->n_embd;
    case EXTENT_Q:
        return (uint64_t)i->n_head * (uint64_t)i->head_dim;
    case EXTENT_KV:
        return (uint64_t)i->n_kv_head * (uint64_t)i->head_dim;
    case EXTENT_FF:
        return (uint64_t)i->n_ff;
    case EXTENT_VOCAB:
        return (uint64_t)i->n_vocab;
    case EXTENT_ROPE:
        return (uint64_t)m->hparams.rope_dim / 2;
    case EXTENT_NONE:
        break;
    }
    return 1;
}

struct role {
    const char *name;       /* of the tensor; of a layer's: what follows "blk.N." */
    size_t place;           /* of its pointer in struct model or struct model_layer */
    enum extent rows, cols; /* rows EXTENT_NONE: a vector of F32 */
    bool optional;
};

#define OF_MODEL(field) offsetof(struct model, field)
#define OF_LAYER(field) offsetof(struct model_layer, field)

static const struct role model_roles[] = {
    {"output_norm.weight", OF_MODEL(output_norm), EXTENT_NONE, EXTENT_EMBD, false},
    {"output.weight", OF_MODEL(output), EXTENT_VOCAB, EXTENT_EMBD, true},
    {"rope_freqs.weight", OF_MODEL(rope_freqs), EXTENT_NONE, EXTENT_ROPE, true},
};

static const struct role layer_roles[] = {
    {"attn_norm.weight", OF_LAYER(attn_norm), EXTENT_NONE, EXTENT_EMBD, false},
    {"attn_q.weight", OF_LAYER(attn_q), EXTENT_Q, EXTENT_EMBD, false},
    {"attn_k.weight", OF_LAYER(attn_k), EXTENT_KV, EXTENT_EMBD, false},
    {"attn_v.weight", OF_LAYER(attn_v), EXTENT_KV, EXTENT_EMBD, false},
    {"attn_output.weight", OF_LAYER(attn_output), EXTENT_EMBD, EXTENT_Q, false},
    {"ffn_norm.weight", OF_LAYER(ffn_norm), EXTENT_NONE, EXTENT_EMBD, false},
    {"ffn_gate.weight", OF_LAYER(ffn_gate), EXTENT_FF, EXTENT_EMBD, false},
    {"ffn_up.weight", OF_LAYER(ffn_up), EXTENT_FF, EXTENT_EMBD, false},
    {"ffn_down.weight", OF_LAYER(ffn_down), EXTENT_EMBD, EXTENT_FF, false},
    {"attn_q.bias", OF_LAYER(attn_q_bias), EXTENT_NONE, EXTENT_Q, true},
    {"attn_k.bias", OF_LAYER(attn_k_bias), EXTENT_NONE, EXTENT_KV, true},
    {"attn_v.bias", OF_LAYER(attn_v_bias), EXTENT_NONE, EXTENT_KV, true},
    {"attn_output.bias", OF_LAYER(attn_output_bias), EXTENT_NONE, EXTENT_EMBD, true},
    {"ffn_gate.bias", OF_LAYER(ffn_gate_bias), EXTENT_NONE, EXTENT_FF, true},
    {"ffn_up.bias", OF_LAYER(ffn_up_bias), EXTENT_NONE, EXTENT_FF, true},
    {"ffn_down.bias", OF_LAYER(ffn_down_bias), EXTENT_NONE, EXTENT_EMBD, true},
};

static bool check_type(const struct model *m, const struct gguf_tensor *t, struct error *err)
{
    const struct quant_traits *traits = quant_find(t->type);

    if (traits == NULL)
        return error_set(err, "%s: tensor %s: no type has the number %" PRIu32, m->info.path,
                         t->name, t->type);
    if (!quant_supported(traits))
        return error_set(err, "%s: tensor %s: type %s is not supported yet", m->info.path, t->name,
                         traits->name);
    return true;
}

static bool check_role(const struct model *m, const struct gguf_tensor *t, const struct role *role,
                       struct error *err)
{
    uint64_t cols = extent_of(m, role->cols), rows = extent_of(m, role->rows);

    if (t->dims[0] != cols || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1)
        return error_set(err,
                         "%s: tensor %s: %" PRIu64 " x %" PRIu64 "%s where %" PRIu64 " x %" PRIu64
                         " belongs",
                         m->info.path, t->name, t->dims[0], t->dims[1],
                         t->n_dims > 2 ? " x ..." : "", cols, rows);
    if (role->rows == EXTENT_NONE && t->type != QUANT_F32)
        return error_set(err, "%s: tensor %s: a vector must be F32", m->info.path, t->name);
    return check_type(m, t, err);
}

/* Finds one tensor, checks it, and writes its pointer to `owner`. */
static bool bind(const struct model *m, const struct role *role, const char *name, void *owner,
                 struct error *err)
{
    const struct gguf_tensor *t = gguf_find_tensor(m->file, name);

    if (t == NULL)
        return role->optional || error_set(err, "%s: tensor %s is missing", m->info.path, name);
    memcpy((char *)owner + role->place, &t, sizeof t);
    return check_role(m, t, role, err);
}

/* The embedding has as many rows as there are tokens: everything else is measured by it. */
static bool bind_embedding(struct model *m, struct error *err)
{
    static const struct role role = {"token_embd.weight", OF_MODEL(token_embd), EXTENT_VOCAB,
                                     EXTENT_EMBD, false};
    const struct gguf_tensor *t = gguf_find_tensor(m->file, role.name);

    if (t != NULL && t->dims[1] > VOCAB_MAX)
        return error_set(err, "%s: a vocabulary of %" PRIu64 " tokens", m->info.path, t->dims[1]);
    if (t != NULL)
        m->info.n_vocab = (int32_t)t->dims[1];
    return bind(m, &role, role.name, m, err);
}

static bool bind_tensors(struct model *m, struct error *err)
{
    char name[64];

    if (!bind_embedding(m, err))
        return false;
    for (size_t k = 0; k < sizeof model_roles / sizeof model_roles[0]; k++) {
        if (!bind(m, &model_roles[k], model_roles[k].name, m, err))
            return false;
    }
    if (m->output == NULL)
        m->output = m->token_embd;
    m->layers = mem_array((size_t)m->info.n_layer, sizeof *m->layers);
    for (int32_t layer = 0; layer < m->info.n_layer; layer++) {
        for (size_t k = 0; k < sizeof layer_roles / sizeof layer_roles[0]; k++) {
            snprintf(name, sizeof name, "blk.%d.%s", layer, layer_roles[k].name);
            if (!bind(m, &layer_roles[k], name, &m->layers[layer], err))
                return false;
        }
    }
    return true;
}

/* Sums up the tensors, and finds the type that most weights have. */
static void count_weights(struct model *m)
{
    enum { TYPE_IDS = 64 };
    uint64_t elements[TYPE_IDS] = {0};
    uint32_t most = m->token_embd->type;

    for (size_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->file, i);
        m->info.n_params += t->n_elements;
        m->info.weight_bytes += t->bytes;
        if (t->type >= TYPE_IDS || quant_find(t->type) == NULL)
            continue;
        elements[t->type] += t->n_elements;
        if (elements[t->type] > elements[most])
            most = t->type;
    }
    m->info.type = quant_find(most)->name;
}

/* ---- life cycle ---------------------------------------------------------------------------- */

static bool read_arch(struct model *m, struct error *err)
{
    struct gguf_string name;

    if (!gguf_read_string(m->file, "general.architecture", true, &name, err))
        return false;
    m->arch = arch_find(name);
    if (m->arch == NULL)
        return error_set(err, "%s: architecture '%.*s' is not supported yet", m->info.path,
                         name.len < 64 ? (int)name.len : 64, name.text);
    m->info.arch = m->arch->name;
    return true;
}

struct model *model_open(const char *path, struct error *err)
{
    struct model *m = mem_zalloc(sizeof *m);

    m->file = gguf_open(path, err);
    if (m->file != NULL) {
        m->info.path = gguf_path(m->file);
        if (read_arch(m, err) && model_read_meta(m, err) && read_shape(m, err) &&
            bind_tensors(m, err) && gguf_check_whole(m->file, err)) {
            count_weights(m);
            return m;
        }
    }
    model_close(m);
    return NULL;
}

void model_close(struct model *m)
{
    if (m == NULL)
        return;
    if (m->unload != NULL)
        m->unload(m);
    tokenizer_free(m->tokenizer);
    for (size_t i = 0; i < m->n_strings; i++)
        free(m->strings[i]);
    free(m->layers);
    gguf_close(m->file);
    free(m);
}

const struct model_info *model_get_info(const struct model *m)
{
    return &m->info;
}

const struct tokenizer *model_tokenizer(struct model *m, struct error *err)
{
    if (m->tokenizer == NULL)
        m->tokenizer = tokenizer_new(m->file, m->info.n_vocab, err);
    return m->tokenizer;
}
