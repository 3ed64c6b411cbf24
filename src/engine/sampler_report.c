/* What the last run says. */
#include "config.h"

#include "engine/sampler_impl.h"

#include <math.h>

#include "engine/softmax.h"

enum { FIELD_PICKS = 4 };

bool sampler_is_greedy(const struct sampler *s)
{
    return s->greedy;
}

const struct sampler_stage *sampler_stages(const struct sampler *s)
{
    return s->stages;
}

/* Whether token `id` was still there after stage number i; -1: at the start. */
static bool survives(const struct sampler *s, int i, int32_t id)
{
    if (i < 0)
        return s->raw[id] > -INFINITY;
    const struct edge *e = &s->edges[i];
    return order_within((struct entry){e->penalised ? s->value[id] : s->raw[id], id}, e->last);
}

static double raw_share(const struct sampler *s, int32_t id)
{
    return softmax_exp((double)s->raw[id] - (double)s->raw_top.value) / s->raw_sum;
}

struct sampler_draw sampler_look(struct sampler *s, int32_t id)
{
    struct sampler_draw d = {.id = id};
    const float raw = s->raw[id];

    d.rank = (int32_t)s->scan->count(s->raw, s->blocks, raw);
    d.logprob = (double)raw - (double)s->raw_top.value - log(s->raw_sum);
    if (survives(s, STAGE_COUNT - 1, id))
        d.p = sampler_weight(s, s->value[id]) / s->sum;
    return d;
}

/* Lays the survivors out as a list, with the weights that they have. */
static void lay_out(struct sampler *s)
{
    sampler_list(s);
    for (size_t i = 0; i < s->n_list; i++)
        s->share[i] = (double)s->weight[s->list[i].id];
}

int32_t sampler_pick_id(struct sampler *s, double u)
{
    const double target = u * s->sum;

    if (!s->listed && s->field_picks++ < FIELD_PICKS)
        return sampler_find_in_field(s, target, NULL).id;
    if (!s->listed)
        lay_out(s); /* whoever draws this often is better off with a list */
    return s->list[sampler_find_in_list(s, target)].id;
}

struct sampler_draw sampler_pick(struct sampler *s, double u)
{
    return sampler_look(s, sampler_pick_id(s, u));
}

size_t sampler_survivors(struct sampler *s, struct sampler_candidate *out, size_t max)
{
    size_t n = (size_t)s->alive < max ? (size_t)s->alive : max;

    if (n == 0)
        return 0;
    if (!s->listed) { /* the list's memory is free until then */
        const struct entry last =
            order_kth(&s->order, s->value, s->maxima, s->last, (size_t)s->alive, n);
        order_until(&s->order, s->value, s->maxima, last, s->list);
    }
    for (size_t i = 0; i < n; i++) {
        const struct entry e = s->list[i];
        out[i] = (struct sampler_candidate){.id = e.id,
                                            .cut_by = -1,
                                            .model = raw_share(s, e.id),
                                            .now = sampler_weight(s, e.value) / s->sum};
    }
    return n;
}

/* Puts `e` where it belongs among the first `max` seen so far; *than is what the next one must
 * pass to be among them. */
static void insert_best(struct entry *best, size_t *n, size_t max, struct entry e, float *than)
{
    size_t at = *n < max ? (*n)++ : max - 1;

    for (; at > 0 && best[at - 1].value < e.value; at--)
        best[at] = best[at - 1];
    best[at] = e;
    if (*n == max)
        *than = best[max - 1].value;
}

size_t sampler_cut(struct sampler *s, enum stage stage, struct sampler_candidate *out, size_t max)
{
    struct entry *best = s->order.entries;
    float than = -INFINITY;
    size_t n = 0;
    int i = 0;

    while (s->stages[i].stage != stage)
        i++;
    if (max == 0 || stage == STAGE_PENALTY || s->stages[i].changed == 0)
        return 0;
    const struct edge *e = &s->edges[i];
    const float *value = e->penalised ? s->value : s->raw;
    for (size_t block = 0; block < s->blocks; block++) {
        int32_t id = s->scan->next_cut(value, s->raw, block, s->blocks, than, e->last);
        if (id < 0)
            break;
        block = (size_t)id / SCAN_BLOCK;
        for (; id < (int32_t)((block + 1) * SCAN_BLOCK); id++) {
            if (s->raw[id] > than && survives(s, i - 1, id) && !survives(s, i, id))
                insert_best(best, &n, max, (struct entry){s->raw[id], id}, &than);
        }
    }
    for (size_t k = 0; k < n; k++)
        out[k] = (struct sampler_candidate){
            .id = best[k].id, .cut_by = (int32_t)stage, .model = raw_share(s, best[k].id)};
    return n;
}

void sampler_trace(struct sampler *s, int i, double *logits, uint8_t *kept)
{
    const struct edge *e = &s->edges[i];

    for (int32_t id = 0; id < s->n_vocab; id++) {
        double v = logits[id];
        if (e->penalised && s->seen[id] == s->stamp)
            v = v < 0 ? v * s->penalty : v / s->penalty;
        logits[id] = v / e->divisor;
        kept[id] = survives(s, i, id);
    }
}
