#include "config.h"

#include "engine/forward_impl.h"

#include <string.h>

/* ---- normalisation --------------------------------------------------------------------------- */

/* Row t of the stream, normalised, becomes token t - first of n in `act`. */
static void normalise(const struct step *s, const float *weight, const struct act *act,
                      size_t first, size_t n, size_t t, bool codes, bool floats)
{
    s->k->rms_norm(s->l->x + t * s->l->width, weight, (size_t)s->m->info.n_embd,
                   s->m->hparams.norm_eps, s->s->row);
    act_set(act, s->k, n, t - first, s->s->row, codes, floats);
}

/* What a list of matrices wants to read. */
static void wants(const struct matmul *list, size_t n_list, bool *codes, bool *floats)
{
    *codes = *floats = false;
    for (size_t i = 0; i < n_list; i++) {
        *codes |= !matrix_reads_floats(list[i].matrix);
        *floats |= matrix_reads_floats(list[i].matrix);
    }
}

/* Where a worker keeps what it has prepared for itself. */
static struct act own_act(const struct step *s, size_t cols)
{
    struct act act = s->s->own;

    act.cols = cols;
    return act;
}

/* Normalises rows first .. end - 1, and opens the phase of `n_tasks` that reads them. Few rows are
 * done by every worker for itself: that saves a barrier, and the codes are in its own cache. */
static bool normalise_phase(const struct step *s, const float *weight, size_t first, size_t end,
                            bool codes, bool floats, size_t n_tasks, struct act *act)
{
    size_t n = end - first, task;

    if (n <= OWN_TOKENS) {
        *act = own_act(s, s->l->width);
        if (!worker_phase(s->w, n_tasks))
            return false;
        for (size_t t = first; t < end; t++)
            normalise(s, weight, act, first, n, t, codes, floats);
        return true;
    }
    *act = s->l->norm;
    if (!worker_phase(s->w, n))
        return false;
    while (worker_next(s->w, &task))
        normalise(s, weight, act, first, n, first + task, codes, floats);
    return worker_phase(s->w, n_tasks);
}

/* ---- one layer ------------------------------------------------------------------------------- */

/* Q for rows first .. n - 1, K and V for all. */
static bool run_qkv(const struct step *s, const struct loaded_layer *y, size_t first)
{
    struct loaded *l = s->l;
    size_t n = s->p->n, task;
    struct act all, some;
    struct matmul all_three[3] = {
        {.matrix = &y->q,
         .act = &all,
         .n = n - first,
         .out = l->q,
         .stride = l->attn_width,
         .bias = y->q_bias},
        {.matrix = &y->k,
         .act = &all,
         .n = n,
         .out = l->k,
         .stride = l->kv_width,
         .bias = y->k_bias},
        {.matrix = &y->v,
         .act = &all,
         .n = n,
         .out = l->v,
         .stride = l->kv_width,
         .bias = y->v_bias},
    };
    size_t count = first < n ? 3 : 2;
    struct matmul *list = all_three + 3 - count;
    bool codes, floats;

    wants(list, count, &codes, &floats);
    if (!normalise_phase(s, y->attn_norm, 0, n, codes, floats, matmul_tasks(l, list, count), &all))
        return false;
    if (first > 0 && first < n) { /* the last token only: in a form of its own */
        some = s->s->last;
        normalise(s, y->attn_norm, &some, first, 1, first, codes, floats);
        list[0].act = &some;
    }
    while (worker_next(s->w, &task))
        matmul_run(s, list, task);
    return true;
}

static void set_attn(const struct step *s, const struct loaded_layer *y, const struct act *act,
                     size_t n, size_t t, const float *row)
{
    bool floats = matrix_reads_floats(&y->out);

    act_set(act, s->k, n, t, row, !floats, floats);
}

/* Attention of rows first .. n - 1, and opens the phase of `n_tasks` that reads the result in *act.
 */
static bool run_attention(const struct step *s, const struct loaded_layer *y, size_t layer,
                          size_t first, size_t n_tasks, struct act *act)
{
    const struct pass *p = s->p;
    size_t n = p->n - first, heads = (size_t)s->m->info.n_kv_head, task;
    bool by_lane = p->lanes || n == 1;
    bool store = !p->lanes || n == 0; /* else lane_run does it on its way */

    if (store) {
        if (!worker_phase(s->w, store_tasks(p)))
            return false;
        while (worker_next(s->w, &task))
            store_run(s, layer, task);
    }
    if (n == 0)
        return true;
    if (!worker_phase(s->w, by_lane ? lane_tasks(p, first) : tile_tasks(p)))
        return false;
    while (worker_next(s->w, &task)) {
        if (by_lane)
            lane_run(s, layer, first, store, task);
        else
            tile_run(s, layer, task);
    }
    if (by_lane && (n == 1 || lane_tasks(p, first) <= OWN_TOKENS * heads)) {
        *act = own_act(s, s->l->attn_width);
        if (!worker_phase(s->w, n_tasks))
            return false;
        memset(s->s->row, 0, s->l->attn_width * sizeof *s->s->row);
        for (size_t t = 0; t < n; t++) {
            lane_join(s, first, first + t, s->s->row);
            set_attn(s, y, act, n, t, s->s->row);
        }
        return true;
    }
    *act = s->l->attn_act;
    if (!worker_phase(s->w, n))
        return false;
    while (worker_next(s->w, &task)) {
        float *row = s->l->attn + task * s->l->attn_width;
        if (by_lane)
            lane_join(s, first, first + task, row);
        set_attn(s, y, act, n, task, row);
    }
    return worker_phase(s->w, n_tasks);
}

