#include "config.h"

#include "sync/ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/park.h"

/* `head` and `tail` count all bytes ever read and written: 64 bits, so that they never come round,
 * and a capacity needs to be no power of two. A position in the buffer is a count modulo the
 * capacity; a record may be split at the buffer's end. The producer alone writes `tail`, the
 * consumer alone `head`; storing one hands the bytes before it to the other side.
 *
 * Sleeping: the producer stores `waiting`, then loads `head`; the consumer stores `head`, then
 * loads `waiting`. With sequential consistency at least one of them sees the other's store, so
 * either the producer finds the room or the consumer posts. The same holds for `interrupted`. */

typedef uint32_t prefix; /* the length in front of every record */

struct ring {
    size_t capacity;
    char *bytes;
    struct park park;
    atomic_bool interrupted;
    /* Each side's own line of the cache. */
    _Alignas(64) atomic_uint_fast64_t tail;
    atomic_bool waiting;
    uint64_t head_seen; /* the producer's copy: refreshed only when it shows no room */
    _Alignas(64) atomic_uint_fast64_t head;
};

struct ring *ring_new(size_t capacity)
{
    struct ring *r = aligned_alloc(64, sizeof *r);

    if (r == NULL)
        mem_fatal("event ring");
    memset(r, 0, sizeof *r);
    r->capacity = capacity < RING_MIN ? RING_MIN : capacity;
    r->bytes = mem_alloc(r->capacity);
    park_init(&r->park);
    atomic_init(&r->interrupted, false);
    atomic_init(&r->waiting, false);
    atomic_init(&r->tail, 0);
    atomic_init(&r->head, 0);
    return r;
}

void ring_free(struct ring *r)
{
    if (r == NULL)
        return;
    park_done(&r->park);
    free(r->bytes);
    free(r);
}

size_t ring_max_record(const struct ring *r)
{
    return r->capacity / 4 - sizeof(prefix);
}

static void copy_in(struct ring *r, uint64_t at, const void *data, size_t len)
{
    size_t start = (size_t)(at % r->capacity), first = r->capacity - start;

    if (len == 0)
        return;
    first = first < len ? first : len;
    memcpy(r->bytes + start, data, first);
    memcpy(r->bytes, (const char *)data + first, len - first);
}

static void copy_out(const struct ring *r, uint64_t at, void *data, size_t len)
{
    size_t start = (size_t)(at % r->capacity), first = r->capacity - start;

    first = first < len ? first : len;
    memcpy(data, r->bytes + start, first);
    memcpy((char *)data + first, r->bytes, len - first);
}

/* ---- producer ------------------------------------------------------------------------------- */

static bool has_room(struct ring *r, uint64_t tail, size_t need)
{
    if (r->capacity - (size_t)(tail - r->head_seen) >= need)
        return true;
    r->head_seen = atomic_load(&r->head);
    return r->capacity - (size_t)(tail - r->head_seen) >= need;
}

static bool wait_for_room(struct ring *r, uint64_t tail, size_t need)
{
    while (!has_room(r, tail, need)) {
        unsigned ticket = park_ticket(&r->park);
        atomic_store(&r->waiting, true);
        if (has_room(r, tail, need))
            break;
        if (atomic_load(&r->interrupted)) {
            atomic_store(&r->waiting, false);
            return false;
        }
        park_wait(&r->park, ticket, -1);
    }
    atomic_store(&r->waiting, false);
    return true;
}

bool ring_write(struct ring *r, const struct ring_part *parts, size_t n_parts)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t len = 0;

    for (size_t i = 0; i < n_parts; i++)
        len += parts[i].len;
    if (len > ring_max_record(r))
        mem_fatal("an event larger than its ring");
    if (!has_room(r, tail, sizeof(prefix) + len) && !wait_for_room(r, tail, sizeof(prefix) + len))
        return false;
    const prefix length = (prefix)len;
    copy_in(r, tail, &length, sizeof length);
    tail += sizeof length;
    for (size_t i = 0; i < n_parts; i++) {
        copy_in(r, tail, parts[i].data, parts[i].len);
        tail += parts[i].len;
    }
    atomic_store(&r->tail, tail);
    return true;
}

/* ---- consumer ------------------------------------------------------------------------------- */

ptrdiff_t ring_read(struct ring *r, void *out)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    prefix len;

    if (atomic_load(&r->tail) == head)
        return -1;
    copy_out(r, head, &len, sizeof len);
    copy_out(r, head + sizeof len, out, len);
    atomic_store(&r->head, head + sizeof len + len);
    if (atomic_load(&r->waiting))
        park_post(&r->park);
    return (ptrdiff_t)len;
}

/* ---- any thread ----------------------------------------------------------------------------- */

void ring_interrupt(struct ring *r)
{
    atomic_store(&r->interrupted, true);
    if (atomic_load(&r->waiting))
        park_post(&r->park);
}

void ring_resume(struct ring *r)
{
    atomic_store(&r->interrupted, false);
}
