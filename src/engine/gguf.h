/* GGUF files, versions 2 and 3, mapped read-only (the format: ggml's docs/gguf.md).
 *
 * gguf_open checks everything that the rest of the engine relies on: every length, count, offset,
 * alignment and type stays inside the file, keys and tensor names are unique, no allocation is
 * larger than the file's own size bears. What it hands out points into the map and lives as long as
 * the struct gguf. A set of split files is opened as one: keys are the first part's, tensors all
 * parts'.
 *
 * Life cycle: gguf_open -> look-ups -> gguf_close. Immutable between, usable by any thread. Should
 * a file shrink while it is mapped, readers see zeros, and gguf_check_whole says so (mapguard.h).
 */
#ifndef FADER_ENGINE_GGUF_H
#define FADER_ENGINE_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum gguf_type { /* of values, ids as in the file */
                 GGUF_U8,
                 GGUF_I8,
                 GGUF_U16,
                 GGUF_I16,
                 GGUF_U32,
                 GGUF_I32,
                 GGUF_F32,
                 GGUF_BOOL,
                 GGUF_STRING,
                 GGUF_ARRAY,
                 GGUF_U64,
                 GGUF_I64,
                 GGUF_F64,
                 GGUF_TYPE_COUNT
};

enum { GGUF_MAX_DIMS = 4 };

struct gguf_string { /* points into the map: not NUL-terminated */
    const char *text;
    size_t len;
};

struct gguf_array { /* of one type; never of arrays */
    enum gguf_type type;
    uint64_t n; /* elements left */
    const uint8_t *at, *end;
};

struct gguf_tensor {
    const char *name;             /* NUL-terminated */
    uint32_t type;                /* enum quant_type, or an id that only quant_find may know */
    uint32_t n_dims;              /* 1 - GGUF_MAX_DIMS */
    uint64_t dims[GGUF_MAX_DIMS]; /* elements; [0] runs fastest: a matrix is dims[1] rows of
                                     dims[0]; 1 beyond n_dims */
    uint64_t n_elements;
    const void *data; /* in the map, at a multiple of the file's alignment */
    uint64_t bytes;   /* 0 when the type is not known at all */
    int part;         /* which file of a split set, from 0 */
};

struct gguf;

/* NULL with `err`, which names the file and what is wrong in it. */
struct gguf *gguf_open(const char *path, struct error *err);
void gguf_close(struct gguf *g);             /* NULL is fine */
const char *gguf_path(const struct gguf *g); /* of the first part, as opened */

/* ---- keys and values ------------------------------------------------------------------------- */

/* Whether there is such a key, of whatever type. */
bool gguf_has_key(const struct gguf *g, const char *key);

/* Each reads one value. A key that is missing is an error when `required`, else leaves *value as it
 * was (set it to the default before). A wrong type or a value out of [min, max] is an error that
 * names file and key. Whole numbers are taken from any integer type; gguf_read_number from those
 * and floats. A whole number given as an array (one per layer) is read when all its elements are
 * the same. */
bool gguf_read_int(const struct gguf *g, const char *key, bool required, int64_t min, int64_t max,
                   int64_t *value, struct error *err);
bool gguf_read_number(const struct gguf *g, const char *key, bool required, double min, double max,
                      double *value, struct error *err);
bool gguf_read_bool(const struct gguf *g, const char *key, bool required, bool *value,
                    struct error *err);
bool gguf_read_string(const struct gguf *g, const char *key, bool required,
                      struct gguf_string *value, struct error *err);
bool gguf_read_array(const struct gguf *g, const char *key, bool required, enum gguf_type type,
                     struct gguf_array *value, struct error *err);

/* Takes the next element out of an array of strings, or of integers of any width. False at its end,
 * or when the bytes no longer say what they said at gguf_open. */
bool gguf_next_string(struct gguf_array *array, struct gguf_string *value);
bool gguf_next_int(struct gguf_array *array, int64_t *value);

/* ---- tensors --------------------------------------------------------------------------------- */

size_t gguf_n_tensors(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i); /* in the file's order */
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name); /* or NULL */

/* ---- the file itself ------------------------------------------------------------------------- */

/* False with `err` when a part has become shorter than it was, or a read has already met its new
 * end. One fstat a part: call it before and after work on the data, not inside it. */
bool gguf_check_whole(const struct gguf *g, struct error *err);

/* Only the second half of that, without a system call: a read met the new end. */
bool gguf_is_damaged(const struct gguf *g);

/* Tells the system that these bytes of a tensor will be read soon (it begins to fetch them from the
 * disk), or will not be read again (their pages leave the resident set). Bytes beyond its end are
 * left out. */
void gguf_will_read(const struct gguf *g, const struct gguf_tensor *tensor, uint64_t offset,
                    uint64_t bytes);
void gguf_release(const struct gguf *g, const struct gguf_tensor *tensor, uint64_t offset,
                  uint64_t bytes);

#endif
