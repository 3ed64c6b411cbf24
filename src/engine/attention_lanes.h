/* Attention for one instruction set. Whoever includes this has defined, for vectors of VEC floats:
 *   vec, words, pairs   VEC floats; VEC 32-bit integers; VEC pairs of 16-bit integers
 *   vec_load, vec_store, vec_set, vec_add, vec_sub, vec_mul, vec_fma, vec_max, vec_abs, vec_exp
 *   vec_top, vec_total  the largest lane; the sum of 16 lanes, as the scalar twin adds them
 *   vec_seen            v, but -INFINITY from lane `n` on
 *   vec_halves          VEC halves as floats
 *   vec_words           integers as floats
 *   words_zero, words_dot   sum + the products of VEC pairs of 16-bit numbers with one pair
 *   codes_load          VEC pairs of signed bytes as 16-bit numbers
 *   codes_store         VEC floats rounded to 16-bit numbers
 * A tile, some vectors of positions (or of dimensions) times some queries, stays in registers. */
#ifndef FADER_ENGINE_ATTENTION_LANES_H
#define FADER_ENGINE_ATTENTION_LANES_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    POSITIONS = KERNEL_POSITIONS,
    SEGMENT = KERNEL_SEGMENT,
    LINE = KERNEL_LINE,
    MANY = 6,        /* most queries of a tile */
    COLUMNS = 4,     /* most vectors of a tile */
    SUMS = 16 / VEC, /* vectors whose lanes make 16 partial sums */
    DIM_MAX = KERNEL_DIM_MAX
};

/* n queries times `columns` vectors: constants wherever they are handed on. */
struct tile {
    vec v[MANY][COLUMNS];
};

struct sums {
    words v[MANY][COLUMNS];
};

/* Some queries, and what of theirs is in the works. */
struct some {
    const struct attend *a;
    size_t at, blocks;           /* first query; blocks that one of them sees */
    float weight[MANY][SEGMENT]; /* scores, then exp(score - m) */
    int16_t query[MANY][DIM_MAX], code[MANY][SEGMENT]; /* codes of queries and of weights */
    float query_scale[MANY], scale[MANY];              /* what they stand for */
};

/* While a line is read, the one in the same place of the next part (V after K, K of the next segment
 * after V) is on its way to the second level. */
INLINE void fetch(const uint8_t *next, size_t line)
{
    __builtin_prefetch(next + line * LINE, 0, 2);
}

/* ---- halves ---------------------------------------------------------------------------------- */

INLINE struct tile zero_tile(size_t n, size_t columns)
{
    struct tile t;

#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++) {
#pragma GCC unroll 4
        for (size_t c = 0; c < columns; c++)
            t.v[i][c] = vec_set(0.0f);
    }
    return t;
}

/* Adds the products of x[i * step] and the halves of a row, by vectors or by queries: the loop
 * inside is the one whose numbers stay in registers, and these are few. */
INLINE void add_halves(struct tile *t, size_t n, size_t columns, const float *x, size_t step,
                       const uint8_t *row)
{
    vec values[COLUMNS];

#pragma GCC unroll 4
    for (size_t c = 0; c < columns; c++) {
        values[c] = vec_halves(row + 2 * c * VEC);
#pragma GCC unroll 6
        for (size_t i = 0; i < n && n < columns; i++)
            t->v[i][c] = vec_fma(vec_set(x[i * step]), values[c], t->v[i][c]);
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < n && n >= columns; i++) {
        vec by = vec_set(x[i * step]);
#pragma GCC unroll 4
        for (size_t c = 0; c < columns; c++)
            t->v[i][c] = vec_fma(by, values[c], t->v[i][c]);
    }
}

INLINE void store_tile(const struct tile *t, size_t n, size_t columns, float *to, size_t step)
{
#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++) {
#pragma GCC unroll 4
        for (size_t c = 0; c < columns; c++)
            vec_store(to + i * step + c * VEC, t->v[i][c]);
    }
}

INLINE void scores_of_halves(struct some *s, size_t n, size_t columns)
{
    const struct attend *a = s->a;
    const float *q = a->q + s->at * a->dim;

    for (size_t b = 0; b < s->blocks; b++) {
        for (size_t p = 0; p < POSITIONS; p += columns * VEC) {
            const uint8_t *k = a->k[b] + 2 * p, *v = a->v[b];
            struct tile t = zero_tile(n, columns);
            for (size_t d = 0; d < a->dim; d++) {
                fetch(v, d);
                add_halves(&t, n, columns, q + d, a->dim, k + d * LINE);
            }
            store_tile(&t, n, columns, s->weight[0] + b * POSITIONS + p, SEGMENT);
        }
    }
}

