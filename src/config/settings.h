/* Settings: $XDG_CONFIG_HOME/fader/config.yaml, and where each value came from. */
#ifndef FADER_CONFIG_SETTINGS_H
#define FADER_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/preset.h"
#include "engine/sampler.h"

/* The layers a value can come from, weakest first. At the start a later one wins; in a chat the
 * last act does. */
enum origin {
    ORIGIN_BUILT_IN,
    ORIGIN_MODEL,
    ORIGIN_SETTINGS,
    ORIGIN_PRESET,
    ORIGIN_COMMAND_LINE,
    ORIGIN_SLIDER,
    ORIGIN_COUNT
};
const char *origin_name(enum origin o); /* "built in", "model file", "settings", "preset", ... */

enum glyph_set { GLYPHS_AUTO, GLYPHS_UNICODE, GLYPHS_CP437, GLYPHS_ASCII };

/* Whether the prompt is run while it is being typed. Auto: not while on battery. */
enum prefill_mode { PREFILL_AUTO, PREFILL_ON, PREFILL_OFF };
extern const char *const prefill_words[]; /* "auto", "on", "off", NULL */

struct settings {
    char *model;  /* NULL: the default one */
    char *preset; /* NULL: "default" */
    char *theme;  /* NULL: "dark" */
    char *system; /* NULL: preset's, else the model's own */
    bool has[KNOB_COUNT];
    double knob[KNOB_COUNT];
    int32_t ctx_size, threads, batch_size; /* 0: not set */
    int cache_type;                        /* enum cache_type, -1: not set */
    enum glyph_set glyphs;
    bool mouse;       /* default true */
    bool save;        /* keep transcripts; default true */
    bool drop_oldest; /* context: drop the oldest turns (true) or end the answer */
    double pace;      /* 0: full */
    int panel;        /* 0 desk, 1 strip, 2 bare */
    int prefill;      /* while typing: enum prefill_mode, -1: not set */
};

/* Reads the file where there is one. Unknown keys become warnings; wrong values an error. */
bool settings_load(struct settings *s, struct preset_warnings *warnings, struct error *err);
void settings_done(struct settings *s);

#endif
