/* The sampler: from logits to one drawn token, in stages that can be looked at. It needs no model.
 *
 * Life cycle:  sampler_new(n_vocab) -> [sampler_run(logits, context, knobs) -> sampler_pick /
 * sampler_look ...]* -> sampler_free.  A sampler holds scratch for one vocabulary and the result of
 * the last run; run it again with other knobs on the same logits as often as a fader moves. Not
 * thread-safe; one per lane.
 *
 * What is computed stands in sampling-spec order: repetition penalty, greedy guard and temperature,
 * top-k, top-p, min-p, draw; `knobs.order` permutes it (llama.cpp puts the temperature last). With
 * a temperature of at most SAMPLER_GREEDY the temperature's stage leaves only the largest, and what
 * stands after it does not run. The draw lays the survivors end to end, likeliest first (lowest id
 * first among equals), and takes the one on which the uniform number falls: sampler_uniform(seed,
 * n), a pure function, so that what will be drawn can be shown before it is drawn. */
#ifndef FADER_ENGINE_SAMPLER_H
#define FADER_ENGINE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The knobs, in the order in which the default chain applies them. KNOB_* indexes every table about
 * knobs in the program; names, ranges and neutral values are in knob_traits. */
enum knob {
    KNOB_REPETITION_PENALTY,
    KNOB_TEMPERATURE,
    KNOB_TOP_K,
    KNOB_TOP_P,
    KNOB_MIN_P,
    KNOB_REPEAT_LAST_N,
    KNOB_COUNT
};

enum stage { STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_COUNT };

#define SAMPLER_GREEDY 1e-4

enum exempt_mode { EXEMPT_PUNCTUATION, EXEMPT_NONE, EXEMPT_LIST };
enum { EXEMPT_LIST_MAX = 64 };

struct knobs {
    double value[KNOB_COUNT];   /* top_k and repeat_last_n hold whole numbers; top_k 0 = off */
    uint8_t order[STAGE_COUNT]; /* a permutation of enum stage */
    uint8_t exempt_mode;        /* enum exempt_mode: who escapes the repetition penalty */
    uint8_t n_exempt;           /* with EXEMPT_LIST */
    int32_t exempt[EXEMPT_LIST_MAX];
};

struct knob_trait {
    const char *name;   /* the preset key: "temperature" */
    const char *label;  /* on the desk: "temp" */
    const char *option; /* on the command line, without dashes: "temp" */
    double min, max;    /* what is accepted; max of top_k is the vocabulary where one is known */
    double neutral;     /* the value at which the stage does nothing; for temperature 1 */
    double initial;     /* sampling-spec 3: 1.1, 0.8, 50, 0.9, 0, -1 */
    bool whole;         /* only whole numbers */
    int decimals;       /* how it is written on the desk */
};
extern const struct knob_trait knob_traits[KNOB_COUNT];

/* 0.8 / 50 / 0.9 / min-p off / 1.1 over everything, punctuation exempt, temperature first. */
struct knobs knobs_default(void);

/* The chain beside its values: the order of the stages, and who escapes the penalty. */
void knobs_set_chain(struct knobs *k, const struct knobs *from);
bool knobs_same_chain(const struct knobs *a, const struct knobs *b);

/* The knob whose name, label, option or common alias (temp, rep_pen, repeat_penalty, ...) this is,
 * or -1. */
int knob_find(const char *name);

/* Whether `value` may be set; `n_vocab` 0 = unknown. On refusal `err` names knob,
 * value and range. */
bool knob_check(enum knob knob, double value, int32_t n_vocab, struct error *err);

/* Writes the value as /set would take it back ("0.8", "50", "-1"), without a trailing zero too
 * many. */
void knob_format(enum knob knob, double value, char out[32]);

/* Name of a stage as `fader sample` prints it: "penalty", "temperature", "top_k",
 * "top_p", "min_p". */
const char *stage_name(enum stage stage);

struct sampler_input {
    const float *logits;    /* [n_vocab], raw; not changed; NaN counts as -infinity */
    const int32_t *context; /* every token the model was given, answer so far included */
    size_t n_context;
    const uint8_t *punctuation; /* [n_vocab], 1: exempt under EXEMPT_PUNCTUATION; NULL: none */
    const struct knobs *knobs;
    bool want_stats; /* cut_share and entropy of every stage: a pass each */
};

struct sampler_stage {
    enum stage stage;
    int32_t kept;     /* tokens left after it */
    int32_t changed;  /* penalty: ids penalised; others: tokens cut here */
    double cut_share; /* of the probability that reached it, 0 - 1; NaN without want_stats */
    double entropy;   /* bits of softmax over what is left; NaN too, but in the last stage */
    bool skipped;     /* neutral, or below greedy */
};

struct sampler_draw {
    int32_t id;
    double p;       /* after the whole chain */
    double logprob; /* natural log of the raw softmax */
    int32_t rank;   /* number of strictly larger raw logits */
};

struct sampler_candidate {
    int32_t id;
    int32_t cut_by; /* enum stage, or -1: still in */
    double model;   /* raw softmax */
    double now;     /* after the chain; 0 when cut */
};

/* For logits of `n_vocab` tokens (at least 1). */
struct sampler *sampler_new(int32_t n_vocab);
void sampler_free(struct sampler *s);

/* Runs the chain. The results below speak of the last run. Allocates nothing. Tokens at -infinity
 * are not in the race: no count or list has them (where all are, all count as equal). */
void sampler_run(struct sampler *s, const struct sampler_input *in);

bool sampler_is_greedy(const struct sampler *s); /* temperature 0: no lot is drawn */

/* The stages in the order in which they ran: STAGE_COUNT of them. */
const struct sampler_stage *sampler_stages(const struct sampler *s);

/* The token on which `u` in [0, 1) falls, with its facts or without. */
struct sampler_draw sampler_pick(struct sampler *s, double u);
int32_t sampler_pick_id(struct sampler *s, double u);

/* The facts of a given id (a picked candidate, a scored token). p is 0 when the chain cut it. */
struct sampler_draw sampler_look(struct sampler *s, int32_t id);

/* Writes up to `max` survivors, likeliest first; returns how many. */
size_t sampler_survivors(struct sampler *s, struct sampler_candidate *out, size_t max);

/* Writes up to `max` of those that `stage` cut, likeliest (raw) first; returns how many. */
size_t sampler_cut(struct sampler *s, enum stage stage, struct sampler_candidate *out, size_t max);

/* The logits and the survivors as they stood after stage number `i` of sampler_stages. `logits`
 * [n_vocab] comes in as it was given to sampler_run, in f64; `kept` [n_vocab] is written. Slow: for
 * `fader sample`. */
void sampler_trace(struct sampler *s, int i, double *logits, uint8_t *kept);

/* Uniform in [0, 1) of answer token `n`: counter-based, 53 bits, the same on every machine. */
double sampler_uniform(uint32_t seed, uint64_t n);

/* A seed from the system's random source. */
uint32_t sampler_random_seed(void);

#endif
