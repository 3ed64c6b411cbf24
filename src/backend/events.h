/* Events on their way: struct event in front, its text behind, in the bytes of a ring
 * (sync/ring.h). Only the part of the union that the type uses, and only the candidates that there
 * are, take room.
 *
 * One thread puts, one takes; putting rouses the taker through the wake pipe. */
#ifndef FADER_BACKEND_EVENTS_H
#define FADER_BACKEND_EVENTS_H

#include "backend/backend.h"
#include "sync/ring.h"
#include "sync/wake.h"

enum { EVENTS_RING = 256 << 10, EVENTS_TEXT_MAX = 16 << 10 }; /* bytes; longer text is cut */

struct event_queue {
    struct ring *ring;
    struct wake wake;
    char *buffer; /* the taker's: the event taken last */
};

/* False with `err` when the wake pipe cannot be had; then there is nothing to do away with. */
bool events_init(struct event_queue *q, struct error *err);
void events_done(struct event_queue *q);

/* Blocks while the ring is full. False when that was interrupted: the event was not put. */
bool events_put(struct event_queue *q, const struct event *e);
bool events_take(struct event_queue *q, struct event *out); /* false: there is none */

#endif
