/* The request slot: hands one thing at a time, with all that it owns, from one thread to another.
 *
 * The taker has other things to wait for as well (the board), and a thread can sleep in one place
 * only: so it looks into the slot without waiting, and whoever fills it rouses the taker where it
 * sleeps (board_interrupt). */
#ifndef FADER_SYNC_SLOT_H
#define FADER_SYNC_SLOT_H

#include <stdbool.h>
#include <stddef.h>

struct slot;

struct slot *slot_new(size_t size); /* bytes of what is handed over */
void slot_free(struct slot *s);     /* must be empty, or hold nothing that owns */

bool slot_put(struct slot *s, const void *item); /* false when it is not empty */
bool slot_take(struct slot *s, void *item);      /* false when it is empty */

/* Puts `item` in place of what is there, which goes to `old`: true when there was something. */
bool slot_replace(struct slot *s, const void *item, void *old);

#endif
