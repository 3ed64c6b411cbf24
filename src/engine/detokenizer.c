#include "config.h"

#include "engine/engine.h"

#include <string.h>

#include "base/utf8.h"

/* Writes whole characters of `bytes` to `out`, and the bytes themselves to `raw` if
 * not all were. */
static void emit(const char *bytes, size_t len, struct str *out, struct str *raw)
{
    if (!utf8_add_clean(out, bytes, len) && raw != NULL)
        str_add(raw, bytes, len);
}

void detokenizer_push(struct detokenizer *d, const char *bytes, size_t len, struct str *out,
                      struct str *raw)
{
    struct str all = STR_INIT;

    str_add(&all, d->held, d->n_held);
    str_add(&all, bytes, len);
    d->n_held = utf8_unfinished(all.data, all.len);
    size_t whole = all.len - d->n_held;
    memcpy(d->held, all.data + whole, d->n_held);
    emit(all.data, whole, out, raw);
    str_done(&all);
}

void detokenizer_flush(struct detokenizer *d, struct str *out, struct str *raw)
{
    emit(d->held, d->n_held, out, raw);
    d->n_held = 0;
}
