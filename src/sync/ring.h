/* A lock-free byte ring between one producer and one consumer thread.
 *
 * Records are length-prefixed; one is at most a quarter of the ring. When there is no room the
 * producer sets a waiting flag, looks again, and sleeps (futex-backed condition) until the consumer
 * has drained or ring_interrupt is called: no record is ever lost. The consumer never waits; it is
 * told by the wake pipe (sync/wake.h). Capacity may be any number >= RING_MIN, not only a power of
 * two. */
#ifndef FADER_SYNC_RING_H
#define FADER_SYNC_RING_H

#include <stdbool.h>
#include <stddef.h>

struct ring;
enum { RING_MIN = 64 };

struct ring *ring_new(size_t capacity);       /* bytes, at least RING_MIN */
void ring_free(struct ring *r);               /* both threads must have left */
size_t ring_max_record(const struct ring *r); /* bytes */

/* Producer. Writes one record in pieces (header, then body): n_parts buffers end to end. Blocks
 * while full. False only when interrupted while it waited, then nothing was written. */
struct ring_part {
    const void *data;
    size_t len;
};
bool ring_write(struct ring *r, const struct ring_part *parts, size_t n_parts);

/* Consumer. Copies the oldest record into `out` (ring_max_record bytes) and frees its room. Returns
 * its length, or -1 when the ring is empty. */
ptrdiff_t ring_read(struct ring *r, void *out);

/* Any thread: makes a producer that waits, or will wait, give up, until ring_resume. */
void ring_interrupt(struct ring *r);
void ring_resume(struct ring *r); /* producer, between answers */

#endif