INLINE void values_of_halves(struct some *s, size_t n, size_t columns)
{
    const struct attend *a = s->a;

    for (size_t d = 0; d < a->dim; d += columns * VEC) {
        size_t first = d / BLOCK * POSITIONS;
        struct tile t = zero_tile(n, columns);
        for (size_t b = 0; b < s->blocks; b++) {
            const uint8_t *v = a->v[b] + first * LINE + d % BLOCK * 2, *next = a->next[b];
            for (size_t p = 0; p < POSITIONS; p++) {
                fetch(next, first + p);
                add_halves(&t, n, columns, s->weight[0] + b * POSITIONS + p, SEGMENT, v + p * LINE);
            }
        }
        store_tile(&t, n, columns, a->o + s->at * a->dim + d, a->dim);
    }
}

/* ---- codes ----------------------------------------------------------------------------------- */

INLINE struct sums zero_sums(size_t n, size_t columns)
{
    struct sums t;

#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++) {
#pragma GCC unroll 4
        for (size_t c = 0; c < columns; c++)
            t.v[i][c] = words_zero();
    }
    return t;
}

/* Adds the products of the pair at x + i * step and the pairs of a row. */
INLINE void add_codes(struct sums *t, size_t n, size_t columns, const int16_t *x, size_t step,
                      const uint8_t *row)
{
#pragma GCC unroll 4
    for (size_t c = 0; c < columns; c++) {
        pairs values = codes_load(row + 2 * c * VEC);
#pragma GCC unroll 6
        for (size_t i = 0; i < n; i++) {
            int32_t pair;
            memcpy(&pair, x + i * step, sizeof pair);
            t->v[i][c] = words_dot(t->v[i][c], values, pair);
        }
    }
}

/* As code_scale of the scalar twin. */
INLINE float code_scale(float largest, float *inverse)
{
    bool none = !(largest > 1e-30f);

    *inverse = none ? 0.0f : 32767.0f / largest;
    return none ? 0.0f : largest / 32767.0f;
}

INLINE void code_query(const struct attend *a, size_t at, int16_t *code, float *scale)
{
    const float *q = a->q + at * a->dim;
    vec top = vec_set(0.0f);
    float inverse;

    for (size_t d = 0; d < a->dim; d += VEC)
        top = vec_max(vec_abs(vec_load(q + d)), top);
    *scale = code_scale(vec_top(top), &inverse);
    for (size_t d = 0; d < a->dim; d += VEC)
        codes_store(code + d, vec_mul(vec_load(q + d), vec_set(inverse)));
}

/* Adds dots, each times the scales of key and query. */
INLINE void add_sums(struct tile *t, size_t n, size_t columns, const struct sums *sums,
                     const uint8_t *scales, const float *query_scale)
{
#pragma GCC unroll 4
    for (size_t c = 0; c < columns; c++) {
        vec scale = vec_halves(scales + 2 * c * VEC);
#pragma GCC unroll 6
        for (size_t i = 0; i < n; i++)
            t->v[i][c] = vec_fma(vec_words(sums->v[i][c]), vec_mul(scale, vec_set(query_scale[i])),
                                 t->v[i][c]);
    }
}

INLINE void scores_of_codes(struct some *s, size_t n, size_t columns)
{
    const struct attend *a = s->a;

    for (size_t i = 0; i < n; i++)
        code_query(a, s->at + i, s->query[i], &s->query_scale[i]);
    for (size_t b = 0; b < s->blocks; b++) {
        for (size_t p = 0; p < POSITIONS; p += columns * VEC) {
            const uint8_t *k = a->k[b], *v = a->v[b];
            struct tile t = zero_tile(n, columns);
            for (size_t d = 0; d < a->dim; d += BLOCK, k += KERNEL_CODES, v += KERNEL_CODES) {
                struct sums sums = zero_sums(n, columns);
                fetch(v, 0);
                for (size_t i = 0; i < BLOCK / 2; i++) {
                    fetch(v, 1 + i);
                    add_codes(&sums, n, columns, s->query[0] + d + 2 * i, DIM_MAX,
                              k + (1 + i) * LINE + 2 * p);
                }
                add_sums(&t, n, columns, &sums, k + 2 * p, s->query_scale);
            }
            store_tile(&t, n, columns, s->weight[0] + b * POSITIONS + p, SEGMENT);
        }
    }
}

