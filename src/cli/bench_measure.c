#include "config.h"

#include "cli/bench_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/pool.h"

enum {
    TTFT_PROMPT = 16,         /* tokens of the first question */
    LANES_PROMPT = 64,        /* tokens that the lanes have in common */
    STREAM_BYTES = 256 << 20, /* far beyond any cache of a desktop */
    STREAM_PIECE = 1 << 20,
    STREAM_ROUNDS = 5
};

struct bench {
    const struct bench_options *o;
    struct model *m;
    int32_t ctx;
    int32_t *ids; /* [ctx], random: what is computed does not depend on them */
    struct error *err;
};

/* ---- running --------------------------------------------------------------------------------- */

static bool eval(struct bench *b, struct session *s, const int32_t *ids, int32_t n)
{
    enum eval_result result = session_eval(s, ids, (size_t)n, NULL, b->err);

    if (result == EVAL_FULL)
        error_set(b->err, "bench: %d tokens do not fit into a context of %d", (int)n, (int)b->ctx);
    return result == EVAL_OK;
}

static struct session *new_session(struct bench *b)
{
    struct session_options options = {.ctx_size = b->ctx,
                                      .batch_size = b->o->batch_size,
                                      .cache_type = (enum cache_type)b->o->cache_type};

    return session_new(b->m, &options, b->err);
}

/* One repetition of each measurement: seconds, or < 0 with `err`. `s` may hold anything before. */
typedef double (*measurement)(struct bench *b, struct session *s);

static double run_prefill(struct bench *b, struct session *s)
{
    session_truncate(s, 0);
    int64_t start = clock_now_ns();
    return eval(b, s, b->ids, b->o->prefill) ? clock_since_s(start) : -1.0;
}

static double run_decode(struct bench *b, struct session *s)
{
    int32_t before = b->o->depth > 0 ? b->o->depth : 1;

    session_truncate(s, 0);
    if (!eval(b, s, b->ids, before))
        return -1.0;
    int64_t start = clock_now_ns();
    for (int32_t i = 0; i < b->o->decode; i++) {
        if (!eval(b, s, b->ids + before + i, 1))
            return -1.0;
    }
    return clock_since_s(start);
}

static double decode_lanes(struct bench *b, struct session **lanes)
{
    int64_t start = clock_now_ns();

    for (int32_t i = 0; i < b->o->decode; i++) {
        int32_t next[BENCH_LANES_MAX];
        for (int32_t k = 0; k < b->o->lanes; k++)
            next[k] = b->ids[(i + 17 * k) % b->ctx];
        if (session_eval_lanes(lanes, next, b->o->lanes, b->err) != EVAL_OK)
            return -1.0;
    }
    return clock_since_s(start);
}

