/* Sessions: which tokens are in the cache, and how new ones get there. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/forward.h"
#include "engine/loaded.h"

struct session {
    struct model *m;                /* borrowed */
    struct session_options options; /* none left at 0 but the cache type */
    struct kv_table kv;
    int32_t *tokens; /* [n] */
    size_t n, cap;
    float *logits; /* [n_vocab rounded up to 32] */
    bool has_logits;
};

static size_t padded_vocab(const struct model *m)
{
    return ((size_t)m->info.n_vocab + 31) / 32 * 32;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static struct kv_store *store_for(struct model *m, enum cache_type type)
{
    struct kv_store **store = &m->loaded->kv[type];

    if (*store == NULL)
        *store = kv_store_new((size_t)m->info.n_layer, (size_t)m->info.n_kv_head,
                              (size_t)m->info.head_dim, type);
    return *store;
}

static struct session *session_alloc(struct model *m, const struct session_options *options)
{
    struct session *s = mem_zalloc(sizeof *s);

    s->m = m;
    s->options = *options;
    s->logits = mem_array(padded_vocab(m), sizeof *s->logits);
    kv_table_init(&s->kv, store_for(m, options->cache_type));
    return s;
}

struct session *session_new(struct model *m, const struct session_options *options,
                            struct error *err)
{
    struct session_options o = options != NULL ? *options : (struct session_options){0};

    if (m->loaded == NULL) {
        error_set(err, "%s: the weights are not loaded", m->info.path);
        return NULL;
    }
    if (o.ctx_size < 0 || o.batch_size < 0) {
        error_set(err, "context size %d, batch size %d: not below 0", o.ctx_size, o.batch_size);
        return NULL;
    }
    if (o.ctx_size == 0)
        o.ctx_size = m->info.ctx_train < SESSION_CTX_DEFAULT_MAX ? m->info.ctx_train
                                                                 : SESSION_CTX_DEFAULT_MAX;
    if (o.batch_size == 0)
        o.batch_size = SESSION_BATCH_DEFAULT;
    if (o.batch_size > o.ctx_size)
        o.batch_size = o.ctx_size;
    size_t batch = (size_t)o.batch_size < PASS_LANES ? PASS_LANES : (size_t)o.batch_size;
    if (!loaded_reserve_batch(m, batch)) {
        error_set(err, "no memory for batches of %zu tokens", batch);
        return NULL;
    }
    return session_alloc(m, &o);
}

void session_free(struct session *s)
{
    if (s == NULL)
        return;
    kv_table_done(&s->kv);
    free(s->tokens);
    free(s->logits);
    free(s);
}

struct session *session_fork(const struct session *from, struct error *err)
{
    struct session *s = session_alloc(from->m, &from->options);

    (void)err; /* blocks are shared: nothing large is needed yet */
    kv_table_share(&s->kv, &from->kv);
    mem_grow(&s->tokens, &s->cap, from->n, sizeof *s->tokens);
    if (from->n > 0)
        memcpy(s->tokens, from->tokens, from->n * sizeof *s->tokens);
    s->n = from->n;
    s->has_logits = from->has_logits;
    if (from->has_logits)
        memcpy(s->logits, from->logits, padded_vocab(s->m) * sizeof *s->logits);
    return s;
}

/* ---- facts ----------------------------------------------------------------------------------- */

int32_t session_ctx_size(const struct session *s)
{
    return s->options.ctx_size;
}

int32_t session_length(const struct session *s)
{
    return (int32_t)s->n;
}

const int32_t *session_tokens(const struct session *s)
{
    return s->tokens;
}

const float *session_logits(const struct session *s)
{
    return s->has_logits ? s->logits : NULL;
}

uint64_t session_kv_used(const struct session *s)
{
    return (uint64_t)s->kv.n * kv_store_block_bytes(s->kv.store);
}

void session_truncate(struct session *s, int32_t length)
{
    size_t keep = length > 0 ? (size_t)length : 0;

    if (keep >= s->n)
        return;
    s->n = keep;
    s->has_logits = false;
    kv_table_truncate(&s->kv, keep);
}

int32_t session_common(const struct session *s, const int32_t *ids, size_t n)
{
    size_t same = 0;

    while (same < s->n && same < n && s->tokens[same] == ids[same])
        same++;
    return (int32_t)same;
}

int32_t session_reuse(struct session *s, const int32_t *ids, size_t n)
{
    int32_t same = session_common(s, ids, n > 0 ? n - 1 : 0);

    session_truncate(s, same);
    return same;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static bool check_ids(const struct model *m, const int32_t *ids, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= m->info.n_vocab)
            return error_set(err, "token %d: not in the vocabulary of %d", ids[i], m->info.n_vocab);
    }
    return true;
}

/* The file may have been cut short under the map while something of it is still read. */
static bool check_file(const struct model *m, struct error *err)
{
    return !m->loaded->reads_map || gguf_check_whole(m->file, err);
}

static void append(struct session *s, const int32_t *ids, size_t n)
{
    mem_grow(&s->tokens, &s->cap, s->n + n, sizeof *s->tokens);
    memcpy(s->tokens + s->n, ids, n * sizeof *ids);
    s->n += n;
}

