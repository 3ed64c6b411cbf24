/* Kernels: each set against the portable one, bit for bit; the portable one against plain f64. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "blocks.h"
#include "engine/exp.h"
#include "engine/kernels.h"
#include "engine/quant.h"
#include "engine/repack.h"

enum { TOKENS_MAX = KERNEL_PANEL, BLOCKS_MAX = 24, GROUPS_MAX = 5 };

/* ---- random things -------------------------------------------------------------------------- */

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint32_t random_u32(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static size_t random_below(size_t n)
{
    return random_u32() % n;
}

/* In (-scale, scale). */
static float random_float(float scale)
{
    return ((float)(random_u32() >> 8) * 0x1p-23f - 1.0f) * scale;
}

static void fill_floats(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_float(scale);
}

static void fill_bytes(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)random_u32();
}

/* ---- the sets ------------------------------------------------------------------------------- */

static const struct kernels *sets[4];
static size_t n_sets;

/* All sets but the scalar one that this computer bears. */
static int find_sets(void **ctx)
{
    static const char *const names[] = {"avx2", "avx512", "neon", "dotprod"};
    struct error err;

    (void)ctx;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("FADER_KERNELS", names[i], 1);
        const struct kernels *k = kernels_choose(&err);
        if (k != NULL)
            sets[n_sets++] = k;
    }
    unsetenv("FADER_KERNELS");
    return 0;
}

static void assert_same(const char *what, const struct kernels *k, const void *a, const void *b,
                        size_t bytes)
{
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s of %s differs from the scalar kernel", what, k->name);
}

/* ---- matrices ------------------------------------------------------------------------------- */

/* Tokens side by side, cycled through by round; then weights, and activations, at the limits of
 * what codes and scales can be. */
static const size_t counts[] = {1, 2, 3, 5, 8, 31, 101, TOKENS_MAX};
enum { N_COUNTS = sizeof counts / sizeof *counts, ROUNDS = 8 * N_COUNTS };

/* A random matrix in the file's form, as a tensor, and activations, in both forms. */
struct problem {
    const struct quant_traits *type;
    struct gguf_tensor tensor;
    struct matrix matrix;
    uint8_t *packed;
    struct panel panel;
    float x[TOKENS_MAX][BLOCKS_MAX * KERNEL_BLOCK];
    float f32[TOKENS_MAX * BLOCKS_MAX * KERNEL_BLOCK];
    int8_t q[TOKENS_MAX * BLOCKS_MAX * KERNEL_BLOCK];
    struct act_scale scale[TOKENS_MAX * BLOCKS_MAX];
};

static uint8_t extreme_byte(void)
{
    static const uint8_t bytes[] = {0x00, 0xFF, 0x7F, 0x80, 0x0F, 0xF0};

    return bytes[random_below(sizeof bytes)];
}

/* Random bytes are all right as codes and scales; halves and floats have to be numbers. */
static void fill_block(const struct quant_traits *t, uint8_t *data, bool extreme)
{
    const struct block_parts *p = block_parts_find(t->id);
    float value = random_float(1.0f);

    fill_bytes(data, t->block_bytes);
    if (t->id == QUANT_F32) {
        memcpy(data, &value, sizeof value);
    } else if (p == NULL) {
        uint16_t half = t->id == QUANT_BF16 ? quant_f32_to_bf16(value) : quant_f32_to_f16(value);
        memcpy(data, &half, sizeof half);
    } else {
        if (extreme) {
            memset(data, extreme_byte(), t->block_bytes);
            memset(data + p->scales_at, extreme_byte(), p->n_scales);
        }
        block_set_half(data + p->d_at, value);
        if (p->m_at > 0)
            block_set_half(data + p->m_at, random_float(1.0f));
    }
}

