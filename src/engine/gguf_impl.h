/* Inside gguf: a bounded reader of the header, and the table of keys. Only gguf*.c include this. */
#ifndef FADER_ENGINE_GGUF_IMPL_H
#define FADER_ENGINE_GGUF_IMPL_H

#include "engine/gguf.h"

/* The part of the header that is still to be read. Each gguf_take_* moves it on, or returns false
 * and leaves it where it is when the bytes do not reach. */
struct gguf_reader {
    const uint8_t *at, *end;
};

bool gguf_take_u32(struct gguf_reader *r, uint32_t *value);
bool gguf_take_u64(struct gguf_reader *r, uint64_t *value);
bool gguf_take_string(struct gguf_reader *r, struct gguf_string *value);

struct gguf_pair {
    struct gguf_string key;
    enum gguf_type type;     /* GGUF_ARRAY: `value` is what gguf_read_array gives */
    struct gguf_array value; /* a scalar is an array of one */
};

/* Keys and values of one file, sorted by key. */
struct gguf_table {
    struct gguf_pair *pairs; /* owned */
    size_t n;
};

/* Reads `n` pairs. `path` is for the error. */
bool gguf_table_read(struct gguf_table *t, struct gguf_reader *r, uint64_t n, const char *path,
                     struct error *err);
void gguf_table_done(struct gguf_table *t);
bool gguf_table_read_int(const struct gguf_table *t, const char *path, const char *key,
                         bool required, int64_t min, int64_t max, int64_t *value,
                         struct error *err);

/* The keys of the set: those of its first file. */
const struct gguf_table *gguf_keys(const struct gguf *g);

#endif