static double run_lanes(struct bench *b, struct session *s)
{
    struct session *lanes[BENCH_LANES_MAX] = {0};
    double seconds = -1.0;

    session_truncate(s, 0);
    if (!eval(b, s, b->ids, LANES_PROMPT))
        return -1.0;
    for (int32_t i = 0; i < b->o->lanes; i++) {
        lanes[i] = session_fork(s, b->err);
        if (lanes[i] == NULL)
            goto done;
    }
    seconds = decode_lanes(b, lanes);
done:
    for (int32_t i = 0; i < b->o->lanes; i++)
        session_free(lanes[i]);
    return seconds;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Runs `what` as often as asked for; `tokens` come out of each run. */
static bool repeat(struct bench *b, struct session *s, measurement what, int32_t tokens,
                   struct bench_rate *rate)
{
    size_t n = (size_t)b->o->reps;
    double *tps = mem_array(n, sizeof *tps);
    bool ok = true;

    for (size_t i = 0; ok && i < n; i++) {
        double seconds = what(b, s);
        ok = seconds >= 0.0;
        tps[i] = (double)tokens / (seconds > 0.0 ? seconds : 1e-9);
    }
    if (ok) {
        qsort(tps, n, sizeof *tps, compare_doubles);
        rate->median = n % 2 == 1 ? tps[n / 2] : (tps[n / 2 - 1] + tps[n / 2]) / 2.0;
        rate->spread = (tps[n - 1] - tps[0]) / rate->median;
    }
    free(tps);
    return ok;
}

/* The chapter's comparison, for real: with the cache every token is one position; without it, the
 * prompt and the whole answer so far are run again for each. */
static bool run_uncached(struct bench *b, struct session *s, struct bench_report *r)
{
    struct session *naive = new_session(b);
    bool ok = naive != NULL;

    r->steps = mem_array((size_t)b->o->decode, sizeof *r->steps);
    session_truncate(s, 0);
    for (int32_t i = 0; ok && i < b->o->decode; i++) {
        int32_t n = BENCH_CHAPTER_PROMPT + i;
        int64_t start = clock_now_ns();
        ok = i == 0 ? eval(b, s, b->ids, n) : eval(b, s, b->ids + n - 1, 1);
        r->steps[i].cached_ms = clock_since_s(start) * 1e3;
        session_truncate(naive, 0);
        start = clock_now_ns();
        ok = ok && eval(b, naive, b->ids, n);
        r->steps[i].uncached_ms = clock_since_s(start) * 1e3;
    }
    session_free(naive);
    return ok;
}

/* ---- what memory allows ---------------------------------------------------------------------- */

struct stream {
    const uint64_t *data;
    uint64_t sum[POOL_THREADS_MAX];
};

static void read_stream(void *ctx, struct worker *w)
{
    struct stream *s = ctx;
    enum { WORDS = STREAM_PIECE / sizeof(uint64_t), AHEAD = 64 };
    uint64_t a = 0, b = 0, c = 0, d = 0;
    size_t task;

    worker_phase(w, STREAM_BYTES / STREAM_PIECE);
    while (worker_next(w, &task)) {
        const uint64_t *p = s->data + task * WORDS;
        for (size_t i = 0; i < WORDS; i += 8) {
            __builtin_prefetch(p + i + AHEAD);
            a ^= p[i] ^ p[i + 1];
            b ^= p[i + 2] ^ p[i + 3];
            c ^= p[i + 4] ^ p[i + 5];
            d ^= p[i + 6] ^ p[i + 7];
        }
    }
    s->sum[worker_index(w)] += a ^ b ^ c ^ d;
}

/* Best of some rounds over one large block, GB/s; 0 when there is no memory or no thread for it. */
static double measure_stream(int threads)
{
    struct error err;
    struct stream s = {0};
    uint64_t *data = mem_map(STREAM_BYTES);
    struct pool *pool = pool_new(threads, &err);
    double best = 0.0;

    if (data != NULL && pool != NULL) {
        memset(data, 0x5A, STREAM_BYTES);
        s.data = data;
        for (int i = 0; i < STREAM_ROUNDS; i++) {
            int64_t start = clock_now_ns();
            pool_run(pool, read_stream, &s, NULL);
            double rate = STREAM_BYTES / clock_since_s(start) / 1e9;
            best = rate > best ? rate : best;
        }
    }
    pool_free(pool);
    mem_unmap(data, STREAM_BYTES);
    return best;
}

/* Every weight but the rows of an embedding that is only looked up, and the cache so far, is read
 * for each token. */
static double bytes_per_token(const struct bench *b, const struct bench_report *r)
{
    double depth = (double)(b->o->depth > 0 ? b->o->depth : 1) + (double)b->o->decode / 2.0;

    return (double)model_decode_bytes(b->m) + depth * (double)r->kv_bytes_per_token;
}

/* The most that this process ever held, MB; 0 where the system does not say. */
static double peak_rss_mb(void)
{
    char line[256];
    double kb = 0.0;
    FILE *f = fopen("/proc/self/status", "r");

    if (f == NULL)
        return 0.0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "VmHWM: %lf", &kb) == 1)
            break;
    }
    fclose(f);
    return kb * 1024.0 / 1e6;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int32_t at_least(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The shortest context in which everything fits, or the one that was asked for. */
static int32_t context_for(const struct bench_options *o)
{
    int32_t need = at_least(o->prefill, at_least(o->depth, 1) + o->decode);

    need = at_least(need, TTFT_PROMPT);
    if (o->lanes > 0)
        need = at_least(need, LANES_PROMPT + o->decode);
    if (o->uncached)
        need = at_least(need, BENCH_CHAPTER_PROMPT + o->decode);
    return o->ctx_size > 0 ? o->ctx_size : need;
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

/* From nothing to the first token: once, as it cannot be repeated in one process. */
static struct session *measure_start(struct bench *b, const char *path, struct bench_report *r)
{
    struct model_load_options load = {.threads = b->o->threads, .no_repack = b->o->no_repack};
    int64_t start = clock_now_ns();

    b->m = model_open(path, b->err);
    if (b->m == NULL || !model_load(b->m, &load, b->err))
        return NULL;
    r->load_ms = clock_since_s(start) * 1e3;
    make_ids(b);
    struct session *s = new_session(b);
    if (s == NULL || !eval(b, s, b->ids, TTFT_PROMPT < b->ctx ? TTFT_PROMPT : b->ctx)) {
        session_free(s);
        return NULL;
    }
    r->ttft_ms = clock_since_s(start) * 1e3;
    return s;
}

static bool measure_rates(struct bench *b, struct session *s, struct bench_report *r)
{
    const struct bench_options *o = b->o;

    return (o->prefill == 0 || repeat(b, s, run_prefill, o->prefill, &r->prefill)) &&
           (o->decode == 0 || repeat(b, s, run_decode, o->decode, &r->decode)) &&
           (o->lanes == 0 || o->decode == 0 ||
            repeat(b, s, run_lanes, o->lanes * o->decode, &r->lanes)) &&
           (!o->uncached || o->decode == 0 || run_uncached(b, s, r));
}

bool bench_measure(const struct bench_options *o, const char *path, struct model **model,
                   struct bench_report *r, struct error *err)
{
    struct bench b = {.o = o, .ctx = context_for(o), .err = err};
    struct session *s = measure_start(&b, path, r);
    bool ok = s != NULL && measure_rates(&b, s, r);

    session_free(s);
    if (ok) {
        const struct model_info *info = model_get_info(b.m);
        r->peak_rss_mb = peak_rss_mb(); /* before the block that the stream reads */
        r->weights_mb = (double)info->weight_bytes / 1e6;
        r->kv_bytes_per_token =
            model_ledger(b.m, b.ctx, (enum cache_type)o->cache_type).bytes_per_token;
        if (o->decode > 0) {
            r->stream_gbps = measure_stream(model_threads(b.m));
            r->decode_limit = r->stream_gbps * 1e9 / bytes_per_token(&b, r);
        }
    } else {
        model_close(b.m);
        b.m = NULL;
    }
    free(b.ids);
    *model = b.m;
    return ok;
}
