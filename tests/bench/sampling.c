/* What a token costs in the sampler alone: vocabularies and kinds of logits against settings, in
 * milliseconds. No test: a figure. `make tests/bench/sampling && tests/bench/sampling`.
 *
 * token: the chain, the draw and the drawn token's facts, as for every token of an answer. desk: the
 * same with every stage's figures and the lists of candidates, as when the desk asks for them. Each
 * is the median of ROUNDS, and no two of these have the same logits; `draws` is a checksum of the
 * tokens drawn, to hold against another build's. The last lines name the worst. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/rng.h"
#include "engine/sampler.h"

enum { ROUNDS = 41, SHIFT = 61, HISTORY = 8192, LISTED = 24, CUT = 3 };

/* ---- logits: [n], of which a round sees all but some at either end --------------------------- */

static double gauss(uint64_t n)
{
    double a = sampler_uniform(1, 2 * n) + 0x1p-54, b = sampler_uniform(1, 2 * n + 1);

    return sqrt(-2 * log(a)) * cos(2 * M_PI * b);
}

/* As a model makes them: a bell, and a few words that fit. */
static void fill_usual(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = (float)(2.5 * gauss((uint64_t)i));
    for (int32_t i = 0; i < 40; i++)
        logits[(i * 7919 + 31) % n] = (float)(17 - 0.3 * i);
}

/* No word is better than another, or hardly. */
static void fill_flat(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = (float)(0.2 * gauss((uint64_t)i));
}

/* Few different values, many times each: ties everywhere. */
static void fill_coarse(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = (float)(floor(4 * gauss((uint64_t)i)) / 4);
}

/* Two values. */
static void fill_two(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = gauss((uint64_t)i) > 0.1 ? 2 : 1;
}

static void fill_equal(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = 1;
}

/* Most are missing: a grammar's mask, or a model's padding. */
static void fill_holes(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = i % 8 == 0 ? (float)gauss((uint64_t)i) : i % 8 == 1 ? NAN : -INFINITY;
}

/* In order, either way. */
static void fill_rising(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = 4 * (float)i / (float)n;
}

static void fill_falling(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = -4 * (float)i / (float)n;
}

/* Mass everywhere, by the logarithm of the rank: some thousand carry most of it. */
static void fill_zipf(float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        logits[i] = (float)-log(1 + (double)((int64_t)i * 40503 % n));
}

static const struct {
    const char *name;
    void (*fill)(float *logits, int32_t n);
} kinds[] = {{"usual", fill_usual},   {"flat", fill_flat},       {"coarse", fill_coarse},
             {"two", fill_two},       {"equal", fill_equal},     {"holes", fill_holes},
             {"rising", fill_rising}, {"falling", fill_falling}, {"zipf", fill_zipf}};

/* ---- settings -------------------------------------------------------------------------------- */

/* The stages in fader's order; in llama.cpp's, the temperature last; and with the penalty, too, after
 * the cuts. */
static const struct {
    const char *name;
    uint8_t order[STAGE_COUNT];
} chains[] = {
    {"fader", {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P}},
    {"llama", {STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE}},
    {"cuts", {STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_PENALTY, STAGE_TEMPERATURE}},
    {"mixed", {STAGE_TOP_P, STAGE_TEMPERATURE, STAGE_MIN_P, STAGE_PENALTY, STAGE_TOP_K}},
};
enum { FADER, LLAMA, CUTS, MIXED };

/* A top-k below 1 is a share of the vocabulary. */
struct setting {
    double temperature, top_k, top_p, min_p, penalty;
    int chain;
};

static const struct setting settings[] = {
    {0, 50, 0.9, 0, 1.1, FADER},      {0.8, 50, 0.9, 0, 1.1, FADER},
    {0.8, 0, 0.9, 0, 1.1, FADER},     {1, 0, 1, 0, 1, FADER},
    {1, 0, 1, 0, 1.1, FADER},         {5, 0, 1, 0, 1.1, FADER},
    {5, 0, 0.9, 0, 1.1, FADER},       {5, 0, 0.999, 0, 1.1, FADER},
    {5, 0, 0.5, 0.5, 1.1, FADER},     {5, 0, 1, 0.05, 1.1, FADER},
    {5, 0, 1, 1e-6, 1.1, FADER},      {0.8, 1000, 0.9, 0, 1.1, FADER},
    {5, 20000, 0.95, 0, 1.1, FADER},  {5, 40000, 0.99, 0.001, 1.1, FADER},
    {5, 0.9, 0.99, 1e-6, 0.9, FADER}, {5, 0.5, 0.5, 0, 1.1, FADER},
    {5, 40000, 0.99, 0, 1.1, CUTS},   {5, 0, 0.9, 0, 1.1, CUTS},
    {5, 0.9, 0.99, 1e-6, 1.1, CUTS},  {5, 0.9, 0.7, 0, 0.9, CUTS},
    {5, 0.9, 0.99, 1e-6, 1.1, LLAMA}, {2, 0.5, 0.7, 0, 1.1, LLAMA},
    {5, 0, 0.7, 1e-6, 1.1, LLAMA},    {2, 0.9, 0.99, 1e-6, 1.1, MIXED},
    {5, 0.3, 0.7, 1e-6, 1.1, MIXED},
};

