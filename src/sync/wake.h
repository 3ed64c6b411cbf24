/* The wake pipe: rouses a thread that sleeps in poll(2), and costs nothing while it does not. The
 * sleeper says that it is about to (wake_arm), looks once more for work, and polls; the other side
 * writes one byte only when it finds the arm set (wake_signal). A byte that comes just after the
 * disarm ends the next poll early: the sleeper must look for work, not believe the pipe. */
#ifndef FADER_SYNC_WAKE_H
#define FADER_SYNC_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct wake {
    int read_fd, write_fd; /* non-blocking, close-on-exec */
    atomic_bool armed;
};

bool wake_init(struct wake *w, struct error *err); /* false: no pipe is to be had */
void wake_done(struct wake *w);
void wake_arm(struct wake *w);    /* sleeper, before its last look */
void wake_disarm(struct wake *w); /* sleeper, after poll: empties the pipe */
void wake_signal(struct wake *w); /* any thread; async-signal-safe */

#endif