static void make_matrix(struct problem *p, size_t rows, size_t cols, bool extreme)
{
    struct error err;
    size_t bytes = rows * quant_row_bytes(p->type, cols);
    uint8_t *data = mem_alloc(bytes);

    for (size_t at = 0; at < bytes; at += p->type->block_bytes)
        fill_block(p->type, data + at, extreme);
    p->tensor = (struct gguf_tensor){.name = "random",
                                     .type = p->type->id,
                                     .n_dims = 2,
                                     .dims = {cols, rows, 1, 1},
                                     .n_elements = rows * cols,
                                     .data = data,
                                     .bytes = bytes};
    assert_true(matrix_init(&p->matrix, &p->tensor, &kernels_scalar, &err));
    p->packed = mem_alloc(p->matrix.n_groups * p->matrix.group_bytes + 4096);
    for (size_t g = 0; g < p->matrix.n_groups; g += KERNEL_CHUNK)
        matrix_pack(&p->matrix, g, matrix_chunk_groups(&p->matrix, g),
                    p->packed + g * p->matrix.group_bytes);
    p->matrix.data = p->packed;
}

/* Of one token. Codes are +-127 when all are as large as the largest. */
static void fill_activations(float *x, size_t n, bool extreme)
{
    size_t style = random_below(3);

    fill_floats(x, n, 3.0f);
    for (size_t i = 0; i < n && extreme; i++)
        x[i] = style == 0 ? 3.0f : style == 1 ? -3.0f : x[i] < 0 ? -3.0f : 3.0f;
}

static void make_panel(struct problem *p, size_t n, bool extreme)
{
    size_t cols = p->matrix.padded_cols;

    p->panel = (struct panel){n, cols, p->q, p->scale, p->f32};
    for (size_t t = 0; t < n; t++) {
        memset(p->x[t], 0, sizeof p->x[t]);
        fill_activations(p->x[t], p->matrix.cols, extreme);
        kernels_scalar.quantize(p->x[t], cols / 32, n, p->q + t * 32, p->scale + t);
        for (size_t c = 0; c < cols; c++)
            p->f32[(c / 32 * n + t) * 32 + c % 32] = p->x[t][c];
    }
}

/* A few blocks; floats need no whole ones. */
static size_t random_cols(const struct quant_traits *t)
{
    if (t->block_elements == 1)
        return 1 + random_below(BLOCKS_MAX * 32);
    return (1 + random_below(t->block_elements == 32 ? 7 : BLOCKS_MAX / 8)) * t->block_elements;
}

static void problem_init(struct problem *p, uint32_t type, size_t round)
{
    size_t limits = round / N_COUNTS;

    p->type = quant_find(type);
    make_matrix(p, 1 + random_below(GROUPS_MAX * 8), random_cols(p->type), limits % 2 == 1);
    make_panel(p, counts[round % N_COUNTS], limits % 4 >= 2);
}

static void problem_done(struct problem *p)
{
    free((void *)(uintptr_t)p->tensor.data);
    free(p->packed);
}

/* All types, all rounds. */
static void for_problems(void (*check)(const struct problem *p, size_t round))
{
    static struct problem p;

    for (size_t i = 0; i < N_WEIGHT_TYPES * ROUNDS; i++) {
        problem_init(&p, weight_types[i / ROUNDS], i % ROUNDS);
        check(&p, i % ROUNDS);
        problem_done(&p);
    }
}

static void check_sets(const struct problem *p, size_t round)
{
    float a[GROUPS_MAX * TOKENS_MAX * 8], b[GROUPS_MAX * TOKENS_MAX * 8];
    size_t n_groups = p->matrix.n_groups, bytes = n_groups * p->panel.n * 8 * sizeof *a;

    (void)round;
    kernels_scalar.matmul[p->matrix.pack](p->packed, n_groups, &p->panel, a);
    for (size_t k = 0; k < n_sets; k++) {
        memset(b, 0xFF, sizeof b);
        sets[k]->matmul[p->matrix.pack](p->packed, n_groups, &p->panel, b);
        assert_same(p->type->name, sets[k], a, b, bytes);
    }
}

