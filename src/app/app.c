#include "config.h"

#include "app/app_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/command.h"
#include "base/clock.h"
#include "base/mem.h"

const double app_paces[] = {0, 40, 20, 12, 5, 2};
const size_t n_app_paces = sizeof app_paces / sizeof app_paces[0];

static const int64_t second_ns = 1000000000;

/* ---- what the view is told ------------------------------------------------------------------- */

void app_changed(struct app *app, unsigned what)
{
    if (app->ops != NULL && app->ops->changed != NULL)
        app->ops->changed(app->ops_ctx, what);
}

void app_say(struct app *app, enum severity severity, const char *format, ...)
{
    static const int seconds[] = {[SAY_INFO] = 6, [SAY_WARNING] = 12, [SAY_ERROR] = 0};
    va_list args;

    va_start(args, format);
    vsnprintf(app->message, sizeof app->message, format, args);
    va_end(args);
    for (unsigned char *p = (unsigned char *)app->message; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7f)
            *p = ' ';
    }
    app->severity = severity;
    app->message_until_ns =
        seconds[severity] > 0 ? clock_now_ns() + seconds[severity] * second_ns : 0;
    app_changed(app, CHANGE_STATUS);
}

void app_clear_message(struct app *app)
{
    app->message[0] = '\0';
    app->message_until_ns = 0;
    app_changed(app, CHANGE_STATUS);
}