/* Weights times the scales of V (of a group of dimensions, at `scales` in block 0), as codes. */
INLINE void code_weights(struct some *s, size_t n, size_t group)
{
    float scaled[MANY][SEGMENT], inverse[MANY];
    vec top[MANY];

#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++)
        top[i] = vec_set(0.0f);
    for (size_t p = 0; p < s->blocks * POSITIONS; p += VEC) {
        vec scale = vec_halves(s->a->v[p / POSITIONS] + group * KERNEL_CODES + p % POSITIONS * 2);
#pragma GCC unroll 6
        for (size_t i = 0; i < n; i++) {
            vec v = vec_mul(vec_load(s->weight[i] + p), scale);
            vec_store(scaled[i] + p, v);
            top[i] = vec_max(v, top[i]);
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++)
        s->scale[i] = code_scale(vec_top(top[i]), &inverse[i]);
    for (size_t p = 0; p < s->blocks * POSITIONS; p += VEC) {
#pragma GCC unroll 6
        for (size_t i = 0; i < n; i++)
            codes_store(s->code[i] + p, vec_mul(vec_load(scaled[i] + p), vec_set(inverse[i])));
    }
}

INLINE void values_of_codes(struct some *s, size_t n, size_t columns)
{
    const struct attend *a = s->a;

    for (size_t d = 0; d < a->dim; d += columns * VEC) {
        size_t group = d / BLOCK;
        struct sums t = zero_sums(n, columns);
        if (d % BLOCK == 0)
            code_weights(s, n, group);
        for (size_t b = 0; b < s->blocks; b++) {
            const uint8_t *v = a->v[b] + group * KERNEL_CODES,
                          *next = a->next[b] + group * KERNEL_CODES;
            fetch(next, 0);
            for (size_t i = 0; i < POSITIONS / 2; i++) {
                fetch(next, 1 + i);
                add_codes(&t, n, columns, s->code[0] + b * POSITIONS + 2 * i, SEGMENT,
                          v + (1 + i) * LINE + d % BLOCK * 2);
            }
        }
#pragma GCC unroll 6
        for (size_t i = 0; i < n; i++) {
#pragma GCC unroll 4
            for (size_t c = 0; c < columns; c++)
                vec_store(a->o + (s->at + i) * a->dim + d + c * VEC,
                          vec_mul(vec_words(t.v[i][c]), vec_set(s->scale[i])));
        }
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

/* As softmax of the scalar twin. */
INLINE void softmax(struct some *s, size_t n)
{
    const struct attend *a = s->a;
    size_t end = s->blocks * POSITIONS;

#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++) {
        float *score = s->weight[i];
        size_t visible = a->visible[s->at + i];
        vec top = vec_set(-INFINITY), sum[SUMS];
        for (size_t p = visible / VEC * VEC; p < end; p += VEC)
            vec_store(score + p, vec_seen(vec_load(score + p), visible > p ? visible - p : 0));
        for (size_t p = 0; p < end; p += VEC)
            top = vec_max(vec_load(score + p), top);
        float largest = vec_top(top);
        top = vec_set(largest);
        for (size_t j = 0; j < SUMS; j++)
            sum[j] = vec_set(0.0f);
        for (size_t p = 0; p < end; p += 16) {
            for (size_t j = 0; j < SUMS; j++) {
                vec v = vec_exp(vec_sub(vec_load(score + p + j * VEC), top));
                vec_store(score + p + j * VEC, v);
                sum[j] = vec_add(sum[j], v);
            }
        }
        a->m[s->at + i] = largest;
        a->l[s->at + i] = vec_total(sum);
    }
}

/* Queries at .. at + n - 1. Few of them leave registers for more columns of floats. */
INLINE void attend_some(const struct attend *a, size_t at, size_t n, bool codes)
{
    size_t columns = !codes && n <= 3 ? BLOCK / VEC : 2;
    struct some s;

    s.a = a;
    s.at = at;
    s.blocks = 0;
    for (size_t i = at; i < at + n; i++) {
        size_t blocks = ((size_t)a->visible[i] + POSITIONS - 1) / POSITIONS;
        s.blocks = blocks > s.blocks ? blocks : s.blocks;
    }
    if (codes)
        scores_of_codes(&s, n, columns);
    else
        scores_of_halves(&s, n, columns);
    softmax(&s, n);
    if (codes)
        values_of_codes(&s, n, columns);
    else
        values_of_halves(&s, n, columns);
}

INLINE void attend(const struct attend *a, bool codes)
{
    size_t most = codes && VEC == 8 ? 3 : MANY; /* sums and their floats share 16 registers there */

    for (size_t at = 0; at < a->n; at += most) {
        switch (a->n - at < most ? a->n - at : most) {
        case 1:
            attend_some(a, at, 1, codes);
            break;
        case 2:
            attend_some(a, at, 2, codes);
            break;
        case 3:
            attend_some(a, at, 3, codes);
            break;
        case 4:
            attend_some(a, at, 4, codes);
            break;
        case 5:
            attend_some(a, at, 5, codes);
            break;
        default:
            attend_some(a, at, MANY, codes);
            break;
        }
    }
}

#endif
