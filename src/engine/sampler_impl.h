/* The sampler's insides: sampler.c takes logits and runs the chain, sampler_stages.c holds its stages,
 * sampler_mass.c weighs what is left and finds where a mass falls, sampler_report.c says what the
 * last run did.
 *
 * All stages that cut keep a front part of one order: by value, the largest first, lowest id first
 * among equals. The temperature does not change that order, so it is never applied to the values: it
 * is a divisor kept beside them. What a stage left is then told by the end of that part alone
 * (`last`): the vocabulary is never sorted. Once the survivors are few they are also held as a sorted
 * list; until then they are the part of the whole field (`value`, `weight`) that the edge leaves.
 * Only the penalty changes the order: it works on a copy, in which what was cut before it is
 * -infinity, and the edges of earlier stages speak of `raw`. */
#ifndef FADER_ENGINE_SAMPLER_IMPL_H
#define FADER_ENGINE_SAMPLER_IMPL_H

#include "engine/order.h"
#include "engine/sampler.h"

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
    float *weight;  /* exp of value over the temperature, the top's 1 */
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
    bool weighted;        /* `weight` fits value and temperature, for all survivors */
    bool summed;          /* `sum` is that of the survivors' weights */
    bool measured;        /* and `entropy` theirs, in nats */
    bool greedy;
    bool penalised; /* the penalty has had its turn */
    struct entry top;
    double divisor, penalty;
    int32_t alive; /* survivors */
    double sum, entropy;
    struct entry last; /* the edge now */
    struct sampler_stage stages[STAGE_COUNT];
    struct edge edges[STAGE_COUNT];
};

/* ---- sampler.c ---- */

/* The first token of the order of `value`, by the blocks' largest. */
struct entry sampler_find_top(const struct sampler *s);

/* ---- sampler_stages.c ---- */

/* Whether the values of the knobs make the stage do nothing. */
bool sampler_is_neutral(enum stage stage, const struct knobs *k);

/* Runs one; returns how many it changed or cut. */
int32_t sampler_run_stage(struct sampler *s, enum stage stage, const struct sampler_input *in);

/* ---- sampler_mass.c ---- */

/* exp of a value over the temperature, the top's 1. */
double sampler_weight(const struct sampler *s, float value);

/* Makes `sum` fit the survivors, and with `entropy` that too. */
void sampler_weigh(struct sampler *s, bool entropy);
void sampler_set_sum(struct sampler *s, double sum, double moment);

/* Forgets what was weighed: the survivors or the temperature changed. */
void sampler_forget(struct sampler *s, bool weights_too);

/* The list's element on which `target` of the sum of weights falls; the last that weighs anything
 * where rounding leaves none. */
size_t sampler_find_in_list(const struct sampler *s, double target);

/* The same of the field. `within`: order_find. */
struct entry sampler_find_in_field(struct sampler *s, double target, struct tally *within);

/* Fills the list with the survivors, in order, without their weights. */
void sampler_list(struct sampler *s);

#endif
