/* /set and /preset. */
#include "config.h"

#include "app/command_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

static const double pace_max = 1000;

/* ---- values that are no knobs ---------------------------------------------------------------- */

static bool parse_number(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}

static bool set_pace(struct app *app, const char *value, struct error *err)
{
    double pace = 0;

    if (strcmp(value, "full") != 0 && strcmp(value, "off") != 0 &&
        (!parse_number(value, &pace) || pace < 0 || pace > pace_max))
        return error_set(err, "pace: full, or tokens a second up to %g", pace_max);
    app_set_pace(app, pace);
    return true;
}

static bool set_pause(struct app *app, const char *value, struct error *err)
{
    int on = command_on_off(value);

    if (on < 0)
        return error_set(err, "pause: on or off");
    app_set_paused(app, on == 1);
    return true;
}

static bool set_seed(struct app *app, const char *value, struct error *err)
{
    double seed = -1;

    if (strcmp(value, "random") != 0 &&
        (!parse_number(value, &seed) || seed < -1 || seed > UINT32_MAX || seed != floor(seed)))
        return error_set(err, "seed: random, or a whole number from 0 to %u", UINT32_MAX);
    app->seed_kept = seed >= 0;
    app->kept_seed = seed >= 0 ? (uint32_t)seed : 0;
    app->seed_origin = ORIGIN_SLIDER;
    if (seed >= 0 && app->request == 0)
        app->seed = app->kept_seed;
    app_changed(app, CHANGE_DESK);
    return true;
}

static bool set_max_tokens(struct app *app, const char *value, struct error *err)
{
    double n = -1;

    if (strcmp(value, "unlimited") != 0 && strcmp(value, "off") != 0 &&
        (!parse_number(value, &n) || n < -1 || n == 0 || n > INT32_MAX || n != floor(n)))
        return error_set(err, "max_tokens: unlimited, or a whole number from 1");
    app->max_tokens = (int32_t)n;
    app->max_tokens_origin = ORIGIN_SLIDER;
    return true;
}

static bool set_on_full(struct app *app, const char *value, struct error *err)
{
    if (strcmp(value, "drop") != 0 && strcmp(value, "stop") != 0)
        return error_set(err, "on_full: drop (the oldest turns leave) or stop (the answer ends)");
    app->on_full = *value == 'd' ? CONTEXT_DROP_OLDEST : CONTEXT_STOP;
    app->on_full_origin = ORIGIN_SLIDER;
    app->context_warned = false;
    return true;
}

static bool set_prefill(struct app *app, const char *value, struct error *err)
{
    for (int i = 0; prefill_words[i] != NULL; i++) {
        if (strcmp(value, prefill_words[i]) != 0)
            continue;
        app->prefill = (enum prefill_mode)i;
        app->prefill_origin = ORIGIN_SLIDER;
        app_input_changed(app);
        return true;
    }
    return error_set(err, "prefill_while_typing: auto (not on battery), on or off");
}

static const struct {
    const char *name, *alias;
    bool (*set)(struct app *app, const char *value, struct error *err);
} others[] = {
    {"pace", "speed", set_pace},
    {"pause", "paused", set_pause},
    {"seed", "seed", set_seed},
    {"max_tokens", "n_predict", set_max_tokens},
    {"on_full", "context_policy", set_on_full},
    {"prefill_while_typing", "prefill", set_prefill},
};
enum { N_OTHERS = sizeof others / sizeof others[0] };

const char *const command_set_names[] = {
    "pace", "pause", "seed", "max_tokens", "on_full", "prefill_while_typing", NULL};

static int find_other(const char *name)
{
    for (int i = 0; i < N_OTHERS; i++) {
        if (strcasecmp(name, others[i].name) == 0 || strcasecmp(name, others[i].alias) == 0)
            return i;
    }
    return -1;
}

/* ---- knobs ----------------------------------------------------------------------------------- */

