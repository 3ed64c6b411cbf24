/* The matrix kernels of all packs of codes, made from one: a set that includes this has defined
 * matmul_codes(groups, n_groups, panel, out, pack). A new pack of codes is a line here. */
#ifndef FADER_ENGINE_KERNELS_CODES_H
#define FADER_ENGINE_KERNELS_CODES_H

#include "engine/kernels.h"

#define FOR_PACKS_OF_CODES(X)                                                                      \
    X(Q4_0)                                                                                        \
    X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(IQ4_NL) X(Q4_K) X(Q5_K) X(Q6_K) X(Q3_K) X(Q2_K) X(IQ4_XS)

#define MATMUL_OF_PACK(name)                                                                       \
    static void matmul_##name(const uint8_t *groups, size_t n_groups, const struct panel *a,       \
                              float *out)                                                          \
    {                                                                                              \
        matmul_codes(groups, n_groups, a, out, PACK_##name);                                       \
    }
FOR_PACKS_OF_CODES(MATMUL_OF_PACK)

/* For the set's table. */
#define MATMUL_ENTRY(name) [PACK_##name] = matmul_##name,

#endif
