/* Guarded maps: a mapped file that shrinks under the program gives an error instead of SIGBUS.
 *
 * A fault beyond the end of a guarded file is answered by laying zeroed memory over the rest of the
 * map and marking the guard as damaged: the reader, whichever thread it is, goes on with zeros and
 * asks mapguard_is_damaged when its piece of work is done. Nothing is unwound, so nothing leaks and
 * no thread is left waiting at a barrier. Readers must therefore stay within bounds whatever the
 * bytes say.
 *
 * Life cycle: mapguard_add after mmap -> ... -> mapguard_remove before munmap. Any thread. */
#ifndef FADER_ENGINE_MAPGUARD_H
#define FADER_ENGINE_MAPGUARD_H

#include <stdbool.h>
#include <stddef.h>

enum { MAPGUARD_MAX = 512 }; /* maps at once */

/* Guards [start, start + size), page-aligned. Returns its handle, or -1 when there are
 * MAPGUARD_MAX. Takes SIGBUS over, if this process's handler is not mapguard's yet, and chains to
 * what was there. */
int mapguard_add(void *start, size_t size);
void mapguard_remove(int guard);
bool mapguard_is_damaged(int guard);

/* For a SIGBUS handler that is installed later by someone else: call this first, with si_addr.
 * True: it was a guarded map and is dealt with, return from the handler. Async-signal-safe. */
bool mapguard_catch(void *address);

#endif
