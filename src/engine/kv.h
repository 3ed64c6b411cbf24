/* The KV cache: blocks of KERNEL_POSITIONS positions (all layers and heads), counted and copied on
 * write.
 *
 * A kv_store hands out blocks of one shape; a kv_table maps the positions of one session to blocks.
 * Tables share blocks (kv_table_share) until one of them wants to write: kv_table_reserve then
 * gives it a copy. One thread at a time uses a store and its tables; between two reserves any
 * thread may write different positions and heads, or read those written before a barrier.
 *
 * Inside a block, K and V of a layer and head are groups of 32 dimensions (head_dim rounded up to 32,
 * the rest is 0), laid out as kernels.h says. K stands transposed, so that a vector is the positions
 * of one dimension. What is read beyond the written positions is finite, and gets weight 0. Blocks
 * are placed so that the same group of the blocks of a segment lies in one stretch, as long as the
 * segment was written at a time when no other table grew.
 *
 * Life cycle: kv_store_new -> kv_table_init -> reserve, write, attend, truncate -> kv_table_done ->
 * kv_store_free. */
#ifndef FADER_ENGINE_KV_H
#define FADER_ENGINE_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/kernels.h"

struct kv_store;
struct kv_block;

struct kv_table {
    struct kv_store *store;   /* borrowed */
    struct kv_block **blocks; /* [n], owned references */
    size_t n, cap;
};

struct kv_store *kv_store_new(size_t n_layer, size_t n_kv_head, size_t head_dim,
                              enum cache_type type);
void kv_store_free(struct kv_store *store); /* every table must be done; NULL is fine */
size_t kv_store_block_bytes(const struct kv_store *store);

void kv_table_init(struct kv_table *t, struct kv_store *store);
void kv_table_done(struct kv_table *t);
void kv_table_share(struct kv_table *t, const struct kv_table *from); /* t is empty */

/* Makes positions from .. to - 1 writable: new blocks where there are none, copies of shared ones.
 * False when memory lacks; the table is then as good as before. */
bool kv_table_reserve(struct kv_table *t, size_t from, size_t to);
void kv_table_truncate(struct kv_table *t, size_t length);

/* Stores one position of one head; k and v are [dim], zero beyond head_dim. */
void kv_write(const struct kv_table *t, const struct kernels *kernels, size_t layer, size_t head,
              size_t position, const float *k, const float *v);

/* Attends to a segment (KERNEL_SEGMENT): fills in where K and V are, and runs the kernel. */
void kv_attend(const struct kv_table *t, const struct kernels *kernels, size_t layer, size_t head,
               size_t segment, struct attend *a);

/* Says which segment comes after that. */
void kv_expect(const struct kv_table *t, size_t layer, size_t head, size_t segment,
               struct attend *a);

/* head_dim as the cache and the attention kernels see it. */
static inline size_t kv_dim(size_t head_dim)
{
    return (head_dim + KERNEL_BLOCK - 1) / KERNEL_BLOCK * KERNEL_BLOCK;
}

#endif
