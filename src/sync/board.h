/* The parameter board: the newest of a stream of immutable snapshots, from one writer to one
 * reader, without locks and without tearing. A triple buffer: writer and reader each own one slot,
 * the third changes hands by an atomic exchange of its index. */
#ifndef FADER_SYNC_BOARD_H
#define FADER_SYNC_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct board;

struct board *board_new(size_t payload, const void *initial); /* copies `payload` bytes */
void board_free(struct board *b);

/* Writer: publishes a snapshot. Never waits. Wakes a reader in board_wait. */
void board_publish(struct board *b, const void *snapshot);

/* Reader: copies the newest snapshot out. True when it is newer than the one read before. */
bool board_read(struct board *b, void *out);

/* Reader: sleeps until something newer than last read is published, board_interrupt is called, or
 * `timeout_ns` (< 0: none) has passed. Uses no CPU. */
void board_wait(struct board *b, int64_t timeout_ns);

/* Any thread: ends a board_wait that is under way or to come. */
void board_interrupt(struct board *b);

#endif
