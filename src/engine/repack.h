/* Repacking: from rows as the file has them to groups of 8 interleaved rows as the kernels read
 * them.
 *
 * A matrix knows its tensor and, once matrix_pack has filled it group by group, its packed copy.
 * Without one (--no-repack) the groups that a task needs are packed into its scratch each time:
 * slower, the same bits. Rows beyond the last are zeros; columns are padded with zeros to 32. */
#ifndef FADER_ENGINE_REPACK_H
#define FADER_ENGINE_REPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/gguf.h"
#include "engine/kernels.h"
#include "engine/pack.h"
#include "engine/quant.h"

struct matrix {
    const struct gguf_tensor *source;
    const struct quant_traits *type;
    enum pack pack;
    pack_kernel *pack_blocks;
    size_t rows, cols; /* of the source */
    size_t padded_cols;
    size_t row_bytes;                              /* of the source */
    size_t n_steps, step_bytes, packed_step_bytes; /* whole ones of a row: what is packed at once */
    size_t n_groups, group_bytes;
    uint8_t *data; /* the first chunk, borrowed; NULL: not repacked */
    size_t stride; /* from one chunk to the next, whatever lies between them */
};

/* Where the chunk of a group lies in the copy, and how many groups it has. */
static inline uint8_t *matrix_chunk(const struct matrix *m, size_t group)
{
    return m->data + group / KERNEL_CHUNK * m->stride;
}

static inline size_t matrix_chunk_groups(const struct matrix *m, size_t group)
{
    size_t left = m->n_groups - group / KERNEL_CHUNK * KERNEL_CHUNK;

    return left < KERNEL_CHUNK ? left : KERNEL_CHUNK;
}

/* False with `err` when no kernel takes the tensor's type. `kernels` will pack it. */
bool matrix_init(struct matrix *m, const struct gguf_tensor *source, const struct kernels *kernels,
                 struct error *err);

/* Packs groups first .. first + n - 1, a chunk or a part of one, from the file into `out` [n *
 * group_bytes]: what a kernel takes for n groups. */
void matrix_pack(const struct matrix *m, size_t first, size_t n, uint8_t *out);

/* The n groups of the chunk that begins with group `first`, packed: the copy, or `scratch` [n *
 * group_bytes] filled now. */
const uint8_t *matrix_groups(const struct matrix *m, size_t first, size_t n, uint8_t *scratch);

/* The exact values of one row into out [padded_cols]. */
void matrix_row(const struct matrix *m, size_t row, float *out);

/* Whether the kernel of this matrix reads floats (else codes) from a panel. */
static inline bool matrix_reads_floats(const struct matrix *m)
{
    return pack_is_float(m->pack);
}

#endif
