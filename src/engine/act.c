/* Activations in the forms that kernels read, and the table of rotations. */
#include "config.h"

#include "engine/loaded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct panel act_panel(const struct act *a, size_t n, size_t i)
{
    size_t first = i * KERNEL_PANEL, left = n - first;

    return (struct panel){
        .n = left < KERNEL_PANEL ? left : KERNEL_PANEL,
        .cols = a->cols,
        .q = a->q + first * a->cols,
        .scale = a->scale + first * (a->cols / KERNEL_BLOCK),
        .f32 = a->f32 + first * a->cols,
    };
}

void act_set_block(const struct act *a, const struct kernels *kernels, size_t n, size_t t,
                   size_t block, const float *x, bool floats)
{
    struct panel p = act_panel(a, n, t / KERNEL_PANEL);
    size_t first = t / KERNEL_PANEL * KERNEL_PANEL;
    size_t at = first * (a->cols / KERNEL_BLOCK) + block * p.n + t % KERNEL_PANEL;

    if (floats)
        memcpy(a->f32 + at * KERNEL_BLOCK, x, KERNEL_BLOCK * sizeof *x);
    else
        kernels->quantize(x, 1, 1, a->q + at * KERNEL_BLOCK, a->scale + at);
}

void act_set(const struct act *a, const struct kernels *kernels, size_t n, size_t t, const float *x,
             bool codes, bool floats)
{
    struct panel p = act_panel(a, n, t / KERNEL_PANEL);
    size_t first = t / KERNEL_PANEL * KERNEL_PANEL, n_blocks = a->cols / KERNEL_BLOCK;
    size_t at = first * n_blocks + t % KERNEL_PANEL;

    if (codes)
        kernels->quantize(x, n_blocks, p.n, a->q + at * KERNEL_BLOCK, a->scale + at);
    for (size_t b = 0; floats && b < n_blocks; b++, at += p.n)
        memcpy(a->f32 + at * KERNEL_BLOCK, x + b * KERNEL_BLOCK, KERNEL_BLOCK * sizeof *x);
}

/* ---- rotations ------------------------------------------------------------------------------ */

/* One position: pair i turns by position * scale * base^(-2i / dim) / freqs[i]. */
static void fill_position(const struct model *m, size_t position)
{
    const struct rope_table *r = &m->loaded->rope;
    const float *divisors = m->rope_freqs != NULL ? m->rope_freqs->data : NULL;
    float *cosine = r->cosine + position * r->dim, *sine = r->sine + position * r->dim;
    bool halves = m->arch->rope == ROPE_NEOX;

    for (size_t i = 0; i < r->dim / 2; i++) {
        double speed = pow((double)m->hparams.rope_base, -2.0 * (double)i / (double)r->dim);
        double angle = (double)position * (double)m->hparams.rope_scale * speed;
        if (divisors != NULL)
            angle /= (double)divisors[i];
        size_t a = halves ? i : 2 * i, b = halves ? i + r->dim / 2 : 2 * i + 1;
        cosine[a] = cosine[b] = (float)cos(angle);
        sine[b] = (float)sin(angle);
        sine[a] = -sine[b];
    }
}

void loaded_reserve_rope(struct model *m, size_t positions)
{
    struct rope_table *r = &m->loaded->rope;
    size_t cap = r->cap;

    if (positions <= r->n || r->dim == 0)
        return;
    mem_grow(&r->cosine, &r->cap, positions, r->dim * sizeof *r->cosine);
    mem_grow(&r->sine, &cap, positions, r->dim * sizeof *r->sine);
    for (; r->n < positions; r->n++)
        fill_position(m, r->n);
}
