#include "config.h"

#include "engine/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/order.h"
#include "engine/softmax.h"

/* Every stage that cuts keeps a front part of one order: by value, the largest first, lowest id
 * first among equals. The temperature does not change that order, so it is never applied to the
 * values: it is a divisor kept beside them. What a stage left is then told by its last survivor
 * alone (`edge`), and the survivors are either the whole vocabulary ("field": `value` and `weight`)
 * or, once something was cut, a sorted list. Only the penalty changes the order; where it does not
 * stand first, what was cut before it is set to -infinity in `value`, and the edges of earlier
 * stages speak of `raw`. */

struct edge {
    struct entry last; /* what is no later than this survived */
    bool penalised;    /* in the order of `value`, else of `raw` */
    double divisor;    /* the temperatures so far */
};

struct sampler {
    int32_t n_vocab;
    size_t n_padded; /* to ORDER_BLOCK, with -infinity */
    float *raw;      /* as given; no NaN, no +infinity */
    float *value;    /* after the penalty */
    float *weight;   /* exp of value over the temperature, the top's 1; of the field */
    uint32_t *seen;  /* == stamp: penalised in this run; == stamp + 1: exempt */
    uint32_t stamp;
    struct order order;
    struct entry *list; /* survivors in order */
    double *share;      /* [n_list] weights, the top's 1 */
    size_t n_list;

    struct entry raw_top;
    struct softmax_sum raw_sum;

    /* the chain under way, and its result */
    bool listed;
    unsigned field_picks; /* draws from the field in this run */
    bool weighed;         /* `sum` and the weights fit the survivors and the temperature */
    bool greedy;
    bool penalised; /* the penalty has had its turn */
    struct entry top;
    double divisor, penalty;
    int32_t alive;
    struct softmax_sum sum;
    struct entry last; /* the edge now */
    struct sampler_stage stages[STAGE_COUNT];
    struct edge edges[STAGE_COUNT];
};

enum { FIELD_PICKS = 4 };

static const struct entry everything = {-FLT_MAX, INT32_MAX};

struct sampler *sampler_new(int32_t n_vocab)
{
    struct sampler *s = mem_zalloc(sizeof *s);
    size_t n = ((size_t)n_vocab + ORDER_BLOCK - 1) / ORDER_BLOCK * ORDER_BLOCK;

    s->n_vocab = n_vocab;
    s->n_padded = n;
    s->raw = mem_array(n, sizeof *s->raw);
    s->value = mem_array(n, sizeof *s->value);
    s->weight = mem_array(n, sizeof *s->weight);
    s->seen = mem_array(n, sizeof *s->seen);
    s->list = mem_array(n, sizeof *s->list);
    s->share = mem_array(n, sizeof *s->share);
    order_init(&s->order, n);
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
    free(s->value);
    free(s->weight);
    free(s->seen);
    free(s->list);
    free(s->share);
    free(s);
}

/* ---- the logits ----------------------------------------------------------------------------- */

static struct entry find_top(const struct sampler *s, const float *value)
{
    const float top = softmax_max(value, s->n_padded);
    size_t block = 0, id;
    int found = 0;

    for (; !found; block += ORDER_BLOCK) { /* which block first: that can be done by vectors */
        for (size_t i = 0; i < ORDER_BLOCK; i++)
            found |= value[block + i] == top ? 1 : 0;
    }
    for (id = block - ORDER_BLOCK; value[id] != top; id++)
        continue;
    return (struct entry){top, (int32_t)id};
}

/* NaN becomes -infinity and +infinity the largest number; returns how many are in the race then. */
static int32_t clean_logits(struct sampler *s)
{
    int32_t alive = 0;

    for (int32_t i = 0; i < s->n_vocab; i++) {
        float v = s->raw[i];
        s->raw[i] = v <= FLT_MAX ? v : v > FLT_MAX ? FLT_MAX : -INFINITY;
        alive += s->raw[i] > -INFINITY;
    }
    return alive;
}

