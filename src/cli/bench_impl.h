/* What the two halves of `fader bench` share: bench_measure.c fills a report, bench.c says it. */
#ifndef FADER_CLI_BENCH_IMPL_H
#define FADER_CLI_BENCH_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/engine.h"

enum { BENCH_REPS_MAX = 1000, BENCH_LANES_MAX = 16, BENCH_CHAPTER_PROMPT = 11 };

struct bench_options {
    const char *model;
    int32_t prefill, decode, depth, lanes, reps; /* 0: leave that measurement out */
    int32_t threads, ctx_size, batch_size;       /* 0: the default */
    int cache_type;                              /* enum cache_type */
    bool uncached, json, no_repack, help;
};

struct bench_rate {        /* tokens a second over the repetitions */
    double median, spread; /* spread: (largest - smallest) / median */
};

struct bench_step { /* one token of the answer, made both ways */
    double cached_ms, uncached_ms;
};

struct bench_report {
    double load_ms, ttft_ms; /* open and load; and until the first token's logits */
    struct bench_rate prefill, decode, lanes;
    struct bench_step *steps; /* [decode] with --uncached; owned */
    double stream_gbps;       /* measured: what all threads together read from memory */
    double decode_limit;      /* tokens a second at that rate */
    double peak_rss_mb, weights_mb;
    uint64_t kv_bytes_per_token;
};

/* Opens, loads and measures. False with `err`. The model is the caller's to close (NULL on
 * failure). */
bool bench_measure(const struct bench_options *o, const char *path, struct model **model,
                   struct bench_report *report, struct error *err);

#endif
