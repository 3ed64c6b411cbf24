#include "config.h"

#include "engine/kv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/quant.h"

enum {
    POSITIONS = KERNEL_POSITIONS,
    SLAB_BYTES = 8 << 20, /* blocks are mapped that many bytes at a time, or one by one */
    HUGE_PAGE = 2 << 20,
    SCALE_DIMS = 32,   /* dimensions that share a scale in q8_0 */
    DIRECT_QUERIES = 8 /* up to so many, values are widened on the fly, else once for all */
};

struct kv_slab {
    struct kv_slab *next;
    uint8_t *data;
    size_t used;             /* blocks handed out */
    struct kv_block *blocks; /* [per_slab] */
};

struct kv_block {
    uint8_t *data;
    int refs; /* 0: free */
    struct kv_slab *slab;
};

struct kv_store {
    size_t n_kv_head, dim, head_dim;
    enum cache_type type;
    size_t head_bytes, block_bytes, per_slab;
    struct kv_slab *slabs;
};

/* ---- blocks --------------------------------------------------------------------------------- */

static size_t n_scales(size_t dim)
{
    return (dim + SCALE_DIMS - 1) / SCALE_DIMS;
}

struct kv_store *kv_store_new(size_t n_layer, size_t n_kv_head, size_t head_dim,
                              enum cache_type type)
{
    struct kv_store *s = mem_zalloc(sizeof *s);

    s->n_kv_head = n_kv_head;
    s->head_dim = head_dim;
    s->dim = kv_dim(head_dim);
    s->type = type;
    s->head_bytes = type == CACHE_F16
                        ? 2 * POSITIONS * s->dim * sizeof(uint16_t)
                        : 2 * POSITIONS * (s->dim + n_scales(s->dim) * sizeof(uint16_t));
    s->block_bytes = n_layer * n_kv_head * s->head_bytes;
    s->per_slab = s->block_bytes < SLAB_BYTES ? SLAB_BYTES / s->block_bytes : 1;
    return s;
}

/* Blocks at the end of a slab would lie in small pages, which are slow to read: fills up the last
 * huge page, where that wastes little. */
static size_t slab_bytes(const struct kv_store *s)
{
    size_t bytes = s->per_slab * s->block_bytes;
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

    return whole - bytes <= bytes / 16 ? whole : bytes;
}

static void slab_free(struct kv_store *s, struct kv_slab *slab)
{
    mem_unmap(slab->data, slab_bytes(s));
    free(slab->blocks);
    free(slab);
}

void kv_store_free(struct kv_store *s)
{
    if (s == NULL)
        return;
    while (s->slabs != NULL) {
        struct kv_slab *slab = s->slabs;
        s->slabs = slab->next;
        slab_free(s, slab);
    }
    free(s);
}

size_t kv_store_block_bytes(const struct kv_store *s)
{
    return s->block_bytes;
}

static struct kv_slab *slab_new(struct kv_store *s)
{
    uint8_t *data = mem_map(slab_bytes(s));

    if (data == NULL)
        return NULL;
    struct kv_slab *slab = mem_zalloc(sizeof *slab);
    slab->data = data;
    slab->blocks = mem_array(s->per_slab, sizeof *slab->blocks);
    for (size_t i = 0; i < s->per_slab; i++) {
        slab->blocks[i].data = data + i * s->block_bytes;
        slab->blocks[i].slab = slab;
    }
    slab->next = s->slabs;
    s->slabs = slab;
    return slab;
}

/* A block with one reference, or NULL. Its contents are finite numbers. */
static struct kv_block *block_take(struct kv_store *s)
{
    struct kv_slab *slab = s->slabs;
    size_t i = 0;

    while (slab != NULL && slab->used == s->per_slab)
        slab = slab->next;
    if (slab == NULL && (slab = slab_new(s)) == NULL)
        return NULL;
    while (slab->blocks[i].refs > 0)
        i++;
    slab->used++;
    slab->blocks[i].refs = 1;
    return &slab->blocks[i];
}

