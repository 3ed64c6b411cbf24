#include "config.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void reserve(struct str *s, size_t extra)
{
    if (extra > STR_MAX - s->len)
        mem_fatal("text");
    mem_grow(&s->data, &s->cap, s->len + extra + 1, 1);
}

void str_done(struct str *s)
{
    free(s->data);
    *s = (struct str)STR_INIT;
}

void str_clear(struct str *s)
{
    str_truncate(s, 0);
}

void str_add(struct str *s, const char *bytes, size_t len)
{
    reserve(s, len);
    if (len > 0)
        memcpy(s->data + s->len, bytes, len);
    s->len += len;
    s->data[s->len] = '\0';
}

void str_add_text(struct str *s, const char *text)
{
    str_add(s, text, strlen(text));
}

void str_add_char(struct str *s, char c)
{
    str_add(s, &c, 1);
}

void str_add_vformat(struct str *s, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int need = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (need < 0)
        return;
    reserve(s, (size_t)need);
    vsnprintf(s->data + s->len, (size_t)need + 1, format, args);
    s->len += (size_t)need;
}

void str_add_format(struct str *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    str_add_vformat(s, format, args);
    va_end(args);
}

void str_truncate(struct str *s, size_t len)
{
    if (len < s->len) {
        s->len = len;
        s->data[len] = '\0';
    }
}

void str_erase(struct str *s, size_t at, size_t len)
{
    if (at >= s->len)
        return;
    if (len > s->len - at)
        len = s->len - at;
    memmove(s->data + at, s->data + at + len, s->len - at - len + 1);
    s->len -= len;
}

void str_insert(struct str *s, size_t at, const char *bytes, size_t len)
{
    if (at > s->len)
        at = s->len;
    reserve(s, len);
    memmove(s->data + at + len, s->data + at, s->len - at);
    if (len > 0)
        memcpy(s->data + at, bytes, len);
    s->len += len;
    s->data[s->len] = '\0';
}

const char *str_text(const struct str *s)
{
    return s->data != NULL ? s->data : "";
}

char *str_steal(struct str *s)
{
    char *data = s->data != NULL ? s->data : mem_strdup("");

    *s = (struct str)STR_INIT;
    return data;
}
