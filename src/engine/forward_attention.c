/* Attention. Positions are taken in segments of SEGMENT, at absolute places; within one the running
 * softmax goes block by block, then the segments are joined in order. A decode shares (token, KV
 * head, segment) out to the workers, a prefill (some tokens, KV head); the sums are the same. */
#include "config.h"

#include "engine/forward_impl.h"

#include <math.h>
#include <string.h>

enum { SEGMENT = KERNEL_SEGMENT, STORE_TOKENS = 16 };

/* Running softmax of some queries. */
struct sums {
    float *m, *l, *o;
};

static const struct kv_table *table_of(const struct pass *p, size_t token)
{
    return p->kv[p->lanes ? token : 0];
}

static size_t position_of(const struct pass *p, size_t token)
{
    return p->lanes ? p->position[token] : p->position[0] + token;
}

static size_t segments(size_t position)
{
    return position / SEGMENT + 1;
}

/* ---- queries, keys, values ------------------------------------------------------------------- */

static void turn(const struct step *s, float *head, size_t position)
{
    const struct rope_table *r = &s->l->rope;

    s->k->rope(head, r->cosine + position * r->dim, r->sine + position * r->dim, r->dim,
               s->m->arch->rope == ROPE_NEOX);
}

/* The query heads of one KV head, turned and scaled, from a row of q into out [group][dim]. */
static void take_queries(const struct step *s, const float *row, size_t kv_head, size_t position,
                         float *out)
{
    size_t head_dim = (size_t)s->m->info.head_dim, group = s->l->group, dim = s->l->dim;
    float scale = 1.0f / sqrtf((float)head_dim);

    for (size_t i = 0; i < group; i++, out += dim) {
        memset(out + head_dim, 0, (dim - head_dim) * sizeof *out);
        memcpy(out, row + (kv_head * group + i) * head_dim, head_dim * sizeof *out);
        turn(s, out, position);
        s->k->scale(out, scale, dim);
    }
}

/* Puts K (turned) and V of one token and head into the cache. Uses the scratch of a
 * widened block. */
static void store_token(const struct step *s, size_t layer, size_t head, size_t token)
{
    size_t head_dim = (size_t)s->m->info.head_dim, dim = s->l->dim,
           position = position_of(s->p, token);
    float *k = s->s->kv, *v = s->s->kv + dim;
    size_t at = token * s->l->kv_width + head * head_dim;

    memset(k, 0, 2 * dim * sizeof *k);
    memcpy(k, s->l->k + at, head_dim * sizeof *k);
    memcpy(v, s->l->v + at, head_dim * sizeof *v);
    turn(s, k, position);
    kv_write(table_of(s->p, token), s->k, layer, head, position, k, v);
}

size_t store_tasks(const struct pass *p)
{
    return (p->n + STORE_TOKENS - 1) / STORE_TOKENS * (size_t)p->m->info.n_kv_head;
}

void store_run(const struct step *s, size_t layer, size_t task)
{
    size_t heads = (size_t)s->m->info.n_kv_head, first = task / heads * STORE_TOKENS;

    for (size_t t = first; t < s->p->n && t < first + STORE_TOKENS; t++)
        store_token(s, layer, task % heads, t);
}

/* ---- one segment ----------------------------------------------------------------------------- */

/* Attends to segment number `segment` with queries first .. n - 1 of the scratch; query i belongs to
 * the token at position + i / group. Those of tokens before the segment are left out. `a` says what
 * comes next. */
static void sum_segment(const struct step *s, const struct kv_table *table, size_t layer,
                        size_t head, size_t segment, size_t position, size_t n,
                        const struct sums *to, struct attend a)
{
    size_t start = segment * SEGMENT, group = s->l->group;
    size_t first = start > position ? (start - position) * group : 0;

    for (size_t i = first; i < n; i++) {
        size_t seen = position + i / group - start + 1;
        s->s->visible[i] = (uint16_t)(seen < SEGMENT ? seen : SEGMENT);
    }
    a.n = n - first;
    a.q = s->s->q + first * s->l->dim;
    a.visible = s->s->visible + first;
    a.m = to->m + first;
    a.l = to->l + first;
    a.o = to->o + first * s->l->dim;
    kv_attend(table, s->k, layer, head, segment, &a);
}

/* Divides by the sum of weights and puts the heads where they belong in a row. */
static void finish_heads(const struct step *s, const struct sums *from, size_t kv_head, float *row)
{
    size_t head_dim = (size_t)s->m->info.head_dim, group = s->l->group;

    for (size_t i = 0; i < group; i++) {
        float *to = row + (kv_head * group + i) * head_dim;
        memcpy(to, from->o + i * s->l->dim, head_dim * sizeof *to);
        s->k->scale(to, 1.0f / from->l[i], head_dim);
    }
}

/* ---- one token a session --------------------------------------------------------------------- */

static size_t most_segments(const struct pass *p, size_t first)
{
    size_t most = 0;

    for (size_t t = first; t < p->n; t++) {
        size_t n = segments(position_of(p, t));
        most = n > most ? n : most;
    }
    return most;
}

