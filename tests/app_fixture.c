#include "app_fixture.h"

#include <signal.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "folder.h"

static void replace(char **at, const char *text)
{
    free(*at);
    *at = mem_strdup(text);
}

/* ---- the view -------------------------------------------------------------------------------- */

static void view_changed(void *view, unsigned what)
{
    ((struct fixture *)view)->changed |= what;
}

static bool view_act(void *view, enum action action)
{
    ((struct fixture *)view)->acted = action;
    return false;
}

static bool view_edit(void *view, const char *text, char **out, struct error *err)
{
    struct fixture *f = view;

    (void)text;
    if (f->edited == NULL)
        return error_set(err, "no editor");
    *out = mem_strdup(f->edited);
    return true;
}

static bool view_copy(void *view, const char *text, struct error *err)
{
    struct fixture *f = view;

    if (f->refuses)
        return error_set(err, "too long for the terminal");
    replace(&f->copied, text);
    return true;
}

static void view_set_input(void *view, const char *text)
{
    replace(&((struct fixture *)view)->input, text);
}

static const char *view_get_input(void *view)
{
    const struct fixture *f = view;

    return f->typed != NULL ? f->typed : "";
}

static void view_show_page(void *view, const char *title, const char *text)
{
    struct fixture *f = view;

    replace(&f->page_title, title);
    replace(&f->page, text);
}

static void view_pick_preset(void *view)
{
    ((struct fixture *)view)->presets_asked++;
}

static bool view_set_theme(void *view, const char *name, struct error *err)
{
    struct fixture *f = view;

    if (f->refuses)
        return error_set(err, "no theme %s", name);
    replace(&f->theme, name);
    return true;
}

static void view_set_mouse(void *view, bool on)
{
    ((struct fixture *)view)->mouse = on;
}

static bool view_confirm(void *view, const char *question, const char *keys, char *answer)
{
    struct fixture *f = view;

    replace(&f->question, question);
    if (f->answer == '\0' || strchr(keys, f->answer) == NULL)
        return false;
    *answer = f->answer;
    return true;
}

static const struct view_ops ops = {
    .changed = view_changed,
    .act = view_act,
    .edit_text = view_edit,
    .copy = view_copy,
    .set_input = view_set_input,
    .get_input = view_get_input,
    .show_page = view_show_page,
    .pick_preset = view_pick_preset,
    .set_theme = view_set_theme,
    .set_mouse = view_set_mouse,
    .confirm_choice = view_confirm,
};

/* ---- life ------------------------------------------------------------------------------------ */

void fixture_prepare(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(folder_make(NULL), 0);
    f->folder = folder;
    setenv("HOME", f->folder, 1);
    setenv("XDG_CONFIG_HOME", f->folder, 1);
    setenv("XDG_STATE_HOME", f->folder, 1);
    setenv("XDG_CACHE_HOME", f->folder, 1);
    f->settings.save = true;
    f->settings.mouse = true;
    f->settings.drop_oldest = true;
    f->settings.cache_type = -1;
    f->settings.prefill = -1;
    f->options.settings = &f->settings;
    f->options.seed = -1;
    f->options.max_tokens = -1;
    f->options.model_name = "toy";
}

bool fixture_try_open(struct fixture *f, const char *script, struct preset *preset,
                      struct error *err)
{
    struct control initial = {.knobs = knobs_default(), .candidates = VIEW_MAX};
    char *path = fixture_write(f, "script", script);
    struct backend *backend = scripted_backend_new(path, &initial, err);
    struct desk desk;

    free(path);
    if (backend == NULL)
        fail_msg("%s", err->text);
    desk_init(&desk);
    f->app = app_new(&f->options, backend, &desk, preset, err);
    if (f->app == NULL)
        return false;
    f->app->ops = &ops;
    f->app->ops_ctx = f;
    return true;
}

void fixture_open(struct fixture *f, const char *script)
{
    struct error err;

    if (!fixture_try_open(f, script, NULL, &err))
        fail_msg("%s", err.text);
    fixture_wait(f, is_idle);
}

void fixture_start(struct fixture *f, const char *script)
{
    fixture_prepare(f);
    fixture_open(f, script);
}

void fixture_close(struct fixture *f)
{
    app_free(f->app);
    f->app = NULL;
}

void fixture_stop(struct fixture *f)
{
    fixture_close(f);
    folder_remove(NULL);
    char **owned[] = {&f->page_title, &f->page,     &f->input, &f->copied,
                      &f->theme,      &f->question, &f->edited};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        free(*owned[i]);
        *owned[i] = NULL;
    }
}

/* ---- what happens ---------------------------------------------------------------------------- */

bool is_idle(const struct app *app)
{
    return !app_is_answering(app) && app->running == 0 &&
           (app->state == APP_IDLE || app->state == APP_FAILED);
}

bool is_paused_at_view(const struct app *app)
{
    return app->control.paused && app->has_view && !app->view.drawn &&
           app->view.version == app->control.version;
}

void fixture_wait(struct fixture *f, bool (*done)(const struct app *app))
{
    int64_t start = clock_now_ns();

    while (!done(f->app)) {
        app_poll(f->app, 100);
        if (clock_since_s(start) > 60)
            fail_msg("it did not come; the message line says \"%s\"", f->app->message);
    }
}

void fixture_ask(struct fixture *f, const char *line)
{
    app_enter(f->app, line);
    fixture_wait(f, is_idle);
}

struct turn *fixture_turn(struct fixture *f, size_t i)
{
    struct turn *t = conversation_at(f->app->conversation, i);

    if (t == NULL)
        fail_msg("no turn %zu on the path", i);
    return t;
}

const char *fixture_text(struct fixture *f, size_t i)
{
    return str_text(&fixture_turn(f, i)->text);
}

char *fixture_write(struct fixture *f, const char *name, const char *text)
{
    char *path = file_join(f->folder, name);
    struct error err;

    if (!file_write_atomic(path, text, strlen(text), 0600, &err))
        fail_msg("%s", err.text);
    return path;
}

char *fixture_read(const char *path)
{
    struct str s = STR_INIT;
    struct error err;

    if (!file_read(path, 1 << 24, &s, &err))
        fail_msg("%s", err.text);
    return str_steal(&s);
}
