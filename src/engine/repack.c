#include "config.h"

#include "engine/repack.h"

#include <string.h>

#include "engine/quant.h"

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK };

bool matrix_init(struct matrix *m, const struct gguf_tensor *source, struct error *err)
{
    const struct quant_traits *q = quant_find(source->type);

    if (q == NULL || !quant_supported(q))
        return error_set(err, "tensor '%s': weights of type %s are not supported yet", source->name,
                         q != NULL ? q->name : "unknown");
    m->source = source;
    m->type = q;
    m->pack = q->pack;
    m->cols = source->dims[0];
    m->rows = source->dims[1];
    m->padded_cols = (m->cols + BLOCK - 1) / BLOCK * BLOCK;
    m->n_groups = (m->rows + LANES - 1) / LANES;
    m->group_bytes = m->padded_cols / q->block_elements * pack_traits[m->pack].bytes;
    m->data = NULL;
    m->stride = MATRIX_CHUNK * m->group_bytes;
    return true;
}

static const uint8_t *source_row(const struct matrix *m, size_t row)
{
    return (const uint8_t *)m->source->data + row * quant_row_bytes(m->type, m->cols);
}

void matrix_pack(const struct matrix *m, size_t group, uint8_t *out)
{
    static const uint8_t zeros[256]; /* more than any block has */
    size_t in = m->type->block_bytes, step = pack_traits[m->pack].bytes;
    size_t n_blocks = m->cols / m->type->block_elements;
    const uint8_t *rows[LANES];

    for (size_t b = 0; b < n_blocks; b++) {
        for (size_t r = 0; r < LANES; r++)
            rows[r] =
                group * LANES + r < m->rows ? source_row(m, group * LANES + r) + b * in : zeros;
        m->type->pack_block(rows, out + b * step);
    }
    memset(out + n_blocks * step, 0, m->group_bytes - n_blocks * step);
}

const uint8_t *matrix_groups(const struct matrix *m, size_t first, size_t n, uint8_t *scratch)
{
    if (m->data != NULL)
        return matrix_group(m, first);
    for (size_t g = 0; g < n; g++)
        matrix_pack(m, first + g, scratch + g * m->group_bytes);
    return scratch;
}

/* ---- back to rows --------------------------------------------------------------------------- */

static void unpack_floats(const struct matrix *m, const uint8_t *group, size_t r, float *out)
{
    size_t size = m->type->block_bytes;

    for (size_t c = 0; c < m->cols; c++)
        m->type->dequantize_row(group + (c * LANES + r) * size, out + c, 1);
}

static void unpack_codes(const struct matrix *m, const uint8_t *group, size_t r, float *out)
{
    struct pack_tile tile;

    for (size_t b = 0; b < m->cols / BLOCK; b++) {
        pack_decode(m->pack, group, b, &tile);
        for (size_t c = 0; c < BLOCK; c++)
            *out++ = pack_value(m->pack, &tile, r, c);
    }
}

void matrix_row(const struct matrix *m, size_t row, float *out)
{
    memset(out + m->cols, 0, (m->padded_cols - m->cols) * sizeof *out);
    if (m->data == NULL)
        m->type->dequantize_row(source_row(m, row), out, m->cols);
    else
        (matrix_reads_floats(m) ? unpack_floats : unpack_codes)(m, matrix_group(m, row / LANES),
                                                                row % LANES, out);
}
