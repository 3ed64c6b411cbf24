#include "config.h"

#include "backend/script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { SCRIPT_MAX = 64 << 20, CTX_DEFAULT = 2048 };

/* ---- vocabulary ----------------------------------------------------------------------------- */

static int32_t add_piece(struct script *s, const char *bytes, size_t len)
{
    for (size_t i = SCRIPT_END_TOKEN + 1; i < s->n_pieces; i++) {
        if (s->pieces[i].len == len && memcmp(s->pieces[i].bytes, bytes, len) == 0)
            return (int32_t)i;
    }
    mem_grow(&s->pieces, &s->cap_pieces, s->n_pieces + 1, sizeof *s->pieces);
    s->pieces[s->n_pieces] = (struct script_piece){mem_strndup(bytes, len), len};
    return (int32_t)s->n_pieces++;
}

static bool add_hex_piece(struct script *s, const char *hex, int32_t *id, struct error *err)
{
    char bytes[64];
    size_t len = 0;

    for (; hex[0] != '\0'; hex += 2) {
        if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]) ||
            len == sizeof bytes)
            return error_set(err, "\"hex\" takes pairs of hexadecimal digits");
        const char pair[] = {hex[0], hex[1], '\0'};
        bytes[len++] = (char)strtoul(pair, NULL, 16);
    }
    *id = add_piece(s, bytes, len);
    return true;
}

static bool read_piece(struct script *s, const cJSON *value, int32_t *id, struct error *err)
{
    const cJSON *hex = cJSON_GetObjectItemCaseSensitive(value, "hex");

    if (cJSON_IsNull(value))
        *id = SCRIPT_END_TOKEN;
    else if (cJSON_IsString(value))
        *id = add_piece(s, value->valuestring, strlen(value->valuestring));
    else if (cJSON_IsString(hex))
        return add_hex_piece(s, hex->valuestring, id, err);
    else
        return error_set(err, "a piece is a string, {\"hex\":\"e4\"} or null (the end)");
    return true;
}

/* ---- answers -------------------------------------------------------------------------------- */

static struct script_answer *new_answer(struct script *s)
{
    mem_grow(&s->answers, &s->cap, s->n + 1, sizeof *s->answers);
    s->answers[s->n] = (struct script_answer){.repeat = SCRIPT_NO_REPEAT};
    return &s->answers[s->n++];
}

static struct script_answer *last_answer(struct script *s)
{
    return s->n > 0 ? &s->answers[s->n - 1] : new_answer(s);
}

/* The draw that the lines to come describe: the last one, while it has no candidates yet. */
static struct script_draw *open_draw(struct script *s)
{
    struct script_answer *a = last_answer(s);

    if (a->n == 0 || a->draws[a->n - 1].n > 0) {
        mem_grow(&a->draws, &a->cap, a->n + 1, sizeof *a->draws);
        a->draws[a->n++] = (struct script_draw){0};
    }
    return &a->draws[a->n - 1];
}

static void add_candidate(struct script_draw *d, int32_t id, double logit)
{
    mem_grow(&d->candidates, &d->cap, d->n + 1, sizeof *d->candidates);
    d->candidates[d->n++] = (struct script_candidate){id, (float)logit};
}

static void add_action(struct script *s, struct script_action action)
{
    struct script_draw *d = open_draw(s);

    mem_grow(&d->actions, &d->cap_actions, d->n_actions + 1, sizeof *d->actions);
    d->actions[d->n_actions++] = action;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static bool read_model(struct script *s, const cJSON *value, struct error *err)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(value, "name"), *share;
    const cJSON *ctx = cJSON_GetObjectItemCaseSensitive(value, "ctx");
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(value, "error");

    if (!cJSON_IsObject(value))
        return error_set(err, "\"model\" takes an object");
    if (cJSON_IsString(name)) {
        free(s->name);
        s->name = mem_strdup(name->valuestring);
    }
    if (cJSON_IsNumber(ctx))
        s->ctx_size = ctx->valueint;
    if (cJSON_IsString(error)) {
        free(s->error);
        s->error = mem_strdup(error->valuestring);
    }
    cJSON_ArrayForEach(share, cJSON_GetObjectItemCaseSensitive(value, "loading"))
    {
        mem_grow(&s->loading, &s->cap_loading, s->n_loading + 1, sizeof *s->loading);
        s->loading[s->n_loading++] = share->valuedouble;
    }
    return true;
}

static bool read_answer(struct script *s, const cJSON *value, struct error *err)
{
    const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(value, "for");

    if (!cJSON_IsObject(value))
        return error_set(err, "\"answer\" takes an object");
    new_answer(s)->wanted = cJSON_IsString(wanted) ? mem_strdup(wanted->valuestring) : NULL;
    return true;
}

static bool read_draw(struct script *s, const cJSON *value, struct error *err)
{
    struct script_draw *d = open_draw(s);
    const cJSON *pair;

    cJSON_ArrayForEach(pair, value)
    {
        const cJSON *logit = cJSON_GetArrayItem(pair, 1);
        int32_t id = SCRIPT_END_TOKEN;
        if (cJSON_GetArraySize(pair) != 2 || !cJSON_IsNumber(logit))
            return error_set(err, "\"draw\" takes pairs [piece, logit]");
        if (!read_piece(s, cJSON_GetArrayItem(pair, 0), &id, err))
            return false;
        add_candidate(d, id, logit->valuedouble);
    }
    return d->n > 0 || error_set(err, "\"draw\" takes at least one pair [piece, logit]");
}

