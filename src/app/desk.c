#include "config.h"

#include "app/desk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/scale.h"

static const enum knob stage_knobs[STAGE_COUNT] = {
    [STAGE_PENALTY] = KNOB_REPETITION_PENALTY,
    [STAGE_TEMPERATURE] = KNOB_TEMPERATURE,
    [STAGE_TOP_K] = KNOB_TOP_K,
    [STAGE_TOP_P] = KNOB_TOP_P,
    [STAGE_MIN_P] = KNOB_MIN_P,
};

void desk_init(struct desk *d)
{
    memset(d, 0, sizeof *d);
    d->now = d->preset = knobs_default();
    snprintf(d->preset_name, sizeof d->preset_name, "default");
}

void desk_apply(struct desk *d, const bool has[KNOB_COUNT], const double value[KNOB_COUNT],
                enum origin origin)
{
    for (int i = 0; i < KNOB_COUNT; i++) {
        if (!has[i])
            continue;
        d->now.value[i] = value[i];
        d->fader[i].origin = origin;
        d->fader[i].muted = false;
        if (origin <= ORIGIN_PRESET) {
            d->preset.value[i] = value[i];
            d->fader[i].notch_origin = origin;
        }
    }
}

void desk_apply_preset(struct desk *d, const struct preset *p)
{
    d->now = d->preset = p->knobs;
    for (int i = 0; i < KNOB_COUNT; i++) {
        enum origin from = p->has[i] ? ORIGIN_PRESET : ORIGIN_BUILT_IN;
        d->fader[i] = (struct fader){.origin = from, .notch_origin = from};
    }
    snprintf(d->preset_name, sizeof d->preset_name, "%s", p->name);
    d->n_undo = 0;
}

/* ---- changes, each of which can be undone ---------------------------------------------------- */

static void remember(struct desk *d, enum knob knob, bool drag)
{
    const struct desk_undo *top = d->n_undo > 0 ? &d->undo[d->n_undo - 1] : NULL;

    if (drag && top != NULL && top->drag && top->knob == knob)
        return; /* one drag is one step back */
    if (d->n_undo == DESK_UNDO_MAX) {
        memmove(d->undo, d->undo + 1, (DESK_UNDO_MAX - 1) * sizeof d->undo[0]);
        d->n_undo--;
    }
    d->undo[d->n_undo++] = (struct desk_undo){knob, d->now.value[knob], d->fader[knob], drag};
}

static void put(struct desk *d, enum knob knob, double value, enum origin origin, bool drag)
{
    remember(d, knob, drag);
    d->now.value[knob] = value;
    d->fader[knob].origin = origin;
    d->fader[knob].muted = false;
}

bool desk_set(struct desk *d, enum knob knob, double value, struct error *err)
{
    if (!knob_check(knob, value, d->n_vocab, err))
        return false;
    put(d, knob, value, ORIGIN_SLIDER, false);
    return true;
}

bool desk_nudge(struct desk *d, enum knob knob, int steps, bool coarse)
{
    double from = d->now.value[knob], to = scale_step(knob, from, steps, coarse, d->n_vocab);

    if (to == from)
        return false;
    put(d, knob, to, ORIGIN_SLIDER, false);
    return true;
}

bool desk_move_to(struct desk *d, enum knob knob, double travel)
{
    double to = scale_snap(knob, travel, d->n_vocab);

    if (to == d->now.value[knob])
        return false;
    put(d, knob, to, ORIGIN_SLIDER, true);
    return true;
}

void desk_reset(struct desk *d, enum knob knob)
{
    if (d->now.value[knob] == d->preset.value[knob] && !d->fader[knob].muted)
        return;
    put(d, knob, d->preset.value[knob], d->fader[knob].notch_origin, false);
}

bool desk_mute(struct desk *d, enum knob knob)
{
    struct fader *f = &d->fader[knob];
    double neutral = knob_traits[knob].neutral;

    if (f->muted) {
        put(d, knob, f->kept, f->kept_origin, false);
        return true;
    }
    if (d->now.value[knob] == neutral)
        return false;
    remember(d, knob, false);
    f->muted = true;
    f->kept = d->now.value[knob];
    f->kept_origin = f->origin;
    f->origin = ORIGIN_SLIDER;
    d->now.value[knob] = neutral;
    return true;
}

bool desk_undo(struct desk *d, enum knob *which)
{
    if (d->n_undo == 0)
        return false;
    const struct desk_undo *u = &d->undo[--d->n_undo];
    d->now.value[u->knob] = u->value;
    d->fader[u->knob] = u->fader;
    *which = u->knob;
    return true;
}

/* ---- what it looks like ---------------------------------------------------------------------- */

bool desk_knob_changed(const struct desk *d, enum knob knob)
{
    return d->now.value[knob] != d->preset.value[knob];
}

bool desk_is_changed(const struct desk *d)
{
    for (int i = 0; i < KNOB_COUNT; i++) {
        if (desk_knob_changed(d, (enum knob)i))
            return true;
    }
    return false;
}

void desk_rows(const struct desk *d, enum knob rows[DESK_FADERS])
{
    for (int i = 0; i < DESK_FADERS; i++)
        rows[i] = stage_knobs[d->now.order[i]];
}

double fader_travel(enum knob knob, double value, int32_t n_vocab, bool *beyond)
{
    return scale_travel(knob, value, n_vocab, beyond);
}

/* As many decimals as the desk has, more when the value has more. */
static void format_decimals(double value, int decimals, char out[16])
{
    for (; decimals < 6; decimals++) {
        if (fabs(scale_round(value, decimals) - value) < 1e-9)
            break;
    }
    snprintf(out, 16, "%.*f", decimals, value);
}

void fader_value_text(enum knob knob, double value, char out[16])
{
    bool off = (knob == KNOB_TOP_K && value <= 0) || (knob == KNOB_TOP_P && value >= 1) ||
               (knob == KNOB_MIN_P && value <= 0) || (knob == KNOB_REPEAT_LAST_N && value == 0);

    if (off)
        snprintf(out, 16, "off");
    else if (knob == KNOB_TEMPERATURE && value <= SAMPLER_GREEDY)
        snprintf(out, 16, "greedy");
    else if (knob == KNOB_REPEAT_LAST_N && value < 0)
        snprintf(out, 16, "all");
    else
        format_decimals(value, knob_traits[knob].decimals, out);
}

bool fader_is_idle(const struct desk *d, enum knob knob)
{
    bool below = false;

    if (d->now.value[KNOB_TEMPERATURE] > SAMPLER_GREEDY)
        return false;
    for (int i = 0; i < STAGE_COUNT; i++) {
        enum knob at = stage_knobs[d->now.order[i]];
        if (at == knob)
            return below;
        below = below || at == KNOB_TEMPERATURE;
    }
    return false;
}
