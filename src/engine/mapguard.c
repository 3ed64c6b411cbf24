#include "config.h"

#include "engine/mapguard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The handler reads this table, so it is made of lock-free atomics and never moves; `lock` orders
 * only those who add and remove. An entry's bounds are written before its state says that they
 * count. */
enum guard_state { GUARD_FREE, GUARD_WHOLE, GUARD_DAMAGED };

static struct guard {
    atomic_uintptr_t start, end;
    atomic_int state;
} guards[MAPGUARD_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction chained;
static uintptr_t page_size;

/* Zeroes for the whole rest of the map: a file that was cut is gone from the fault to its end.
 * Pages before the new end that were laid over stay zero should the file grow again: the guard is
 * damaged. */
static bool lay_zeros(uintptr_t from, uintptr_t end)
{
    void *at = (void *)from;

    return mmap(at, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

bool mapguard_catch(void *address)
{
    uintptr_t at = (uintptr_t)address;
    int saved = errno;

    for (size_t i = 0; i < MAPGUARD_MAX; i++) {
        struct guard *g = &guards[i];
        if (atomic_load(&g->state) == GUARD_FREE)
            continue;
        uintptr_t start = atomic_load(&g->start), end = atomic_load(&g->end);
        if (at < start || at >= end)
            continue;
        atomic_store(&g->state, GUARD_DAMAGED);
        bool ok = lay_zeros(at & ~(page_size - 1), end);
        errno = saved;
        return ok;
    }
    return false;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    if (mapguard_catch(info->si_addr))
        return;
    if ((chained.sa_flags & SA_SIGINFO) != 0) {
        chained.sa_sigaction(number, info, context);
    } else if (chained.sa_handler != SIG_DFL && chained.sa_handler != SIG_IGN) {
        chained.sa_handler(number);
    } else {
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(number, &dfl, NULL); /* the access is repeated, and ends the process */
    }
}

static void take_signal(void)
{
    struct sigaction now,
        ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) != 0)
        return;
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error)
        return;
    chained = now;
    sigaction(SIGBUS, &ours, NULL);
}

int mapguard_add(void *start, size_t size)
{
    int found = -1;

    pthread_mutex_lock(&lock);
    take_signal();
    for (int i = 0; i < MAPGUARD_MAX && found < 0; i++) {
        if (atomic_load(&guards[i].state) != GUARD_FREE)
            continue;
        uintptr_t end = (uintptr_t)start + ((size + page_size - 1) & ~(page_size - 1));
        atomic_store(&guards[i].start, (uintptr_t)start);
        atomic_store(&guards[i].end, end);
        atomic_store(&guards[i].state, GUARD_WHOLE);
        found = i;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void mapguard_remove(int guard)
{
    pthread_mutex_lock(&lock);
    atomic_store(&guards[guard].state, GUARD_FREE);
    pthread_mutex_unlock(&lock);
}

bool mapguard_is_damaged(int guard)
{
    return atomic_load(&guards[guard].state) == GUARD_DAMAGED;
}