static void test_matmul_sets(void **ctx)
{
    (void)ctx;
    for_problems(check_sets);
}

/* What is computed beside a row or token must not show in its bits. */
static void check_alone(const struct problem *p, size_t round)
{
    const struct kernels *k =
        round % (n_sets + 1) == 0 ? &kernels_scalar : sets[round % (n_sets + 1) - 1];
    size_t n = p->panel.n, t = random_below(n), g = random_below(p->matrix.n_groups);
    float all[GROUPS_MAX * TOKENS_MAX * 8], alone[8], f32[BLOCKS_MAX * 32];
    int8_t q[BLOCKS_MAX * 32];
    struct act_scale scale[BLOCKS_MAX];
    struct panel one = {1, p->panel.cols, q, scale, f32};
    uint8_t *group = mem_alloc(p->matrix.group_bytes + 4096);

    for (size_t b = 0; b < p->panel.cols / 32; b++) {
        memcpy(f32 + b * 32, p->f32 + (b * n + t) * 32, 32 * sizeof *f32);
        memcpy(q + b * 32, p->q + (b * n + t) * 32, 32);
        scale[b] = p->scale[b * n + t];
    }
    k->matmul[p->matrix.pack](p->packed, p->matrix.n_groups, &p->panel, all);
    matrix_pack(&p->matrix, g, 1, group);
    k->matmul[p->matrix.pack](group, 1, &one, alone);
    free(group);
    assert_memory_equal(alone, all + (g * n + t) * 8, sizeof alone);
}

static void test_matmul_alone(void **ctx)
{
    (void)ctx;
    for_problems(check_alone);
}

/* The scalar kernel against the definition: dequantised weights times dequantised activations. */
static void check_truth(const struct problem *p, size_t round)
{
    float out[GROUPS_MAX * TOKENS_MAX * 8], row[BLOCKS_MAX * 32];
    size_t n = p->panel.n, y = random_below(p->matrix.rows);

    (void)round;
    kernels_scalar.matmul[p->matrix.pack](p->packed, p->matrix.n_groups, &p->panel, out);
    p->type->dequantize_row((const uint8_t *)p->tensor.data +
                                y * quant_row_bytes(p->type, p->matrix.cols),
                            row, p->matrix.cols);
    for (size_t t = 0; t < n; t++) {
        double sum = 0, size = 0, largest = 0;
        for (size_t c = 0; c < p->matrix.cols; c++) {
            size_t b = c / 32 * n + t;
            double x = matrix_reads_floats(&p->matrix)
                           ? (double)p->x[t][c]
                           : (double)p->scale[b].d * p->q[b * 32 + c % 32];
            sum += x * (double)row[c];
            size += fabs(x);
            largest = fmax(largest, fabs((double)row[c]));
        }
        assert_near((double)out[(y / 8 * n + t) * 8 + y % 8], sum, 1e-6 * size * largest + 1e-6);
    }
}

static void test_matmul_truth(void **ctx)
{
    (void)ctx;
    for_problems(check_truth);
}

/* Packing loses nothing: rows come back exactly, packed or not. */
static void check_repack(const struct problem *p, size_t round)
{
    float a[BLOCKS_MAX * 32], b[BLOCKS_MAX * 32], c[BLOCKS_MAX * 32];
    struct matrix m = p->matrix;
    size_t y = round % m.rows;

    p->type->dequantize_row((const uint8_t *)p->tensor.data + y * quant_row_bytes(p->type, m.cols),
                            a, m.cols);
    memset(b, 0xFF, sizeof b);
    memset(c, 0xFF, sizeof c);
    matrix_row(&m, y, b);
    m.data = NULL;
    matrix_row(&m, y, c);
    assert_memory_equal(a, b, m.cols * sizeof *a);
    assert_memory_equal(b, c, m.padded_cols * sizeof *b);
    for (size_t x = m.cols; x < m.padded_cols; x++)
        assert_true(b[x] == 0.0f);
}

