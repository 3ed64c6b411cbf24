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

enum { MATRIX_CHUNK = 4 }; /* groups that lie together, whatever lies between the chunks */

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
    size_t stride; /* from one chunk to the next */
};

/* Where a group lies in the copy. */
static inline uint8_t *matrix_group(const struct matrix *m, size_t group)
{
    return m->data + group / MATRIX_CHUNK * m->stride + group % MATRIX_CHUNK * m->group_bytes;
}

/* False with `err` when no kernel takes the tensor's type. `kernels` will pack it. */
bool matrix_init(struct matrix *m, const struct gguf_tensor *source, const struct kernels *kernels,
                 struct error *err);

/* Packs one group from the file into `out` [group_bytes]. */
void matrix_pack(const struct matrix *m, size_t group, uint8_t *out);

/* Groups first .. first + n - 1 of one chunk, packed: the copy, or `scratch` [n * group_bytes]
 * filled now. */
const uint8_t *matrix_groups(const struct matrix *m, size_t first, size_t n, uint8_t *scratch);

/* The exact values of one row into out [padded_cols]. */
void matrix_row(const struct matrix *m, size_t row, float *out);

/* Whether the kernel of this matrix reads floats (else codes) from a panel. */
static inline bool matrix_reads_floats(const struct matrix *m)
{
    return m->pack >= PACK_F16;
}

#endif