/* Words with the blank in front of them, each drawn for certain. */
static bool read_text(struct script *s, const cJSON *value, struct error *err)
{
    if (!cJSON_IsString(value))
        return error_set(err, "\"text\" takes a string");
    for (const char *at = value->valuestring; *at != '\0';) {
        size_t len = 1 + strcspn(at + 1, " \n");
        add_candidate(open_draw(s), add_piece(s, at, len), 0);
        at += len;
    }
    return true;
}

static bool read_repeat(struct script *s, const cJSON *value, struct error *err)
{
    struct script_answer *a = last_answer(s);

    if (!cJSON_IsNumber(value) || value->valueint < 0 || (size_t)value->valueint >= a->n)
        return error_set(err, "\"repeat\" takes the number of a draw of this answer, from 0");
    a->repeat = (size_t)value->valueint;
    return true;
}

static bool read_progress(struct script *s, const cJSON *value, struct error *err)
{
    if (cJSON_GetArraySize(value) != 2)
        return error_set(err, "\"progress\" takes [done, total]");
    add_action(s, (struct script_action){SCRIPT_PROGRESS, cJSON_GetArrayItem(value, 0)->valueint,
                                         cJSON_GetArrayItem(value, 1)->valueint, NULL});
    return true;
}

static bool read_dropped(struct script *s, const cJSON *value, struct error *err)
{
    if (cJSON_GetArraySize(value) != 2)
        return error_set(err, "\"dropped\" takes [messages, tokens]");
    add_action(s, (struct script_action){SCRIPT_DROPPED, cJSON_GetArrayItem(value, 0)->valueint,
                                         cJSON_GetArrayItem(value, 1)->valueint, NULL});
    return true;
}

static bool read_error(struct script *s, const cJSON *value, struct error *err)
{
    if (!cJSON_IsString(value))
        return error_set(err, "\"error\" takes a string");
    add_action(s, (struct script_action){SCRIPT_ERROR, 0, 0, mem_strdup(value->valuestring)});
    return true;
}

static bool read_full(struct script *s, const cJSON *value, struct error *err)
{
    (void)value;
    (void)err;
    add_action(s, (struct script_action){.kind = SCRIPT_FULL});
    return true;
}

static bool read_hang(struct script *s, const cJSON *value, struct error *err)
{
    (void)value;
    (void)err;
    add_action(s, (struct script_action){.kind = SCRIPT_HANG});
    return true;
}

static const struct {
    const char *key;
    bool (*read)(struct script *s, const cJSON *value, struct error *err);
} readers[] = {
    {"model", read_model},     {"answer", read_answer}, {"draw", read_draw},
    {"text", read_text},       {"repeat", read_repeat}, {"progress", read_progress},
    {"dropped", read_dropped}, {"error", read_error},   {"full", read_full},
    {"hang", read_hang},
};

static bool read_line(struct script *s, const char *line, size_t len, struct error *err)
{
    cJSON *json = cJSON_ParseWithLength(line, len);
    const cJSON *item;
    bool ok = cJSON_IsObject(json) || error_set(err, "not a JSON object");

    cJSON_ArrayForEach(item, json)
    {
        size_t i = 0, n = sizeof readers / sizeof *readers;
        while (ok && i < n && strcmp(readers[i].key, item->string) != 0)
            i++;
        ok = ok && (i < n ? readers[i].read(s, item, err)
                          : error_set(err, "unknown key \"%s\"", item->string));
    }
    cJSON_Delete(json);
    return ok;
}

static bool read_lines(struct script *s, const char *path, const struct str *text,
                       struct error *err)
{
    size_t number = 1;

    for (size_t at = 0; at < text->len; number++) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
        size_t len = end != NULL ? (size_t)(end - line) : text->len - at;

        at += len + 1;
        if (strspn(line, " \t\r") >= len || line[0] == '#')
            continue;
        if (!read_line(s, line, len, err))
            return error_prefix(err, "%s:%zu", path, number);
    }
    return true;
}

struct script *script_read(const char *path, struct error *err)
{
    struct script *s = mem_zalloc(sizeof *s);
    struct str text = STR_INIT;

    s->path = mem_strdup(path);
    s->name = mem_strdup("script");
    s->ctx_size = CTX_DEFAULT;
    mem_grow(&s->pieces, &s->cap_pieces, 1, sizeof *s->pieces);
    s->pieces[s->n_pieces++] = (struct script_piece){mem_strdup("<|end|>"), strlen("<|end|>")};
    if (!file_read(path, SCRIPT_MAX, &text, err) || !read_lines(s, path, &text, err)) {
        script_free(s);
        s = NULL;
    } else {
        last_answer(s); /* an empty script answers with the end token */
    }
    str_done(&text);
    return s;
}

static void answer_done(struct script_answer *a)
{
    for (size_t i = 0; i < a->n; i++) {
        for (size_t k = 0; k < a->draws[i].n_actions; k++)
            free(a->draws[i].actions[k].text);
        free(a->draws[i].actions);
        free(a->draws[i].candidates);
    }
    free(a->draws);
    free(a->wanted);
}

void script_free(struct script *s)
{
    for (size_t i = 0; i < s->n; i++)
        answer_done(&s->answers[i]);
    for (size_t i = 0; i < s->n_pieces; i++)
        free(s->pieces[i].bytes);
    free(s->answers);
    free(s->pieces);
    free(s->loading);
    free(s->error);
    free(s->name);
    free(s->path);
    free(s);
}