/* All sets pack to the same bytes. */
static void check_pack(const struct problem *p, size_t round)
{
    struct matrix m = p->matrix;
    uint8_t *chunk = mem_alloc(KERNEL_CHUNK * m.group_bytes);

    (void)round;
    for (size_t k = 0; k < n_sets; k++) {
        m.pack_blocks = sets[k]->pack[m.pack];
        for (size_t g = 0; g < m.n_groups; g += KERNEL_CHUNK) {
            size_t n = matrix_chunk_groups(&m, g);
            memset(chunk, 0xFF, n * m.group_bytes);
            matrix_pack(&m, g, n, chunk);
            assert_same(p->type->name, sets[k], p->packed + g * m.group_bytes, chunk,
                        n * m.group_bytes);
        }
    }
    free(chunk);
}

static void test_repack(void **ctx)
{
    (void)ctx;
    for_problems(check_pack);
    for_problems(check_repack);
}

/* ---- vectors -------------------------------------------------------------------------------- */

enum { N_MAX = 320 };

static void test_quantize(void **ctx)
{
    static const float scales[] = {1.0f, 1e-3f, 1e4f, 1e-20f, 1e-32f, 1e30f, 0.0f};
    float x[N_MAX];
    int8_t a[N_MAX * 2], b[N_MAX * 2];
    struct act_scale sa[N_MAX / 32 * 2], sb[N_MAX / 32 * 2];

    (void)ctx;
    for (size_t i = 0; i < 70; i++) {
        memset(a, 0, sizeof a);
        memset(sa, 0, sizeof sa);
        memset(b, 0, sizeof b);
        memset(sb, 0, sizeof sb);
        fill_floats(x, N_MAX, scales[i % 7]);
        kernels_scalar.quantize(x, N_MAX / 32, 2, a, sa);
        for (size_t k = 0; k < n_sets; k++) {
            sets[k]->quantize(x, N_MAX / 32, 2, b, sb);
            assert_same("quantize", sets[k], a, b, sizeof a);
            assert_same("quantize", sets[k], sa, sb, sizeof sa);
        }
        for (size_t j = 0; j < N_MAX; j++) { /* within half a step */
            const struct act_scale *s = &sa[j / 32 * 2];
            double back = (double)s->d * a[j / 32 * 64 + j % 32];
            assert_near(back, (double)x[j], 0.5001 * (double)s->d + 1e-29);
        }
    }
}

static void test_rms_norm(void **ctx)
{
    float x[N_MAX] = {0}, w[N_MAX] = {0}, a[N_MAX], b[N_MAX];

    (void)ctx;
    for (size_t n = 1; n <= N_MAX; n += 1 + random_below(9)) {
        size_t padded = (n + 31) / 32 * 32;
        double sum = 0;
        memset(x, 0, sizeof x);
        fill_floats(x, n, 5.0f);
        fill_floats(w, n, 2.0f);
        for (size_t i = 0; i < n; i++)
            sum += (double)x[i] * (double)x[i];
        kernels_scalar.rms_norm(x, w, n, 1e-5f, a);
        for (size_t k = 0; k < n_sets; k++) {
            sets[k]->rms_norm(x, w, n, 1e-5f, b);
            assert_same("rms_norm", sets[k], a, b, padded * sizeof *a);
        }
        for (size_t i = 0; i < n; i++)
            assert_near((double)a[i], (double)x[i] / sqrt(sum / (double)n + 1e-5) * (double)w[i],
                        1e-5);
    }
}