size_t lane_tasks(const struct pass *p, size_t first)
{
    return (p->n - first) * (size_t)p->m->info.n_kv_head * most_segments(p, first);
}

size_t lane_parts(const struct pass *p, size_t first)
{
    const struct loaded *l = p->m->loaded;

    return lane_tasks(p, first) * l->group * (l->dim + 2);
}

/* Where the sums of one task are kept. Lanes run fastest: those that share blocks read them one
 * after the other. */
static struct sums part(const struct step *s, size_t first, size_t token, size_t head,
                        size_t segment)
{
    size_t n = s->p->n - first, most = most_segments(s->p, first), group = s->l->group;
    float *at =
        s->l->parts + ((head * most + segment) * n + token - first) * group * (s->l->dim + 2);

    return (struct sums){at, at + group, at + 2 * group};
}

struct lane_task {
    size_t token, head, segment;
};

static struct lane_task lane_task(const struct pass *p, size_t first, size_t task)
{
    size_t n = p->n - first, most = most_segments(p, first);

    return (struct lane_task){first + task % n, task / n / most, task / n % most};
}

void lane_run(const struct step *s, size_t layer, size_t first, bool written, size_t task)
{
    struct lane_task t = lane_task(s->p, first, task);
    size_t position = position_of(s->p, t.token);
    struct attend a = {.n = 0};

    if (t.segment >= segments(position))
        return;
    if (!written && t.segment + 1 == segments(position))
        store_token(s, layer, t.head, t.token);
    take_queries(s, s->l->q + (t.token - first) * s->l->attn_width, t.head, position, s->s->q);
    struct sums to = part(s, first, t.token, t.head, t.segment);
    if (task + 1 < lane_tasks(s->p, first)) {
        struct lane_task next = lane_task(s->p, first, task + 1);
        kv_expect(table_of(s->p, next.token), layer, next.head, next.segment, &a);
    }
    sum_segment(s, table_of(s->p, t.token), layer, t.head, t.segment, position, s->l->group, &to,
                a);
}

void lane_join(const struct step *s, size_t first, size_t token, float *row)
{
    size_t n = segments(position_of(s->p, token)), group = s->l->group, dim = s->l->dim;
    struct sums all = {s->s->m, s->s->l, s->s->o};

    for (size_t head = 0; head < (size_t)s->m->info.n_kv_head; head++) {
        struct sums one = part(s, first, token, head, 0);
        memcpy(all.m, one.m, group * sizeof *all.m);
        memcpy(all.l, one.l, group * sizeof *all.l);
        memcpy(all.o, one.o, group * dim * sizeof *all.o);
        for (size_t segment = 1; segment < n; segment++) {
            one = part(s, first, token, head, segment);
            for (size_t i = 0; i < group; i++)
                s->k->merge(&all.m[i], &all.l[i], all.o + i * dim, one.m[i], one.l[i],
                            one.o + i * dim, dim);
        }
        finish_heads(s, &all, head, row);
    }
}

/* ---- many tokens of one session -------------------------------------------------------------- */

size_t tile_tasks(const struct pass *p)
{
    size_t tokens = loaded_tile_tokens(p->m->loaded);

    return (p->n + tokens - 1) / tokens * (size_t)p->m->info.n_kv_head;
}

void tile_run(const struct step *s, size_t layer, size_t task)
{
    size_t heads = (size_t)s->m->info.n_kv_head, head = task % heads;
    size_t tokens = loaded_tile_tokens(s->l), first = task / heads * tokens;
    size_t n = s->p->n - first < tokens ? s->p->n - first : tokens;
    size_t group = s->l->group, dim = s->l->dim, position = position_of(s->p, first);
    struct sums all = {s->s->m, s->s->l, s->s->o};
    struct sums one = {s->s->m_part, s->s->l_part, s->s->o_part};

    for (size_t t = 0; t < n; t++)
        take_queries(s, s->l->q + (first + t) * s->l->attn_width, head, position + t,
                     s->s->q + t * group * dim);
    sum_segment(s, s->p->kv[0], layer, head, 0, position, n * group, &all, (struct attend){.n = 0});
    for (size_t segment = 1; segment < segments(position + n - 1); segment++) {
        size_t start = segment * SEGMENT;
        sum_segment(s, s->p->kv[0], layer, head, segment, position, n * group, &one,
                    (struct attend){.n = 0});
        /* Tokens before the segment have nothing to join. */
        for (size_t i = start > position ? (start - position) * group : 0; i < n * group; i++)
            s->k->merge(&all.m[i], &all.l[i], all.o + i * dim, one.m[i], one.l[i], one.o + i * dim,
                        dim);
    }
    for (size_t t = 0; t < n; t++) {
        struct sums token = {all.m + t * group, all.l + t * group, all.o + t * group * dim};
        finish_heads(s, &token, head, s->l->attn + (first + t) * s->l->attn_width);
    }
}
