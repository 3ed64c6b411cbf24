/* Where the weights go: repacked into huge pages by all workers, or used in place from the file's
 * map.
 *
 * A matrix is packed in pieces of about a megabyte. Each gives its pages of the map back when it is
 * done, so that the copy and a few pieces are all that is ever resident, and has the disk fetch what
 * its worker comes to later. Between pieces the cancel flag is polled and the progress told. */
#include "config.h"

#include "engine/loaded.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/room.h"

enum {
    ALIGN = 64, /* of every packed matrix: a cache line */
    PIECE = 1 << 20,
    AHEAD = 8 << 20,              /* how far before it is read the disk is told */
    TELL_NS = 10000000,           /* between two words on the progress */
    ADDRESSES_BESIDE = 256 << 20, /* for buffers, stacks, and a cache to begin with */
};

struct repack_job {
    struct model *m;
    const struct model_load_options *options;
    struct matrix **matrices; /* [n] */
    size_t n, cap;
    size_t bytes; /* of the copy */
    atomic_size_t done;
    int64_t told; /* when the progress was, last */
};

/* ---- the plan -------------------------------------------------------------------------------- */

static size_t packed_bytes(const struct matrix *m)
{
    return (m->n_groups * m->group_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void plan_matrix(struct repack_job *job, struct matrix *m)
{
    mem_grow(&job->matrices, &job->cap, job->n + 1, sizeof *job->matrices);
    job->matrices[job->n++] = m;
    job->bytes += packed_bytes(m);
}

/* Every matrix of the model once: a tied head is the embedding, and an embedding that is only
 * looked up stays in the file. */
static void plan(struct repack_job *job, const struct model *m)
{
    struct loaded *l = m->loaded;

    for (int32_t i = 0; i < m->info.n_layer; i++) {
        struct loaded_layer *y = &l->layers[i];
        struct matrix *all[] = {&y->q, &y->k, &y->v, &y->out, &y->gate, &y->up, &y->down};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            plan_matrix(job, all[k]);
    }
    plan_matrix(job, &l->head);
}

size_t loaded_widest_group(const struct model *m)
{
    struct repack_job job = {0};
    size_t most = 0;

    plan(&job, m);
    for (size_t i = 0; i < job.n; i++)
        most = job.matrices[i]->group_bytes > most ? job.matrices[i]->group_bytes : most;
    free(job.matrices);
    return most;
}

/* ---- repacking ------------------------------------------------------------------------------- */

/* Whole chunks. */
static size_t piece_groups(const struct matrix *m)
{
    size_t chunk = KERNEL_CHUNK * m->group_bytes;

    return (chunk < PIECE ? PIECE / chunk : 1) * KERNEL_CHUNK;
}

static void pack_piece(struct repack_job *job, const struct matrix *m, size_t piece)
{
    const struct gguf *file = job->m->file;
    const size_t step = piece_groups(m), first = piece * step;
    const size_t end = first + step < m->n_groups ? first + step : m->n_groups;
    const uint64_t group_bytes = m->source->bytes / m->rows * KERNEL_LANES;
    const uint64_t at = first * group_bytes, bytes = (end - first) * group_bytes;

    gguf_will_read(file, m->source, at + AHEAD, bytes);
    for (size_t g = first; g < end; g += KERNEL_CHUNK)
        matrix_pack(m, g, matrix_chunk_groups(m, g), matrix_chunk(m, g));
    gguf_release(file, m->source, at, bytes);
    atomic_fetch_add_explicit(&job->done, (end - first) * m->group_bytes, memory_order_relaxed);
}

static void tell_progress(struct repack_job *job, bool now)
{
    const struct model_load_options *o = job->options;
    const int64_t time = clock_now_ns();

    if (o->progress == NULL || (!now && time - job->told < TELL_NS))
        return;
    job->told = time;
    o->progress(o->progress_ctx, now ? 1.0 : (double)atomic_load(&job->done) / (double)job->bytes);
}

/* All workers, matrix by matrix: as the forward pass will deal them out, so that most pages are
 * first touched by who will read them. */
static void repack(void *ctx, struct worker *w)
{
    struct repack_job *job = ctx;
    size_t piece;

    for (size_t i = 0; i < job->n; i++) {
        const struct matrix *m = job->matrices[i];
        const size_t step = piece_groups(m);
        if (!worker_phase(w, (m->n_groups + step - 1) / step))
            return;
        while (worker_next(w, &piece)) {
            pack_piece(job, m, piece);
            if (worker_index(w) == 0)
                tell_progress(job, false);
        }
    }
}

/* Gate and up, which one task reads, take turns chunk by chunk, for a worker should read one long
 * run. */
static void alternate(struct matrix *gate, struct matrix *up)
{
    if (gate->n_groups % KERNEL_CHUNK != 0)
        return;
    up->data = gate->data + gate->stride;
    gate->stride += up->stride;
    up->stride = gate->stride;
}

static void place(struct repack_job *job)
{
    struct loaded *l = job->m->loaded;
    uint8_t *at = l->weights;

    for (size_t i = 0; i < job->n; i++) {
        job->matrices[i]->data = at;
        at += packed_bytes(job->matrices[i]);
    }
    for (int32_t i = 0; i < job->m->info.n_layer; i++)
        alternate(&l->layers[i].gate, &l->layers[i].up);
}

static bool repack_all(struct repack_job *job, struct error *err)
{
    struct model *m = job->m;
    struct loaded *l = m->loaded;

    place(job);
    if (!pool_run(l->pool, repack, job, job->options->cancel))
        return error_set(err, "%s: loading was cancelled", m->info.path);
    if (m->token_embd == m->output)
        l->embd.data = l->head.data;
    tell_progress(job, true);
    return true;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Gets memory for the copy where there is enough of it. Else NULL, with a notice: pages of a file
 * can be dropped and read again when memory is short, those of a copy cannot. */
static uint8_t *get_memory(const struct repack_job *job)
{
    const struct model *m = job->m;
    const uint64_t asked = job->options->room, twice = job->bytes + m->info.weight_bytes;
    uint64_t room = asked > 0 ? asked : room_memory(""), addresses = room_addresses("");
    uint8_t *weights = NULL;

    if (addresses < job->bytes + ADDRESSES_BESIDE)
        room = addresses;
    else if (twice <= room)
        weights = mem_map(job->bytes);
    if (weights == NULL)
        snprintf(m->loaded->notice, sizeof m->loaded->notice,
                 "no room for a copy of the weights (%zu MB; %llu MB are free):"
                 " they are used in place, slower",
                 (size_t)(job->bytes / 1000000), (unsigned long long)(room / 1000000));
    return weights;
}

bool loaded_place_weights(struct model *m, const struct model_load_options *options,
                          struct error *err)
{
    struct loaded *l = m->loaded;
    struct repack_job job = {.m = m, .options = options};
    bool ok = true;

    plan(&job, m);
    if (!options->no_repack)
        l->weights = get_memory(&job);
    l->reads_map = l->weights == NULL || m->token_embd != m->output;
    if (l->weights != NULL) {
        l->weights_bytes = job.bytes;
        ok = repack_all(&job, err);
    }
    free(job.matrices);
    return ok;
}
