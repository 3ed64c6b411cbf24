/* The conversation and its file: which one is open, what is put into it, and when it is written. */
#include "config.h"

#include "app/app_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "config/paths.h"

static const int64_t retry_after_ns = 2000000000;
static const int64_t batch_ns = 33000000; /* lines of two frames go out in one write */

char *app_transcripts_folder(void)
{
    return paths_state("transcripts");
}

static bool saves(const struct app *app)
{
    const struct settings *s = app->options.settings;

    return !app->options.no_save && (s == NULL || s->save);
}

void app_open_transcript(struct app *app)
{
    struct error ignored; /* a new one is made only when the first line is written */

    if (!saves(app))
        return;
    char *folder = app_transcripts_folder();
    app->transcript = transcript_new(folder, NULL, &ignored);
    free(folder);
}

void app_record_opening(struct app *app, const struct turn *answer)
{
    if (app->transcript == NULL || app->answer_recorded)
        return;
    app->answer_recorded = true;
    if (answer->model >= 0)
        transcript_model(app->transcript, app->conversation->models[answer->model],
                         app->status.kernels);
    transcript_system(app->transcript, answer->system);
    if (app->conversation->preset != NULL)
        transcript_preset(app->transcript, app->conversation->preset);
    transcript_turn(app->transcript, answer);
}

bool app_has_unsaved(const struct app *app)
{
    return app->n_unsaved > 0 ||
           (app->transcript != NULL && transcript_is_waiting(app->transcript));
}

/* Those that were left behind first, the oldest first; each is closed when it is whole. */
static bool flush_all(struct app *app, struct error *err)
{
    while (app->n_unsaved > 0) {
        if (!transcript_flush(app->unsaved[0], err))
            return false;
        transcript_free(app->unsaved[0]);
        app->n_unsaved--;
        memmove(app->unsaved, app->unsaved + 1, app->n_unsaved * sizeof(struct transcript *));
    }
    return app->transcript == NULL || transcript_flush(app->transcript, err);
}

void app_save(struct app *app, int64_t now_ns)
{
    struct error err;

    if (!app_has_unsaved(app) || now_ns < app->save_after_ns)
        return;
    bool ok = flush_all(app, &err);
    if (ok && app->save_failed)
        app_say(app, SAY_INFO, "the conversation is being saved again");
    if (!ok && !app->save_failed)
        app_say(app, SAY_ERROR, "not saved: %s (kept in memory, tried again)", err.text);
    app->save_failed = !ok;
    app->save_after_ns = now_ns + (ok ? batch_ns : retry_after_ns);
}

/* The file of a conversation that is left: closed, or kept until it can be written. */
static void leave_transcript(struct app *app)
{
    struct transcript *t = app->transcript;

    app->save_after_ns = 0;
    app_save(app, clock_now_ns());
    app->transcript = NULL;
    if (t == NULL || !transcript_is_waiting(t)) {
        transcript_free(t);
        return;
    }
    mem_grow(&app->unsaved, &app->cap_unsaved, app->n_unsaved + 1, sizeof(struct transcript *));
    app->unsaved[app->n_unsaved++] = t;
}

bool app_finish(struct app *app, struct error *err)
{
    app_leave_answer(app);
    return flush_all(app, err);
}

void app_close_transcripts(struct app *app)
{
    transcript_free(app->transcript);
    for (size_t i = 0; i < app->n_unsaved; i++)
        transcript_free(app->unsaved[i]);
    free(app->unsaved);
}

void app_use_conversation(struct app *app, struct conversation *c)
{
    app_leave_answer(app);
    leave_transcript(app);
    conversation_free(app->conversation);
    app->conversation = c;
    app->editing = NULL;
    app->context_warned = false;
    app->ctx_used = 0;
    app->kv_used = app->kv_held = 0;
    app->stats.valid = false;
    app->has_view = false;
    app->view_turn = NULL;
    free(app->queued);
    app->queued = NULL;
    if (app->status.model != NULL)
        conversation_set_model(c, app->status.model->label, app->status.model->n_vocab);
    app_input_changed(app);
    app_changed(app, CHANGE_ALL & ~CHANGE_THEME);
}

void app_new_conversation(struct app *app)
{
    const struct conversation *old = app->conversation;
    struct conversation *c = conversation_new();

    conversation_set_system(c, old->system);
    conversation_set_preset(c, old->preset);
    app_use_conversation(app, c);
    app_open_transcript(app);
}

/* The preset that the conversation had, where it still exists. */
static void restore_preset(struct app *app)
{
    const char *name = app->conversation->preset;
    struct preset_warnings warnings = {NULL, 0, 0};
    struct error ignored;

    if (name == NULL || (app->preset != NULL && strcmp(app->preset->name, name) == 0))
        return;
    struct preset *p = preset_load(name, &warnings, &ignored);
    preset_warnings_done(&warnings);
    if (p == NULL)
        return;
    preset_free(app->preset);
    app->preset = p;
    desk_apply_preset(&app->desk, p);
    if (app->seed_origin != ORIGIN_COMMAND_LINE && app->max_tokens_origin != ORIGIN_COMMAND_LINE)
        app_use_preset_numbers(app, p);
}

