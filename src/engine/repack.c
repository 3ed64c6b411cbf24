#include "config.h"

#include "engine/repack.h"

#include <string.h>

#include "engine/quant.h"

enum {
    LANES = KERNEL_LANES,
    BLOCK = KERNEL_BLOCK,
    AHEAD = 16 << 10 /* bytes that are fetched before they are packed; a group where that is more */
};

bool matrix_init(struct matrix *m, const struct gguf_tensor *source, const struct kernels *kernels,
                 struct error *err)
{
    const struct quant_traits *q = quant_find(source->type);

    if (q == NULL || !quant_supported(q))
        return error_set(err, "tensor '%s': weights of type %s are not supported yet", source->name,
                         q != NULL ? q->name : "unknown");
    const size_t step = quant_pack_elements(q);
    m->source = source;
    m->type = q;
    m->pack = q->pack;
    m->pack_blocks = kernels->pack[m->pack];
    m->cols = source->dims[0];
    m->rows = source->dims[1];
    m->padded_cols = (m->cols + BLOCK - 1) / BLOCK * BLOCK;
    m->n_groups = (m->rows + LANES - 1) / LANES;
    m->group_bytes = m->padded_cols / q->block_elements * pack_traits[m->pack].bytes;
    m->row_bytes = quant_row_bytes(q, m->cols);
    m->step_bytes = quant_row_bytes(q, step);
    m->packed_step_bytes = step / pack_traits[m->pack].columns * pack_traits[m->pack].bytes;
    m->n_steps = m->cols / step;
    m->data = NULL;
    m->stride = KERNEL_CHUNK * m->group_bytes;
    return true;
}

static const uint8_t *source_row(const struct matrix *m, size_t row)
{
    return (const uint8_t *)m->source->data + row * m->row_bytes;
}

/* Packs what lies at `from` in n_rows rows, `bytes` (at most a block's) of each, where rows or columns
 * lack: zeros take their place. */
static void pack_rest(const struct matrix *m, const uint8_t *from, size_t n_rows, size_t bytes,
                      size_t gap, uint8_t *out)
{
    uint8_t rest[LANES][256] = {{0}}; /* more than any block has */

    for (size_t r = 0; r < n_rows; r++)
        memcpy(rest[r], from + r * m->row_bytes, bytes);
    m->pack_blocks((struct pack_rows){rest[0], sizeof rest[0], rest[0], gap}, 1, out);
}

/* One group among `n` whose columns take turns. */
static void pack_group(const struct matrix *m, size_t group, size_t n, uint8_t *out)
{
    const size_t left = m->rows - group * LANES, n_rows = left < LANES ? left : LANES;
    const size_t in = m->step_bytes, step = n * m->packed_step_bytes;
    const size_t gap = n * pack_traits[m->pack].bytes;
    const size_t ahead = LANES * m->row_bytes > AHEAD ? LANES * m->row_bytes : AHEAD;
    const uint8_t *from = source_row(m, group * LANES);

    if (n_rows == LANES)
        m->pack_blocks((struct pack_rows){from, m->row_bytes, from + ahead, gap}, m->n_steps, out);
    for (size_t i = 0; n_rows < LANES && i < m->n_steps; i++)
        pack_rest(m, from + i * in, n_rows, in, gap, out + i * step);
    if (m->n_steps * in < m->row_bytes)
        pack_rest(m, from + m->n_steps * in, n_rows, m->row_bytes - m->n_steps * in, gap,
                  out + m->n_steps * step);
}

void matrix_pack(const struct matrix *m, size_t first, size_t n, uint8_t *out)
{
    const size_t bytes = pack_traits[m->pack].bytes;

    if (!matrix_reads_floats(m)) {
        for (size_t g = 0; g < n; g++)
            pack_group(m, first + g, 1, out + g * m->group_bytes);
        return;
    }
    /* The columns beyond the last. */
    memset(out + n * m->cols * bytes, 0, n * (m->padded_cols - m->cols) * bytes);
    for (size_t g = 0; g < n; g++)
        pack_group(m, first + g, n, out + g * bytes);
}

const uint8_t *matrix_groups(const struct matrix *m, size_t first, size_t n, uint8_t *scratch)
{
    if (m->data != NULL)
        return matrix_chunk(m, first);
    matrix_pack(m, first, n, scratch);
    return scratch;
}

/* ---- back to rows --------------------------------------------------------------------------- */

static void unpack_floats(const struct matrix *m, size_t row, float *out)
{
    const uint8_t *chunk = matrix_chunk(m, row / LANES);
    size_t column = matrix_chunk_groups(m, row / LANES) * LANES, at = row % (KERNEL_CHUNK * LANES);

    for (size_t c = 0; c < m->cols; c++, at += column)
        m->type->dequantize_row(chunk + at * m->type->block_bytes, out + c, 1);
}

static void unpack_codes(const struct matrix *m, size_t row, float *out)
{
    size_t group = row / LANES;
    const uint8_t *at = matrix_chunk(m, group) + group % KERNEL_CHUNK * m->group_bytes;
    struct pack_tile tile;

    for (size_t b = 0; b < m->cols / BLOCK; b++) {
        pack_decode(m->pack, at, b, &tile);
        for (size_t c = 0; c < BLOCK; c++)
            *out++ = pack_value(m->pack, &tile, row % LANES, c);
    }
}

void matrix_row(const struct matrix *m, size_t row, float *out)
{
    memset(out + m->cols, 0, (m->padded_cols - m->cols) * sizeof *out);
    if (m->data == NULL)
        m->type->dequantize_row(source_row(m, row), out, m->cols);
    else
        (matrix_reads_floats(m) ? unpack_floats : unpack_codes)(m, row, out);
}
