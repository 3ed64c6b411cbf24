/* What the matrix kernels of every set do, one core: products a second for panels of 1 to 128 tokens with the
 * weights in the cache, and bytes a second for one token with the weights in memory.
 *
 *   tests/bench/kernels [SET]...      all sets that this computer bears, unless named
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/kernels.h"
#include "engine/quant.h"
#include "engine/repack.h"

enum {
    COLS = 2048,
    CALL_GROUPS = 4,      /* as the forward pass calls them */
    CACHED = 256 << 10,   /* bytes that stay in L2 */
    STREAMED = 128 << 20, /* bytes that do not stay in any cache */
    REPEATS = 25
};

static const uint32_t types[] = {
    QUANT_Q4_0,   QUANT_Q4_1,   QUANT_Q5_0, QUANT_Q5_1, QUANT_Q8_0,
    QUANT_IQ4_NL, QUANT_Q2_K,   QUANT_Q3_K, QUANT_Q4_K, QUANT_Q5_K,
    QUANT_Q6_K,   QUANT_IQ4_XS, QUANT_F16,  QUANT_BF16, QUANT_F32,
};

static const size_t panels[] = {1, 2, 4, 8, 32, 128};

/* The largest panel there is; smaller ones use its beginning. */
static struct panel panel;
static float out[CALL_GROUPS * KERNEL_PANEL * KERNEL_LANES];

static void make_panel(void)
{
    size_t size = (size_t)COLS * KERNEL_PANEL, n_blocks = size / KERNEL_BLOCK;
    float *f32 = mem_alloc(size * sizeof *f32);
    int8_t *q = mem_alloc(size);
    struct act_scale *scale = mem_alloc(n_blocks * sizeof *scale);

    for (size_t i = 0; i < size; i++)
        f32[i] = (float)(i * 37 % 101) * 0.01f - 0.5f;
    kernels_scalar.quantize(f32, n_blocks, 1, q, scale);
    panel = (struct panel){.cols = COLS, .q = q, .scale = scale, .f32 = f32};
}

/* Any bytes are codes; these are also harmless as halves and as floats: neither
 * denormal nor infinite. */
static void fill(uint8_t *p, size_t n)
{
    uint32_t state = 1;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (uint8_t)(0x20 | (state >> 24 & 0x1F));
    }
}

/* Seconds for all groups of `m` once, the best of several. */
static double measure(const struct kernels *k, const struct matrix *m, size_t n)
{
    double best = 1e9;

    panel.n = n;
    for (int i = 0; i < REPEATS; i++) {
        int64_t start = clock_now_ns();
        for (size_t g = 0; g < m->n_groups; g += CALL_GROUPS)
            k->matmul[m->pack](m->data + g * m->group_bytes, CALL_GROUPS, &panel, out);
        double seconds = clock_since_s(start);
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* As many rows as fill `bytes`, and at least one call's. */
static void set_rows(struct matrix *m, size_t bytes)
{
    size_t calls = bytes / (m->group_bytes * CALL_GROUPS);

    m->n_groups = (calls > 0 ? calls : 1) * CALL_GROUPS;
    m->rows = m->n_groups * KERNEL_LANES;
}

static void bench_type(const struct kernels *k, uint32_t type, uint8_t *data)
{
    struct gguf_tensor tensor = {.name = "bench", .type = type, .dims = {COLS, 8, 1, 1}};
    struct matrix m;
    struct error err;

    if (!matrix_init(&m, &tensor, k, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return;
    }
    m.data = data;
    printf("%-7s %-8s", k->name, quant_find(type)->name);
    set_rows(&m, CACHED);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++) {
        double macs = (double)(m.rows * COLS * panels[i]);
        printf(" %7.1f", macs / measure(k, &m, panels[i]) * 1e-9);
    }
    set_rows(&m, STREAMED);
    printf("   %6.1f\n", (double)(m.n_groups * m.group_bytes) / measure(k, &m, 1) * 1e-9);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *all[] = {"", "avx2", "avx512"};
    const char *const *names = argc > 1 ? (const char *const *)argv : all;
    int n_names = argc > 1 ? argc : (int)(sizeof all / sizeof *all);
    uint8_t *data = mem_map(STREAMED + 4096);
    struct error err;

    if (data == NULL)
        return 1;
    fill(data, STREAMED);
    make_panel();
    printf("GMAC/s for a panel of       1       2       4       8      32     128   1, GB/s from memory\n");
    for (int i = 1; i < n_names; i++) {
        setenv("FADER_KERNELS", names[i], 1);
        const struct kernels *k = kernels_choose(&err);
        if (k == NULL) {
            fprintf(stderr, "%s\n", err.text);
            continue;
        }
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            bench_type(k, types[t], data);
    }
    return 0;
}