static void take_logits(struct sampler *s, const float *logits)
{
    enum { SIZE = 0x7FFFFFFF, INFINITE = 0x7F800000 }; /* of the bits of a float */
    float *restrict raw = s->raw;
    const int32_t n = s->n_vocab;
    int32_t special = 0;

    for (int32_t i = 0; i < n; i++) {
        float v = logits[i] + 0.0f; /* no -0: equal values have equal bits */
        int32_t bits;
        memcpy(&bits, &v, sizeof bits);
        special |= (bits & SIZE) >= INFINITE ? 1 : 0;
        raw[i] = v;
    }
    s->alive = special ? clean_logits(s) : s->n_vocab;
    if (s->alive == 0) {
        memset(s->raw, 0, (size_t)s->n_vocab * sizeof *s->raw);
        s->alive = s->n_vocab;
    }
    s->raw_top = find_top(s, s->raw);
    s->raw_sum = softmax_weigh(s->raw, s->n_padded, s->raw_top.value, 1, NULL);
}

/* ---- weights -------------------------------------------------------------------------------- */

static double scaled_exp(const struct sampler *s, float value)
{
    return softmax_exp(((double)value - (double)s->top.value) / s->divisor);
}

static struct softmax_sum weigh_list(struct sampler *s)
{
    double sum = 0, moment = 0;

    for (size_t i = 0; i < s->n_list; i++) {
        s->share[i] = scaled_exp(s, s->list[i].value);
        sum += s->share[i];
        moment += s->share[i] * ((double)s->list[i].value - (double)s->top.value) / s->divisor;
    }
    double entropy = log(sum) - moment / sum;
    return (struct softmax_sum){sum, entropy > 0 ? entropy : 0};
}

static void weigh(struct sampler *s)
{
    if (s->weighed)
        return;
    s->sum = s->listed ? weigh_list(s)
                       : softmax_weigh(s->value, s->n_padded, s->top.value, s->divisor, s->weight);
    s->weighed = true;
}

/* ---- the stages: each returns how many it changed or cut, 0 when it did nothing ------------- */

static void bar_the_cut(struct sampler *s)
{
    for (int32_t i = 0; i < s->n_vocab; i++) {
        if (!order_within((struct entry){s->value[i], i}, s->last))
            s->value[i] = -INFINITY;
    }
}

static void mark_exempt(struct sampler *s, const struct knobs *k)
{
    if (k->exempt_mode != EXEMPT_LIST)
        return;
    for (int i = 0; i < k->n_exempt && i < EXEMPT_LIST_MAX; i++) {
        if (k->exempt[i] >= 0 && k->exempt[i] < s->n_vocab)
            s->seen[k->exempt[i]] = s->stamp + 1;
    }
}

static float penalise(float value, double r)
{
    double v = value < 0 ? (double)value * r : (double)value / r;

    return v > (double)-FLT_MAX ? (float)v : value > -INFINITY ? -FLT_MAX : value;
}

static int32_t run_penalty(struct sampler *s, const struct sampler_input *in)
{
    const double r = in->knobs->value[KNOB_REPETITION_PENALTY];
    const double window = in->knobs->value[KNOB_REPEAT_LAST_N];
    const uint8_t *exempt = in->knobs->exempt_mode == EXEMPT_PUNCTUATION ? in->punctuation : NULL;
    size_t n = window < 0 || window > (double)in->n_context ? in->n_context : (size_t)window;
    int32_t changed = 0;

    s->penalised = true;
    if (r == 1 || n == 0)
        return 0;
    s->penalty = r;
    if (s->listed)
        bar_the_cut(s);
    mark_exempt(s, in->knobs);
    for (size_t i = in->n_context - n; i < in->n_context; i++) {
        int32_t id = in->context[i];
        if (id < 0 || id >= s->n_vocab || s->seen[id] >= s->stamp || (exempt != NULL && exempt[id]))
            continue;
        if (!(s->value[id] > -INFINITY))
            continue;
        s->seen[id] = s->stamp;
        s->value[id] = penalise(s->value[id], r);
        changed++;
    }
    s->top = find_top(s, s->value);
    s->last = everything;
    if (s->listed)
        s->n_list = order_top(&s->order, s->value, (size_t)s->alive, s->list);
    s->weighed = false;
    return changed;
}

