/* model_load: chooses the kernels, starts the pool, and makes the buffers. Where the weights go is
 * load_weights.c's. */
#include "config.h"

#include "engine/loaded.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ALIGN = 64 }; /* of every packed matrix and buffer: a cache line */

static size_t pad32(size_t n)
{
    return (n + 31) / 32 * 32;
}

/* ---- matrices ---------------------------------------------------------------------------------- */

static bool init_matrices(struct model *m, struct error *err)
{
    struct loaded *l = m->loaded;

    for (int32_t i = 0; i < m->info.n_layer; i++) {
        const struct model_layer *from = &m->layers[i];
        struct loaded_layer *y = &l->layers[i];
        if (!matrix_init(&y->q, from->attn_q, l->kernels, err) ||
            !matrix_init(&y->k, from->attn_k, l->kernels, err) ||
            !matrix_init(&y->v, from->attn_v, l->kernels, err) ||
            !matrix_init(&y->out, from->attn_output, l->kernels, err) ||
            !matrix_init(&y->gate, from->ffn_gate, l->kernels, err) ||
            !matrix_init(&y->up, from->ffn_up, l->kernels, err) ||
            !matrix_init(&y->down, from->ffn_down, l->kernels, err))
            return false;
    }
    return matrix_init(&l->embd, m->token_embd, l->kernels, err) &&
           matrix_init(&l->head, m->output, l->kernels, err);
}

/* ---- vectors -------------------------------------------------------------------------------- */

/* Copies a vector, padded with zeros; counts only, while `*at` is NULL. */
static float *take_vector(float **at, size_t *total, const struct gguf_tensor *t)
{
    if (t == NULL)
        return NULL;
    size_t n = (size_t)t->n_elements, padded = pad32(n);
    *total += padded;
    if (*at == NULL)
        return NULL;
    float *to = *at;
    memcpy(to, t->data, n * sizeof *to);
    *at += padded;
    return to;
}

static size_t take_vectors(struct model *m, float *at)
{
    struct loaded *l = m->loaded;
    size_t total = 0;

    for (int32_t i = 0; i < m->info.n_layer; i++) {
        const struct model_layer *from = &m->layers[i];
        struct loaded_layer *y = &l->layers[i];
        y->attn_norm = take_vector(&at, &total, from->attn_norm);
        y->ffn_norm = take_vector(&at, &total, from->ffn_norm);
        y->q_bias = take_vector(&at, &total, from->attn_q_bias);
        y->k_bias = take_vector(&at, &total, from->attn_k_bias);
        y->v_bias = take_vector(&at, &total, from->attn_v_bias);
        y->out_bias = take_vector(&at, &total, from->attn_output_bias);
        y->gate_bias = take_vector(&at, &total, from->ffn_gate_bias);
        y->up_bias = take_vector(&at, &total, from->ffn_up_bias);
        y->down_bias = take_vector(&at, &total, from->ffn_down_bias);
    }
    l->output_norm = take_vector(&at, &total, m->output_norm);
    return total;
}