static void block_drop(struct kv_store *s, struct kv_block *block)
{
    struct kv_slab *slab = block->slab, **link = &s->slabs;

    if (--block->refs > 0 || --slab->used > 0)
        return;
    while (*link != slab)
        link = &(*link)->next;
    *link = slab->next;
    slab_free(s, slab);
}

/* ---- tables --------------------------------------------------------------------------------- */

void kv_table_init(struct kv_table *t, struct kv_store *store)
{
    *t = (struct kv_table){.store = store};
}

void kv_table_done(struct kv_table *t)
{
    kv_table_truncate(t, 0);
    free(t->blocks);
    t->blocks = NULL;
    t->cap = 0;
}

void kv_table_share(struct kv_table *t, const struct kv_table *from)
{
    mem_grow(&t->blocks, &t->cap, from->n, sizeof *t->blocks);
    for (size_t i = 0; i < from->n; i++) {
        t->blocks[i] = from->blocks[i];
        t->blocks[i]->refs++;
    }
    t->n = from->n;
}

void kv_table_truncate(struct kv_table *t, size_t length)
{
    size_t keep = (length + POSITIONS - 1) / POSITIONS;

    while (t->n > keep)
        block_drop(t->store, t->blocks[--t->n]);
}

bool kv_table_reserve(struct kv_table *t, size_t from, size_t to)
{
    size_t need = (to + POSITIONS - 1) / POSITIONS;

    mem_grow(&t->blocks, &t->cap, need, sizeof *t->blocks);
    for (size_t i = from / POSITIONS; i < need; i++) {
        if (i < t->n && t->blocks[i]->refs == 1)
            continue;
        struct kv_block *block = block_take(t->store);
        if (block == NULL)
            return false;
        if (i < t->n) {
            memcpy(block->data, t->blocks[i]->data, t->store->block_bytes);
            block_drop(t->store, t->blocks[i]);
        } else {
            t->n = i + 1;
        }
        t->blocks[i] = block;
    }
    return true;
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Layer and KV head of a block: K, then V, then the scales that q8_0 has. */
static uint8_t *head_data(const struct kv_table *t, size_t layer, size_t head, size_t block)
{
    const struct kv_store *s = t->store;

    return t->blocks[block]->data + (layer * s->n_kv_head + head) * s->head_bytes;
}

struct head_view {
    uint8_t *k, *v;                /* halves or codes */
    uint16_t *k_scales, *v_scales; /* q8_0 only */
};

static struct head_view view_head(const struct kv_store *s, uint8_t *data)
{
    size_t size = POSITIONS * s->dim * (s->type == CACHE_F16 ? sizeof(uint16_t) : 1);
    uint16_t *scales = (uint16_t *)(void *)(data + 2 * size);

    return (struct head_view){data, data + size, scales, scales + POSITIONS * n_scales(s->dim)};
}

static void write_halves(const struct kv_store *s, const struct kernels *kernels,
                         const struct head_view *h, size_t at, const float *k, const float *v)
{
    uint16_t *to = (uint16_t *)(void *)h->k + at;
    uint16_t column[SCALE_DIMS];

    kernels->float_to_half(v, (uint16_t *)(void *)h->v + at * s->dim, s->head_dim);
    for (size_t d = 0; d < s->head_dim; d += SCALE_DIMS) {
        size_t n = s->head_dim - d < SCALE_DIMS ? s->head_dim - d : SCALE_DIMS;
        kernels->float_to_half(k + d, column, n);
        for (size_t i = 0; i < n; i++, to += POSITIONS)
            *to = column[i];
    }
}

/* Codes of up to SCALE_DIMS values, `step` bytes apart; returns their scale as a half. */
static uint16_t write_codes(const float *x, size_t n, int8_t *codes, size_t step)
{
    float largest = 0.0f;

    for (size_t i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    float d = largest / 127.0f < 65504.0f ? largest / 127.0f : 65504.0f;
    uint16_t half = quant_f32_to_f16(d);
    float rounded = quant_f16_to_f32(half), inverse = rounded > 0.0f ? 1.0f / rounded : 0.0f;
    for (size_t i = 0; i < n; i++) {
        float q = x[i] * inverse;
        q = q > -127.0f ? q : -127.0f;
        q = q < 127.0f ? q : 127.0f;
        codes[i * step] = (int8_t)(q < 0.0f ? q - 0.5f : q + 0.5f);
    }
    return half;
}

static void write_q8(const struct kv_store *s, const struct head_view *h, size_t at, const float *k,
                     const float *v)
{
    size_t groups = n_scales(s->dim);

    for (size_t g = 0; g < groups; g++) {
        size_t d = g * SCALE_DIMS, n = s->dim - d < SCALE_DIMS ? s->dim - d : SCALE_DIMS;
        h->k_scales[g * POSITIONS + at] =
            write_codes(k + d, n, (int8_t *)h->k + d * POSITIONS + at, POSITIONS);
        h->v_scales[at * groups + g] = write_codes(v + d, n, (int8_t *)h->v + at * s->dim + d, 1);
    }
}

void kv_write(const struct kv_table *t, const struct kernels *kernels, size_t layer, size_t head,
              size_t position, const float *k, const float *v)
{
    struct head_view h = view_head(t->store, head_data(t, layer, head, position / POSITIONS));

    if (t->store->type == CACHE_F16)
        write_halves(t->store, kernels, &h, position % POSITIONS, k, v);
    else
        write_q8(t->store, &h, position % POSITIONS, k, v);
}

size_t kv_scratch_floats(size_t head_dim)
{
    return 2 * POSITIONS * kv_dim(head_dim);
}

static void expand_q8(const struct kv_store *s, const struct kernels *kernels,
                      const struct head_view *h, float *k, float *v)
{
    size_t groups = n_scales(s->dim);

    for (size_t d = 0; d < s->dim; d++)
        kernels->expand_codes((const int8_t *)h->k + d * POSITIONS,
                              h->k_scales + d / SCALE_DIMS * POSITIONS, false, k + d * POSITIONS,
                              POSITIONS);
    for (size_t i = 0; i < POSITIONS * groups; i++) {
        size_t at = i / groups, d = i % groups * SCALE_DIMS;
        size_t n = s->dim - d < SCALE_DIMS ? s->dim - d : SCALE_DIMS;
        kernels->expand_codes((const int8_t *)h->v + at * s->dim + d, h->v_scales + i, true,
                              v + at * s->dim + d, n);
    }
}

/* Fills in where K and V are. */
static void point_at(struct attend *a, const struct head_view *h, const uint8_t *next)
{
    a->k = h->k;
    a->v = h->v;
    a->k_scales = h->k_scales;
    a->v_scales = h->v_scales;
    a->next = next;
}

void kv_attend(const struct kv_table *t, const struct kernels *kernels, size_t layer, size_t head,
               size_t block, struct attend *a, float *scratch)
{
    const struct kv_store *s = t->store;
    uint8_t *data = head_data(t, layer, head, block);
    struct head_view h = view_head(s, data);
    size_t n = POSITIONS * s->dim;

    a->dim = s->dim;
    if (a->n <= DIRECT_QUERIES) {
        point_at(a, &h, block + 1 < t->n ? head_data(t, layer, head, block + 1) : NULL);
        (s->type == CACHE_F16 ? kernels->attend_f16 : kernels->attend_q8)(a);
        return;
    }
    a->k = scratch;
    a->v = scratch + n;
    if (s->type == CACHE_F16)
        kernels->half_to_float((const uint16_t *)(const void *)data, scratch, 2 * n);
    else
        expand_q8(s, kernels, &h, scratch, scratch + n);
    kernels->attend_f32(a);
}