/* Normalise, gate, up, SiLU, down, for rows first .. n - 1. */
static bool run_ff(const struct step *s, const struct loaded_layer *y, size_t first)
{
    struct loaded *l = s->l;
    size_t n = s->p->n - first, task;
    struct act act;
    struct matmul gates[2] = {{.matrix = &y->gate}, {.matrix = &y->up}};
    struct matmul down = {.matrix = &y->down,
                          .act = &l->ff,
                          .n = n,
                          .out = l->x + first * l->width,
                          .stride = l->width,
                          .bias = y->down_bias,
                          .add = true};
    bool codes, floats;

    wants(gates, 2, &codes, &floats);
    if (!normalise_phase(s, y->ffn_norm, first, s->p->n, codes, floats, ff_tasks(l, y, n), &act))
        return false;
    while (worker_next(s->w, &task))
        ff_run(s, y, &act, n, task);
    if (!worker_phase(s->w, matmul_tasks(l, &down, 1)))
        return false;
    while (worker_next(s->w, &task))
        matmul_run(s, &down, task);
    return true;
}

static bool run_layer(const struct step *s, size_t layer)
{
    struct loaded *l = s->l;
    const struct loaded_layer *y = &l->layers[layer];
    bool last = layer + 1 == (size_t)s->m->info.n_layer;
    size_t first = last ? s->p->wanted : 0, n = s->p->n - first, task;
    struct act act;
    struct matmul out = {.matrix = &y->out,
                         .act = &act,
                         .n = n,
                         .out = l->x + first * l->width,
                         .stride = l->width,
                         .bias = y->out_bias,
                         .add = true};

    if (!run_qkv(s, y, first) || !run_attention(s, y, layer, first, matmul_tasks(l, &out, 1), &act))
        return false;
    if (n == 0)
        return true;
    while (worker_next(s->w, &task))
        matmul_run(s, &out, task);
    return run_ff(s, y, first);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct step step_of(const struct pass *p, struct worker *w)
{
    struct loaded *l = p->m->loaded;

    return (struct step){p, p->m, l, l->kernels, w, &l->scratch[worker_index(w)]};
}

static void run_layers(void *ctx, struct worker *w)
{
    const struct pass *p = ctx;
    struct step s = step_of(p, w);
    size_t task;

    if (!worker_phase(w, p->n))
        return;
    while (worker_next(w, &task))
        matrix_row(&s.l->embd, (size_t)p->ids[task], s.l->x + task * s.l->width);
    for (size_t i = 0; i < (size_t)p->m->info.n_layer; i++) {
        if (!run_layer(&s, i))
            return;
    }
}

bool forward_run(struct pass *p, const atomic_bool *cancel, bool *no_memory)
{
    struct loaded *l = p->m->loaded;
    size_t first = p->lanes ? 0 : p->n - 1;

    *no_memory = !loaded_reserve_parts(l, lane_parts(p, first));
    return !*no_memory && pool_run(l->pool, run_layers, p, cancel);
}

struct head_job {
    const struct pass *p;
    size_t first, n;
    float *const *out;
};

static void run_head(void *ctx, struct worker *w)
{
    const struct head_job *job = ctx;
    struct step s = step_of(job->p, w);
    struct act act;
    struct matmul head = {.matrix = &s.l->head, .act = &act, .n = job->n, .rows = job->out};
    size_t task;
    bool codes, floats;

    wants(&head, 1, &codes, &floats);
    if (!normalise_phase(&s, s.l->output_norm, job->first, job->first + job->n, codes, floats,
                         matmul_tasks(s.l, &head, 1), &act))
        return;
    while (worker_next(w, &task))
        matmul_run(&s, &head, task);
}

bool forward_logits(struct pass *p, size_t first, size_t n, float *const out[],
                    const atomic_bool *cancel)
{
    struct head_job job = {p, first, n, out};

    return pool_run(p->m->loaded->pool, run_head, &job, cancel);
}