static void load_vectors(struct model *m)
{
    size_t total = take_vectors(m, NULL);

    m->loaded->vectors = mem_array(total, sizeof(float));
    take_vectors(m, m->loaded->vectors);
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Cuts pieces out of one block: counts only, while base is NULL. */
struct carver {
    uint8_t *base;
    size_t used;
};

static void *carve(struct carver *c, size_t count, size_t size)
{
    size_t at = c->used;

    c->used += (count * size + ALIGN - 1) / ALIGN * ALIGN;
    return c->base == NULL ? NULL : c->base + at;
}

static void carve_act(struct carver *c, struct act *a, size_t tokens, size_t cols)
{
    a->cols = cols;
    a->q = carve(c, tokens * cols, sizeof *a->q);
    a->scale = carve(c, tokens * (cols / KERNEL_BLOCK), sizeof *a->scale);
    a->f32 = carve(c, tokens * cols, sizeof *a->f32);
}

static void carve_scratch(struct model *m, struct carver *c, struct worker_scratch *s)
{
    const struct loaded *l = m->loaded;
    size_t widest = l->width > l->attn_width ? l->width : l->attn_width;
    size_t queries = loaded_tile_queries(l);

    s->row = carve(c, widest, sizeof(float));
    carve_act(c, &s->own, OWN_TOKENS, widest);
    carve_act(c, &s->last, 1, l->width);
    s->groups = l->weights == NULL ? carve(c, TASK_GROUPS, loaded_widest_group(m)) : NULL;
    s->kv = carve(c, 2 * l->dim, sizeof(float));
    s->q = carve(c, queries * l->dim, sizeof(float));
    s->o = carve(c, queries * l->dim, sizeof(float));
    s->o_part = carve(c, queries * l->dim, sizeof(float));
    s->m = carve(c, queries, sizeof(float));
    s->l = carve(c, queries, sizeof(float));
    s->m_part = carve(c, queries, sizeof(float));
    s->l_part = carve(c, queries, sizeof(float));
    s->visible = carve(c, queries, sizeof *s->visible);
}

static size_t carve_buffers(struct model *m, uint8_t *base, size_t batch)
{
    struct loaded *l = m->loaded;
    struct carver c = {.base = base};

    l->x = carve(&c, batch * l->width, sizeof(float));
    l->q = carve(&c, batch * l->attn_width, sizeof(float));
    l->k = carve(&c, batch * l->kv_width, sizeof(float));
    l->v = carve(&c, batch * l->kv_width, sizeof(float));
    l->attn = carve(&c, batch * l->attn_width, sizeof(float));
    carve_act(&c, &l->norm, batch, l->width);
    carve_act(&c, &l->attn_act, batch, l->attn_width);
    carve_act(&c, &l->ff, batch, l->ff_width);
    for (int i = 0; i < pool_threads(l->pool); i++)
        carve_scratch(m, &c, &l->scratch[i]);
    return c.used;
}

bool loaded_reserve_batch(struct model *m, size_t batch)
{
    struct loaded *l = m->loaded;

    if (batch <= l->batch)
        return true;
    size_t bytes = carve_buffers(m, NULL, batch);
    void *buffers = mem_map(bytes);
    if (buffers == NULL) {
        carve_buffers(m, l->buffers, l->batch);
        return false;
    }
    mem_unmap(l->buffers, l->buffers_bytes);
    l->buffers = buffers;
    l->buffers_bytes = bytes;
    l->batch = batch;
    carve_buffers(m, buffers, batch);
    return true;
}

bool loaded_reserve_parts(struct loaded *l, size_t floats)
{
    if (floats <= l->parts_cap)
        return true;
    float *parts = mem_map(floats * sizeof *parts);
    if (parts == NULL)
        return false;
    mem_unmap(l->parts, l->parts_cap * sizeof *parts);
    l->parts = parts;
    l->parts_cap = floats;
    return true;
}

/* ---- life cycle ----------------------------------------------------------------------------- */

static void unload(struct model *m)
{
    struct loaded *l = m->loaded;

    if (l == NULL)
        return;
    pool_free(l->pool);
    for (size_t i = 0; i < sizeof l->kv / sizeof *l->kv; i++)
        kv_store_free(l->kv[i]);
    mem_unmap(l->weights, l->weights_bytes);
    mem_unmap(l->buffers, l->buffers_bytes);
    mem_unmap(l->parts, l->parts_cap * sizeof *l->parts);
    free(l->rope.cosine);
    free(l->rope.sine);
    free(l->scratch);
    free(l->vectors);
    free(l->layers);
    free(l);
    m->loaded = NULL;
}

static void measure(struct model *m)
{
    struct loaded *l = m->loaded;
    size_t head_dim = (size_t)m->info.head_dim;

    l->width = pad32((size_t)m->info.n_embd);
    l->dim = kv_dim(head_dim);
    l->attn_width = pad32((size_t)m->info.n_head * head_dim);
    l->kv_width = pad32((size_t)m->info.n_kv_head * head_dim);
    l->ff_width = pad32((size_t)m->info.n_ff);
    l->group = (size_t)(m->info.n_head / m->info.n_kv_head);
    l->rope.dim = (size_t)m->hparams.rope_dim;
}

static bool load(struct model *m, const struct model_load_options *options, struct error *err)
{
    struct loaded *l = m->loaded;
    int threads = options->threads > 0 ? options->threads : pool_cores();

    l->kernels = kernels_choose(err);
    l->layers = mem_array((size_t)m->info.n_layer, sizeof *l->layers);
    if (l->kernels == NULL || !init_matrices(m, err))
        return false;
    l->pool = pool_new(threads, err);
    if (l->pool == NULL)
        return false;
    l->scratch = mem_array((size_t)threads, sizeof *l->scratch);
    measure(m);
    load_vectors(m);
    return loaded_place_weights(m, options, err) && gguf_check_whole(m->file, err);
}

bool model_load(struct model *m, const struct model_load_options *options, struct error *err)
{
    static const struct model_load_options defaults;

    if (m->loaded != NULL)
        return true;
    m->loaded = mem_zalloc(sizeof *m->loaded);
    m->unload = unload;
    if (!load(m, options != NULL ? options : &defaults, err)) {
        unload(m);
        return false;
    }
    return true;
}

bool model_is_repacked(const struct model *m)
{
    return m->loaded != NULL && m->loaded->weights != NULL;
}

const char *model_notice(const struct model *m)
{
    return m->loaded == NULL || m->loaded->notice[0] == '\0' ? NULL : m->loaded->notice;
}

int model_threads(const struct model *m)
{
    return m->loaded == NULL ? 0 : pool_threads(m->loaded->pool);
}

uint64_t model_decode_bytes(const struct model *m)
{
    bool looked_up_only = m->token_embd != m->output;

    return m->info.weight_bytes - (looked_up_only ? m->token_embd->bytes : 0);
}
