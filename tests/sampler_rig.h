/* What tests of the sampler have in common. */
#ifndef FADER_TESTS_SAMPLER_RIG_H
#define FADER_TESTS_SAMPLER_RIG_H

#include <math.h>

#include "engine/sampler.h"
#include "numbers.h"

#define LEN(a) (sizeof(a) / sizeof *(a))

static inline struct knobs neutral(void)
{
    struct knobs k = knobs_default();

    for (int i = 0; i < KNOB_COUNT; i++)
        k.value[i] = knob_traits[i].neutral;
    k.exempt_mode = EXEMPT_NONE;
    return k;
}

static inline void run(struct sampler *s, const float *logits, const struct knobs *k,
                       const int32_t *context, size_t n_context)
{
    const struct sampler_input in = {.logits = logits,
                                     .context = context,
                                     .n_context = n_context,
                                     .knobs = k,
                                     .want_stats = true};
    sampler_run(s, &in);
}

static inline void trace(struct sampler *s, int i, const float *logits, size_t n, double *after,
                         uint8_t *kept)
{
    for (size_t id = 0; id < n; id++)
        after[id] = (double)logits[id];
    sampler_trace(s, i, after, kept);
}

static inline void random_knobs(struct knobs *k, int32_t n_vocab)
{
    static const double temperatures[] = {0.1, 0.7, 1, 2, 5}, top_ps[] = {1, 0.999, 0.9, 0.5, 0.1};

    *k = neutral();
    k->value[KNOB_TEMPERATURE] = temperatures[(int)(numbers_uniform() * 5)];
    k->value[KNOB_REPETITION_PENALTY] = numbers_uniform() < 0.3 ? 1 : 0.5 + numbers_uniform() * 1.5;
    k->value[KNOB_REPEAT_LAST_N] = numbers_uniform() < 0.5 ? -1 : floor(numbers_uniform() * 40);
    k->value[KNOB_TOP_K] = numbers_uniform() < 0.5   ? 0
                           : numbers_uniform() < 0.5 ? floor(1 + numbers_uniform() * 60)
                                                     : floor(1 + numbers_uniform() * (n_vocab - 1));
    k->value[KNOB_TOP_P] = top_ps[(int)(numbers_uniform() * 5)];
    k->value[KNOB_MIN_P] = numbers_uniform() < 0.6 ? 0 : pow(10, -4 * numbers_uniform());
    if (numbers_uniform() < 0.3) {
        k->exempt_mode = EXEMPT_LIST;
        k->n_exempt = 3;
        for (int i = 0; i < 3; i++)
            k->exempt[i] = (int32_t)(numbers_uniform() * n_vocab);
    }
    for (int i = STAGE_COUNT - 1; i > 0 && numbers_uniform() < 0.8; i--) {
        int j = (int)(numbers_uniform() * (i + 1));
        uint8_t swap = k->order[i];
        k->order[i] = k->order[j];
        k->order[j] = swap;
    }
}

#endif
