/* The compute pool: a fixed set of threads that run one job together, in phases.
 *
 * pool_run hands a function to every worker; the calling thread is worker 0 and returns when all
 * are done. Inside the job, worker_phase is a barrier that also deals out the tasks of the phase
 * that follows it:
 *
 *     worker_phase(w, n_tasks);              // every worker, with the same number
 *     while (worker_next(w, &task)) ...      // each task goes to exactly one worker
 *
 * A worker first takes the tasks of its own range, then those that slower workers have not claimed:
 * half of what is left each time, so all end within a task of each other, and a core that another
 * process steals holds back half of its range at most. What a task computes may not depend on who
 * runs it.
 *
 * Barriers spin for a bounded, self-adjusting time and then sleep; between jobs the threads sleep,
 * an idle pool uses no CPU. All asynchronous signals are blocked in the threads.
 *
 * Life cycle: pool_new -> pool_run ... (one caller at a time) -> pool_free. */
#ifndef FADER_ENGINE_POOL_H
#define FADER_ENGINE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct pool;
struct worker;

enum { POOL_THREADS_MAX = 64 };

typedef void (*pool_job)(void *ctx, struct worker *w);

/* `threads` 1 - POOL_THREADS_MAX, the caller's own included. NULL with `err` when the system gives
 * none. */
struct pool *pool_new(int threads, struct error *err);
void pool_free(struct pool *p);
int pool_threads(const struct pool *p);

/* Runs `job` on all workers. With `cancel` (may be NULL), once it reads true no worker_next gives
 * another task, and the next worker_phase returns false everywhere. False when the job was
 * cancelled. */
bool pool_run(struct pool *p, pool_job job, void *ctx, const atomic_bool *cancel);

int worker_index(const struct worker *w);

/* Waits for all workers, then deals out tasks 0 .. n_tasks - 1. False: cancelled, leave the job;
 * every worker gets the same answer. What was written before it is visible to all after it. */
bool worker_phase(struct worker *w, size_t n_tasks);

/* The next task for this worker, or false when there is none left. */
bool worker_next(struct worker *w, size_t *task);

/* Cores that this process may use; of hyper-threads that share one, one counts. At least 1. */
int pool_cores(void);

#endif
