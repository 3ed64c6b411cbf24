#include "config.h"

#include "engine/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Spinning is counted in pauses of some 40 cycles. The bound doubles when a wait ends by spinning
 * in its last half, and halves when it was in vain: on cores of our own barriers never sleep, on
 * shared ones they soon stop burning the time of whoever is waited for. */
enum { SPIN_MIN = 64, SPIN_MAX = 4096, CACHE_LINE = 64 };

/* The barrier is one word, as each cache line that goes from core to core costs a worker's wait:
 * how many have arrived, whether someone sleeps, and which phase is open, which the last to arrive
 * writes together with its verdict. */
enum { ARRIVED = 127, SLEEPING = 128, STOPPED = 256, PHASE = 512 };

_Static_assert((int)POOL_THREADS_MAX <= (int)ARRIVED, "all can arrive");

/* Tasks next .. end - 1 of one worker; the owner and thieves take from the front. */
struct task_range {
    _Alignas(CACHE_LINE) atomic_size_t next;
    size_t end;
};

struct worker {
    _Alignas(CACHE_LINE) struct pool *pool;
    int index;
    unsigned phase;   /* PHASE times the phases that this worker has seen, modulo the word */
    unsigned spin;    /* its present bound */
    size_t next, end; /* tasks that it has claimed and not yet been given */
    pthread_t thread;
};

/* A worker fills its range for the next phase before it arrives, while others may still look for
 * tasks of this one: hence two of each. */
struct pool {
    int n;
    pool_job job; /* NULL: leave */
    void *ctx;
    const atomic_bool *cancel;
    atomic_bool stop; /* sticky for the rest of the job: someone saw the cancel */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Alignas(CACHE_LINE) atomic_uint barrier;
    struct task_range range[2][POOL_THREADS_MAX];
    struct worker worker[POOL_THREADS_MAX];
};

static void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- barrier -------------------------------------------------------------------------------- */

/* Whether the word shows another phase than the one that began with `old`. */
static bool opened(unsigned word, unsigned old)
{
    return word / PHASE != old / PHASE;
}

static unsigned barrier_sleep(struct pool *p, unsigned old)
{
    pthread_mutex_lock(&p->lock);
    unsigned word = atomic_load(&p->barrier);
    while (!opened(word, old)) {
        /* Who opens the phase sees the flag, and takes the lock to wake those who wait. */
        if ((word & SLEEPING) != 0 ||
            atomic_compare_exchange_strong(&p->barrier, &word, word | SLEEPING))
            pthread_cond_wait(&p->wake, &p->lock);
        word = atomic_load(&p->barrier);
    }
    pthread_mutex_unlock(&p->lock);
    return word;
}

/* Returns the word that opened the phase. */
static unsigned barrier_wait(struct worker *w, unsigned old)
{
    struct pool *p = w->pool;

    for (unsigned i = 0; i < w->spin; i++) {
        unsigned word = atomic_load_explicit(&p->barrier, memory_order_acquire);
        if (opened(word, old)) {
            if (i > w->spin / 2 && w->spin < SPIN_MAX)
                w->spin *= 2;
            return word;
        }
        spin_pause();
    }
    if (w->spin > SPIN_MIN)
        w->spin /= 2;
    return barrier_sleep(p, old);
}