static struct knobs knobs_of(const struct setting *s, int32_t n)
{
    struct knobs k = knobs_default();

    k.value[KNOB_TEMPERATURE] = s->temperature;
    k.value[KNOB_TOP_K] = s->top_k < 1 ? floor(s->top_k * n) : s->top_k;
    k.value[KNOB_TOP_P] = s->top_p;
    k.value[KNOB_MIN_P] = s->min_p;
    k.value[KNOB_REPETITION_PENALTY] = s->penalty;
    memcpy(k.order, chains[s->chain].order, sizeof k.order);
    return k;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void list_candidates(struct sampler *s)
{
    struct sampler_candidate c[LISTED];

    sampler_survivors(s, c, LISTED);
    for (int i = 0; i < STAGE_COUNT; i++)
        sampler_cut(s, (enum stage)i, c, CUT);
}

/* Milliseconds of one token; *draws is what came out. */
static double measure(struct sampler *s, struct sampler_input in, uint32_t *draws)
{
    double ms[ROUNDS];

    *draws = 2166136261u;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = clock_now_ns();
        sampler_run(s, &in);
        struct sampler_draw d = sampler_pick(s, sampler_uniform(7, (uint64_t)i));
        if (in.want_stats)
            list_candidates(s);
        ms[i] = clock_since_s(start) * 1e3;
        *draws = (*draws ^ (uint32_t)d.id) * 16777619u;
        in.logits += SHIFT;
    }
    qsort(ms, ROUNDS, sizeof *ms, compare);
    return ms[ROUNDS / 2];
}

/* Every setting on one kind of logits; returns what the longest takes. */
static double measure_kind(int32_t n, size_t kind)
{
    const int32_t all = n + ROUNDS * SHIFT;
    struct sampler *s = sampler_new(n);
    float *logits = mem_array((size_t)all, sizeof *logits);
    int32_t context[HISTORY];
    uint32_t draws, desk_draws;
    double worst = 0;

    kinds[kind].fill(logits, all);
    for (int32_t i = 0; i < HISTORY; i++)
        context[i] = (int32_t)((int64_t)i * 48271 % n);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const struct setting *set = &settings[i];
        struct knobs k = knobs_of(set, n);
        struct sampler_input in = {
            .logits = logits, .context = context, .n_context = HISTORY, .knobs = &k};
        double token = measure(s, in, &draws);
        in.want_stats = true;
        double desk = measure(s, in, &desk_draws);
        printf("%7d %-7s %5g %6g %6g %6g %5g %-5s %8.3f %8.3f  %08" PRIx32 "%s\n", (int)n,
               kinds[kind].name, set->temperature, k.value[KNOB_TOP_K], set->top_p, set->min_p,
               set->penalty, chains[set->chain].name, token, desk, draws,
               draws == desk_draws ? "" : "  DESK DRAWS DIFFER");
        worst = token > worst ? token : worst;
    }
    free(logits);
    sampler_free(s);
    return worst;
}

int main(void)
{
    static const int32_t vocabularies[] = {49152, 262144};
    double worst[] = {0, 0};

    printf("%7s %-7s %5s %6s %6s %6s %5s %-5s %8s %8s  %s\n", "vocab", "logits", "temp", "top-k",
           "top-p", "min-p", "pen", "chain", "token ms", "desk ms", "draws");
    for (size_t v = 0; v < sizeof vocabularies / sizeof vocabularies[0]; v++) {
        for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
            const double ms = measure_kind(vocabularies[v], kind);
            worst[v] = ms > worst[v] ? ms : worst[v];
        }
    }
    for (size_t v = 0; v < sizeof vocabularies / sizeof vocabularies[0]; v++)
        printf("worst of %d: %.3f ms\n", (int)vocabularies[v], worst[v]);
    return 0;
}
