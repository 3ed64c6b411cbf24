#include "config.h"

#include "engine/gguf_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little-endian and are used as they are mapped"
#endif

enum { KEY_LEN_MAX = 65535, KEYS_MAX = 1 << 20, PAIR_BYTES_MIN = 8 + 1 + 4 + 1 };

static const struct {
    const char *name;
    size_t size; /* 0: no fixed size */
} types[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = {"uint8", 1},    [GGUF_I8] = {"int8", 1},    [GGUF_U16] = {"uint16", 2},
    [GGUF_I16] = {"int16", 2},   [GGUF_U32] = {"uint32", 4}, [GGUF_I32] = {"int32", 4},
    [GGUF_F32] = {"float32", 4}, [GGUF_BOOL] = {"bool", 1},  [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"uint64", 8}, [GGUF_I64] = {"int64", 8},
    [GGUF_F64] = {"float64", 8},
};

/* ---- the reader ---------------------------------------------------------------------------- */

static bool take(struct gguf_reader *r, void *value, size_t size)
{
    if ((size_t)(r->end - r->at) < size)
        return false;
    memcpy(value, r->at, size);
    r->at += size;
    return true;
}

bool gguf_take_u32(struct gguf_reader *r, uint32_t *value)
{
    return take(r, value, sizeof *value);
}

bool gguf_take_u64(struct gguf_reader *r, uint64_t *value)
{
    return take(r, value, sizeof *value);
}

bool gguf_take_string(struct gguf_reader *r, struct gguf_string *value)
{
    struct gguf_reader ahead = *r;
    uint64_t len;

    if (!gguf_take_u64(&ahead, &len) || len > (uint64_t)(ahead.end - ahead.at))
        return false;
    value->text = (const char *)ahead.at;
    value->len = (size_t)len;
    r->at = ahead.at + len;
    return true;
}

/* Moves over `n` values of `type`, which become `value`. */
static bool take_values(struct gguf_reader *r, enum gguf_type type, uint64_t n,
                        struct gguf_array *value)
{
    uint64_t left = (uint64_t)(r->end - r->at);
    struct gguf_string s;

    value->type = type;
    value->n = n;
    value->at = r->at;
    if (type == GGUF_STRING) {
        if (n > left / sizeof(uint64_t))
            return false;
        for (uint64_t i = 0; i < n; i++) {
            if (!gguf_take_string(r, &s))
                return false;
        }
    } else {
        if (n > left / types[type].size)
            return false;
        r->at += n * types[type].size;
    }
    value->end = r->at;
    return true;
}

/* ---- the table ----------------------------------------------------------------------------- */

static int compare_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct gguf_pair *p = a, *q = b;

    return compare_text(p->key.text, p->key.len, q->key.text, q->key.len);
}

/* What a key is called in an error: not more of a hostile one than is readable. */
static int shown(struct gguf_string key)
{
    return key.len < 80 ? (int)key.len : 80;
}

static bool read_pair(struct gguf_pair *p, struct gguf_reader *r, const char *path,
                      struct error *err)
{
    uint32_t type;
    uint64_t n = 1;

    if (!gguf_take_string(r, &p->key))
        return error_set(err, "%s: cut off inside a key", path);
    if (p->key.len == 0 || p->key.len > KEY_LEN_MAX)
        return error_set(err, "%s: a key of %zu bytes", path, p->key.len);
    if (!gguf_take_u32(r, &type))
        return error_set(err, "%s: cut off after key %.*s", path, shown(p->key), p->key.text);
    bool is_array = type == GGUF_ARRAY;
    if (is_array && (!gguf_take_u32(r, &type) || !gguf_take_u64(r, &n)))
        return error_set(err, "%s: cut off inside key %.*s", path, shown(p->key), p->key.text);
    if (is_array && type == GGUF_ARRAY)
        return error_set(err, "%s: key %.*s: arrays of arrays are not supported", path,
                         shown(p->key), p->key.text);
    if (type >= GGUF_TYPE_COUNT)
        return error_set(err, "%s: key %.*s: no type has the number %" PRIu32, path, shown(p->key),
                         p->key.text, type);
    p->type = is_array ? GGUF_ARRAY : (enum gguf_type)type;
    if (!take_values(r, (enum gguf_type)type, n, &p->value))
        return error_set(err, "%s: key %.*s: its value goes beyond the end of the file", path,
                         shown(p->key), p->key.text);
    return true;
}

