#include "config.h"

#include "sync/slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct slot {
    pthread_mutex_t mutex;
    bool full;
    size_t size;
    void *item; /* [size] */
};

struct slot *slot_new(size_t size)
{
    struct slot *s = mem_zalloc(sizeof *s);

    pthread_mutex_init(&s->mutex, NULL);
    s->size = size;
    s->item = mem_zalloc(size);
    return s;
}

void slot_free(struct slot *s)
{
    if (s == NULL)
        return;
    pthread_mutex_destroy(&s->mutex);
    free(s->item);
    free(s);
}

bool slot_put(struct slot *s, const void *item)
{
    pthread_mutex_lock(&s->mutex);
    bool free_now = !s->full;
    if (free_now)
        memcpy(s->item, item, s->size);
    s->full = true;
    pthread_mutex_unlock(&s->mutex);
    return free_now;
}

bool slot_take(struct slot *s, void *item)
{
    pthread_mutex_lock(&s->mutex);
    bool full = s->full;
    if (full)
        memcpy(item, s->item, s->size);
    s->full = false;
    pthread_mutex_unlock(&s->mutex);
    return full;
}

bool slot_replace(struct slot *s, const void *item, void *old)
{
    pthread_mutex_lock(&s->mutex);
    bool full = s->full;
    if (full)
        memcpy(old, s->item, s->size);
    memcpy(s->item, item, s->size);
    s->full = true;
    pthread_mutex_unlock(&s->mutex);
    return full;
}
