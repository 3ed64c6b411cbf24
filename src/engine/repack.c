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

/* What is left of floats where the columns are no multiple of what is packed at once. */
static void pack_tail(const struct matrix *m, const uint8_t *const rows[LANES], size_t n_rows,
                      uint8_t *out)
{
    uint8_t tail[LANES][16] = {{0}};
    const uint8_t *tails[LANES];
    size_t n = m->cols % quant_pack_elements(m->type);

    for (size_t r = 0; r < LANES; r++) {
        tails[r] = tail[r];
        if (r < n_rows)
            memcpy(tail[r], rows[r], quant_row_bytes(m->type, n));
    }
    m->type->pack_block(tails, out);
}

void matrix_pack(const struct matrix *m, size_t group, uint8_t *out)
{
    static const uint8_t zeros[256]; /* more than any block has */
    size_t first = group * LANES, n_rows = m->rows - first < LANES ? m->rows - first : LANES;
    size_t at_once = quant_pack_elements(m->type), in = quant_row_bytes(m->type, at_once);
    size_t step = at_once / pack_traits[m->pack].columns * pack_traits[m->pack].bytes;
    const uint8_t *rows[LANES], *end = out + m->group_bytes;

    for (size_t r = 0; r < LANES; r++)
        rows[r] = r < n_rows ? source_row(m, first + r) : zeros;
    for (size_t c = 0; c + at_once <= m->cols; c += at_once, out += step) {
        m->type->pack_block(rows, out);
        for (size_t r = 0; r < n_rows; r++)
            rows[r] += in;
    }
    if (m->cols % at_once != 0) {
        pack_tail(m, rows, n_rows, out);
        out += step;
    }
    memset(out, 0, (size_t)(end - out));
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