/* By the last to arrive. */
static unsigned barrier_open(struct pool *p, unsigned old)
{
    bool stop = atomic_load_explicit(&p->stop, memory_order_relaxed) ||
                (p->cancel != NULL && atomic_load_explicit(p->cancel, memory_order_relaxed));
    unsigned word = old / PHASE * PHASE + PHASE + (stop ? STOPPED : 0);

    if ((atomic_exchange_explicit(&p->barrier, word, memory_order_acq_rel) & SLEEPING) != 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
    return word;
}

static struct task_range *range_of(struct worker *w, int i)
{
    return &w->pool->range[w->phase / PHASE % 2][i];
}

static void fill_range(struct worker *w, size_t n_tasks)
{
    struct task_range *r = range_of(w, w->index);
    size_t i = (size_t)w->index, n = (size_t)w->pool->n;

    atomic_store_explicit(&r->next, n_tasks * i / n, memory_order_relaxed);
    r->end = n_tasks * (i + 1) / n;
}

bool worker_phase(struct worker *w, size_t n_tasks)
{
    struct pool *p = w->pool;

    w->phase += PHASE;
    fill_range(w, n_tasks);
    unsigned word = atomic_fetch_add_explicit(&p->barrier, 1, memory_order_acq_rel);
    if ((int)(word & ARRIVED) == p->n - 1)
        word = barrier_open(p, word);
    else
        word = barrier_wait(w, word);
    w->next = w->end = 0;
    return (word & STOPPED) == 0;
}

static bool cancelled(struct pool *p)
{
    if (p->cancel == NULL || !atomic_load_explicit(p->cancel, memory_order_relaxed))
        return false;
    atomic_store_explicit(&p->stop, true, memory_order_relaxed);
    return true;
}

/* Claims the next tasks of a range: half of what is left, for an atomic exchange stops the stream
 * of loads that a task lives on. */
static bool claim(struct worker *w, struct task_range *r)
{
    /* A plain look first: an exhausted range costs its owner no cache line. */
    size_t next = atomic_load_explicit(&r->next, memory_order_relaxed);
    if (next >= r->end)
        return false;
    size_t n = (r->end - next + 1) / 2;
    w->next = atomic_fetch_add_explicit(&r->next, n, memory_order_relaxed);
    w->end = w->next + n < r->end ? w->next + n : r->end;
    return w->next < w->end;
}

bool worker_next(struct worker *w, size_t *task)
{
    struct pool *p = w->pool;
    bool found = w->next < w->end;

    if (cancelled(p))
        return false;
    for (int i = 0; i < p->n && !found; i++)
        found = claim(w, range_of(w, (w->index + i) % p->n));
    if (found)
        *task = w->next++;
    return found;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* A job lies between two barriers: the first publishes it, the second ends it. */
static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;

    /* pool_new holds the lock until it knows how many threads there are. */
    pthread_mutex_lock(&p->lock);
    pthread_mutex_unlock(&p->lock);
    for (;;) {
        worker_phase(w, 0);
        if (p->job == NULL)
            return NULL;
        p->job(p->ctx, w);
        worker_phase(w, 0);
    }
}

bool pool_run(struct pool *p, pool_job job, void *ctx, const atomic_bool *cancel)
{
    struct worker *w = &p->worker[0];

    p->job = job;
    p->ctx = ctx;
    p->cancel = cancel;
    atomic_store_explicit(&p->stop, false, memory_order_relaxed);
    worker_phase(w, 0);
    job(ctx, w);
    return worker_phase(w, 0);
}

int worker_index(const struct worker *w)
{
    return w->index;
}

int pool_threads(const struct pool *p)
{
    return p->n;
}

/* ---- life cycle ----------------------------------------------------------------------------- */

/* Starts threads 1 .. n - 1 with every signal blocked but those that report a fault of
 * their own. */
static int start_threads(struct pool *p)
{
    sigset_t all, old;
    int failed = 0, i;

    sigfillset(&all);
    for (size_t k = 0; k < 4; k++)
        sigdelset(&all, (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL}[k]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_mutex_lock(&p->lock);
    for (i = 1; i < p->n && failed == 0; i++)
        failed = pthread_create(&p->worker[i].thread, NULL, work, &p->worker[i]);
    if (failed != 0)
        p->n = i - 1; /* those that run; pool_free must wait for no other */
    pthread_mutex_unlock(&p->lock);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed;
}

struct pool *pool_new(int threads, struct error *err)
{
    if (threads < 1 || threads > POOL_THREADS_MAX) {
        error_set(err, "threads %d: not between 1 and %d", threads, POOL_THREADS_MAX);
        return NULL;
    }
    struct pool *p = aligned_alloc(CACHE_LINE, sizeof *p);
    if (p == NULL) {
        error_set(err, "threads: no memory");
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->n = threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 0; i < threads; i++) {
        p->worker[i].pool = p;
        p->worker[i].index = i;
        p->worker[i].spin = SPIN_MAX / 4;
    }
    int failed = start_threads(p);
    if (failed != 0) {
        error_set_errno(err, failed, "thread %d of %d", p->n + 1, threads);
        pool_free(p);
        return NULL;
    }
    return p;
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    p->job = NULL;
    p->cancel = NULL;
    worker_phase(&p->worker[0], 0);
    for (int i = 1; i < p->n; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p);
}

/* ---- the machine ---------------------------------------------------------------------------- */

/* The lowest hyper-thread on the core of `cpu`, or `cpu` where the system does not say. */
static size_t first_sibling(size_t cpu)
{
    char path[96];
    size_t first = cpu;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
             cpu);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return cpu;
    if (fscanf(f, "%zu", &first) != 1)
        first = cpu;
    fclose(f);
    return first;
}

int pool_cores(void)
{
    int n = 0;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        return online < 1 ? 1 : online > POOL_THREADS_MAX ? POOL_THREADS_MAX : (int)online;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        /* A sibling counts only when the first of its core is not ours to use. */
        size_t first = first_sibling(cpu);
        if (first == cpu || first >= CPU_SETSIZE || !CPU_ISSET(first, &set))
            n++;
    }
    return n < 1 ? 1 : n > POOL_THREADS_MAX ? POOL_THREADS_MAX : n;
}