static int32_t run_temperature(struct sampler *s, const struct sampler_input *in)
{
    const double t = in->knobs->value[KNOB_TEMPERATURE];

    if (t <= SAMPLER_GREEDY) {
        s->greedy = true;
        s->listed = true;
        s->weighed = false;
        s->n_list = 1;
        s->list[0] = s->top;
        s->last = s->top;
        return s->alive - 1;
    }
    if (t != 1) {
        s->divisor *= t;
        s->weighed = false;
    }
    return 0;
}

/* The first n of the list stay. */
static int32_t keep(struct sampler *s, size_t n)
{
    int32_t cut = s->alive - (int32_t)n;

    s->weighed = s->weighed && s->listed && cut == 0;
    s->listed = true;
    s->n_list = n;
    s->last = s->list[n - 1];
    return cut;
}

static int32_t run_top_k(struct sampler *s, const struct sampler_input *in)
{
    const double k = in->knobs->value[KNOB_TOP_K];

    if (k < 1 || k >= s->alive)
        return 0;
    if (!s->listed)
        return keep(s, order_top(&s->order, s->value, (size_t)k, s->list));
    size_t n = (size_t)k;
    while (n < s->n_list && s->list[n].value == s->list[n - 1].value)
        n++;
    return keep(s, n);
}

/* The list's element on which `target` of the sum of weights falls; the last that weighs anything
 * where rounding leaves none. */
static size_t find_in_list(const struct sampler *s, double target)
{
    double sum = 0;
    size_t last = 0;

    for (size_t i = 0; i < s->n_list; i++) {
        sum += s->share[i];
        if (sum > target)
            return i;
        if (s->share[i] > 0)
            last = i;
    }
    return last;
}

static int32_t run_top_p(struct sampler *s, const struct sampler_input *in)
{
    const double p = in->knobs->value[KNOB_TOP_P];

    if (p >= 1)
        return 0;
    weigh(s);
    if (s->listed)
        return keep(s, find_in_list(s, p * s->sum.sum) + 1);
    struct entry last = order_find(&s->order, s->value, s->weight, p * s->sum.sum);
    return keep(s, order_until(&s->order, s->value, last, s->list));
}

static int32_t run_min_p(struct sampler *s, const struct sampler_input *in)
{
    const double p = in->knobs->value[KNOB_MIN_P];
    size_t n = 0;

    if (p <= 0)
        return 0;
    if (!s->listed) {
        /* One step of f32 further down: the exact test follows. */
        float near = (float)((double)s->top.value + s->divisor * log(p));
        struct entry last = {nextafterf(near, -FLT_MAX), INT32_MAX};
        s->n_list = order_until(&s->order, s->value, last, s->list);
    }
    while (n < s->n_list && scaled_exp(s, s->list[n].value) >= p)
        n++;
    return keep(s, n > 0 ? n : 1);
}

typedef int32_t run_stage(struct sampler *s, const struct sampler_input *in);
static run_stage *const run_stages[STAGE_COUNT] = {
    [STAGE_PENALTY] = run_penalty, [STAGE_TEMPERATURE] = run_temperature,
    [STAGE_TOP_K] = run_top_k,     [STAGE_TOP_P] = run_top_p,
    [STAGE_MIN_P] = run_min_p,
};

/* Whether the values of the knobs make the stage do nothing. */
static bool is_neutral(enum stage stage, const struct knobs *k)
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

static void run_one(struct sampler *s, int i, const struct sampler_input *in)
{
    enum stage stage = (enum stage)in->knobs->order[i];
    struct sampler_stage *out = &s->stages[i];
    const int32_t alive = s->alive;
    double before = 0;

    *out = (struct sampler_stage){.stage = stage, .cut_share = NAN, .entropy = NAN};
    out->skipped = s->greedy || is_neutral(stage, in->knobs);
    if (in->want_stats) {
        weigh(s);
        before = s->sum.sum;
    }
    if (!out->skipped) {
        out->changed = run_stages[stage](s, in);
        if (stage != STAGE_PENALTY)
            s->alive -= out->changed;
    }
    out->kept = s->alive;
    s->edges[i] = (struct edge){s->last, s->penalised, s->divisor};
    if (in->want_stats) {
        weigh(s);
        out->cut_share = s->alive < alive ? fmax(0, 1 - s->sum.sum / before) : 0;
        out->entropy = s->sum.entropy / M_LN2;
    }
}

