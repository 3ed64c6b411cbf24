#include "config.h"

#include "engine/forward_impl.h"

#include <string.h>

enum { LANES = KERNEL_LANES, ROWS = TASK_GROUPS * KERNEL_LANES };

_Static_assert((int)ROWS == (int)KERNEL_BLOCK,
               "a task makes whole blocks of the next matrix's input");

/* Results of a task for one panel, as kernels leave them: [groups][tokens][8]. */
struct tile {
    float v[TASK_GROUPS * KERNEL_PANEL * LANES];
};

/* Tasks that share the tokens: of a panel each; but a matrix that is packed anew for every task is
 * packed once for all. */
static size_t spans(const struct loaded *l, size_t n)
{
    return l->weights == NULL ? 1 : (n + KERNEL_PANEL - 1) / KERNEL_PANEL;
}

static size_t row_blocks(const struct matrix *m)
{
    return (m->n_groups + TASK_GROUPS - 1) / TASK_GROUPS;
}

/* The groups and panels that a task is about. All rows of some panels come before the next panels:
 * those stay in the core's own cache, while weights, an eighth as much, pass through. */
struct task_range {
    size_t group, n_groups, panel, end;
};

static struct task_range task_range(const struct loaded *l, const struct matrix *m, size_t n,
                                    size_t task)
{
    size_t count = spans(l, n), panels = (n + KERNEL_PANEL - 1) / KERNEL_PANEL;
    size_t group = task % row_blocks(m) * TASK_GROUPS;
    size_t panel = task / row_blocks(m), end = count == 1 ? panels : panel + 1;

    return (struct task_range){group, matrix_chunk_groups(m, group), panel, end};
}

size_t matmul_tasks(const struct loaded *l, const struct matmul *list, size_t n_list)
{
    size_t total = 0;

    for (size_t i = 0; i < n_list; i++)
        total += row_blocks(list[i].matrix) * spans(l, list[i].n);
    return total;
}

static void add_bias(struct tile *tile, size_t n_groups, size_t n, const float *bias)
{
    for (size_t g = 0; g < n_groups; g++) {
        for (size_t i = 0; i < n * LANES; i++)
            tile->v[g * n * LANES + i] += bias[g * LANES + i % LANES];
    }
}

/* Spreads a tile over the rows of its tokens. */
static void store(const struct step *s, const struct matmul *mm, const struct tile *tile,
                  const struct task_range *r, size_t panel, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        size_t token = panel * KERNEL_PANEL + t;
        float *row = mm->rows != NULL ? mm->rows[token] : mm->out + token * mm->stride;
        float values[ROWS];
        for (size_t g = 0; g < r->n_groups; g++)
            memcpy(values + g * LANES, tile->v + (g * n + t) * LANES, LANES * sizeof *values);
        row += r->group * LANES;
        if (mm->add)
            s->k->add(row, values, r->n_groups * LANES);
        else
            memcpy(row, values, r->n_groups * LANES * sizeof *row);
    }
}

static void run_task(const struct step *s, const struct matmul *mm, size_t task)
{
    struct task_range r = task_range(s->l, mm->matrix, mm->n, task);
    const uint8_t *groups = matrix_groups(mm->matrix, r.group, r.n_groups, s->s->groups);
    struct tile tile;

    for (size_t i = r.panel; i < r.end; i++) {
        struct panel panel = act_panel(mm->act, mm->n, i);
        s->k->matmul[mm->matrix->pack](groups, r.n_groups, &panel, tile.v);
        if (mm->bias != NULL)
            add_bias(&tile, r.n_groups, panel.n, mm->bias + r.group * LANES);
        store(s, mm, &tile, &r, i, panel.n);
    }
}

void matmul_run(const struct step *s, const struct matmul *list, size_t task)
{
    for (;; list++) {
        size_t n = matmul_tasks(s->l, list, 1);
        if (task < n)
            break;
        task -= n;
    }
    run_task(s, list, task);
}

/* ---- gate, up, SiLU -------------------------------------------------------------------------- */

size_t ff_tasks(const struct loaded *l, const struct loaded_layer *layer, size_t n)
{
    return row_blocks(&layer->gate) * spans(l, n);
}

/* Each 32 rows of the result are one block of columns for `down`: they become codes
 * here and now. */
static void store_ff(const struct step *s, const struct loaded_layer *layer,
                     const struct tile *tile, const struct task_range *r, size_t panel, size_t n,
                     size_t n_all)
{
    const struct act *ff = &s->l->ff;
    bool floats = matrix_reads_floats(&layer->down);

    for (size_t t = 0; t < n; t++) {
        size_t token = panel * KERNEL_PANEL + t;
        float values[ROWS] = {0};
        for (size_t g = 0; g < r->n_groups; g++)
            memcpy(values + g * LANES, tile->v + (g * n + t) * LANES, LANES * sizeof *values);
        act_set_block(ff, s->k, n_all, token, r->group / TASK_GROUPS, values, floats);
    }
}

static void half_ff(const struct step *s, const struct matrix *m, const float *bias,
                    const struct task_range *r, const struct panel *panel, struct tile *tile)
{
    /* Packed here and not once per task: gate and up share the scratch. */
    const uint8_t *groups = matrix_groups(m, r->group, r->n_groups, s->s->groups);

    s->k->matmul[m->pack](groups, r->n_groups, panel, tile->v);
    if (bias != NULL)
        add_bias(tile, r->n_groups, panel->n, bias + r->group * LANES);
}

void ff_run(const struct step *s, const struct loaded_layer *layer, const struct act *act, size_t n,
            size_t task)
{
    struct task_range r = task_range(s->l, &layer->gate, n, task);
    struct tile gate, up;

    for (size_t i = r.panel; i < r.end; i++) {
        struct panel panel = act_panel(act, n, i);
        half_ff(s, &layer->gate, layer->gate_bias, &r, &panel, &gate);
        half_ff(s, &layer->up, layer->up_bias, &r, &panel, &up);
        s->k->silu_mul(gate.v, up.v, r.n_groups * panel.n * LANES);
        store_ff(s, layer, &gate, &r, i, panel.n, n);
    }
}
