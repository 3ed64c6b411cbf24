/* What the machine does at most, and what a run of the model asks of it at least: the limits that
 * `fader bench` holds its figures against.
 *
 * Nothing is looked up. The model's own threads measure, all at once, with the instructions of the
 * kernel set in use:
 *   bytes    reading the weights from where decode reads them, end to end, and nothing else
 *   codes    multiply-adds of bytes, the fastest way that this set has, from registers
 *   floats   fused multiply-adds of f32, from registers
 * Reading and computing overlap, so a run takes at least the longer of the two; codes and floats
 * share the units that compute, so their times add up.
 *
 * The model must be loaded; whoever drives its sessions calls these, between evaluations. */
#ifndef FADER_ENGINE_MACHINE_H
#define FADER_ENGINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/engine.h"

struct machine { /* a second; all threads together */
    double bytes, codes, floats;
};

/* Bytes a second, once over all weights (more often where they are few). False with `err` when the
 * model file was cut short under its map. */
bool machine_measure_stream(struct model *m, double *bytes, struct error *err);

/* Multiply-adds a second of codes and of floats: the best of some rounds; tens of milliseconds. */
void machine_measure_peaks(struct model *m, double *codes, double *floats);

struct work { /* the least that something takes */
    double bytes, codes, floats;
};

/* One evaluation of `n` positions after `first` in the cache, logits for the last one: weights and
 * cached positions read once. */
struct work model_work(const struct model *m, int32_t first, int32_t n, enum cache_type type);

/* Seconds below which no run of `w` can get; *by_memory (may be NULL) when reading is what takes
 * longest. */
double machine_seconds(const struct machine *machine, const struct work *w, bool *by_memory);

/* ---- the inner loops (machine_peak.c) -------------------------------------------------------- */

struct machine_peak {
    const char *kernels; /* the set that has these instructions */
    /* Run `rounds` of the loop and return a value that depends on every product. */
    float (*codes)(uint32_t rounds);
    float (*floats)(uint32_t rounds);
    double codes_per_round, floats_per_round; /* multiply-adds */
};

/* By the name of a kernel set of this build. */
const struct machine_peak *machine_find_peak(const char *kernels);

enum { MACHINE_SUMS = 10 }; /* under way at once in a loop */

/* A loop that has a file of its own. */
float machine_dotprod_codes(uint32_t rounds);

#endif
