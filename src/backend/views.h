/* The desk's numbers for one draw, out of a sampler that has run (with want_stats). */
#ifndef FADER_BACKEND_VIEWS_H
#define FADER_BACKEND_VIEWS_H

#include "backend/backend.h"
#include "backend/generator.h"

/* Fills all of `v` but n, version and drawn. `dice`: the uniform number of the draw. */
void view_build(struct view *v, struct sampler *sampler, const struct source *source, double dice,
                int32_t max_candidates);

#endif
