#include "config.h"

#include "engine/kv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/quant.h"

enum {
    POSITIONS = KERNEL_POSITIONS,
    LINE = KERNEL_LINE,
    GROUP = KERNEL_BLOCK, /* dimensions that lie together, and share a scale in q8_0 */
    SLAB_BYTES = 8 << 20, /* blocks are mapped that many bytes at a time, or one by one */
    HUGE_PAGE = 2 << 20
};

/* Memory for some blocks, [bands][parts][run]: the same part of the blocks of a band lies together,
 * so that what attention reads of a segment is one stretch, or few. */
struct kv_slab {
    struct kv_slab *next;
    uint8_t *data;
    size_t used;             /* blocks handed out */
    struct kv_block *blocks; /* [per_slab] */
};

struct kv_block {
    uint8_t *data; /* of part 0 */
    int refs;      /* 0: free */
    struct kv_slab *slab;
};

struct kv_store {
    size_t n_kv_head, head_dim;
    enum cache_type type;
    size_t groups; /* of 32 dimensions */
    size_t group_bytes, part_bytes;
    size_t parts; /* [n_layer][n_kv_head][K, V] */
    size_t run;   /* blocks of a band */
    size_t per_slab;
    struct kv_slab *slabs;
};

/* ---- blocks --------------------------------------------------------------------------------- */

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t kv_store_block_bytes(const struct kv_store *s)
{
    return s->parts * s->part_bytes;
}

struct kv_store *kv_store_new(size_t n_layer, size_t n_kv_head, size_t head_dim,
                              enum cache_type type)
{
    struct kv_store *s = mem_zalloc(sizeof *s);

    s->n_kv_head = n_kv_head;
    s->head_dim = head_dim;
    s->type = type;
    s->groups = kv_dim(head_dim) / GROUP;
    s->group_bytes = type == CACHE_F16 ? KERNEL_HALVES : KERNEL_CODES;
    s->part_bytes = s->groups * s->group_bytes;
    s->parts = n_layer * n_kv_head * 2;
    s->run = KERNEL_SEGMENT_BLOCKS;
    while (s->run > 1 && s->run * kv_store_block_bytes(s) > SLAB_BYTES)
        s->run /= 2;
    s->per_slab = most(SLAB_BYTES / (s->run * kv_store_block_bytes(s)), 1) * s->run;
    return s;
}

/* Blocks at the end of a slab would lie in small pages, which are slow to read: fills up the last
 * huge page, where that wastes little. */
static size_t slab_bytes(const struct kv_store *s)
{
    size_t bytes = s->per_slab * kv_store_block_bytes(s);
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

    return whole - bytes <= bytes / 8 ? whole : bytes;
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

static struct kv_slab *slab_new(struct kv_store *s)
{
    uint8_t *data = mem_map(slab_bytes(s));

    if (data == NULL)
        return NULL;
    struct kv_slab *slab = mem_zalloc(sizeof *slab);
    slab->data = data;
    slab->blocks = mem_array(s->per_slab, sizeof *slab->blocks);
    for (size_t i = 0; i < s->per_slab; i++) {
        slab->blocks[i].data =
            data + i / s->run * s->run * kv_store_block_bytes(s) + i % s->run * s->part_bytes;
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

static void block_copy(const struct kv_store *s, struct kv_block *to, const struct kv_block *from)
{
    for (size_t i = 0; i < s->parts; i++) {
        size_t at = i * s->run * s->part_bytes;
        memcpy(to->data + at, from->data + at, s->part_bytes);
    }
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
            block_copy(t->store, block, t->blocks[i]);
            block_drop(t->store, t->blocks[i]);
        } else {
            t->n = i + 1;
        }
        t->blocks[i] = block;
    }
    return true;
}

/* ---- contents ------------------------------------------------------------------------------- */

enum side { SIDE_K, SIDE_V };

static uint8_t *head_data(const struct kv_table *t, size_t layer, size_t head, enum side side,
                          size_t block)
{
    const struct kv_store *s = t->store;
    size_t part = (layer * s->n_kv_head + head) * 2 + side;

    return t->blocks[block]->data + part * s->run * s->part_bytes;
}

/* Up to GROUP values, `step` bytes apart. */
static void write_halves(const struct kernels *kernels, const float *x, size_t n, uint8_t *to,
                         size_t step)
{
    uint16_t halves[GROUP];

    kernels->float_to_half(x, halves, n);
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * step, &halves[i], sizeof *halves);
}

/* Codes of GROUP values: number i goes to at[i]; returns their scale as a half. */
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

/* A group's numbers of position `at`, where it lies. */
static void write_group(const struct kv_store *s, const struct kernels *kernels, const float *x,
                        size_t n, enum side side, size_t at, uint8_t *to)
{
    if (s->type == CACHE_F16) {
        write_halves(kernels, x, n, to + at * (side == SIDE_K ? 2 : LINE),
                     side == SIDE_K ? LINE : 2);
        return;
    }
    int8_t codes[GROUP] = {0};
    uint16_t scale = write_codes(x, n, codes, 1);
    memcpy(to + at * sizeof scale, &scale, sizeof scale);
    to += LINE;
    for (size_t d = 0; d < GROUP; d++) {
        size_t line = side == SIDE_K ? d : at, place = side == SIDE_K ? at : d;
        to[line / 2 * LINE + 2 * place + line % 2] = (uint8_t)codes[d];
    }
}

void kv_write(const struct kv_table *t, const struct kernels *kernels, size_t layer, size_t head,
              size_t position, const float *k, const float *v)
{
    const struct kv_store *s = t->store;
    uint8_t *to_k = head_data(t, layer, head, SIDE_K, position / POSITIONS);
    uint8_t *to_v = head_data(t, layer, head, SIDE_V, position / POSITIONS);

    for (size_t g = 0; g < s->groups; g++) {
        size_t d = g * GROUP, n = s->head_dim - d < GROUP ? s->head_dim - d : GROUP;
        write_group(s, kernels, k + d, n, SIDE_K, position % POSITIONS, to_k + g * s->group_bytes);
        write_group(s, kernels, v + d, n, SIDE_V, position % POSITIONS, to_v + g * s->group_bytes);
    }
}

void kv_expect(const struct kv_table *t, size_t layer, size_t head, size_t segment,
               struct attend *a)
{
    size_t first = segment * KERNEL_SEGMENT_BLOCKS;

    for (size_t b = 0; b < KERNEL_SEGMENT_BLOCKS && first + b < t->n; b++)
        a->next[b] = head_data(t, layer, head, SIDE_K, first + b);
}

void kv_attend(const struct kv_table *t, const struct kernels *kernels, size_t layer, size_t head,
               size_t segment, struct attend *a)
{
    size_t first = segment * KERNEL_SEGMENT_BLOCKS;

    for (size_t b = 0; b < KERNEL_SEGMENT_BLOCKS && first + b < t->n; b++) {
        a->k[b] = head_data(t, layer, head, SIDE_K, first + b);
        a->v[b] = head_data(t, layer, head, SIDE_V, first + b);
        a->next[b] = a->next[b] != NULL ? a->next[b] : a->k[b];
    }
    a->dim = t->store->groups * GROUP;
    (t->store->type == CACHE_F16 ? kernels->attend_f16 : kernels->attend_q8)(a);
}
