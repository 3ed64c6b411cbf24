/* The desk: five faders, their scales, and what has been done with them. Pure logic, no drawing, no
 * clock, no threads.
 *
 * Faders stand in the order in which the chain applies them (knobs.order). Each has the value in
 * force, the preset's value (the notch), where the value came from, a muted value put aside, and a
 * scale that maps values to a travel of 0 - 1. */
#ifndef FADER_APP_DESK_H
#define FADER_APP_DESK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/preset.h"
#include "config/settings.h"
#include "engine/sampler.h"

enum { DESK_FADERS = 5, DESK_UNDO_MAX = 256 }; /* faders: the knobs but KNOB_REPEAT_LAST_N */

struct fader {
    enum origin origin;
    bool muted; /* neutral now; `kept` comes back */
    double kept;
    enum origin kept_origin;
    enum origin notch_origin; /* where the notch's value came from */
};

struct desk {
    struct knobs now;    /* in force */
    struct knobs preset; /* as the preset has them: the notches */
    char preset_name[64];
    struct fader fader[KNOB_COUNT];
    int32_t n_vocab; /* 0: unknown yet */
    struct desk_undo {
        enum knob knob;
        double value;
        struct fader fader;
        bool drag; /* by desk_move_to: further ones of this knob join it */
    } undo[DESK_UNDO_MAX];
    size_t n_undo;
};

void desk_init(struct desk *d); /* built-in defaults */

/* Lays one layer's values over the desk (start-up order): only keys with has[] true. Layers up to
 * the preset move the notches too. */
void desk_apply(struct desk *d, const bool has[KNOB_COUNT], const double value[KNOB_COUNT],
                enum origin origin);
/* A preset chosen: sets every knob, the order, the exemption, and the notches; undo begins anew. */
void desk_apply_preset(struct desk *d, const struct preset *p);

/* Sets one value, recorded for undo; unmutes. Values out of range are refused with `err`. */
bool desk_set(struct desk *d, enum knob knob, double value, struct error *err);
/* Moves along the scale: steps of -1/+1 fine, or coarse; stops at the scale's ends. True if it
 * changed. */
bool desk_nudge(struct desk *d, enum knob knob, int steps, bool coarse);
bool desk_move_to(struct desk *d, enum knob knob,
                  double travel);                 /* mouse: 0 - 1, snapped to a stop */
void desk_reset(struct desk *d, enum knob knob);  /* to the notch */
bool desk_mute(struct desk *d, enum knob knob);   /* neutral, and back; false: it was
                                                     neutral already */
bool desk_undo(struct desk *d, enum knob *which); /* false: nothing to undo */
bool desk_is_changed(const struct desk *d);       /* any knob off its notch: the '*' */
bool desk_knob_changed(const struct desk *d, enum knob knob);

/* The faders as rows, in the chain's order: KNOB_* of row i. */
void desk_rows(const struct desk *d, enum knob rows[DESK_FADERS]);

/* Where a value stands on its scale, 0 - 1; *beyond (may be NULL): it lies past the end. */
double fader_travel(enum knob knob, double value, int32_t n_vocab, bool *beyond);

/* "0.80", "50", "off", "greedy", "1.10": at most 15 bytes. */
void fader_value_text(enum knob knob, double value, char out[16]);

/* True when the stage of this knob is not used because temperature is greedy and it
 * acts after it. */
bool fader_is_idle(const struct desk *d, enum knob knob);

#endif
