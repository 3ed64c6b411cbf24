/* What the parts of `fader bench` share: bench.c reads the command line, bench_measure.c and
 * bench_sample.c fill a report, bench_say.c says it. */
#ifndef FADER_CLI_BENCH_IMPL_H
#define FADER_CLI_BENCH_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/machine.h"

enum {
    BENCH_REPS_MAX = 1000,
    BENCH_LANES_MAX = 16,
    BENCH_LENGTHS_MAX = 16,
    BENCH_CHAPTER_PROMPT = 11, /* tokens of the prompt with --uncached */
    BENCH_TTFT_PROMPT = 16,    /* of the first question */
    BENCH_LANES_PROMPT = 64    /* that the lanes have in common */
};

struct bench_lengths {
    int32_t at[BENCH_LENGTHS_MAX];
    size_t n;
};

struct bench_options {
    const char *model;
    struct bench_lengths prefill, depth;   /* of tokens; prefill 0: leave that measurement out */
    int32_t decode, lanes, reps;           /* decode, lanes 0: likewise */
    int32_t threads, ctx_size, batch_size; /* 0: the default */
    int cache_type;                        /* enum cache_type */
    bool uncached, json, no_repack, help;
};

struct bench_rate {
    int32_t n, depth;      /* tokens of a run, after `depth` in the cache */
    double median, spread; /* tokens a second; (largest - smallest) / median */
    double stream;         /* bytes a second that memory gave before and after its runs */
    double limit;          /* tokens a second that the machine would have allowed then ... */
    bool by_memory;        /* ... for it cannot read, or else cannot compute faster */
};

struct bench_step { /* one token of the answer, made both ways */
    double cached_ms, uncached_ms;
};

struct bench_report {
    double load_ms, ttft_ms; /* open and load; and until the first token's logits */
    struct bench_rate prefill[BENCH_LENGTHS_MAX], decode[BENCH_LENGTHS_MAX], lanes;
    size_t n_prefill, n_decode, n_lanes;   /* how many of each were measured; n_lanes 0 or 1 */
    struct bench_step *steps;              /* [decode] with --uncached; owned */
    double sample_ms, sample_all_ms;       /* one token: default settings; with top-k 0 */
    double sample_worst_ms;                /* and with those that take longest */
    struct machine machine;                /* bytes: over all runs */
    double peak_rss_mb, weights_mb, kv_mb; /* kv_mb: of the longest context */
    uint64_t kv_bytes_per_token;
};

/* Opens, loads and measures. False with `err`. The model is the caller's to close (NULL on
 * failure). */
bool bench_measure(const struct bench_options *o, const char *path, struct model **model,
                   struct bench_report *report, struct error *err);

/* Sampling times of the report, with these logits [n_vocab] after a context of n tokens. */
void bench_sample(int32_t n_vocab, const float *logits, const int32_t *context, size_t n,
                  struct bench_report *r);

double bench_median(double *values, size_t n); /* n > 0; sorts them */

/* To standard output: one line for programs, or a table of at most 80 columns. */
void bench_say_json(const struct bench_options *o, const struct model *m,
                    const struct bench_report *r);
void bench_say_table(const struct bench_options *o, const struct model *m,
                     const struct bench_report *r);

#endif
