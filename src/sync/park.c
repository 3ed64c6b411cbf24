#include "config.h"

#include "sync/park.h"

#include <errno.h>
#include <time.h>

void park_init(struct park *p)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&p->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->cond, &attr);
    pthread_condattr_destroy(&attr);
    p->posts = 0;
}

void park_done(struct park *p)
{
    pthread_cond_destroy(&p->cond);
    pthread_mutex_destroy(&p->mutex);
}

unsigned park_ticket(struct park *p)
{
    pthread_mutex_lock(&p->mutex);
    unsigned ticket = p->posts;
    pthread_mutex_unlock(&p->mutex);
    return ticket;
}

void park_wait(struct park *p, unsigned ticket, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    int result = 0;

    pthread_mutex_lock(&p->mutex);
    while (p->posts == ticket && result != ETIMEDOUT) {
        if (until_ns < 0)
            pthread_cond_wait(&p->cond, &p->mutex);
        else
            result = pthread_cond_timedwait(&p->cond, &p->mutex, &until);
    }
    pthread_mutex_unlock(&p->mutex);
}

void park_post(struct park *p)
{
    pthread_mutex_lock(&p->mutex);
    p->posts++;
    pthread_mutex_unlock(&p->mutex);
    pthread_cond_broadcast(&p->cond);
}