static void next_stamp(struct sampler *s)
{
    if (s->stamp > UINT32_MAX - 4) {
        memset(s->seen, 0, s->n_padded * sizeof *s->seen);
        s->stamp = 0;
    }
    s->stamp += 2;
}

void sampler_run(struct sampler *s, const struct sampler_input *in)
{
    take_logits(s, in->logits);
    next_stamp(s);
    memcpy(s->value, s->raw, s->n_padded * sizeof *s->value);
    s->listed = s->weighed = s->greedy = s->penalised = false;
    s->field_picks = 0;
    s->top = s->raw_top;
    s->last = everything;
    s->divisor = 1;
    s->penalty = 1;
    for (int i = 0; i < STAGE_COUNT; i++)
        run_one(s, i, in);
    weigh(s);
    s->stages[STAGE_COUNT - 1].entropy = s->sum.entropy / M_LN2;
}

/* ---- what the last run says ----------------------------------------------------------------- */

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
    return softmax_exp((double)s->raw[id] - (double)s->raw_top.value) / s->raw_sum.sum;
}

struct sampler_draw sampler_look(struct sampler *s, int32_t id)
{
    struct sampler_draw d = {.id = id};
    const float raw = s->raw[id];

    for (size_t i = 0; i < s->n_padded; i++)
        d.rank += s->raw[i] > raw;
    d.logprob = (double)raw - (double)s->raw_top.value - log(s->raw_sum.sum);
    if (survives(s, STAGE_COUNT - 1, id))
        d.p = scaled_exp(s, s->value[id]) / s->sum.sum;
    return d;
}

/* Lays the whole field out as a list, with the weights that it has. */
static void lay_out(struct sampler *s)
{
    s->n_list = order_top(&s->order, s->value, (size_t)s->alive, s->list);
    for (size_t i = 0; i < s->n_list; i++)
        s->share[i] = (double)s->weight[s->list[i].id];
    s->listed = true;
}

int32_t sampler_pick_id(struct sampler *s, double u)
{
    const double target = u * s->sum.sum;

    if (!s->listed && s->field_picks++ < FIELD_PICKS)
        return order_find(&s->order, s->value, s->weight, target).id;
    if (!s->listed)
        lay_out(s); /* whoever draws this often is better off with a list */
    return s->list[find_in_list(s, target)].id;
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
    if (!s->listed) /* the list's memory is free while nothing was cut */
        order_top(&s->order, s->value, n, s->list);
    for (size_t i = 0; i < n; i++) {
        const struct entry e = s->list[i];
        out[i] = (struct sampler_candidate){.id = e.id,
                                            .cut_by = -1,
                                            .model = raw_share(s, e.id),
                                            .now = scaled_exp(s, e.value) / s->sum.sum};
    }
    return n;
}

/* Puts `e` where it belongs among the first `max` seen so far. */
static void insert_best(struct entry *best, size_t *n, size_t max, struct entry e)
{
    size_t at = *n;

    if (at == max && best[max - 1].value >= e.value)
        return;
    if (at < max)
        ++*n;
    else
        at--;
    for (; at > 0 && best[at - 1].value < e.value; at--)
        best[at] = best[at - 1];
    best[at] = e;
}

size_t sampler_cut(struct sampler *s, enum stage stage, struct sampler_candidate *out, size_t max)
{
    struct entry *best = s->order.entries;
    size_t n = 0;
    int i = 0;

    while (s->stages[i].stage != stage)
        i++;
    if (max == 0 || stage == STAGE_PENALTY || s->stages[i].changed == 0)
        return 0;
    for (int32_t id = 0; id < s->n_vocab; id++) {
        if (survives(s, i - 1, id) && !survives(s, i, id))
            insert_best(best, &n, max, (struct entry){s->raw[id], id});
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
