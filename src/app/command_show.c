/* Commands that show something, or speak to the program itself. */
#include "config.h"

#include "app/command_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/keys.h"
#include "base/mem.h"
#include "chat/template.h"
#include "config/paths.h"
#include "config/theme.h"

/* ---- help ------------------------------------------------------------------------------------ */

static void help_line(struct str *out, const struct command *c)
{
    struct str usage = STR_INIT;

    str_add_format(&usage, "/%s%s%s", c->name, *c->syntax != '\0' ? " " : "", c->syntax);
    str_add_format(out, "%-32s  %s\n", usage.data, c->help);
    str_done(&usage);
}

void command_help(struct app *app, const char *args)
{
    struct str text = STR_INIT;

    if (*args == '/')
        args++;
    if (*args != '\0') {
        const struct command *c = command_find(args);
        if (c == NULL)
            app_say(app, SAY_WARNING, "no command /%s; /help lists them", args);
        else
            app_say(app, SAY_INFO, "/%s%s%s: %s%s%s%s", c->name, *c->syntax != '\0' ? " " : "",
                    c->syntax, c->help, *c->aliases != '\0' ? " (also: " : "", c->aliases,
                    *c->aliases != '\0' ? ")" : "");
        return;
    }
    for (size_t i = 0; i < n_commands; i++)
        help_line(&text, &commands[i]);
    str_add_text(&text,
                 "\nA line that begins with // is sent with one slash. /keys lists the keys.\n"
                 "While an answer runs, a message is queued and commands act at once.\n");
    command_page(app, "Help", &text);
    str_done(&text);
}

