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
 * values: it is a divisor kept beside them. What a stage left is then told by the end of that part
 * alone (`edge`): the vocabulary is never sorted. Once the survivors are few they are also held as a
 * sorted list; until then they are the part of the whole field (`value`, `weight`) that the edge
 * leaves. Only the penalty changes the order; where it does not stand first, what was cut before it
 * is set to -infinity in `value`, and the edges of earlier stages speak of `raw`. */

struct edge {
    struct entry last; /* what is no later than this survived */
    bool penalised;    /* in the order of `value`, else of `raw` */
    double divisor;    /* the temperatures so far */
};

struct sampler {
    int32_t n_vocab;
    size_t blocks; /* of SCAN_BLOCK; the last is padded with -infinity */
    const struct scan *scan;
    float *raw;     /* as given; no NaN, no +infinity */
    float *own;     /* after the penalty, in runs that have one */
    float *value;   /* one of these two */
    float *weight;  /* exp of value over the temperature, the top's 1; of the field */
    float *maxima;  /* of each block of `value` */
    uint32_t *seen; /* == stamp: penalised in this run; == stamp + 1: exempt */
    uint32_t stamp;
    struct order order;
    struct entry *list; /* survivors in order */
    double *share;      /* [n_list] weights, the top's 1 */
    size_t n_list;

    struct entry raw_top;
    double raw_sum;

    /* the chain under way, and its result */
    bool listed;
    unsigned field_picks; /* draws from the field in this run */
    bool weighted;        /* `weight` fits value and temperature; all of it makes `field_sum` */
    bool summed;          /* `sum` is that of the survivors' weights */
    bool measured;        /* and `entropy` theirs, in nats */
    bool greedy;
    bool penalised; /* the penalty has had its turn */
    struct entry top;
    double divisor, penalty;
    int32_t alive, field_alive; /* now, and in the field regardless of the edge */
    double field_sum, sum, entropy;
    struct entry last; /* the edge now */
    struct sampler_stage stages[STAGE_COUNT];
    struct edge edges[STAGE_COUNT];
};

enum {
    FIELD_PICKS = 4,
    LIST_MAX = 1024 /* survivors that are worth sorting */
};

static const struct entry everything = {-FLT_MAX, INT32_MAX};

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
    s->list = mem_array(n + SCAN_LANES, sizeof *s->list);
    s->share = mem_array(n, sizeof *s->share);
    order_init(&s->order, blocks);
    s->scan = s->order.scan;
    for (size_t i = (size_t)n_vocab; i < n; i++)
        s->raw[i] = s->own[i] = -INFINITY;
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

/* ---- the logits ----------------------------------------------------------------------------- */

/* The first token of the order, by the blocks' largest values. */
static struct entry find_top(const struct sampler *s)
{
    size_t best = 0;

    for (size_t b = 1; b < s->blocks; b++)
        best = s->maxima[b] > s->maxima[best] ? b : best;
    size_t id = best * SCAN_BLOCK;
    while (s->value[id] != s->maxima[best])
        id++;
    return (struct entry){s->value[id], (int32_t)id};
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
    if (alive > 0)
        return alive;
    memset(s->raw, 0, (size_t)s->n_vocab * sizeof *s->raw);
    return s->n_vocab;
}

/* Copies them; `own` is to have them too when there will be a penalty. */
static void take_logits(struct sampler *s, const float *logits, bool penalty)
{
    const size_t whole = (size_t)s->n_vocab / SCAN_BLOCK, at = whole * SCAN_BLOCK;
    float *own = penalty ? s->own : NULL, *own_rest = penalty ? s->own + at : NULL;
    bool special = s->scan->take(logits, whole, s->raw, own, s->maxima);

    if (whole < s->blocks) {
        memcpy(s->raw + at, logits + at, ((size_t)s->n_vocab - at) * sizeof *logits);
        for (size_t i = at; i < (size_t)s->n_vocab; i++)
            special |= !isfinite(s->raw[i]);
        s->scan->take(s->raw + at, 1, s->raw + at, own_rest, s->maxima + whole);
    }
    s->alive = s->n_vocab;
    if (special) {
        s->alive = clean_logits(s);
        s->scan->take(s->raw, s->blocks, s->raw, own, s->maxima);
    }
    s->field_alive = s->alive;
    s->value = s->raw;
    order_values_changed(&s->order);
    s->raw_top = s->top = find_top(s);
}

/* ---- weights -------------------------------------------------------------------------------- */

static double scaled_exp(const struct sampler *s, float value)
{
    return softmax_exp(((double)value - (double)s->top.value) / s->divisor);
}

static struct field field_of(const struct sampler *s)
{
    return (struct field){s->value, s->weight, s->top.value, (float)(1.0 / s->divisor)};
}

static void set_sum(struct sampler *s, double sum, double moment)
{
    const double entropy = log(sum) - moment / sum;

    s->sum = sum;
    s->entropy = entropy > 0 ? entropy : 0;
    s->summed = s->measured = true;
}

