/* The pool: tasks, phases, cancelling, and what its threads do while there is nothing to do. */
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/pool.h"

enum { TASKS = 257, PHASES = 200, TRIES = 50000 };

struct counting {
    atomic_int taken[TASKS];
    int sum[PHASES]; /* plain: barriers must order it */
    size_t n;
};

/* In each phase every task is taken once; one task then reads what all wrote in the phase before.
 */
static void count(void *ctx, struct worker *w)
{
    struct counting *c = ctx;
    size_t task;

    for (int phase = 0; phase < PHASES; phase++) {
        if (!worker_phase(w, c->n))
            fail();
        while (worker_next(w, &task))
            atomic_fetch_add_explicit(&c->taken[task], 1, memory_order_relaxed);
        if (!worker_phase(w, 1))
            fail();
        while (worker_next(w, &task)) {
            c->sum[phase] = phase == 0 ? 0 : c->sum[phase - 1];
            for (size_t i = 0; i < c->n; i++)
                c->sum[phase] += atomic_load_explicit(&c->taken[i], memory_order_relaxed);
        }
    }
}

static void test_tasks(void **ctx)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, TASKS};

    (void)ctx;
    for (int threads = 1; threads <= 5; threads++) {
        struct error err;
        struct pool *p = pool_new(threads, &err);
        assert_non_null(p);
        assert_int_equal(pool_threads(p), threads);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            static struct counting c;
            memset(&c, 0, sizeof c);
            c.n = sizes[i];
            assert_true(pool_run(p, count, &c, NULL));
            for (size_t t = 0; t < c.n; t++)
                assert_int_equal(atomic_load(&c.taken[t]), PHASES);
            assert_int_equal(c.sum[PHASES - 1], (int)c.n * PHASES * (PHASES + 1) / 2);
        }
        pool_free(p);
    }
}

struct waiting {
    atomic_int done;
    int tasks;
    bool in_vain;
};

/* The first task waits for all others: some of them are in its worker's own range. */
static void hold(void *ctx, struct worker *w)
{
    struct waiting *s = ctx;
    size_t task;

    worker_phase(w, (size_t)s->tasks);
    while (worker_next(w, &task)) {
        for (int i = 0; task == 0 && atomic_load(&s->done) < s->tasks - 1; i++) {
            s->in_vain = i == TRIES * 10;
            if (s->in_vain)
                break;
            sched_yield();
        }
        atomic_fetch_add(&s->done, 1);
    }
}

static void test_stealing(void **ctx)
{
    (void)ctx;
    for (int threads = 2; threads <= 4; threads++) {
        struct error err;
        struct pool *p = pool_new(threads, &err);
        struct waiting s = {.tasks = 2 * threads};
        assert_non_null(p);
        assert_true(pool_run(p, hold, &s, NULL));
        assert_false(s.in_vain);
        assert_int_equal(atomic_load(&s.done), s.tasks);
        pool_free(p);
    }
}

struct stopping {
    atomic_bool cancel;
    atomic_int begun, left;
};

/* The task that sets the flag is the last that anyone but those under way begins. */
static void stop(void *ctx, struct worker *w)
{
    struct stopping *s = ctx;
    size_t task;

    worker_phase(w, 1000000);
    while (worker_next(w, &task)) {
        if (atomic_fetch_add(&s->begun, 1) == 20)
            atomic_store(&s->cancel, true);
    }
    if (worker_phase(w, 1))
        fail();
    atomic_fetch_add(&s->left, 1);
}

static void test_cancel(void **ctx)
{
    (void)ctx;
    for (int threads = 1; threads <= 3; threads++) {
        struct error err;
        struct pool *p = pool_new(threads, &err);
        struct stopping s = {0};
        assert_non_null(p);
        assert_false(pool_run(p, stop, &s, &s.cancel));
        assert_int_equal(atomic_load(&s.left), threads);
        assert_true(atomic_load(&s.begun) < 1000000);
        /* The next job is not touched by it. */
        static struct counting c;
        memset(&c, 0, sizeof c);
        c.n = 3;
        assert_true(pool_run(p, count, &c, NULL));
        pool_free(p);
    }
}

static void read_mask(void *ctx, struct worker *w)
{
    sigset_t *masks = ctx;

    pthread_sigmask(SIG_SETMASK, NULL, &masks[worker_index(w)]);
}

/* Signals go to the program's own threads. */
static void test_signals(void **ctx)
{
    struct error err;
    struct pool *p = pool_new(3, &err);
    sigset_t masks[3];

    (void)ctx;
    assert_non_null(p);
    assert_true(pool_run(p, read_mask, masks, NULL));
    for (int i = 1; i < 3; i++) {
        assert_true(sigismember(&masks[i], SIGINT));
        assert_true(sigismember(&masks[i], SIGWINCH));
        assert_true(sigismember(&masks[i], SIGTERM));
        assert_false(sigismember(&masks[i], SIGSEGV));
    }
    assert_false(sigismember(&masks[0], SIGINT));
    pool_free(p);
}

/* Threads of this process but the caller that are not asleep; -1 where /proc does not say. */
static int awake(void)
{
    char path[300], line[512];
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    int n = 0;

    if (dir == NULL)
        return -1;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *f = fopen(path, "r");
        if (f == NULL)
            continue;
        if (fgets(line, sizeof line, f) != NULL) {
            const char *state = strrchr(line, ')');
            n += state != NULL && state[2] != 'S';
        }
        fclose(f);
    }
    closedir(dir);
    return n;
}

/* After a job all threads come to rest; work wakes them again. */
static void test_idle(void **ctx)
{
    struct error err;
    struct pool *p = pool_new(4, &err);
    static struct counting c;

    (void)ctx;
    assert_non_null(p);
    for (int round = 0; round < 3; round++) {
        int n = -1;
        memset(&c, 0, sizeof c);
        c.n = 5;
        assert_true(pool_run(p, count, &c, NULL));
        for (int i = 0; i < TRIES && (n = awake()) > 0; i++)
            sched_yield();
        if (n < 0)
            skip();
        assert_int_equal(n, 0);
    }
    pool_free(p);
}

static void test_limits(void **ctx)
{
    struct error err;

    (void)ctx;
    assert_null(pool_new(0, &err));
    assert_null(pool_new(POOL_THREADS_MAX + 1, &err));
    assert_non_null(strstr(err.text, "threads"));
    assert_in_range(pool_cores(), 1, POOL_THREADS_MAX);
    pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks),  cmocka_unit_test(test_stealing),
        cmocka_unit_test(test_cancel), cmocka_unit_test(test_signals),
        cmocka_unit_test(test_idle),   cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