/* silu, sums, scaling, halves: every length up to N_MAX or so. */
static void test_elementwise(void **ctx)
{
    float x[N_MAX], y[N_MAX], a[N_MAX], b[N_MAX];
    uint16_t ha[N_MAX], hb[N_MAX];

    (void)ctx;
    for (size_t n = 1; n < N_MAX; n += 1 + random_below(5)) {
        fill_floats(x, n, n % 3 == 0 ? 200.0f : 8.0f);
        fill_floats(y, n, n % 7 == 0 ? 1e6f : 2.0f);
        for (size_t k = 0; k < n_sets; k++) {
            memcpy(a, x, sizeof a);
            memcpy(b, x, sizeof b);
            kernels_scalar.silu_mul(a, y, n);
            sets[k]->silu_mul(b, y, n);
            assert_same("silu_mul", sets[k], a, b, n * sizeof *a);
            kernels_scalar.add(a, y, n);
            sets[k]->add(b, y, n);
            kernels_scalar.scale(a, 0.3f, n);
            sets[k]->scale(b, 0.3f, n);
            assert_same("add or scale", sets[k], a, b, n * sizeof *a);
            kernels_scalar.float_to_half(y, ha, n);
            sets[k]->float_to_half(y, hb, n);
            assert_same("float_to_half", sets[k], ha, hb, n * sizeof *ha);
        }
        for (size_t i = 0; i < n; i++) {
            memcpy(a, x, sizeof a);
            kernels_scalar.silu_mul(a, y, n);
            double silu = (double)x[i] / (1.0 + exp(-(double)x[i]));
            assert_near((double)a[i], silu * (double)y[i],
                        1e-6 * fabs((double)x[i] * (double)y[i]) + 1e-25);
        }
    }
}

static void test_rope(void **ctx)
{
    static const size_t dims[] = {2, 6, 8, 16, 20, 24, 64, 80, 128};
    float x[128], cosine[128], sine[128], a[128], b[128];

    (void)ctx;
    for (size_t i = 0; i < 2 * sizeof dims / sizeof *dims; i++) {
        size_t dim = dims[i / 2];
        bool halves = i % 2 == 1;
        fill_floats(x, dim, 2.0f);
        for (size_t p = 0; p < dim / 2; p++) {
            size_t u = halves ? p : 2 * p, v = halves ? p + dim / 2 : 2 * p + 1;
            double angle = (double)random_float(100.0f);
            cosine[u] = cosine[v] = (float)cos(angle);
            sine[v] = (float)sin(angle);
            sine[u] = -sine[v];
        }
        memcpy(a, x, sizeof a);
        kernels_scalar.rope(a, cosine, sine, dim, halves);
        for (size_t k = 0; k < n_sets; k++) {
            memcpy(b, x, sizeof b);
            sets[k]->rope(b, cosine, sine, dim, halves);
            assert_same("rope", sets[k], a, b, dim * sizeof *a);
        }
        size_t v = halves ? dim / 2 : 1;
        assert_near((double)a[0], (double)(x[0] * cosine[0]) - (double)(x[v] * sine[v]), 1e-5);
        assert_near((double)a[v], (double)(x[v] * cosine[v]) + (double)(x[0] * sine[v]), 1e-5);
    }
}

static void test_exp(void **ctx)
{
    (void)ctx;
    for (float x = -85.9f; x < 87.9f; x += 0.00713f)
        assert_near((double)exp_approx(x) / exp((double)x), 1.0, 2e-7);
    assert_true(exp_approx(0.0f) == 1.0f);
    assert_true(exp_approx(-INFINITY) == 0.0f);
    assert_true(exp_approx(-86.1f) == 0.0f);
    assert_true(isfinite(exp_approx(1e9f)));
}

/* ---- attention ------------------------------------------------------------------------------ */

enum {
    QUERIES = 13,
    DIM_MAX = 128,
    BLOCKS = KERNEL_SEGMENT_BLOCKS,
    PART_MAX = DIM_MAX / 32 * KERNEL_HALVES,
    ATTENTION_ROUNDS = 200
};

struct attention {
    bool codes;
    size_t dim, n;
    uint8_t k[BLOCKS][PART_MAX], v[BLOCKS][PART_MAX];
    uint16_t visible[QUERIES];
    float q[QUERIES * DIM_MAX];
    struct {
        float m[QUERIES], l[QUERIES], o[QUERIES * DIM_MAX];
    } out;
};