static void weigh_list(struct sampler *s)
{
    double sum = 0, moment = 0;

    for (size_t i = 0; i < s->n_list; i++) {
        s->share[i] = scaled_exp(s, s->list[i].value);
        sum += s->share[i];
        moment += s->share[i] * ((double)s->list[i].value - (double)s->top.value) / s->divisor;
    }
    set_sum(s, sum, moment);
}

static bool is_whole(const struct sampler *s)
{
    return s->last.value == everything.value && s->last.id == everything.id;
}

static void weigh_field(struct sampler *s, double *moment)
{
    const struct field f = field_of(s);

    s->field_sum = s->scan->weigh(f.value, s->blocks, f.top, f.scale, s->weight, moment);
    s->weighted = true;
}

/* Makes `sum` fit the survivors, and with `entropy` that too. */
static void weigh(struct sampler *s, bool entropy)
{
    double moment;

    if (s->measured || (s->summed && !entropy))
        return;
    if (s->listed) {
        weigh_list(s);
    } else if (is_whole(s) && !s->weighted) {
        weigh_field(s, entropy ? &moment : NULL);
        set_sum(s, s->field_sum, entropy ? moment : 0);
        s->measured = entropy;
    } else {
        if (!s->weighted)
            weigh_field(s, NULL);
        const struct field f = field_of(s);
        const struct tally t = s->scan->within(&f, s->blocks, s->last);
        set_sum(s, t.sum, t.moment);
    }
}

/* ---- the stages: each returns how many it changed or cut, 0 when it did nothing ------------- */

/* Forgets what was weighed: the survivors or the temperature changed. */
static void forget(struct sampler *s, bool weights_too)
{
    s->summed = s->measured = false;
    if (weights_too)
        s->weighted = false;
}

static void bar_the_cut(struct sampler *s)
{
    const struct entry last = s->last;

    for (int32_t i = 0; i < s->n_vocab; i++) {
        const float v = s->own[i];
        const bool stays = (v > last.value) | ((v == last.value) & (i <= last.id));
        s->own[i] = stays ? v : -INFINITY;
    }
    s->scan->take(s->own, s->blocks, s->own, NULL, s->maxima);
    s->last = everything;
    s->field_alive = s->alive;
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
    /* A table, as a branch could not be foretold. */
    const double either[] = {(double)value / r, (double)value * r}, v = either[value < 0];

    return v > (double)-FLT_MAX ? (float)v : value > -INFINITY ? -FLT_MAX : value;
}

/* One token of `own`, and its block's largest. */
static void set_own(struct sampler *s, int32_t id, float now)
{
    const size_t block = (size_t)id / SCAN_BLOCK;
    const float before = s->own[id];
    float *top = &s->maxima[block];

    s->own[id] = now;
    if (now >= *top) {
        *top = now;
    } else if (before == *top) {
        *top = -INFINITY;
        for (size_t i = block * SCAN_BLOCK; i < (block + 1) * SCAN_BLOCK; i++)
            *top = s->own[i] > *top ? s->own[i] : *top;
    }
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
    s->value = s->own;
    if (!is_whole(s))
        bar_the_cut(s);
    mark_exempt(s, in->knobs);
    for (size_t i = in->n_context - n; i < in->n_context; i++) {
        int32_t id = in->context[i];
        if (id < 0 || id >= s->n_vocab || s->seen[id] >= s->stamp || (exempt != NULL && exempt[id]))
            continue;
        if (!(s->own[id] > -INFINITY))
            continue;
        s->seen[id] = s->stamp;
        set_own(s, id, penalise(s->own[id], r));
        changed++;
    }
    order_values_changed(&s->order);
    s->top = find_top(s);
    if (s->listed)
        s->n_list = order_until(&s->order, s->value, s->maxima, s->last, s->list);
    forget(s, true);
    return changed;
}

