#include "config.h"

#include "engine/repack.h"

#include <string.h>

#include "engine/quant.h"

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK };

/* What each pack is made of. `head` are the halves in front of a source block's codes. */
static const struct pack_traits {
    uint32_t type;       /* enum quant_type */
    uint8_t head;        /* bytes of halves in front of a block's codes; 0: floats */
    uint8_t code_bytes;  /* of a block, after the head */
    uint8_t float_bytes; /* of an element, for floats */
} traits[PACK_COUNT] = {
    [PACK_Q4_0] = {QUANT_Q4_0, 2, 16, 0}, [PACK_Q4_1] = {QUANT_Q4_1, 4, 16, 0},
    [PACK_Q8_0] = {QUANT_Q8_0, 2, 32, 0}, [PACK_F16] = {QUANT_F16, 0, 0, 2},
    [PACK_BF16] = {QUANT_BF16, 0, 0, 2},  [PACK_F32] = {QUANT_F32, 0, 0, 4},
};

bool matrix_init(struct matrix *m, const struct gguf_tensor *source, struct error *err)
{
    size_t pack = 0;

    while (pack < PACK_COUNT && traits[pack].type != source->type)
        pack++;
    if (pack == PACK_COUNT) {
        const struct quant_traits *q = quant_find(source->type);
        return error_set(err, "tensor '%s': weights of type %s are not supported yet", source->name,
                         q != NULL ? q->name : "unknown");
    }
    const struct pack_traits *t = &traits[pack];
    m->source = source;
    m->pack = (enum pack)pack;
    m->cols = source->dims[0];
    m->rows = source->dims[1];
    m->padded_cols = (m->cols + BLOCK - 1) / BLOCK * BLOCK;
    m->n_groups = (m->rows + LANES - 1) / LANES;
    size_t block_bytes =
        t->head > 0 ? (size_t)t->head + t->code_bytes : BLOCK * (size_t)t->float_bytes;
    m->group_bytes = m->padded_cols / BLOCK * LANES * block_bytes;
    m->data = NULL;
    return true;
}

static const uint8_t *source_row(const struct matrix *m, size_t row)
{
    return (const uint8_t *)m->source->data + row * (m->source->bytes / m->rows);
}

/* One block of 8 rows: the halves by kind, then the codes word by word. Rows that are not there
 * stay zero. */
static void pack_block(const struct pack_traits *t, const uint8_t *rows[LANES], size_t n, size_t at,
                       uint8_t *out)
{
    size_t head = (size_t)t->head * LANES;

    for (size_t r = 0; r < n; r++) {
        const uint8_t *block = rows[r] + at;
        for (size_t h = 0; h < t->head; h += 2)
            memcpy(out + h * LANES + 2 * r, block + h, 2);
        for (size_t j = 0; j < t->code_bytes; j += 4)
            memcpy(out + head + j * LANES + 4 * r, block + t->head + j, 4);
    }
}

static void pack_floats(const struct matrix *m, const uint8_t *rows[LANES], size_t n, uint8_t *out)
{
    size_t size = traits[m->pack].float_bytes;

    for (size_t c = 0; c < m->cols; c++, out += LANES * size) {
        for (size_t r = 0; r < n; r++)
            memcpy(out + r * size, rows[r] + c * size, size);
    }
}

void matrix_pack(const struct matrix *m, size_t group, uint8_t *out)
{
    const struct pack_traits *t = &traits[m->pack];
    size_t first = group * LANES, n = m->rows - first < LANES ? m->rows - first : LANES;
    size_t step = (size_t)t->head + t->code_bytes;
    const uint8_t *rows[LANES] = {0};

    for (size_t r = 0; r < n; r++)
        rows[r] = source_row(m, first + r);
    if (n < LANES || m->cols < m->padded_cols)
        memset(out, 0, m->group_bytes);
    if (t->head == 0) {
        pack_floats(m, rows, n, out);
        return;
    }
    for (size_t b = 0; b < m->cols / BLOCK; b++)
        pack_block(t, rows, n, b * step, out + b * step * LANES);
}

const uint8_t *matrix_groups(const struct matrix *m, size_t first, size_t n, uint8_t *scratch)
{
    if (m->data != NULL)
        return m->data + first * m->group_bytes;
    for (size_t g = 0; g < n; g++)
        matrix_pack(m, first + g, scratch + g * m->group_bytes);
    return scratch;
}

/* ---- back to rows --------------------------------------------------------------------------- */

/* Gathers one row of a packed block into the file's form. */
static void unpack_block(const struct pack_traits *t, const uint8_t *packed, size_t r,
                         uint8_t *block)
{
    size_t head = (size_t)t->head * LANES;

    for (size_t h = 0; h < t->head; h += 2)
        memcpy(block + h, packed + h * LANES + 2 * r, 2);
    for (size_t j = 0; j < t->code_bytes; j += 4)
        memcpy(block + t->head + j, packed + head + j * LANES + 4 * r, 4);
}

void matrix_row(const struct matrix *m, size_t row, float *out)
{
    const struct pack_traits *t = &traits[m->pack];
    const struct quant_traits *q = quant_find(m->source->type);
    size_t r = row % LANES, step = (size_t)t->head + t->code_bytes;
    uint8_t block[64];

    for (size_t c = m->cols; c < m->padded_cols; c++)
        out[c] = 0.0f;
    if (m->data == NULL) {
        q->dequantize_row(source_row(m, row), out, m->cols);
        return;
    }
    const uint8_t *group = m->data + row / LANES * m->group_bytes;
    if (t->head == 0) {
        size_t size = t->float_bytes;
        for (size_t c = 0; c < m->cols; c++)
            q->dequantize_row(group + (c * LANES + r) * size, out + c, 1);
        return;
    }
    for (size_t b = 0; b < m->cols / BLOCK; b++) {
        unpack_block(t, group + b * step * LANES, r, block);
        q->dequantize_row(block, out + b * BLOCK, BLOCK);
    }
}
