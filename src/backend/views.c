#include "config.h"

#include "backend/views.h"

#include <string.h>

/* As much of the piece as fits. */
static void name_candidates(struct view *v, const struct source *source)
{
    for (int32_t i = 0; i < v->n_candidates; i++) {
        struct view_candidate *c = &v->candidates[i];
        size_t len;
        const char *text = source->vtable->piece(source, c->c.id, &len);

        c->len = (uint8_t)(len < VIEW_TEXT ? len : VIEW_TEXT);
        memcpy(c->text, text, c->len);
        c->eog = source->vtable->is_eog(source, c->c.id);
    }
}

static void add_candidates(struct view *v, const struct sampler_candidate *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v->candidates[v->n_candidates++] = (struct view_candidate){.c = c[i]};
}

void view_build(struct view *v, struct sampler *sampler, const struct source *source, double dice,
                int32_t max_candidates)
{
    const size_t max = max_candidates < VIEW_MAX ? (size_t)max_candidates : VIEW_MAX;
    struct sampler_candidate c[VIEW_MAX];
    const struct sampler_draw draw = sampler_pick(sampler, dice);

    v->greedy = sampler_is_greedy(sampler);
    v->dice = dice;
    v->pick = draw.id;
    v->pick_p = draw.p;
    memcpy(v->stages, sampler_stages(sampler), sizeof v->stages);
    v->entropy = v->stages[STAGE_COUNT - 1].entropy;
    v->n_survivors = v->stages[STAGE_COUNT - 1].kept;
    v->n_candidates = 0;
    size_t n = sampler_survivors(sampler, c, max);
    add_candidates(v, c, n);
    v->n_listed = v->n_candidates;
    for (int i = 0; i < STAGE_COUNT; i++) {
        n = sampler_cut(sampler, v->stages[i].stage, c, VIEW_CUT_MAX);
        add_candidates(v, c, n);
    }
    name_candidates(v, source);
}
