/* Faders, presets, pace: everything that ends on the parameter board. */
#include "config.h"

#include "app/app_private.h"

static const double watching_pace = 12; /* tokens a second that a person can follow */

void app_publish(struct app *app)
{
    app->control.knobs = app->desk.now;
    app->control.version++;
    backend_publish(app->backend, &app->control);
    app_changed(app, CHANGE_DESK | CHANGE_STATUS);
}

void app_set_candidates(struct app *app, int32_t n)
{
    int32_t most = n < 0 ? 0 : n > VIEW_MAX ? VIEW_MAX : n;

    if (most == app->control.candidates)
        return;
    app->control.candidates = most;
    app_publish(app);
}

/* A fader was moved by hand: the first time in the middle of an answer, that is slowed down. */
static void touched(struct app *app)
{
    double pace = app->control.pace;

    if (app->request != 0 && !app->first_fader) {
        app->first_fader = true;
        if (!app->control.paused && (pace == 0 || pace > watching_pace)) {
            app->control.pace = watching_pace;
            app->pace_origin = ORIGIN_SLIDER;
            app_say(app, SAY_INFO, "slowed to 12/s so that you can watch the fader; F8 faster");
        }
    }
    app_publish(app);
}

bool app_set_knob(struct app *app, enum knob knob, double value, struct error *err)
{
    if (!desk_set(&app->desk, knob, value, err))
        return false;
    touched(app);
    return true;
}

void app_nudge(struct app *app, enum knob knob, int steps, bool coarse)
{
    app->selected = knob;
    if (desk_nudge(&app->desk, knob, steps, coarse))
        touched(app);
    else
        app_changed(app, CHANGE_DESK);
}

void app_move_fader(struct app *app, enum knob knob, double travel)
{
    app->selected = knob;
    if (desk_move_to(&app->desk, knob, travel))
        touched(app);
    else
        app_changed(app, CHANGE_DESK);
}

void app_reset_fader(struct app *app, enum knob knob)
{
    if (desk_knob_changed(&app->desk, knob) || app->desk.fader[knob].muted) {
        desk_reset(&app->desk, knob);
        touched(app);
    }
}

void app_mute_fader(struct app *app, enum knob knob)
{
    if (desk_mute(&app->desk, knob))
        touched(app);
    else
        app_say(app, SAY_INFO, "%s does nothing already", knob_traits[knob].label);
}

void app_undo_fader(struct app *app)
{
    enum knob which;

    if (!desk_undo(&app->desk, &which)) {
        app_say(app, SAY_INFO, "nothing to undo on the desk");
        return;
    }
    app->selected = which;
    touched(app);
}

/* ---- presets --------------------------------------------------------------------------------- */

/* What a preset does not say falls back, when a preset had said it. */
static void use_preset_system(struct app *app, const struct preset *p)
{
    if (p->system != NULL) {
        conversation_set_system(app->conversation, p->system);
        app->system_origin = ORIGIN_PRESET;
    } else if (app->system_origin == ORIGIN_PRESET) {
        conversation_set_system(app->conversation, app_base_system(app));
    }
    app_input_changed(app);
}

void app_use_preset_numbers(struct app *app, const struct preset *p)
{
    if (p->seed >= 0 || app->seed_origin == ORIGIN_PRESET) {
        app->seed_kept = p->seed >= 0;
        app->kept_seed = p->seed >= 0 ? (uint32_t)p->seed : 0;
        app->seed_origin = p->seed >= 0 ? ORIGIN_PRESET : ORIGIN_BUILT_IN;
    }
    if (p->max_tokens > 0 || app->max_tokens_origin == ORIGIN_PRESET) {
        app->max_tokens = p->max_tokens > 0 ? p->max_tokens : -1;
        app->max_tokens_origin = p->max_tokens > 0 ? ORIGIN_PRESET : ORIGIN_BUILT_IN;
    }
}

void app_use_preset(struct app *app, struct preset *preset)
{
    preset_free(app->preset);
    app->preset = preset;
    desk_apply_preset(&app->desk, preset);
    conversation_set_preset(app->conversation, preset->name);
    use_preset_system(app, preset);
    app_use_preset_numbers(app, preset);
    if (app->request != 0)
        app_say(app, SAY_INFO, "%s: knobs now; its system prompt and seed from the next message",
                preset->name);
    else
        app_say(app, SAY_INFO, "%s%s%s", preset->name, preset->description != NULL ? ": " : "",
                preset->description != NULL ? preset->description : "");
    app_publish(app);
}

/* Complaints about a file fit no line: the first one is said, and how many more there are. */
static void say_warnings(struct app *app, const struct preset_warnings *w)
{
    if (w->n == 1)
        app_say(app, SAY_WARNING, "%s", w->items[0]);
    else if (w->n > 1)
        app_say(app, SAY_WARNING, "%s (and %zu more: fader presets check)", w->items[0], w->n - 1);
}

bool app_choose_preset(struct app *app, const char *name, struct error *err)
{
    struct preset_warnings warnings = {NULL, 0, 0};
    struct preset *p = preset_load(name, &warnings, err);

    if (p != NULL) {
        app_use_preset(app, p);
        say_warnings(app, &warnings);
    }
    preset_warnings_done(&warnings);
    return p != NULL;
}

/* ---- pace ------------------------------------------------------------------------------------ */

void app_set_pace(struct app *app, double pace)
{
    app->control.pace = pace;
    app->pace_origin = ORIGIN_SLIDER;
    app_publish(app);
}

void app_set_paused(struct app *app, bool paused)
{
    app->control.paused = paused;
    app_publish(app);
}

void app_step(struct app *app)
{
    app->control.paused = true;
    if (app->request != 0)
        app->control.steps++;
    app_publish(app);
}
