#include "config.h"

#include "cli/bench_impl.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/progress.h"

struct bench {
    const struct bench_options *o;
    struct bench_report *r;
    struct model *m;
    struct session *s; /* its cache always holds the first of the ids */
    int32_t ctx;
    int32_t *ids;   /* [ctx], random: what is computed does not depend on them */
    double *stream; /* [n_stream]: bytes a second, between the runs; owned */
    size_t n_stream, cap_stream;
    struct progress progress;
    struct error *err;
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool eval(struct bench *b, struct session *s, const int32_t *ids, int32_t n)
{
    return session_eval(s, ids, (size_t)n, NULL, b->err) == EVAL_OK;
}

static struct session *new_session(struct bench *b)
{
    struct session_options options = {.ctx_size = b->ctx,
                                      .batch_size = b->o->batch_size,
                                      .cache_type = (enum cache_type)b->o->cache_type};

    return session_new(b->m, &options, b->err);
}

/* Leaves exactly the first `n` ids in the cache. */
static bool fill_cache(struct bench *b, int32_t n)
{
    int32_t held;

    session_truncate(b->s, n);
    held = session_length(b->s);
    return held == n || eval(b, b->s, b->ids + held, n - held);
}

/* What a decode at depth 0 stands on: without a token there is nothing to go on from. */
static int32_t tokens_before(int32_t depth)
{
    return depth > 0 ? depth : 1;
}

static void note_cache(struct bench *b)
{
    double mb = (double)session_kv_used(b->s) / 1e6;

    b->r->kv_mb = mb > b->r->kv_mb ? mb : b->r->kv_mb;
}

/* One repetition of each measurement: seconds, or < 0 with `err`. */
typedef double (*measurement)(struct bench *b, const struct bench_rate *rate);

static double run_prefill(struct bench *b, const struct bench_rate *rate)
{
    session_truncate(b->s, 0);
    int64_t start = clock_now_ns();
    return eval(b, b->s, b->ids, rate->n) ? clock_since_s(start) : -1.0;
}

static double run_decode(struct bench *b, const struct bench_rate *rate)
{
    int32_t before = tokens_before(rate->depth);

    if (!fill_cache(b, before))
        return -1.0;
    int64_t start = clock_now_ns();
    for (int32_t i = 0; i < rate->n; i++) {
        if (!eval(b, b->s, b->ids + before + i, 1))
            return -1.0;
    }
    return clock_since_s(start);
}

static double decode_lanes(struct bench *b, struct session **lanes, int32_t steps)
{
    int64_t start = clock_now_ns();

    for (int32_t i = 0; i < steps; i++) {
        int32_t next[BENCH_LANES_MAX];
        for (int32_t k = 0; k < b->o->lanes; k++)
            next[k] = b->ids[(i + 17 * k) % b->ctx];
        if (session_eval_lanes(lanes, next, b->o->lanes, b->err) != EVAL_OK)
            return -1.0;
    }
    return clock_since_s(start);
}

static double run_lanes(struct bench *b, const struct bench_rate *rate)
{
    struct session *lanes[BENCH_LANES_MAX] = {0};
    double seconds = -1.0;

    if (!fill_cache(b, rate->depth))
        return -1.0;
    for (int32_t i = 0; i < b->o->lanes; i++) {
        lanes[i] = session_fork(b->s, b->err);
        if (lanes[i] == NULL)
            goto done;
    }
    seconds = decode_lanes(b, lanes, rate->n);
done:
    for (int32_t i = 0; i < b->o->lanes; i++)
        session_free(lanes[i]);
    return seconds;
}

/* Before and after each run: the machine's speed changes, and both shall have met the same. */
static bool measure_stream(struct bench *b)
{
    mem_grow(&b->stream, &b->cap_stream, b->n_stream + 1, sizeof *b->stream);
    return machine_measure_stream(b->m, &b->stream[b->n_stream++], b->err);
}

/* Runs `run` as often as asked for; `tokens` come out of each run of `rate`. */
static bool repeat(struct bench *b, const char *what, measurement run, int32_t tokens,
                   struct bench_rate *rate)
{
    size_t n = (size_t)b->o->reps;
    double *tps = mem_array(n, sizeof *tps);
    size_t first_stream = b->n_stream;
    bool ok = measure_stream(b);