/* Whose the system prompt of a conversation that was opened is: so that what a preset had said goes
 * with it. */
static void find_system_origin(struct app *app)
{
    const char *system = app->conversation->system;
    const char *preset = app->preset != NULL ? app->preset->system : NULL;
    const char *base = app_base_system(app); /* sets its origin */

    if (system != NULL && preset != NULL && strcmp(system, preset) == 0)
        app->system_origin = ORIGIN_PRESET;
    else if (system != NULL && (base == NULL || strcmp(system, base) != 0))
        app->system_origin = ORIGIN_SLIDER;
    else if (system == NULL)
        app->system_origin = ORIGIN_MODEL;
}

/* A conversation that is gone on with brings its knobs; at the start of the program those that the
 * command line asks for win, by value or by preset. */
static void restore_knobs(struct app *app, bool starting)
{
    const struct desk asked = app->desk;
    struct knobs last;

    if (starting && app->preset != NULL && strcmp(app->preset->name, "default") != 0)
        return;
    restore_preset(app);
    bool has_last = conversation_last_knobs(app->conversation, &last);
    if (has_last)
        knobs_set_chain(&app->desk.now, &last);
    for (int i = 0; i < KNOB_COUNT; i++) {
        struct error ignored; /* a value that this model has no use for stays as it is */
        if (starting && asked.fader[i].origin == ORIGIN_COMMAND_LINE) {
            app->desk.now.value[i] = asked.now.value[i];
            app->desk.fader[i] = asked.fader[i];
        } else if (has_last && last.value[i] != app->desk.now.value[i]) {
            desk_set(&app->desk, (enum knob)i, last.value[i], &ignored);
        }
    }
    app->desk.n_undo = 0;
}

bool app_load_conversation(struct app *app, const char *path, struct error *err)
{
    struct str warning = STR_INIT;
    bool starting = app->conversation == NULL;
    struct transcript *t = NULL;

    if (app->transcript != NULL && strcmp(transcript_path(app->transcript), path) == 0)
        return error_set(err, "%s: that is this conversation", path);
    struct conversation *c = transcript_load(path, &warning, err);

    if (c != NULL && saves(app)) {
        t = transcript_new(NULL, path, err);
        if (t == NULL) {
            conversation_free(c);
            c = NULL;
        }
    }
    if (c != NULL) {
        app_use_conversation(app, c);
        app->transcript = t;
        restore_knobs(app, starting);
        find_system_origin(app);
        if (!starting)
            app_publish(app);
        if (warning.len > 0)
            app_say(app, SAY_WARNING, "%s: %s", path, warning.data);
    }
    str_done(&warning);
    return c != NULL;
}

/* ---- models ---------------------------------------------------------------------------------- */

void app_refresh_status(struct app *app)
{
    backend_status(app->backend, &app->status);
    if (app->status.model == NULL || app->desk.n_vocab == app->status.model->n_vocab)
        return;
    const struct model_info *m = app->status.model;
    bool has[KNOB_COUNT];
    app->desk.n_vocab = m->n_vocab;
    for (int i = 0; i < KNOB_COUNT; i++)
        has[i] = m->has_sampling[i] && app->desk.fader[i].origin == ORIGIN_BUILT_IN;
    desk_apply(&app->desk, has, m->sampling, ORIGIN_MODEL);
    conversation_set_model(app->conversation, m->label, m->n_vocab);
    app_changed(app, CHANGE_DESK | CHANGE_STATUS);
}

/* What the file of the old model said about the knobs does not hold for another. */
static void forget_model_values(struct app *app)
{
    for (int i = 0; i < KNOB_COUNT; i++) {
        struct fader *f = &app->desk.fader[i];
        if (f->notch_origin == ORIGIN_MODEL) {
            app->desk.preset.value[i] = knob_traits[i].initial;
            f->notch_origin = ORIGIN_BUILT_IN;
        }
        if (f->origin == ORIGIN_MODEL) {
            app->desk.now.value[i] = knob_traits[i].initial;
            f->origin = ORIGIN_BUILT_IN;
        }
    }
}

bool app_switch_model(struct app *app, const char *name, struct error *err)
{
    if (app->options.open_model == NULL)
        return error_set(err, "the model cannot be changed here");
    struct control initial = app->control;
    struct backend *b = app->options.open_model(app->options.open_model_ctx, name, &initial, err);
    if (b == NULL)
        return false;
    app_leave_answer(app);
    app_save(app, clock_now_ns());
    forget_model_values(app);
    backend_close(app->backend);
    app->backend = b;
    app->running = 0;
    app->has_view = false;
    app->view_turn = NULL;
    app->ctx_used = 0;
    app->kv_used = app->kv_held = 0;
    app->tps = 0;
    app->load_share = 0;
    app->state = APP_LOADING;
    app->desk.n_vocab = 0;
    free(app->previous_model);
    app->language_noted = false;
    app->previous_model = app->model_name;
    app->model_name = mem_strdup(name);
    app_refresh_status(app);
    app_publish(app);
    app_changed(app, CHANGE_ALL & ~CHANGE_THEME);
    return true;
}
