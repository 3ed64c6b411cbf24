/* What the chat and -p have in common at the start: where each knob's value comes from (built in <
 * model file < settings < preset < command line), which model, and the backend that runs it.
 *
 * Life cycle: start_init -> start_backend -> [start_lay_knobs, once the model is open] ->
 * start_done. */
#ifndef FADER_CLI_START_H
#define FADER_CLI_START_H

#include <stdbool.h>

#include "app/desk.h"
#include "backend/backend.h"
#include "cli/options.h"
#include "config/preset.h"
#include "config/settings.h"

struct start {
    const struct options *options; /* borrowed */
    struct settings settings;
    struct preset *preset; /* never NULL after start_init; owned */
    char *model_path;      /* owned; NULL with a scripted backend, or when none was found */
    struct desk desk;
    const char *system; /* command line, else settings, else preset; or NULL: the model's own */
    int64_t seed;       /* -1: random */
    bool usage;         /* the last failure was the command line's: EXIT_USAGE */
    bool no_model;      /* ... or that no model was found, and none was named */
};

/* Reads settings and preset. Warnings go to standard error. */
bool start_init(struct start *s, const struct options *o, struct error *err);
void start_done(struct start *s);

/* Finds the model that the command line, the settings or this computer name. */
bool start_find_model(struct start *s, struct error *err);

/* Says what failed; without a model, in one screen, what was looked for and what to do. The exit
 * status. */
int start_fail(const struct start *s, const struct error *err);

/* Lays the layers over the desk; `info` NULL: none of a model file. Checks all against the
 * vocabulary. */
bool start_lay_knobs(struct start *s, const struct model_info *info, struct error *err);

/* The backend that the hidden option asks for: `kind` is "scripted:FILE". */
struct backend *start_scripted(const char *kind, const struct control *initial, struct error *err);

/* Starts the backend: scripted where the hidden option says so, else local. */
struct backend *start_backend(const struct start *s, const struct control *initial,
                              struct error *err);

#endif