/* Random bytes are all right as codes, but for -128; not as scales and not as halves. */
static void fill_part(const struct attention *t, uint8_t *part, float scale)
{
    size_t group = t->codes ? KERNEL_CODES : KERNEL_HALVES;
    bool extreme = random_below(4) == 0;

    fill_bytes(part, t->dim / 32 * group);
    for (size_t i = 0; i < t->dim / 32 * group; i++) {
        bool in_scales = i % group < KERNEL_LINE;
        if (!t->codes && i % 2 == 0)
            block_set_half(part + i, random_float(scale));
        else if (t->codes && in_scales && i % 2 == 0)
            block_set_half(part + i, fabsf(random_float(scale / 127)));
        else if (t->codes && !in_scales && (extreme || part[i] == 128))
            part[i] = part[i] < 128 ? 127 : 129;
    }
}

static void random_attention(struct attention *t)
{
    static const size_t dims[] = {32, 64, 96, 128};

    memset(t, 0, sizeof *t);
    t->codes = random_below(2) == 0;
    t->dim = dims[random_below(4)];
    t->n = 1 + random_below(QUERIES);
    fill_floats(t->q, t->n * t->dim, random_below(4) == 0 ? 2.0f : 0.3f);
    for (size_t b = 0; b < BLOCKS; b++) {
        fill_part(t, t->k[b], 2.0f);
        fill_part(t, t->v[b], 4.0f);
    }
    size_t most = 1 + random_below(KERNEL_SEGMENT);
    for (size_t i = 0; i < t->n; i++)
        t->visible[i] = (uint16_t)(random_below(2) == 0 ? most : 1 + random_below(most));
}

static void run_attention(struct attention *t, const struct kernels *k)
{
    struct attend a = {.dim = t->dim,
                       .n = t->n,
                       .q = t->q,
                       .visible = t->visible,
                       .m = t->out.m,
                       .l = t->out.l,
                       .o = t->out.o};
    size_t seen = 0;

    for (size_t i = 0; i < t->n; i++)
        seen = t->visible[i] > seen ? t->visible[i] : seen;
    for (size_t b = 0; b * KERNEL_POSITIONS < seen; b++) { /* no others may be read */
        a.k[b] = t->k[b];
        a.v[b] = t->v[b];
        a.next[b] = t->k[b];
    }
    memset(&t->out, 0xFF, sizeof t->out);
    (t->codes ? k->attend_q8 : k->attend_f16)(&a);
}

static double read_half_at(const uint8_t *p)
{
    uint16_t half;

    memcpy(&half, p, sizeof half);
    return (double)quant_f16_to_f32(half);
}

/* The number of dimension d and position p, by the description in kernels.h. */
static double cache_value(const struct attention *t, bool is_v, size_t d, size_t p)
{
    size_t line = is_v ? p % 32 : d % 32, place = is_v ? d % 32 : p % 32;
    const uint8_t *group = (is_v ? t->v : t->k)[p / 32];

    if (!t->codes)
        return read_half_at(group + d / 32 * KERNEL_HALVES + line * 64 + place * 2);
    group += d / 32 * KERNEL_CODES;
    return read_half_at(group + p % 32 * 2) *
           (int8_t)group[64 + line / 2 * 64 + place * 2 + line % 2];
}

static void check_attention(const struct attention *t, size_t i)
{
    double score[KERNEL_SEGMENT], top = -1e300, total = 0;

    for (size_t p = 0; p < t->visible[i]; p++) {
        score[p] = 0;
        for (size_t d = 0; d < t->dim; d++)
            score[p] += (double)t->q[i * t->dim + d] * cache_value(t, false, d, p);
        top = score[p] > top ? score[p] : top;
    }
    assert_near((double)t->out.m[i], top, t->codes ? 1e-3 : 1e-4);
    for (size_t p = 0; p < t->visible[i]; p++)
        total += score[p] = exp(score[p] - top);
    for (size_t d = 0; d < t->dim; d++) {
        double sum = 0;
        for (size_t p = 0; p < t->visible[i]; p++)
            sum += score[p] / total * cache_value(t, true, d, p);
        assert_near((double)(t->out.o[i * t->dim + d] / t->out.l[i]), sum, t->codes ? 2e-3 : 1e-4);
    }
}