    for (size_t i = 0; ok && i < n; i++) {
        progress_say(&b->progress, "%s of %d after %d, run %zu of %zu", what, (int)rate->n,
                     (int)rate->depth, i + 1, n);
        double seconds = run(b, rate);
        ok = seconds >= 0.0 && measure_stream(b);
        tps[i] = (double)tokens / (seconds > 0.0 ? seconds : 1e-9);
    }
    if (ok) {
        note_cache(b);
        rate->median = bench_median(tps, n);
        rate->spread = (tps[n - 1] - tps[0]) / rate->median;
        rate->stream = bench_median(b->stream + first_stream, b->n_stream - first_stream);
    }
    free(tps);
    return ok;
}

static bool measure_rates(struct bench *b)
{
    const struct bench_options *o = b->o;
    struct bench_report *r = b->r;

    for (size_t i = 0; i < o->prefill.n; i++) {
        int32_t n = o->prefill.at[i];
        struct bench_rate *rate = &r->prefill[r->n_prefill];
        *rate = (struct bench_rate){.n = n};
        if (n > 0 && !repeat(b, "prefill", run_prefill, n, rate))
            return false;
        r->n_prefill += n > 0;
    }
    for (size_t i = 0; i < o->depth.n && o->decode > 0; i++) {
        struct bench_rate *rate = &r->decode[r->n_decode++];
        *rate = (struct bench_rate){.n = o->decode, .depth = o->depth.at[i]};
        if (!repeat(b, "decode", run_decode, o->decode, rate))
            return false;
    }
    if (o->lanes == 0 || o->decode == 0)
        return true;
    r->n_lanes = 1;
    r->lanes = (struct bench_rate){.n = o->decode, .depth = BENCH_LANES_PROMPT};
    return repeat(b, "lanes", run_lanes, o->lanes * o->decode, &r->lanes);
}

/* The chapter's comparison, for real: with the cache every token is one position; without it, the
 * prompt and the whole answer so far are run again for each. */
static bool run_uncached(struct bench *b)
{
    struct session *naive = new_session(b);
    struct bench_step *steps = mem_array((size_t)b->o->decode, sizeof *steps);
    bool ok = naive != NULL;

    b->r->steps = steps;
    session_truncate(b->s, 0);
    for (int32_t i = 0; ok && i < b->o->decode; i++) {
        int32_t n = BENCH_CHAPTER_PROMPT + i;
        progress_say(&b->progress, "token %d of %d, without a cache too", i + 1, (int)b->o->decode);
        int64_t start = clock_now_ns();
        ok = fill_cache(b, n);
        steps[i].cached_ms = clock_since_s(start) * 1e3;
        session_truncate(naive, 0);
        start = clock_now_ns();
        ok = ok && eval(b, naive, b->ids, n);
        steps[i].uncached_ms = clock_since_s(start) * 1e3;
    }
    session_free(naive);
    return ok;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void add_work(struct work *to, struct work w)
{
    to->bytes += w.bytes;
    to->codes += w.codes;
    to->floats += w.floats;
}

static struct work work_at(const struct bench *b, int32_t first, int32_t n)
{
    return model_work(b->m, first, n, (enum cache_type)b->o->cache_type);
}

static struct work prefill_work(const struct bench *b, const struct bench_rate *rate)
{
    int32_t batch = b->o->batch_size > 0 ? b->o->batch_size : SESSION_BATCH_DEFAULT;
    struct work sum = {0};

    for (int32_t at = 0; at < rate->n; at += batch)
        add_work(&sum, work_at(b, at, rate->n - at < batch ? rate->n - at : batch));
    return sum;
}

/* `lanes` at once: weights and prompt are read for all of them, what they have of their own is
 * not. */
static struct work decode_work(const struct bench *b, const struct bench_rate *rate, int32_t lanes)
{
    int32_t before = tokens_before(rate->depth);
    double own = (double)b->r->kv_bytes_per_token;
    struct work sum = {0};

    for (int32_t i = 0; i < rate->n; i++) {
        struct work w = work_at(b, before + i, 1);
        w.bytes += (lanes - 1) * i * own;
        w.codes *= lanes;
        w.floats *= lanes;
        add_work(&sum, w);
    }
    return sum;
}

static void set_limit(struct bench *b, struct bench_rate *rate, int32_t tokens, struct work w)
{
    struct machine then = b->r->machine;

    then.bytes = rate->stream;
    rate->limit = tokens / machine_seconds(&then, &w, &rate->by_memory);
}

/* With none of the rates asked for nothing was read in between. */
static bool find_limits(struct bench *b)
{
    struct bench_report *r = b->r;

    if (b->n_stream == 0 && !measure_stream(b))
        return false;
    r->machine.bytes = bench_median(b->stream, b->n_stream);
    machine_measure_peaks(b->m, &r->machine.codes, &r->machine.floats);
    for (size_t i = 0; i < r->n_prefill; i++)
        set_limit(b, &r->prefill[i], r->prefill[i].n, prefill_work(b, &r->prefill[i]));
    for (size_t i = 0; i < r->n_decode; i++)
        set_limit(b, &r->decode[i], r->decode[i].n, decode_work(b, &r->decode[i], 1));
    if (r->n_lanes > 0) {
        int32_t lanes = b->o->lanes;
        set_limit(b, &r->lanes, lanes * r->lanes.n, decode_work(b, &r->lanes, lanes));
    }
    return true;
}

/* ---- start, memory, all of it ---------------------------------------------------------------- */

static int32_t at_least(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t longest(const struct bench_lengths *list)
{
    int32_t most = 0;

    for (size_t i = 0; i < list->n; i++)
        most = at_least(most, list->at[i]);
    return most;
}

/* The shortest context in which everything fits. */
static int32_t context_for(const struct bench_options *o)
{
    int32_t need = at_least(longest(&o->prefill), BENCH_TTFT_PROMPT);

    need = at_least(need, tokens_before(longest(&o->depth)) + o->decode);
    if (o->lanes > 0)
        need = at_least(need, BENCH_LANES_PROMPT + o->decode);
    if (o->uncached)
        need = at_least(need, BENCH_CHAPTER_PROMPT + o->decode);
    return need;
}

static bool choose_context(struct bench *b)
{
    int32_t need = context_for(b->o);

    b->ctx = b->o->ctx_size > 0 ? b->o->ctx_size : need;
    return b->ctx >= need || error_set(b->err, "bench: %d tokens do not fit into a context of %d",
                                       (int)need, (int)b->ctx);
}

static void make_ids(struct bench *b)
{
    int32_t n_vocab = model_get_info(b->m)->n_vocab, first = n_vocab > 1000 ? 100 : 0;
    uint32_t x = 1;

    b->ids = mem_array((size_t)b->ctx, sizeof *b->ids);
    for (int32_t i = 0; i < b->ctx; i++) {
        x = x * 1664525 + 1013904223;
        b->ids[i] = first + (int32_t)((x >> 8) % (uint32_t)(n_vocab - first));
    }
}

static void say_loading(void *ctx, double share)
{
    progress_say(ctx, "loading: %.0f %%", 100.0 * share);
}

/* From nothing to the first token: once, as it cannot be repeated in one process. */
static bool measure_start(struct bench *b, const char *path)
{
    struct model_load_options load = {.threads = b->o->threads,
                                      .no_repack = b->o->no_repack,
                                      .progress = say_loading,
                                      .progress_ctx = &b->progress};
    int64_t start = clock_now_ns();

    b->m = model_open(path, b->err);
    if (b->m == NULL || !model_load(b->m, &load, b->err))
        return false;
    b->r->load_ms = clock_since_s(start) * 1e3;
    make_ids(b);
    b->s = new_session(b);
    if (b->s == NULL || !eval(b, b->s, b->ids, BENCH_TTFT_PROMPT))
        return false;
    b->r->ttft_ms = clock_since_s(start) * 1e3;
    return true;
}

static bool measure_sampling(struct bench *b)
{
    int32_t n_vocab = model_get_info(b->m)->n_vocab;

    progress_say(&b->progress, "sampling");
    session_truncate(b->s, 0);
    if (!eval(b, b->s, b->ids, BENCH_TTFT_PROMPT))
        return false;
    bench_sample(n_vocab, session_logits(b->s), b->ids, (size_t)b->ctx, b->r);
    return true;
}

static void measure_memory(struct bench *b)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    b->r->peak_rss_mb = (double)usage.ru_maxrss * 1024.0 / 1e6;
}

static void note_model(struct bench *b)
{
    enum cache_type type = (enum cache_type)b->o->cache_type;

    b->r->weights_mb = (double)model_get_info(b->m)->weight_bytes / 1e6;
    b->r->kv_bytes_per_token = model_ledger(b->m, b->ctx, type).bytes_per_token;
}

bool bench_measure(const struct bench_options *o, const char *path, struct model **model,
                   struct bench_report *r, struct error *err)
{
    struct bench b = {.o = o, .r = r, .err = err};

    progress_init(&b.progress);
    bool ok = choose_context(&b) && measure_start(&b, path);
    if (ok)
        note_model(&b);
    ok = ok && measure_rates(&b) && (!o->uncached || o->decode == 0 || run_uncached(&b)) &&
         find_limits(&b) && measure_sampling(&b);
    progress_end(&b.progress);
    measure_memory(&b);
    session_free(b.s);
    free(b.ids);
    free(b.stream);
    if (!ok) {
        model_close(b.m);
        b.m = NULL;
    }
    *model = b.m;
    return ok;
}
