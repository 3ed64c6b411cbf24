/* A place to sleep, for the slow paths of ring and board: a count of posts, a mutex and a
 * condition.
 *
 * The sleeper takes a ticket, says (in an atomic of its own) that it is about to sleep, looks once
 * more for what it waits for, and sleeps until a post that came after the ticket. Whoever brings
 * something posts only where that atomic says so. No post between ticket and sleep is lost. */
#ifndef FADER_SYNC_PARK_H
#define FADER_SYNC_PARK_H

#include <pthread.h>
#include <stdint.h>

struct park {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* on the monotonic clock */
    unsigned posts;      /* under the mutex */
};

void park_init(struct park *p);
void park_done(struct park *p);
/* Taken before the last look for work: a post after it is not missed. */
unsigned park_ticket(struct park *p);
/* Until a post after the ticket, or clock_now_ns reaches `until_ns` (< 0: never). */
void park_wait(struct park *p, unsigned ticket, int64_t until_ns);
void park_post(struct park *p);

#endif
