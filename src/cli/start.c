#include "config.h"

#include "cli/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/paths.h"

/* A preset that was asked for is a layer of its own; the "default" that nobody named is the
 * built-in values, and yields to the model file and the settings. */
static const char *asked_preset(const struct start *s)
{
    return s->options->preset != NULL ? s->options->preset : s->settings.preset;
}

static void say_warnings(struct preset_warnings *warnings)
{
    for (size_t i = 0; i < warnings->n; i++)
        fprintf(stderr, "fader: %s\n", warnings->items[i]);
    preset_warnings_done(warnings);
}

bool start_init(struct start *s, const struct options *o, struct error *err)
{
    struct preset_warnings warnings = {0};

    memset(s, 0, sizeof *s);
    s->options = o;
    desk_init(&s->desk);
    bool ok = settings_load(&s->settings, &warnings, err);
    if (ok) {
        const char *name = asked_preset(s);
        s->preset = preset_load(name != NULL ? name : "default", &warnings, err);
        ok = s->preset != NULL;
    }
    say_warnings(&warnings);
    if (!ok)
        return false;
    if (o->theme != NULL) {
        free(s->settings.theme);
        s->settings.theme = mem_strdup(o->theme);
    }
    s->system = o->system != NULL           ? o->system
                : s->preset->system != NULL ? s->preset->system
                                            : s->settings.system;
    s->seed = o->seed != SEED_UNSET ? o->seed : s->preset->seed;
    return true;
}

void start_done(struct start *s)
{
    settings_done(&s->settings);
    preset_free(s->preset);
    free(s->model_path);
    memset(s, 0, sizeof *s);
}

bool start_find_model(struct start *s, struct error *err)
{
    const char *name = s->options->model != NULL ? s->options->model : s->settings.model;

    s->model_path = models_resolve(name, err);
    s->no_model = s->model_path == NULL && name == NULL;
    return s->model_path != NULL;
}

int start_fail(const struct start *s, const struct error *err)
{
    struct str screen = STR_INIT;

    cli_fail(err);
    if (s->no_model) {
        models_explain(&screen);
        fprintf(stderr, "\n%s", str_text(&screen));
        str_done(&screen);
    }
    return s->usage ? EXIT_USAGE : EXIT_FAILURE;
}

/* ---- the knobs ------------------------------------------------------------------------------- */

/* Lays one layer, less what the preset that was asked for sets itself. */
static void lay_below_preset(struct start *s, const bool *has, const double *value,
                             enum origin origin)
{
    bool open[KNOB_COUNT];

    for (int k = 0; k < KNOB_COUNT; k++)
        open[k] = has[k] && (asked_preset(s) == NULL || !s->preset->has[k]);
    desk_apply(&s->desk, open, value, origin);
}

/* A value that the vocabulary does not bear is the fault of the layer that it came from. */
static bool check_desk(struct start *s, const struct model_info *info, struct error *err)
{
    for (int k = 0; k < KNOB_COUNT; k++) {
        enum origin origin = s->desk.fader[k].origin;
        const char *where = origin_name(origin);
        if (origin == ORIGIN_MODEL && info != NULL)
            where = info->path;
        if (knob_check((enum knob)k, s->desk.now.value[k], s->desk.n_vocab, err))
            continue;
        s->usage = origin == ORIGIN_COMMAND_LINE;
        if (s->usage)
            return error_prefix(err, "--%s", knob_traits[k].option);
        return error_prefix(err, "%s", where);
    }
    return true;
}

static bool check_moves(struct start *s, struct error *err)
{
    const struct move_list *moves = &s->options->moves;

    for (size_t i = 0; i < moves->n; i++)
        if (!knob_check(moves->items[i].knob, moves->items[i].value, s->desk.n_vocab, err)) {
            s->usage = true;
            return error_prefix(err, "--at %d", (int)moves->items[i].n);
        }
    return true;
}

bool start_lay_knobs(struct start *s, const struct model_info *info, struct error *err)
{
    const struct knob_layer *line = &s->options->knobs;

    s->desk.n_vocab = info != NULL ? info->n_vocab : 0;
    desk_apply_preset(&s->desk, s->preset);
    if (info != NULL)
        lay_below_preset(s, info->has_sampling, info->sampling, ORIGIN_MODEL);
    lay_below_preset(s, s->settings.has, s->settings.knob, ORIGIN_SETTINGS);
    desk_apply(&s->desk, line->has, line->value, ORIGIN_COMMAND_LINE);
    return check_desk(s, info, err) && check_moves(s, err);
}

/* ---- the backend ----------------------------------------------------------------------------- */

static int32_t first_set(int32_t a, int32_t b)
{
    return a != 0 ? a : b;
}

struct backend *start_scripted(const char *kind, const struct control *initial, struct error *err)
{
    static const char scripted[] = "scripted:";

    if (strncmp(kind, scripted, sizeof scripted - 1) == 0)
        return scripted_backend_new(kind + sizeof scripted - 1, initial, err);
    error_set(err, "--backend: '%s' is not scripted:FILE", kind);
    return NULL;
}

struct backend *start_backend(const struct start *s, const struct control *initial,
                              struct error *err)
{
    const struct options *o = s->options;

    if (o->backend != NULL)
        return start_scripted(o->backend, initial, err);
    struct local_options local = {
        .model_path = s->model_path,
        .load =
            {
                .threads = first_set(o->threads, s->settings.threads),
                .no_repack = o->no_repack,
            },
        .session =
            {
                .ctx_size = first_set(o->ctx_size, s->settings.ctx_size),
                .batch_size = first_set(o->batch_size, s->settings.batch_size),
                .cache_type = o->cache_type >= 0 ? (enum cache_type)o->cache_type
                              : s->settings.cache_type >= 0
                                  ? (enum cache_type)s->settings.cache_type
                                  : CACHE_F16,
            },
    };
    return local_backend_new(&local, initial, err);
}