static void test_attention(void **ctx)
{
    static struct attention a, b;

    (void)ctx;
    for (size_t round = 0; round < ATTENTION_ROUNDS; round++) {
        random_attention(&a);
        run_attention(&a, &kernels_scalar);
        check_attention(&a, random_below(a.n));
        for (size_t k = 0; k < n_sets; k++) {
            b = a;
            run_attention(&b, sets[k]);
            assert_same(a.codes ? "attend_q8" : "attend_f16", sets[k], &a.out, &b.out,
                        sizeof a.out);
        }
    }
}

/* A query and weights of nothing, and scales of nothing: no division by 0. */
static void test_attention_to_nothing(void **ctx)
{
    static struct attention a;

    (void)ctx;
    for (size_t k = 0; k <= n_sets; k++) {
        memset(&a, 0, sizeof a);
        a.codes = true;
        a.dim = 64;
        a.n = 1;
        a.visible[0] = 40;
        run_attention(&a, k < n_sets ? sets[k] : &kernels_scalar);
        assert_true(a.out.m[0] == 0.0f && a.out.l[0] == 40.0f);
        for (size_t d = 0; d < a.dim; d++)
            assert_true(a.out.o[d] == 0.0f);
    }
}

/* Two runs of positions joined give what one run over both gives. */
static void test_merge(void **ctx)
{
    float m = 1.5f, l = 2.0f, o[64], m2, l2, o2[64], expected[64];

    (void)ctx;
    for (size_t i = 0; i < 100; i++) {
        float ma = random_float(60.0f), mb = random_float(60.0f), la = 1.0f + random_float(0.9f);
        double top = fmax((double)ma, (double)mb), ca = exp((double)ma - top),
               cb = exp((double)mb - top);
        m = ma;
        l = la;
        fill_floats(o, 64, 3.0f);
        fill_floats(o2, 64, 3.0f);
        float first = o[0];
        memcpy(expected, o, sizeof o);
        kernels_scalar.merge(&m, &l, expected, mb, 2.0f, o2, 64);
        assert_near((double)l, (double)la * ca + 2.0 * cb, 1e-5);
        assert_near((double)expected[0], (double)first * ca + (double)o2[0] * cb, 1e-5);
        for (size_t k = 0; k < n_sets; k++) {
            float copy[64];
            m2 = ma;
            l2 = la;
            memcpy(copy, o, sizeof o);
            sets[k]->merge(&m2, &l2, copy, mb, 2.0f, o2, 64);
            assert_same("merge", sets[k], expected, copy, sizeof copy);
            assert_true(m2 == m && l2 == l);
        }
    }
}

/* ---- the choice ----------------------------------------------------------------------------- */

static void test_choice(void **ctx)
{
    struct error err;

    (void)ctx;
    setenv("FADER_KERNELS", "scalar", 1);
    assert_ptr_equal(kernels_choose(&err), &kernels_scalar);
    setenv("FADER_KERNELS", "sse9", 1);
    assert_null(kernels_choose(&err));
    assert_non_null(strstr(err.text, "FADER_KERNELS=sse9"));
    setenv("FADER_KERNELS", "", 1);
    assert_non_null(kernels_choose(&err));
    unsetenv("FADER_KERNELS");
    assert_ptr_equal(kernels_choose(&err), n_sets > 0 ? sets[n_sets - 1] : &kernels_scalar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_sets),
        cmocka_unit_test(test_matmul_alone),
        cmocka_unit_test(test_matmul_truth),
        cmocka_unit_test(test_repack),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_rms_norm),
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_to_nothing),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_choice),
    };

    return cmocka_run_group_tests(tests, find_sets, NULL);
}
