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

/* Tasks begin .. end - 1 of one worker; the owner and thieves take from the front. */
struct task_range {
    _Alignas(CACHE_LINE) atomic_size_t next;
    size_t end;
};

struct worker {
    _Alignas(CACHE_LINE) struct pool *pool;
    int index;
    unsigned seen;    /* generation that this worker has passed */
    unsigned spin;    /* its present bound */
    size_t next, end; /* tasks that it has claimed and not yet been given */
    pthread_t thread;
};

struct pool {
    int n;
    pool_job job; /* NULL: leave */
    void *ctx;
    const atomic_bool *cancel;
    atomic_bool stop; /* sticky for the rest of the job: someone saw the cancel */
    bool stopped;     /* the barrier's verdict, written by its last arrival only */
    _Alignas(CACHE_LINE) atomic_int arrived;
    _Alignas(CACHE_LINE) atomic_uint generation;
    atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct task_range range[POOL_THREADS_MAX];
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

static void barrier_sleep(struct pool *p, unsigned old)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->generation) == old)
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void barrier_wait(struct worker *w)
{
    struct pool *p = w->pool;
    unsigned old = w->seen;

    for (unsigned i = 0; i < w->spin; i++) {
        if (atomic_load_explicit(&p->generation, memory_order_acquire) != old) {
            if (i > w->spin / 2 && w->spin < SPIN_MAX)
                w->spin *= 2;
            return;
        }
        spin_pause();
    }
    if (w->spin > SPIN_MIN)
        w->spin /= 2;
    barrier_sleep(p, old);
}

static void barrier_release(struct pool *p)
{
    atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
    atomic_fetch_add(&p->generation, 1);
    if (atomic_load(&p->sleepers) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
}

/* True for the last to come: it does what must be done alone, and then calls barrier_release. */
static bool barrier_arrive(struct worker *w)
{
    struct pool *p = w->pool;

    return atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) == p->n - 1;
}

static void deal(struct pool *p, size_t n_tasks)
{
    size_t n = (size_t)p->n;

    for (size_t i = 0; i < n; i++) {
        atomic_store_explicit(&p->range[i].next, n_tasks * i / n, memory_order_relaxed);
        p->range[i].end = n_tasks * (i + 1) / n;
    }
    p->stopped = atomic_load_explicit(&p->stop, memory_order_relaxed) ||
                 (p->cancel != NULL && atomic_load_explicit(p->cancel, memory_order_relaxed));
}

bool worker_phase(struct worker *w, size_t n_tasks)
{
    struct pool *p = w->pool;

    if (barrier_arrive(w)) {
        deal(p, n_tasks);
        barrier_release(p);
    } else {
        barrier_wait(w);
    }
    w->seen++;
    w->next = w->end = 0;
    return !p->stopped;
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
        found = claim(w, &p->range[(w->index + i) % p->n]);
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