bool gguf_table_read(struct gguf_table *t, struct gguf_reader *r, uint64_t n, const char *path,
                     struct error *err)
{
    if (n > (uint64_t)(r->end - r->at) / PAIR_BYTES_MIN || n > KEYS_MAX)
        return error_set(err, "%s: %" PRIu64 " keys are more than such a file can hold", path, n);
    t->pairs = mem_try_alloc((size_t)n * sizeof *t->pairs);
    if (t->pairs == NULL)
        return error_set(err, "%s: no memory for %" PRIu64 " keys", path, n);
    for (t->n = 0; t->n < n; t->n++) {
        if (!read_pair(&t->pairs[t->n], r, path, err))
            return false;
    }
    if (t->n > 1)
        qsort(t->pairs, t->n, sizeof *t->pairs, compare_pairs);
    for (size_t i = 1; i < t->n; i++) {
        const struct gguf_pair *p = &t->pairs[i];
        if (compare_pairs(p - 1, p) == 0)
            return error_set(err, "%s: key %.*s is there twice", path, shown(p->key), p->key.text);
    }
    return true;
}

void gguf_table_done(struct gguf_table *t)
{
    free(t->pairs);
    *t = (struct gguf_table){0};
}

static const struct gguf_pair *find(const struct gguf_table *t, const char *key)
{
    struct gguf_pair wanted = {.key = {key, strlen(key)}};

    if (t->n == 0)
        return NULL;
    return bsearch(&wanted, t->pairs, t->n, sizeof *t->pairs, compare_pairs);
}

/* ---- single values ------------------------------------------------------------------------- */

static bool wrong_type(const struct gguf_pair *p, const char *path, const char *wanted,
                       struct error *err)
{
    bool is_array = p->type == GGUF_ARRAY;

    return error_set(err, "%s: key %.*s: %s%s where %s belongs", path, shown(p->key), p->key.text,
                     is_array ? "an array of " : "", types[p->value.type].name, wanted);
}

static bool missing(const char *path, const char *key, bool required, struct error *err)
{
    return !required || error_set(err, "%s: key %s is missing", path, key);
}

static bool is_integer(enum gguf_type type)
{
    return type != GGUF_STRING && type != GGUF_BOOL && type != GGUF_F32 && type != GGUF_F64;
}

/* One integer of any width; those beyond int64 become its largest, which no range lets pass. */
static int64_t load_int(enum gguf_type type, const uint8_t *at)
{
    uint64_t raw = 0;
    size_t size = types[type].size;

    memcpy(&raw, at, size);
    if (type == GGUF_U64)
        return raw > INT64_MAX ? INT64_MAX : (int64_t)raw;
    if (type == GGUF_U8 || type == GGUF_U16 || type == GGUF_U32)
        return (int64_t)raw;
    unsigned unused = (unsigned)(64 - 8 * size);
    return (int64_t)(raw << unused) >> unused;
}

static double load_number(enum gguf_type type, const uint8_t *at)
{
    float single;
    double value;

    if (type == GGUF_F32) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    if (type == GGUF_F64) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    return (double)load_int(type, at);
}