void command_keys(struct app *app, const char *args)
{
    struct str text = STR_INIT;

    (void)args;
    keys_describe(&text);
    command_page(app, "Keys", &text);
    str_done(&text);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void show_value(struct str *out, const char *name, const char *value, enum origin origin)
{
    str_add_format(out, "%-20s %-14s %s\n", name, value, origin_name(origin));
}

static void show_knobs(struct app *app, struct str *out)
{
    for (int i = 0; i < KNOB_COUNT; i++) {
        const struct fader *f = &app->desk.fader[i];
        char value[16], notch[16];
        fader_value_text((enum knob)i, app->desk.now.value[i], value);
        fader_value_text((enum knob)i, app->desk.preset.value[i], notch);
        str_add_format(out, "%-20s %-14s %s%s", knob_traits[i].name, value, origin_name(f->origin),
                       f->muted ? ", muted" : "");
        if (desk_knob_changed(&app->desk, (enum knob)i))
            str_add_format(out, " (%s: %s)", app->desk.preset_name, notch);
        str_add_char(out, '\n');
    }
    str_add_format(out, "%-20s ", "order");
    for (int i = 0; i < STAGE_COUNT; i++)
        str_add_format(out, "%s%s", i > 0 ? ", " : "",
                       stage_name((enum stage)app->desk.now.order[i]));
    str_add_char(out, '\n');
}

static void show_others(struct app *app, struct str *out)
{
    struct str s = STR_INIT;
    struct backend_status now;

    if (app->control.pace > 0)
        str_add_format(&s, "%g/s", app->control.pace);
    else
        str_add_text(&s, "full");
    show_value(out, "pace", s.data, app->pace_origin);
    str_clear(&s);
    if (app->seed_kept)
        str_add_format(&s, "%u", app->kept_seed);
    else
        str_add_text(&s, "random");
    show_value(out, "seed", s.data, app->seed_origin);
    str_clear(&s);
    if (app->max_tokens >= 0)
        str_add_format(&s, "%d", app->max_tokens);
    else
        str_add_text(&s, "unlimited");
    show_value(out, "max_tokens", s.data, app->max_tokens_origin);
    show_value(out, "on_full", app->on_full == CONTEXT_DROP_OLDEST ? "drop" : "stop",
               app->on_full_origin);
    str_clear(&s);
    backend_status(app->backend, &now);
    str_add_format(&s, "%s%s", prefill_words[app->prefill],
                   app->prefill == PREFILL_AUTO && now.on_battery ? " (battery)" : "");
    show_value(out, "prefill_while_typing", s.data, app->prefill_origin);
    str_done(&s);
}

static void show_program(struct app *app, struct str *out)
{
    const struct backend_status *st = &app->status;
    const char *system = app->conversation->system;

    str_add_format(out, "%-20s %s%s\n", "preset", app->desk.preset_name,
                   desk_is_changed(&app->desk) ? "*" : "");
    if (system == NULL && st->chat_template != NULL)
        system = st->chat_template->default_system;
    str_add_format(out, "%-20s %s (%s)\n", "system",
                   system != NULL && *system != '\0' ? system : "none",
                   origin_name(app->system_origin));
    if (st->model != NULL)
        str_add_format(out, "%-20s %s %s, %s\n", "model", st->model->label, st->model->type,
                       st->model->path);
    else
        str_add_format(out, "%-20s %s\n", "model", app->model_name != NULL ? app->model_name : "");
    if (st->chat_template != NULL)
        str_add_format(out, "%-20s %s%s\n", "chat template", template_name(st->chat_template->tmpl),
                       st->chat_template->recognised ? "" : " (the file's own is not known)");
    if (st->kernels != NULL)
        str_add_format(out, "%-20s %s, %d threads\n", "kernels", st->kernels, st->threads);
    str_add_format(out, "%-20s %s\n", "theme", app->theme);
    str_add_format(out, "%-20s %s\n", "conversation",
                   app->transcript != NULL ? transcript_path(app->transcript) : "not saved");
}

void command_show(struct app *app, const char *args)
{
    struct str text = STR_INIT;

    (void)args;
    show_knobs(app, &text);
    str_add_char(&text, '\n');
    show_others(app, &text);
    str_add_char(&text, '\n');
    show_program(app, &text);
    command_page(app, "Values", &text);
    str_done(&text);
}

/* ---- measures -------------------------------------------------------------------------------- */

/* Mean surprise of an answer in bits a token, under the raw softmax. */
static bool mean_surprise(const struct turn *t, double *bits)
{
    double sum = 0;

    for (size_t i = 0; i < t->n_tokens; i++)
        sum -= (double)t->tokens[i].logprob / M_LN2;
    *bits = t->n_tokens > 0 ? sum / (double)t->n_tokens : 0;
    return t->n_tokens > 0 && isfinite(*bits);
}

/* "8,192" */
static void add_count(struct str *out, uint64_t n)
{
    size_t start = out->len;

    str_add_format(out, "%llu", (unsigned long long)n);
    for (size_t digits = 3; out->len - start > digits; digits += 4)
        str_insert(out, out->len - digits, ",", 1);
}

/* What the cache saved in this sitting. */
static void add_totals(struct str *out, const struct app_totals *t)
{
    str_add_format(out, "\nin all        %d answer%s to prompts of ", t->answers,
                   t->answers == 1 ? "" : "s");
    add_count(out, (uint64_t)t->prompt_tokens);
    str_add_text(out, " tokens; ");
    add_count(out, (uint64_t)t->reused_tokens);
    str_add_text(out, " of them reused, ");
    add_count(out, (uint64_t)t->ahead_tokens);
    str_add_text(out, " of these run ahead\n");
}

void command_stats(struct app *app, const char *args)
{
    const struct app_stats *s = &app->stats;
    const struct turn *t = app_last_of(app, ROLE_ASSISTANT);
    struct str text = STR_INIT;
    double bits;

    (void)args;
    if (!s->valid) {
        app_say(app, SAY_INFO, "no answer has ended yet");
        return;
    }
    str_add_format(&text, "prompt        %d tokens, %d of them reused from the cache",
                   s->prompt_tokens, s->reused_tokens);
    if (s->ahead_tokens > 0)
        str_add_format(&text, " (%d run ahead, while you typed)", s->ahead_tokens);
    str_add_char(&text, '\n');
    str_add_format(&text, "answer        %d tokens, ended by: %s\n", s->tokens,
                   end_reason_name(s->reason));
    str_add_format(&text, "first token   after %.0f ms\n", s->ttft_ms);
    str_add_format(&text, "prefill       %.0f tokens/s\n", s->prefill_tps);
    str_add_format(&text, "decode        %.1f tokens/s\n", s->decode_tps);
    if (app->status.full_tps > 0)
        str_add_format(&text, "full speed    %.1f tokens/s\n", app->status.full_tps);
    if (t != NULL && mean_surprise(t, &bits))
        str_add_format(&text, "surprise      %.2f bits a token, to the model\n", bits);
    add_totals(&text, &app->totals);
    command_page(app, "The last answer", &text);
    str_done(&text);
}

static void add_bytes(struct str *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    size_t unit = 0;

    while (v >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        v /= 1000;
        unit++;
    }
    str_add_format(out, unit == 0 ? "%.0f %s" : "%.2f %s", v, units[unit]);
}

static void add_cost(struct str *out, const char *what, uint64_t bytes)
{
    str_add_format(out, "%-16s", what);
    add_bytes(out, bytes);
    str_add_char(out, '\n');
}

void command_context(struct app *app, const char *args)
{
    const struct ledger *l = &app->status.ledger;
    struct str text = STR_INIT;
    struct backend_status now;

    (void)args;
    if (app->status.model == NULL || l->ctx <= 0) {
        app_say(app, SAY_INFO, "no model is open yet");
        return;
    }
    str_add_format(&text, "%-16s", "in use");
    add_count(&text, (uint64_t)app->ctx_used);
    str_add_text(&text, " of ");
    add_count(&text, (uint64_t)l->ctx);
    str_add_format(&text, " positions (%.1f %%)\n", 100.0 * app->ctx_used / l->ctx);
    backend_status(app->backend, &now);
    if (now.ahead > 0) {
        str_add_format(&text, "%-16s", "run ahead");
        add_count(&text, (uint64_t)now.ahead);
        str_add_text(&text, " positions of the next prompt\n");
    }
    str_add_format(&text, "%-16s%d layers, %d heads, %d KV heads of %d\n", "model", l->layers,
                   l->heads, l->kv_heads, l->head_dim);
    str_add_format(&text, "%-16s", "a token costs");
    add_count(&text, l->bytes_per_token);
    str_add_format(&text, " B = 2 (K, V) x %d x %d x %d x %.4g B\n", l->layers, l->kv_heads,
                   l->head_dim, l->bytes_per_element);
    add_cost(&text, "used", app->kv_used);
    if (app->kv_held > 0)
        add_cost(&text, "held in blocks", app->kv_held);
    add_cost(&text, "whole context", l->total_bytes);
    add_cost(&text, "with MHA", l->mha_total_bytes);
    if (l->mha_total_bytes > l->total_bytes)
        str_add_format(&text, "%-16s%.0f %% by sharing KV heads among the %d heads\n", "saved",
                       100.0 * (1 - (double)l->total_bytes / (double)l->mha_total_bytes), l->heads);
    str_add_format(&text, "%-16s%s\n", "when it is full",
                   app->on_full == CONTEXT_DROP_OLDEST ? "the oldest turns leave"
                                                       : "the answer ends");
    command_page(app, "Context", &text);
    str_done(&text);
}

/* ---- the program ----------------------------------------------------------------------------- */

void command_model(struct app *app, const char *args)
{
    struct error err;
    struct str text = STR_INIT;
    struct model_file_list list = {NULL, 0, 0};

    if (*args != '\0') {
        if (app_switch_model(app, args, &err))
            app_say(app, SAY_INFO, "opening %s; the conversation stays", args);
        else
            app_say(app, SAY_ERROR, "%s", err.text);
        return;
    }
    models_find(&list);
    for (size_t i = 0; i < list.n; i++) {
        const struct model_file *m = &list.items[i];
        bool open = app->status.model != NULL && strcmp(app->status.model->path, m->path) == 0;
        str_add_format(&text, "%c %-44s ", open ? '*' : ' ', m->name);
        add_bytes(&text, m->size);
        str_add_format(&text, "  %s\n", m->where);
    }
    if (list.n == 0)
        models_explain(&text);
    command_page(app, "Models", &text);
    model_file_list_done(&list);
    str_done(&text);
}

static void list_themes(struct app *app)
{
    char **names = theme_names();
    struct str text = STR_INIT;

    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        str_add_format(&text, "%s%s%s", i > 0 ? ", " : "", names[i],
                       strcmp(names[i], app->theme) == 0 ? " (now)" : "");
    app_say(app, SAY_INFO, "themes: %s", str_text(&text));
    str_done(&text);
    paths_list_free(names);
}

void command_theme(struct app *app, const char *args)
{
    struct error err;

    if (*args == '\0') {
        list_themes(app);
    } else if (app->ops == NULL || app->ops->set_theme == NULL) {
        app_say(app, SAY_WARNING, "there are no themes here");
    } else if (!app->ops->set_theme(app->ops_ctx, args, &err)) {
        app_say(app, SAY_ERROR, "%s", err.text);
    } else {
        free(app->theme);
        app->theme = mem_strdup(args);
        app_changed(app, CHANGE_ALL);
    }
}

void command_mouse(struct app *app, const char *args)
{
    int on = command_on_off(args);

    if (on < 0) {
        app_say(app, SAY_INFO, "the mouse is %s; /mouse on, /mouse off",
                app->mouse ? "on" : "off: the terminal has it");
    } else if (app->ops == NULL || app->ops->set_mouse == NULL) {
        app_say(app, SAY_WARNING, "there is no mouse here");
    } else {
        app->mouse = on == 1;
        app->ops->set_mouse(app->ops_ctx, app->mouse);
        app_say(app, SAY_INFO,
                on == 1 ? "the mouse is fader's; Shift-drag for the terminal's own"
                        : "the mouse is the terminal's again");
    }
}

void command_quit(struct app *app, const char *args)
{
    (void)args;
    app->quit = true;
}