static bool set_knob(struct app *app, enum knob knob, const char *value, struct error *err)
{
    const struct knob_trait *trait = &knob_traits[knob];
    double v;

    if (strcmp(value, "off") == 0) {
        v = knob == KNOB_REPEAT_LAST_N ? 0 : trait->neutral;
    } else if (strcmp(value, "greedy") == 0 && knob == KNOB_TEMPERATURE) {
        v = 0;
    } else if (strcmp(value, "all") == 0 && knob == KNOB_REPEAT_LAST_N) {
        v = -1;
    } else if (strcmp(value, "preset") == 0 || strcmp(value, "default") == 0) {
        app_reset_fader(app, knob);
        return true;
    } else if (!parse_number(value, &v)) {
        return error_set(err, "%s: '%s' is not a number", trait->name, value);
    }
    return app_set_knob(app, knob, v, err);
}

static void say_knob(struct app *app, enum knob knob)
{
    char text[16];

    fader_value_text(knob, app->desk.now.value[knob], text);
    app_say(app, SAY_INFO, "%s %s (%s)", knob_traits[knob].name, text,
            origin_name(app->desk.fader[knob].origin));
}

static void say_unknown(struct app *app, const char *name)
{
    struct nearest near;

    nearest_init(&near, name);
    for (int i = 0; i < KNOB_COUNT; i++) {
        nearest_offer(&near, knob_traits[i].name);
        nearest_offer(&near, knob_traits[i].label);
    }
    for (int i = 0; i < N_OTHERS; i++)
        nearest_offer(&near, others[i].name);
    if (near.best != NULL)
        app_say(app, SAY_WARNING, "nothing is called %s; did you mean %s?", name, near.best);
    else
        app_say(app, SAY_WARNING, "nothing is called %s; /show lists what can be set", name);
}

/* "temp 0.8", "temp=0.8". */
void command_set(struct app *app, const char *args)
{
    struct error err = {""};
    const char *value;

    if (*args == '\0') {
        command_show(app, "");
        return;
    }
    char *name = command_word(args, &value);
    char *equals = strchr(name, '=');
    if (equals != NULL) {
        *equals = '\0';
        value = equals[1] != '\0' ? equals + 1 : value;
    }
    int knob = knob_find(name), other = find_other(name);
    if (knob < 0 && other < 0) {
        say_unknown(app, name);
    } else if (*value == '\0') {
        if (knob >= 0)
            say_knob(app, (enum knob)knob);
        else
            command_show(app, "");
    } else {
        app->message[0] = '\0';
        bool ok = knob >= 0 ? set_knob(app, (enum knob)knob, value, &err)
                            : others[other].set(app, value, &err);
        if (!ok)
            app_say(app, SAY_ERROR, "%s", err.text);
        else if (app->message[0] == '\0' && knob >= 0)
            say_knob(app, (enum knob)knob);
        else if (app->message[0] == '\0')
            app_say(app, SAY_INFO, "%s %s", others[other].name, value);
    }
    free(name);
}

void command_preset(struct app *app, const char *args)
{
    struct error err;

    if (*args != '\0') {
        if (!app_choose_preset(app, args, &err))
            app_say(app, SAY_ERROR, "%s", err.text);
        return;
    }
    if (app->ops != NULL && app->ops->pick_preset != NULL) {
        app->ops->pick_preset(app->ops_ctx);
        return;
    }
    struct preset_list list = {NULL, 0, 0};
    struct str text = STR_INIT;
    preset_list_all(&list);
    for (size_t i = 0; i < list.n; i++) {
        const struct preset_entry *e = &list.items[i];
        const char *what = e->problem != NULL       ? e->problem
                           : e->description != NULL ? e->description
                                                    : "";
        str_add_format(&text, "%c %-12s %s\n",
                       strcmp(e->name, app->desk.preset_name) == 0 ? '*' : ' ', e->name, what);
    }
    command_page(app, "Presets", &text);
    str_done(&text);
    preset_list_done(&list);
}