bool gguf_table_read_int(const struct gguf_table *t, const char *path, const char *key,
                         bool required, int64_t min, int64_t max, int64_t *value, struct error *err)
{
    const struct gguf_pair *p = find(t, key);
    struct gguf_array rest;
    int64_t found, other;

    if (p == NULL)
        return missing(path, key, required, err);
    if (!is_integer(p->value.type))
        return wrong_type(p, path, "a whole number", err);
    rest = p->value;
    if (!gguf_next_int(&rest, &found))
        return error_set(err, "%s: key %s: an empty array", path, key);
    while (gguf_next_int(&rest, &other)) {
        if (other != found)
            return error_set(err,
                             "%s: key %s: values that differ from layer to layer are not"
                             " supported yet",
                             path, key);
    }
    if (found < min || found > max)
        return error_set(err, "%s: key %s: %" PRId64 " is not within %" PRId64 " - %" PRId64, path,
                         key, found, min, max);
    *value = found;
    return true;
}

bool gguf_read_int(const struct gguf *g, const char *key, bool required, int64_t min, int64_t max,
                   int64_t *value, struct error *err)
{
    return gguf_table_read_int(gguf_keys(g), gguf_path(g), key, required, min, max, value, err);
}

bool gguf_read_number(const struct gguf *g, const char *key, bool required, double min, double max,
                      double *value, struct error *err)
{
    const struct gguf_pair *p = find(gguf_keys(g), key);

    if (p == NULL)
        return missing(gguf_path(g), key, required, err);
    if (p->type == GGUF_ARRAY || p->type == GGUF_STRING || p->type == GGUF_BOOL)
        return wrong_type(p, gguf_path(g), "a number", err);
    double found = load_number(p->type, p->value.at);
    if (!(found >= min && found <= max))
        return error_set(err, "%s: key %s: %g is not within %g - %g", gguf_path(g), key, found, min,
                         max);
    *value = found;
    return true;
}

bool gguf_read_bool(const struct gguf *g, const char *key, bool required, bool *value,
                    struct error *err)
{
    const struct gguf_pair *p = find(gguf_keys(g), key);

    if (p == NULL)
        return missing(gguf_path(g), key, required, err);
    if (p->type != GGUF_BOOL)
        return wrong_type(p, gguf_path(g), "a bool", err);
    if (*p->value.at > 1)
        return error_set(err, "%s: key %s: %d is not a bool", gguf_path(g), key, *p->value.at);
    *value = *p->value.at == 1;
    return true;
}

bool gguf_read_string(const struct gguf *g, const char *key, bool required,
                      struct gguf_string *value, struct error *err)
{
    const struct gguf_pair *p = find(gguf_keys(g), key);
    struct gguf_array rest;

    if (p == NULL)
        return missing(gguf_path(g), key, required, err);
    if (p->type != GGUF_STRING)
        return wrong_type(p, gguf_path(g), "a string", err);
    rest = p->value;
    return gguf_next_string(&rest, value) ||
           error_set(err, "%s: key %s changed while it was read", gguf_path(g), key);
}

bool gguf_read_array(const struct gguf *g, const char *key, bool required, enum gguf_type type,
                     struct gguf_array *value, struct error *err)
{
    const struct gguf_pair *p = find(gguf_keys(g), key);
    char wanted[40] = "an array of ";

    if (p == NULL)
        return missing(gguf_path(g), key, required, err);
    if (p->type != GGUF_ARRAY || p->value.type != type) {
        strcat(wanted, types[type].name);
        return wrong_type(p, gguf_path(g), wanted, err);
    }
    *value = p->value;
    return true;
}

bool gguf_has_key(const struct gguf *g, const char *key)
{
    return find(gguf_keys(g), key) != NULL;
}

/* ---- arrays -------------------------------------------------------------------------------- */

bool gguf_next_string(struct gguf_array *array, struct gguf_string *value)
{
    struct gguf_reader r = {array->at, array->end};

    if (array->n == 0 || !gguf_take_string(&r, value))
        return false;
    array->at = r.at;
    array->n--;
    return true;
}

bool gguf_next_int(struct gguf_array *array, int64_t *value)
{
    if (array->n == 0 || !is_integer(array->type))
        return false;
    *value = load_int(array->type, array->at);
    array->at += types[array->type].size;
    array->n--;
    return true;
}
