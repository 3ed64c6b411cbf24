#include "config.h"

#include "backend/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct header {
    uint32_t type, request;
    uint32_t used; /* bytes of the union that follow */
};

bool events_init(struct event_queue *q, struct error *err)
{
    if (!wake_init(&q->wake, err))
        return false;
    q->ring = ring_new(EVENTS_RING);
    q->buffer = mem_alloc(ring_max_record(q->ring) + 1);
    return true;
}

void events_done(struct event_queue *q)
{
    ring_free(q->ring);
    wake_done(&q->wake);
    free(q->buffer);
}

/* Bytes of the union that an event of this type uses. */
static size_t used_part(const struct event *e)
{
    switch (e->type) {
    case EVENT_LOADING:
        return sizeof e->u.loading;
    case EVENT_START:
        return sizeof e->u.start;
    case EVENT_PROGRESS:
        return sizeof e->u.progress;
    case EVENT_KNOB:
        return sizeof e->u.knob;
    case EVENT_TOKEN:
        return sizeof e->u.token;
    case EVENT_VIEW:
        return offsetof(struct view, candidates) +
               (size_t)e->u.view.n_candidates * sizeof *e->u.view.candidates;
    case EVENT_DROPPED:
        return sizeof e->u.dropped;
    case EVENT_END:
        return sizeof e->u.end;
    case EVENT_READY:
    case EVENT_ERROR:
        break;
    }
    return 0;
}

bool events_put(struct event_queue *q, const struct event *e)
{
    const struct header h = {(uint32_t)e->type, e->request, (uint32_t)used_part(e)};
    const struct ring_part parts[] = {
        {&h, sizeof h},
        {&e->u, h.used},
        {e->text, e->len < EVENTS_TEXT_MAX ? e->len : EVENTS_TEXT_MAX},
    };

    if (!ring_write(q->ring, parts, sizeof parts / sizeof *parts))
        return false;
    wake_signal(&q->wake);
    return true;
}

bool events_take(struct event_queue *q, struct event *out)
{
    ptrdiff_t len = ring_read(q->ring, q->buffer);
    struct header h;

    if (len < 0)
        return false;
    memcpy(&h, q->buffer, sizeof h);
    out->type = (enum event_type)h.type;
    out->request = h.request;
    memcpy(&out->u, q->buffer + sizeof h, h.used);
    q->buffer[len] = '\0';
    out->text = q->buffer + sizeof h + h.used;
    out->len = (size_t)len - sizeof h - h.used;
    return true;
}
