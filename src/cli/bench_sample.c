#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "cli/bench_impl.h"
#include "engine/sampler.h"

enum { ROUNDS = 25 };

struct setting {
    double temperature, top_k, top_p, min_p;
    bool cut_first; /* the cuts, then penalty and temperature, as llama.cpp has it */
};

/* What keeps most tokens in the race for longest, each in another way. */
static const struct setting hard[] = {
    {5, 0, 1, 0, false},          {5, 0, 0.9, 0, false},  {5, 0, 0.999, 0, false},
    {5, 0, 1, 1e-6, false},       {5, 0, 1, 0.05, false}, {5, 20000, 0.95, 0, false},
    {5, 40000, 0.99, 1e-3, true}, {5, 0, 0.9, 0, true},
};

static struct knobs knobs_of(const struct setting *s, int32_t n_vocab)
{
    static const uint8_t cuts_first[STAGE_COUNT] = {STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P,
                                                    STAGE_PENALTY, STAGE_TEMPERATURE};
    struct knobs k = knobs_default();

    k.value[KNOB_TEMPERATURE] = s->temperature;
    k.value[KNOB_TOP_K] = s->top_k < n_vocab ? s->top_k : n_vocab;
    k.value[KNOB_TOP_P] = s->top_p;
    k.value[KNOB_MIN_P] = s->min_p;
    if (s->cut_first)
        memcpy(k.order, cuts_first, sizeof k.order);
    return k;
}

/* Milliseconds of one token: the chain, the draw, the facts of what was drawn. */
static double measure(struct sampler *s, struct sampler_input in, const struct knobs *knobs)
{
    double ms[ROUNDS];

    in.knobs = knobs;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        int64_t start = clock_now_ns();
        sampler_run(s, &in);
        sampler_pick(s, sampler_uniform(1, i));
        ms[i] = clock_since_s(start) * 1e3;
    }
    return bench_median(ms, ROUNDS);
}

void bench_sample(int32_t n_vocab, const float *logits, const int32_t *context, size_t n,
                  struct bench_report *r)
{
    struct sampler *s = sampler_new(n_vocab);
    struct sampler_input in = {.logits = logits, .context = context, .n_context = n};
    struct knobs knobs = knobs_default();

    if (n_vocab < knobs.value[KNOB_TOP_K])
        knobs.value[KNOB_TOP_K] = n_vocab;
    r->sample_ms = measure(s, in, &knobs);
    knobs.value[KNOB_TOP_K] = 0;
    r->sample_all_ms = measure(s, in, &knobs);
    r->sample_worst_ms = r->sample_ms > r->sample_all_ms ? r->sample_ms : r->sample_all_ms;
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        knobs = knobs_of(&hard[i], n_vocab);
        double ms = measure(s, in, &knobs);
        r->sample_worst_ms = ms > r->sample_worst_ms ? ms : r->sample_worst_ms;
    }
    sampler_free(s);
}
