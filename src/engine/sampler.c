#include "config.h"

#include "engine/sampler_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct sampler *sampler_new(int32_t n_vocab)
{
    struct sampler *s = mem_zalloc(sizeof *s);
    size_t blocks = ((size_t)n_vocab + SCAN_BLOCK - 1) / SCAN_BLOCK, n = blocks * SCAN_BLOCK;

    s->n_vocab = n_vocab;
    s->blocks = blocks;
    s->raw = mem_array(n, sizeof *s->raw);
    s->own = mem_array(n, sizeof *s->own);
    s->weight = mem_array(n, sizeof *s->weight);
    s->maxima = mem_array(blocks, sizeof *s->maxima);
    s->seen = mem_array(n, sizeof *s->seen);
    s->list = mem_array(n, sizeof *s->list);
    s->share = mem_array(n, sizeof *s->share);
    order_init(&s->order, blocks);
    s->scan = s->order.scan;
    for (size_t i = (size_t)n_vocab; i < n; i++)
        s->raw[i] = -INFINITY;
    return s;
}

void sampler_free(struct sampler *s)
{
    if (s == NULL)
        return;
    order_done(&s->order);
    free(s->raw);
    free(s->own);
    free(s->weight);
    free(s->maxima);
    free(s->seen);
    free(s->list);
    free(s->share);
    free(s);
}

struct entry sampler_find_top(const struct sampler *s)
{
    size_t best = 0;

    for (size_t b = 1; b < s->blocks; b++)
        best = s->maxima[b] > s->maxima[best] ? b : best;
    size_t id = best * SCAN_BLOCK;
    while (s->value[id] != s->maxima[best])
        id++;
    return (struct entry){s->value[id], (int32_t)id};
}

static void take_logits(struct sampler *s, const float *logits)
{
    const size_t whole = (size_t)s->n_vocab / SCAN_BLOCK, at = whole * SCAN_BLOCK;
    size_t alive = s->scan->take(logits, whole, s->raw, s->maxima);

    if (whole < s->blocks) {
        memcpy(s->raw + at, logits + at, ((size_t)s->n_vocab - at) * sizeof *logits);
        alive += s->scan->take(s->raw + at, 1, s->raw + at, s->maxima + whole);
    }
    if (alive == 0) {
        memset(s->raw, 0, (size_t)s->n_vocab * sizeof *s->raw);
        alive = s->scan->take(s->raw, s->blocks, s->raw, s->maxima);
    }
    s->alive = (int32_t)alive;
    s->value = s->raw;
    order_values_changed(&s->order);
    s->raw_top = s->top = sampler_find_top(s);
}

static void run_one(struct sampler *s, int i, const struct sampler_input *in)
{
    enum stage stage = (enum stage)in->knobs->order[i];
    struct sampler_stage *out = &s->stages[i];
    const int32_t alive = s->alive;
    double before = 0;

    *out = (struct sampler_stage){.stage = stage, .cut_share = NAN, .entropy = NAN};
    out->skipped = s->greedy || sampler_is_neutral(stage, in->knobs);
    if (in->want_stats) {
        sampler_weigh(s, false);
        before = s->sum;
    }
    if (!out->skipped) {
        out->changed = sampler_run_stage(s, stage, in);
        if (stage != STAGE_PENALTY)
            s->alive -= out->changed;
    }
    out->kept = s->alive;
    s->edges[i] = (struct edge){s->last, s->penalised, s->divisor};
    if (in->want_stats) {
        sampler_weigh(s, true);
        out->cut_share = s->alive < alive ? fmax(0, 1 - s->sum / before) : 0;
        out->entropy = s->entropy / M_LN2;
    }
}

static void next_stamp(struct sampler *s)
{
    if (s->stamp > UINT32_MAX - 4) {
        memset(s->seen, 0, s->blocks * SCAN_BLOCK * sizeof *s->seen);
        s->stamp = 0;
    }
    s->stamp += 2;
}

void sampler_run(struct sampler *s, const struct sampler_input *in)
{
    take_logits(s, in->logits);
    next_stamp(s);
    s->listed = s->greedy = s->penalised = false;
    sampler_forget(s, true);
    s->field_picks = 0;
    s->last = order_end;
    s->divisor = 1;
    s->penalty = 1;
    sampler_weigh(s, in->want_stats);
    s->raw_sum = s->sum;
    for (int i = 0; i < STAGE_COUNT; i++)
        run_one(s, i, in);
    sampler_weigh(s, true);
    s->stages[STAGE_COUNT - 1].entropy = s->entropy / M_LN2;
}
