#include "config.h"

#include "engine/model.h"

/* Bytes and elements of the smallest unit of each cache type. */
static const struct {
    uint32_t bytes, elements;
} units[] = {
    [CACHE_F16] = {2, 1},
    [CACHE_Q8_0] = {34, 32}, /* 32 codes and their scale, a half */
};

struct ledger ledger_compute(int32_t layers, int32_t heads, int32_t kv_heads, int32_t head_dim,
                             int32_t ctx, enum cache_type type)
{
    struct ledger l = {
        .layers = layers, .heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .ctx = ctx};
    uint64_t values = 2 * (uint64_t)layers * (uint64_t)head_dim; /* K and V of one head, a token */

    l.bytes_per_element = (double)units[type].bytes / units[type].elements;
    l.bytes_per_token = values * (uint64_t)kv_heads * units[type].bytes / units[type].elements;
    l.total_bytes = l.bytes_per_token * (uint64_t)ctx;
    l.mha_total_bytes =
        values * (uint64_t)heads * units[type].bytes / units[type].elements * (uint64_t)ctx;
    return l;
}

struct ledger model_ledger(const struct model *m, int32_t ctx, enum cache_type type)
{
    const struct model_info *i = &m->info;

    return ledger_compute(i->n_layer, i->n_head, i->n_kv_head, i->head_dim, ctx, type);
}
