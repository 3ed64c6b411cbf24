/* The stages: each returns how many it changed or cut, 0 when it did nothing. */
#include "config.h"

#include "engine/sampler_impl.h"

#include <float.h>
#include <math.h>

enum { LIST_MAX = 1024 }; /* survivors that are worth sorting */

/* ---- penalty --------------------------------------------------------------------------------- */

static void mark_exempt(struct sampler *s, const struct knobs *k)
{
    if (k->exempt_mode != EXEMPT_LIST)
        return;
    for (int i = 0; i < k->n_exempt && i < EXEMPT_LIST_MAX; i++) {
        if (k->exempt[i] >= 0 && k->exempt[i] < s->n_vocab)
            s->seen[k->exempt[i]] = s->stamp + 1;
    }
}

/* Selected from tables, as branches could not be foretold. */
static float penalise(float value, double r)
{
    const double either[] = {(double)value / r, (double)value * r}, v = either[value < 0];
    const double least[] = {-INFINITY, -FLT_MAX}, low = least[value > -INFINITY];
    const double high = v < (double)FLT_MAX ? v : (double)FLT_MAX;

    return (float)(high > low ? high : low);
}

static int32_t run_penalty(struct sampler *s, const struct sampler_input *in)
{
    const double r = in->knobs->value[KNOB_REPETITION_PENALTY];
    const double window = in->knobs->value[KNOB_REPEAT_LAST_N];
    const uint8_t *exempt = in->knobs->exempt_mode == EXEMPT_PUNCTUATION ? in->punctuation : NULL;
    size_t n = window < 0 || window > (double)in->n_context ? in->n_context : (size_t)window;
    uint32_t *seen = s->seen;
    float *own = s->own;
    int32_t changed = 0;

    s->penalised = true;
    if (r == 1 || n == 0)
        return 0;
    s->penalty = r;
    s->value = own;
    s->scan->bar(s->raw, s->blocks, s->last, own);
    s->last = order_end;
    mark_exempt(s, in->knobs);
    for (size_t i = in->n_context - n; i < in->n_context; i++) {
        const int32_t id = in->context[i];
        if (id < 0 || id >= s->n_vocab || seen[id] >= s->stamp || (exempt != NULL && exempt[id]))
            continue;
        const bool there = own[id] > -INFINITY;
        seen[id] = there ? s->stamp : seen[id];
        own[id] = penalise(own[id], r);
        changed += there;
    }
    s->scan->tops(own, s->blocks, s->maxima);
    order_values_changed(&s->order);
    s->top = sampler_find_top(s);
    if (s->listed)
        sampler_list(s);
    sampler_forget(s, true);
    return changed;
}

/* ---- temperature, and the cuts --------------------------------------------------------------- */

static int32_t run_temperature(struct sampler *s, const struct sampler_input *in)
{
    const double t = in->knobs->value[KNOB_TEMPERATURE];

    if (t <= SAMPLER_GREEDY) {
        s->greedy = true;
        s->listed = true;
        s->n_list = 1;
        s->list[0] = s->top;
        s->last = s->top;
        sampler_forget(s, false);
        return s->alive - 1;
    }
    if (t != 1) {
        s->divisor *= t;
        sampler_forget(s, true);
    }
    return 0;
}

/* The first n of the list stay. */
static int32_t keep(struct sampler *s, size_t n)
{
    int32_t cut = s->alive - (int32_t)n;

    s->n_list = n;
    s->last = s->list[n - 1];
    if (cut > 0)
        sampler_forget(s, false);
    return cut;
}

/* The n of the field that come no later than `last` stay. */
static int32_t keep_field(struct sampler *s, struct entry last, size_t n)
{
    int32_t cut = s->alive - (int32_t)n;

    if (cut > 0)
        sampler_forget(s, false);
    s->last = last;
    if (n <= LIST_MAX) {
        sampler_list(s);
        sampler_forget(s, false);
    }
    return cut;
}

static int32_t run_top_k(struct sampler *s, const struct sampler_input *in)
{
    const double k = in->knobs->value[KNOB_TOP_K];

    if (k < 1 || k >= s->alive)
        return 0;
    size_t n = (size_t)k;
    if (!s->listed) {
        const float kth =
            order_kth(&s->order, s->value, s->maxima, s->last, (size_t)s->alive, n).value;
        if (kth == s->last.value)
            return 0; /* what was cut before at the same value stays cut */
        n = s->scan->count(s->value, s->blocks, nextafterf(kth, -INFINITY));
        return keep_field(s, (struct entry){kth, INT32_MAX}, n);
    }
    while (n < s->n_list && s->list[n].value == s->list[n - 1].value)
        n++;
    return keep(s, n);
}

static int32_t run_top_p(struct sampler *s, const struct sampler_input *in)
{
    const double p = in->knobs->value[KNOB_TOP_P];
    struct tally within;

    if (p >= 1)
        return 0;
    sampler_weigh(s, false);
    if (s->listed)
        return keep(s, sampler_find_in_list(s, p * s->sum) + 1);
    const struct entry last = sampler_find_in_field(s, p * s->sum, &within);
    const int32_t cut = keep_field(s, last, within.count);
    if (!s->listed)
        sampler_set_sum(s, within.sum, within.moment);
    return cut;
}

/* The lowest value that makes at least p of the top's share: near to what the logarithm says. */
static float least_value(const struct sampler *s, double p)
{
    enum { STEPS = 64 };
    float least = (float)((double)s->top.value + s->divisor * log(p));

    for (int i = 0; i < STEPS && sampler_weight(s, least) >= p; i++)
        least = nextafterf(least, -FLT_MAX);
    for (int i = 0; i < 2 * STEPS && !(sampler_weight(s, least) >= p); i++)
        least = nextafterf(least, FLT_MAX);
    return least;
}

static int32_t run_min_p(struct sampler *s, const struct sampler_input *in)
{
    const double p = in->knobs->value[KNOB_MIN_P];
    size_t n = 0;

    if (p <= 0)
        return 0;
    if (!s->listed) {
        const float least = least_value(s, p);
        if (least <= s->last.value)
            return 0;
        return keep_field(s, (struct entry){least, INT32_MAX},
                          s->scan->count(s->value, s->blocks, nextafterf(least, -INFINITY)));
    }
    while (n < s->n_list && sampler_weight(s, s->list[n].value) >= p)
        n++;
    return keep(s, n > 0 ? n : 1);
}

typedef int32_t run_stage(struct sampler *s, const struct sampler_input *in);
static run_stage *const run_stages[STAGE_COUNT] = {
    [STAGE_PENALTY] = run_penalty, [STAGE_TEMPERATURE] = run_temperature,
    [STAGE_TOP_K] = run_top_k,     [STAGE_TOP_P] = run_top_p,
    [STAGE_MIN_P] = run_min_p,
};

bool sampler_is_neutral(enum stage stage, const struct knobs *k)
{
    switch (stage) {
    case STAGE_PENALTY:
        return k->value[KNOB_REPETITION_PENALTY] == 1 || k->value[KNOB_REPEAT_LAST_N] == 0;
    case STAGE_TEMPERATURE:
        return k->value[KNOB_TEMPERATURE] == 1;
    case STAGE_TOP_K:
        return k->value[KNOB_TOP_K] < 1;
    case STAGE_TOP_P:
        return k->value[KNOB_TOP_P] >= 1;
    default:
        return k->value[KNOB_MIN_P] <= 0;
    }
}

int32_t sampler_run_stage(struct sampler *s, enum stage stage, const struct sampler_input *in)
{
    return run_stages[stage](s, in);
}