/* Hands out the logits of every row of the pass, PASS_LANES at a time. */
static bool hand_out(struct session *s, struct pass *p, size_t index,
                     const struct eval_hooks *hooks)
{
    size_t width = padded_vocab(s->m);
    float *rows = mem_array(PASS_LANES * width, sizeof *rows), *out[PASS_LANES];
    bool ok = true;

    for (size_t i = 0; i < PASS_LANES; i++)
        out[i] = rows + i * width;
    for (size_t first = 0; ok && first < p->n; first += PASS_LANES) {
        size_t n = p->n - first < PASS_LANES ? p->n - first : PASS_LANES;
        ok = forward_logits(p, first, n, out, hooks->cancel);
        for (size_t i = 0; ok && i < n; i++)
            hooks->logits(hooks->ctx, index + first + i, out[i]);
        if (ok && first + n == p->n)
            memcpy(s->logits, out[n - 1], width * sizeof *s->logits);
    }
    free(rows);
    return ok;
}

/* One batch after what is in the cache. `last`: its final logits are wanted. */
static enum eval_result eval_batch(struct session *s, const int32_t *ids, size_t n, size_t index,
                                   bool last, const struct eval_hooks *hooks, struct error *err)
{
    bool all = hooks->logits != NULL, no_memory = false;
    struct pass p = {.m = s->m,
                     .n = n,
                     .ids = ids,
                     .lanes = n == 1,
                     .kv = {&s->kv},
                     .position = {s->n},
                     .wanted = all    ? 0
                               : last ? n - 1
                                      : n};
    float *const out[] = {s->logits};

    if (!kv_table_reserve(&s->kv, s->n, s->n + n)) {
        error_set(err, "no memory for the KV cache at %zu tokens", s->n + n);
        return EVAL_FAILED;
    }
    if (!forward_run(&p, hooks->cancel, &no_memory)) {
        if (!no_memory)
            return EVAL_CANCELLED;
        error_set(err, "no memory for attention over %zu tokens", s->n + n);
        return EVAL_FAILED;
    }
    if (all ? !hand_out(s, &p, index, hooks)
            : last && !forward_logits(&p, n - 1, 1, out, hooks->cancel))
        return EVAL_CANCELLED;
    return check_file(s->m, err) ? EVAL_OK : EVAL_FAILED;
}

enum eval_result session_eval(struct session *s, const int32_t *ids, size_t n,
                              const struct eval_hooks *hooks, struct error *err)
{
    static const struct eval_hooks no_hooks;
    size_t batch = (size_t)s->options.batch_size, done = 0;

    if (hooks == NULL)
        hooks = &no_hooks;
    if (n > (size_t)s->options.ctx_size - s->n)
        return EVAL_FULL;
    if (!check_ids(s->m, ids, n, err))
        return EVAL_FAILED;
    loaded_reserve_rope(s->m, s->n + n);
    s->has_logits = false;
    while (done < n) {
        size_t now = n - done < batch ? n - done : batch;
        enum eval_result result = eval_batch(s, ids + done, now, done, done + now == n, hooks, err);
        if (result != EVAL_OK) {
            kv_table_truncate(&s->kv, s->n);
            return result;
        }
        append(s, ids + done, now);
        done += now;
        if (hooks->progress != NULL)
            hooks->progress(hooks->ctx, done, n);
    }
    s->has_logits = true;
    return EVAL_OK;
}

static enum eval_result reserve_lanes(struct session **sessions, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (sessions[i]->n >= (size_t)sessions[i]->options.ctx_size)
            return EVAL_FULL;
    }
    for (size_t i = 0; i < n; i++) {
        struct session *s = sessions[i];
        loaded_reserve_rope(s->m, s->n + 1);
        if (!kv_table_reserve(&s->kv, s->n, s->n + 1)) {
            error_set(err, "no memory for the KV cache of lane %zu", i + 1);
            return EVAL_FAILED;
        }
    }
    return EVAL_OK;
}

static enum eval_result run_lanes(struct session **sessions, struct pass *p, struct error *err)
{
    float *out[PASS_LANES];
    bool no_memory = false;

    for (size_t i = 0; i < p->n; i++) {
        p->kv[i] = &sessions[i]->kv;
        p->position[i] = sessions[i]->n;
        out[i] = sessions[i]->logits;
        sessions[i]->has_logits = false;
    }
    if (!forward_run(p, NULL, &no_memory)) {
        error_set(err, "no memory for the attention of %zu lanes", p->n);
        return EVAL_FAILED;
    }
    forward_logits(p, 0, p->n, out, NULL);
    return check_file(p->m, err) ? EVAL_OK : EVAL_FAILED;
}

enum eval_result session_eval_lanes(struct session **sessions, const int32_t *ids, int n,
                                    struct error *err)
{
    if (n < 1 || n > PASS_LANES) {
        error_set(err, "%d lanes: not between 1 and %d", n, PASS_LANES);
        return EVAL_FAILED;
    }
    struct pass p = {.m = sessions[0]->m, .n = (size_t)n, .ids = ids, .lanes = true, .wanted = 0};
    if (!check_ids(p.m, ids, p.n, err))
        return EVAL_FAILED;
    enum eval_result result = reserve_lanes(sessions, p.n, err);
    if (result == EVAL_OK)
        result = run_lanes(sessions, &p, err);
    for (size_t i = 0; i < p.n; i++) {
        struct session *s = sessions[i];
        if (result == EVAL_OK) {
            append(s, &ids[i], 1);
            s->has_logits = true;
        } else {
            kv_table_truncate(&s->kv, s->n);
        }
    }
    return result;
}
