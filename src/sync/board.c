#include "config.h"

#include "sync/board.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sync/park.h"

/* `between` holds the index of the slot that neither side owns, and FRESH while it is newer than
 * the reader's. The writer fills its own slot and exchanges it for that one; the reader exchanges
 * its own for a fresh one. Nobody ever touches a slot that the other owns, so the copies need no
 * atomics: the exchange hands them over (release by one side, acquire by the other).
 *
 * Sleeping: the reader stores `sleeping`, then looks at `between` and `interrupted`; the other side
 * stores those, then looks at `sleeping`. All are sequentially consistent, so one sees the other.
 */

enum { FRESH = 4, INDEX = 3 };

struct board {
    size_t payload;
    char *slots[3];
    unsigned writers, readers; /* indices of the slots that each side owns */
    atomic_uint between;
    atomic_bool sleeping, interrupted;
    struct park park;
};

struct board *board_new(size_t payload, const void *initial)
{
    struct board *b = mem_zalloc(sizeof *b);

    b->payload = payload;
    for (int i = 0; i < 3; i++)
        b->slots[i] = mem_dup(initial, payload);
    b->writers = 0;
    b->readers = 1;
    atomic_init(&b->between, 2);
    atomic_init(&b->sleeping, false);
    atomic_init(&b->interrupted, false);
    park_init(&b->park);
    return b;
}

void board_free(struct board *b)
{
    if (b == NULL)
        return;
    park_done(&b->park);
    for (int i = 0; i < 3; i++)
        free(b->slots[i]);
    free(b);
}

static void rouse(struct board *b)
{
    if (atomic_load(&b->sleeping))
        park_post(&b->park);
}

void board_publish(struct board *b, const void *snapshot)
{
    memcpy(b->slots[b->writers], snapshot, b->payload);
    b->writers = atomic_exchange(&b->between, b->writers | FRESH) & INDEX;
    rouse(b);
}

bool board_read(struct board *b, void *out)
{
    bool fresh = (atomic_load(&b->between) & FRESH) != 0;

    if (fresh)
        b->readers = atomic_exchange(&b->between, b->readers) & INDEX;
    memcpy(out, b->slots[b->readers], b->payload);
    return fresh;
}

static bool has_news(struct board *b)
{
    return atomic_exchange(&b->interrupted, false) || (atomic_load(&b->between) & FRESH) != 0;
}

void board_wait(struct board *b, int64_t timeout_ns)
{
    int64_t until = timeout_ns < 0 ? -1 : clock_now_ns() + timeout_ns;
    unsigned ticket = park_ticket(&b->park);

    atomic_store(&b->sleeping, true);
    if (!has_news(b)) {
        park_wait(&b->park, ticket, until);
        atomic_store(&b->interrupted, false);
    }
    atomic_store(&b->sleeping, false);
}

void board_interrupt(struct board *b)
{
    atomic_store(&b->interrupted, true);
    rouse(b);
}