void app_expire_message(struct app *app, int64_t now_ns)
{
    if (app->message_until_ns != 0 && now_ns >= app->message_until_ns)
        app_clear_message(app);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

const char *app_base_system(struct app *app)
{
    const struct settings *s = app->options.settings;

    if (app->options.system != NULL) {
        app->system_origin = ORIGIN_COMMAND_LINE;
        return app->options.system;
    }
    app->system_origin = s != NULL && s->system != NULL ? ORIGIN_SETTINGS : ORIGIN_MODEL;
    return s != NULL ? s->system : NULL;
}

/* The layers for what is no knob: command line over preset over settings. */
static void init_values(struct app *app)
{
    const struct app_options *o = &app->options;
    const struct settings *s = o->settings;
    const struct preset *p = app->preset;

    app->max_tokens = o->max_tokens;
    app->max_tokens_origin = o->max_tokens >= 0 ? ORIGIN_COMMAND_LINE : ORIGIN_BUILT_IN;
    if (o->max_tokens < 0 && p != NULL && p->max_tokens > 0) {
        app->max_tokens = p->max_tokens;
        app->max_tokens_origin = ORIGIN_PRESET;
    }
    int64_t seed = o->seed >= 0 ? o->seed : p != NULL ? p->seed : -1;
    app->seed_kept = seed >= 0;
    app->kept_seed = seed >= 0 ? (uint32_t)seed : 0;
    app->seed = app->kept_seed;
    app->seed_origin = o->seed >= 0 ? ORIGIN_COMMAND_LINE
                       : seed >= 0  ? ORIGIN_PRESET
                                    : ORIGIN_BUILT_IN;
    app->on_full = s != NULL && s->drop_oldest ? CONTEXT_DROP_OLDEST : CONTEXT_STOP;
    app->on_full_origin = s != NULL && s->drop_oldest ? ORIGIN_SETTINGS : ORIGIN_BUILT_IN;
    app->prefill = s != NULL && s->prefill >= 0 ? (enum prefill_mode)s->prefill : PREFILL_AUTO;
    app->prefill_origin = s != NULL && s->prefill >= 0 ? ORIGIN_SETTINGS : ORIGIN_BUILT_IN;
    app->mouse = s == NULL || s->mouse;
    app->theme = mem_strdup(s != NULL && s->theme != NULL ? s->theme : "dark");
    app->control.pace = s != NULL ? s->pace : 0;
    app->pace_origin = s != NULL && s->pace > 0 ? ORIGIN_SETTINGS : ORIGIN_BUILT_IN;
    app->control.candidates = VIEW_MAX;
}

static void init_system(struct app *app)
{
    const char *system = app_base_system(app);

    if (app->options.system == NULL && app->preset != NULL && app->preset->system != NULL) {
        system = app->preset->system;
        app->system_origin = ORIGIN_PRESET;
    }
    conversation_set_system(app->conversation, system);
}

static bool init_conversation(struct app *app, struct error *err)
{
    const char *path = app->options.continue_path;

    if (path == NULL) {
        app->conversation = conversation_new();
        init_system(app);
        app_open_transcript(app);
        return true;
    }
    if (!app_load_conversation(app, path, err))
        return false;
    if (app->options.system != NULL)
        conversation_set_system(app->conversation, app_base_system(app));
    return true;
}

struct app *app_new(const struct app_options *options, struct backend *backend,
                    const struct desk *desk, struct preset *preset, struct error *err)
{
    struct app *app = mem_zalloc(sizeof *app);

    app->options = *options;
    app->backend = backend;
    app->desk = *desk;
    app->preset = preset;
    app->view_fd = app->signal_fd = -1;
    app->selected = KNOB_TEMPERATURE;
    app->model_name = mem_strdup(options->model_name);
    init_values(app);
    if (!init_conversation(app, err)) {
        app_free(app);
        return NULL;
    }
    app_refresh_status(app);
    app->state = APP_LOADING; /* until EVENT_READY, which always comes, is taken */
    app_publish(app);
    return app;
}

void app_free(struct app *app)
{
    if (app == NULL)
        return;
    if (app->conversation != NULL)
        app_leave_answer(app);
    app_close_transcripts(app);
    backend_close(app->backend);
    conversation_free(app->conversation);
    preset_free(app->preset);
    free(app->queued);
    free(app->theme);
    free(app->model_name);
    free(app->previous_model);
    free(app);
}

/* ---- actions --------------------------------------------------------------------------------- */

static void act_pause(struct app *app)
{
    app_set_paused(app, !app->control.paused);
}

/* The next pace of the list below or above the one in force. */
static void change_pace(struct app *app, bool slower)
{
    double now = app->control.pace, best = now;

    for (size_t i = 0; i < n_app_paces; i++) {
        double p = app_paces[i];
        if (slower && p > 0 && (now == 0 || p < now) && (best == now || p > best))
            best = p;
        if (!slower && now > 0 && p > now && (best == now || p < best))
            best = p;
    }
    if (!slower && best == now)
        best = 0;
    app_set_pace(app, best);
}

static void act_slower(struct app *app)
{
    change_pace(app, true);
}

static void act_faster(struct app *app)
{
    change_pace(app, false);
}

static void act_stop(struct app *app)
{
    app_stop(app);
}

static void act_presets(struct app *app)
{
    if (app->ops != NULL && app->ops->pick_preset != NULL)
        app->ops->pick_preset(app->ops_ctx);
    else
        command_run(app, "/preset");
}

static void act_help(struct app *app)
{
    command_run(app, "/help");
}

static void act_retry(struct app *app)
{
    app_retry(app, false);
}

static void act_retry_same(struct app *app)
{
    app_retry(app, true);
}

static void act_nudge_left(struct app *app)
{
    app_nudge(app, app->selected, -1, false);
}

static void act_nudge_right(struct app *app)
{
    app_nudge(app, app->selected, 1, false);
}

static void act_coarse_left(struct app *app)
{
    app_nudge(app, app->selected, -1, true);
}

static void act_coarse_right(struct app *app)
{
    app_nudge(app, app->selected, 1, true);
}

static void select_fader(struct app *app, int step)
{
    enum knob rows[DESK_FADERS];
    int at = 0;

    desk_rows(&app->desk, rows);
    for (int i = 0; i < DESK_FADERS; i++) {
        if (rows[i] == app->selected)
            at = i;
    }
    app->selected = rows[(at + step + DESK_FADERS) % DESK_FADERS];
    app_changed(app, CHANGE_DESK);
}

static void act_fader_up(struct app *app)
{
    select_fader(app, -1);
}

static void act_fader_down(struct app *app)
{
    select_fader(app, 1);
}

static void act_reset(struct app *app)
{
    app_reset_fader(app, app->selected);
}

static void act_mute(struct app *app)
{
    app_mute_fader(app, app->selected);
}

static void select_candidate(struct app *app, int step)
{
    int n = app->has_view ? app->view.n_candidates : 0, at = app->candidate + step;

    app->candidate = at < 0 || n == 0 ? 0 : at >= n ? n - 1 : at;
    app_changed(app, CHANGE_DESK);
}

static void act_candidate_up(struct app *app)
{
    select_candidate(app, -1);
}

static void act_candidate_down(struct app *app)
{
    select_candidate(app, 1);
}

static void act_candidate_pick(struct app *app)
{
    if (!app->has_view || app->candidate >= app->view.n_candidates)
        app_say(app, SAY_INFO, "there is no word to choose yet");
    else
        app_pick(app, app->view.candidates[app->candidate].c.id);
}

static void act_version_previous(struct app *app)
{
    app_version(app, -1);
}

static void act_version_next(struct app *app)
{
    app_version(app, 1);
}

static void act_copy(struct app *app)
{
    command_run(app, "/copy");
}

static void act_quit(struct app *app)
{
    app->quit = true;
}

/* What app does itself; `view_first`: unless the view has something more exact in mind. */
static const struct {
    enum action action;
    void (*run)(struct app *app);
    bool view_first;
} acts[] = {
    {ACTION_PAUSE, act_pause, false},
    {ACTION_STEP, app_step, false},
    {ACTION_SLOWER, act_slower, false},
    {ACTION_FASTER, act_faster, false},
    {ACTION_STOP, act_stop, false},
    {ACTION_PRESETS, act_presets, false},
    {ACTION_HELP, act_help, true},
    {ACTION_RETRY, act_retry, false},
    {ACTION_RETRY_SAME, act_retry_same, false},
    {ACTION_NUDGE_LEFT, act_nudge_left, false},
    {ACTION_NUDGE_RIGHT, act_nudge_right, false},
    {ACTION_COARSE_LEFT, act_coarse_left, false},
    {ACTION_COARSE_RIGHT, act_coarse_right, false},
    {ACTION_FADER_UP, act_fader_up, false},
    {ACTION_FADER_DOWN, act_fader_down, false},
    {ACTION_FADER_RESET, act_reset, false},
    {ACTION_FADER_MUTE, act_mute, false},
    {ACTION_FADER_UNDO, app_undo_fader, false},
    {ACTION_CANDIDATE_UP, act_candidate_up, false},
    {ACTION_CANDIDATE_DOWN, act_candidate_down, false},
    {ACTION_CANDIDATE_PICK, act_candidate_pick, false},
    {ACTION_VERSION_PREVIOUS, act_version_previous, true},
    {ACTION_VERSION_NEXT, act_version_next, true},
    {ACTION_COPY, act_copy, true},
    {ACTION_QUIT, act_quit, false},
};

static bool view_acts(struct app *app, enum action action)
{
    return app->ops != NULL && app->ops->act != NULL && app->ops->act(app->ops_ctx, action);
}

void app_act(struct app *app, enum action action)
{
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        if (acts[i].action != action)
            continue;
        if (!acts[i].view_first || !view_acts(app, action))
            acts[i].run(app);
        return;
    }
    view_acts(app, action);
}