static int32_t run_temperature(struct sampler *s, const struct sampler_input *in)
{
    const double t = in->knobs->value[KNOB_TEMPERATURE];

    if (t <= SAMPLER_GREEDY) {
        s->greedy = true;
        s->listed = true;
        s->n_list = 1;
        s->list[0] = s->top;
        s->last = s->top;
        forget(s, false);
        return s->alive - 1;
    }
    if (t != 1) {
        s->divisor *= t;
        forget(s, true);
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
        forget(s, false);
    return cut;
}

/* The n of the field that come no later than `last` stay. */
static int32_t keep_field(struct sampler *s, struct entry last, size_t n)
{
    int32_t cut = s->alive - (int32_t)n;

    if (cut > 0)
        forget(s, false);
    s->last = last;
    if (n <= LIST_MAX) {
        s->n_list = order_until(&s->order, s->value, s->maxima, last, s->list);
        s->listed = true;
        forget(s, false);
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
        const float kth = order_kth(&s->order, s->value, s->maxima, (size_t)s->field_alive, n);
        n = s->scan->count(s->value, s->blocks, kth);
        /* What was cut before at the same value stays cut. */
        return n < (size_t)s->alive ? keep_field(s, (struct entry){kth, INT32_MAX}, n) : 0;
    }
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

/* The element of the field on which `target` of the survivors' sum falls. `within`: order_find. */
static struct entry find_in_field(struct sampler *s, double target, struct tally *within)
{
    const struct field f = field_of(s);
    struct entry found;

    do { /* rounding may lead beyond the edge */
        found = order_find(&s->order, &f, s->maxima, s->field_sum, target, within);
        target *= 1 - 1e-12;
    } while (!order_within(found, s->last));
    return found;
}

static int32_t run_top_p(struct sampler *s, const struct sampler_input *in)
{
    const double p = in->knobs->value[KNOB_TOP_P];
    struct tally within;

    if (p >= 1)
        return 0;
    weigh(s, false);
    if (s->listed)
        return keep(s, find_in_list(s, p * s->sum) + 1);
    const struct entry last = find_in_field(s, p * s->sum, &within);
    const int32_t cut = keep_field(s, last, within.count);
    if (!s->listed)
        set_sum(s, within.sum, within.moment);
    return cut;
}

/* The lowest value that makes at least p of the top's share: near to what the logarithm says. */
static float least_value(const struct sampler *s, double p)
{
    enum { STEPS = 64 };
    float least = (float)((double)s->top.value + s->divisor * log(p));

    for (int i = 0; i < STEPS && scaled_exp(s, least) >= p; i++)
        least = nextafterf(least, -FLT_MAX);
    for (int i = 0; i < 2 * STEPS && !(scaled_exp(s, least) >= p); i++)
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
                          s->scan->count(s->value, s->blocks, least));
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
        weigh(s, false);
        before = s->sum;
    }
    if (!out->skipped) {
        out->changed = run_stages[stage](s, in);
        if (stage != STAGE_PENALTY)
            s->alive -= out->changed;
    }
    out->kept = s->alive;
    s->edges[i] = (struct edge){s->last, s->penalised, s->divisor};
    if (in->want_stats) {
        weigh(s, true);
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

/* The sum that log-probabilities need. Where the chain begins with the same weights, it has them. */
static void weigh_raw(struct sampler *s, const struct sampler_input *in)
{
    if (is_neutral(STAGE_PENALTY, in->knobs) || in->want_stats) {
        weigh(s, in->want_stats);
        s->raw_sum = s->sum;
    } else {
        s->raw_sum = s->scan->weigh(s->raw, s->blocks, s->top.value, 1, NULL, NULL);
    }
}

void sampler_run(struct sampler *s, const struct sampler_input *in)
{
    take_logits(s, in->logits, !is_neutral(STAGE_PENALTY, in->knobs));
    next_stamp(s);
    s->listed = s->greedy = s->penalised = false;
    forget(s, true);
    s->field_picks = 0;
    s->last = everything;
    s->divisor = 1;
    s->penalty = 1;
    weigh_raw(s, in);
    for (int i = 0; i < STAGE_COUNT; i++)
        run_one(s, i, in);
    weigh(s, true);
    s->stages[STAGE_COUNT - 1].entropy = s->entropy / M_LN2;
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
    return softmax_exp((double)s->raw[id] - (double)s->raw_top.value) / s->raw_sum;
}

struct sampler_draw sampler_look(struct sampler *s, int32_t id)
{
    struct sampler_draw d = {.id = id};
    const float raw = s->raw[id];

    d.rank = (int32_t)s->scan->count(s->raw, s->blocks, nextafterf(raw, INFINITY));
    d.logprob = (double)raw - (double)s->raw_top.value - log(s->raw_sum);
    if (survives(s, STAGE_COUNT - 1, id))
        d.p = scaled_exp(s, s->value[id]) / s->sum;
    return d;
}

/* Lays the survivors out as a list, with the weights that they have. */
static void lay_out(struct sampler *s)
{
    s->n_list = order_until(&s->order, s->value, s->maxima, s->last, s->list);
    for (size_t i = 0; i < s->n_list; i++)
        s->share[i] = (double)s->weight[s->list[i].id];
    s->listed = true;
}

int32_t sampler_pick_id(struct sampler *s, double u)
{
    const double target = u * s->sum;

    if (!s->listed && s->field_picks++ < FIELD_PICKS)
        return find_in_field(s, target, NULL).id;
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
    if (!s->listed) /* the list's memory is free until then */
        order_first(&s->order, s->value, s->maxima, (size_t)s->field_alive, n, s->list);
    for (size_t i = 0; i < n; i++) {
        const struct entry e = s->list[i];
        out[i] = (struct sampler_candidate){.id = e.id,
                                            .cut_by = -1,
                                            .model = raw_share(s, e.id),
                                            .now = scaled_exp(s, e.value) / s->sum};
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
