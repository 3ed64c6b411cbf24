#include "config.h"

#include "engine/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/loaded.h"

enum {
    PIECE = 1 << 20,          /* bytes that a worker reads at a time */
    STREAM_LEAST = 512 << 20, /* bytes of one measurement */
    AHEAD = 512,              /* bytes */
    PEAK_ROUNDS = 1 << 14,    /* of the inner loop, in one task */
    PEAK_TASKS = 16,          /* of each thread */
    PEAK_REPEATS = 5
};

/* ---- the matrices ---------------------------------------------------------------------------- */

/* Those that every token is multiplied by: seven a layer and, last, the head. */
struct matrices {
    const struct matrix **items; /* [n], owned */
    size_t n;
};

static struct matrices list_matrices(const struct model *m)
{
    const struct loaded *l = m->loaded;
    struct matrices list = {.items =
                                mem_array((size_t)m->info.n_layer * 7 + 1, sizeof *list.items)};

    for (int32_t i = 0; i < m->info.n_layer; i++) {
        const struct loaded_layer *y = &l->layers[i];
        const struct matrix *all[] = {&y->q, &y->k, &y->v, &y->out, &y->gate, &y->up, &y->down};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            list.items[list.n++] = all[k];
    }
    list.items[list.n++] = &l->head;
    return list;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct stream {
    const struct loaded *loaded;
    struct matrices matrices;
    size_t passes;
    atomic_uint_fast64_t sum; /* so that nothing is read in vain */
};

/* Two cache lines at a time, in the widest registers that every machine has: words of 64 bits would
 * keep a core busier than its memory does. */
static uint64_t read_bytes(const uint8_t *p, size_t bytes)
{
    typedef uint64_t pair __attribute__((vector_size(16), aligned(1), may_alias));
    pair a = {0}, b = {0}, c = {0}, d = {0};

    for (size_t i = 0; i + 128 <= bytes; i += 128) {
        const pair *x = (const pair *)(p + i);
        __builtin_prefetch(p + i + AHEAD);
        __builtin_prefetch(p + i + AHEAD + 64);
        a ^= x[0] ^ x[4];
        b ^= x[1] ^ x[5];
        c ^= x[2] ^ x[6];
        d ^= x[3] ^ x[7];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1];
}

/* One pass: a single phase over all pieces of the block, or, when the weights are where the file
 * has them, one for each tensor. */
static void read_once(const struct stream *s, struct worker *w, uint64_t *sum)
{
    const struct loaded *l = s->loaded;
    size_t n = l->weights != NULL ? 1 : s->matrices.n, task;

    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = s->matrices.items[i]->source;
        const uint8_t *data = l->weights != NULL ? l->weights : t->data;
        size_t bytes = l->weights != NULL ? l->weights_bytes : (size_t)t->bytes;
        worker_phase(w, (bytes + PIECE - 1) / PIECE);
        while (worker_next(w, &task)) {
            size_t at = task * PIECE, left = bytes - at;
            *sum ^= read_bytes(data + at, left < PIECE ? left : PIECE);
        }
    }
}

static void read_stream(void *ctx, struct worker *w)
{
    struct stream *s = ctx;
    uint64_t sum = 0;

    for (size_t i = 0; i < s->passes; i++)
        read_once(s, w, &sum);
    atomic_fetch_xor(&s->sum, sum);
}

bool machine_measure_stream(struct model *m, double *bytes, struct error *err)
{
    size_t total = (size_t)model_decode_bytes(m);
    struct stream s = {.loaded = m->loaded,
                       .matrices = list_matrices(m),
                       .passes = (STREAM_LEAST + total - 1) / total};

    if (s.loaded->weights != NULL)
        total = s.loaded->weights_bytes;
    int64_t start = clock_now_ns();
    pool_run(s.loaded->pool, read_stream, &s, NULL);
    *bytes = (double)(total * s.passes) / clock_since_s(start);
    free(s.matrices.items);
    return gguf_check_whole(m->file, err);
}

/* ---- computing ------------------------------------------------------------------------------- */

struct peak_job {
    float (*loop)(uint32_t rounds);
    size_t n_tasks;
    _Atomic float sum;
};

static void run_peak(void *ctx, struct worker *w)
{
    struct peak_job *job = ctx;
    float sum = 0;
    size_t task;

    worker_phase(w, job->n_tasks);
    while (worker_next(w, &task))
        sum += job->loop(PEAK_ROUNDS);
    atomic_store(&job->sum, sum);
}

static double measure_peak(struct pool *pool, float (*loop)(uint32_t), double per_round)
{
    struct peak_job job = {.loop = loop, .n_tasks = (size_t)pool_threads(pool) * PEAK_TASKS};
    double best = 0.0;

    for (int i = 0; i < PEAK_REPEATS; i++) {
        int64_t start = clock_now_ns();
        pool_run(pool, run_peak, &job, NULL);
        double rate = per_round * PEAK_ROUNDS * (double)job.n_tasks / clock_since_s(start);
        best = rate > best ? rate : best;
    }
    return best;
}

void machine_measure_peaks(struct model *m, double *codes, double *floats)
{
    const struct machine_peak *peak = machine_find_peak(m->loaded->kernels->name);

    *codes = measure_peak(m->loaded->pool, peak->codes, peak->codes_per_round);
    *floats = measure_peak(m->loaded->pool, peak->floats, peak->floats_per_round);
}

/* ---- work ------------------------------------------------------------------------------------ */

struct work model_work(const struct model *m, int32_t first, int32_t n, enum cache_type type)
{
    struct matrices list = list_matrices(m);
    const struct model_info *info = &m->info;
    double cached = first, tokens = n;
    struct work w = {.bytes = (double)model_decode_bytes(m) +
                              cached * (double)model_ledger(m, 1, type).bytes_per_token};

    for (size_t i = 0; i < list.n; i++) {
        const struct matrix *x = list.items[i];
        double products = (double)x->rows * (double)x->cols * (i + 1 < list.n ? tokens : 1.0);
        *(matrix_reads_floats(x) ? &w.floats : &w.codes) += products;
    }
    /* Token i sees the cache, those before it, and itself: a product with K, and one with V. */
    w.floats += 2.0 * info->n_layer * info->n_head * info->head_dim * tokens *
                (cached + (tokens + 1.0) / 2.0);
    free(list.items);
    return w;
}

double machine_seconds(const struct machine *machine, const struct work *w, bool *by_memory)
{
    double reading = w->bytes / machine->bytes;
    double computing = w->codes / machine->codes + w->floats / machine->floats;

    if (by_memory != NULL)
        *by_memory = reading >= computing;
    return reading >= computing ? reading : computing;
}
