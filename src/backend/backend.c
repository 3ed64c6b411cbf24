#include "config.h"

#include "backend/backend.h"

#include <stdlib.h>

void request_done(struct request *r)
{
    message_list_done(&r->messages);
    free(r->text);
    free(r->answer);
    free(r->moves);
    free(r->chains);
    *r = (struct request){0};
}

void draft_done(struct draft *d)
{
    message_list_done(&d->messages);
    *d = (struct draft){0};
}

const char *end_reason_name(enum end_reason r)
{
    static const char *const names[] = {
        [END_EOG] = "eog",         [END_MAX_TOKENS] = "max_tokens",
        [END_STOPPED] = "stopped", [END_CONTEXT_FULL] = "context_full",
        [END_ERROR] = "error",
    };
    return names[r];
}

bool backend_submit(struct backend *b, struct request *r, struct error *err)
{
    return b->vtable->submit(b, r, err);
}

void backend_expect(struct backend *b, struct draft *d)
{
    b->vtable->expect(b, d);
}

void backend_cancel(struct backend *b)
{
    b->vtable->cancel(b);
}

void backend_publish(struct backend *b, const struct control *c)
{
    b->vtable->publish(b, c);
}

bool backend_next_event(struct backend *b, struct event *out)
{
    return b->vtable->next_event(b, out);
}

void backend_status(const struct backend *b, struct backend_status *out)
{
    b->vtable->status(b, out);
}

size_t backend_piece(const struct backend *b, int32_t id, char *out, size_t size)
{
    return b->vtable->piece(b, id, out, size);
}

void backend_close(struct backend *b)
{
    if (b != NULL)
        b->vtable->close(b);
}
