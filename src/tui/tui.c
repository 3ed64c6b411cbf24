#include "config.h"

#include "tui/tui.h"

#include <langinfo.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tui/editor.h"
#include "tui/glyphs.h"
#include "tui/input.h"
#include "tui/tui_impl.h"

enum { FRAMES_PER_SECOND = 60, BUDGET_MAX = 3, SECOND_NS = 1000000000 };

void tui_changed(struct tui *t, bool by_key)
{
    t->dirty = true;
    t->urgent = t->urgent || by_key;
}

/* ---- what app asks of the view -------------------------------------------------------------- */

static void view_changed(void *view, unsigned what)
{
    struct tui *t = view;

    t->changed |= what;
    if (app_is_answering(t->app))
        t->answering_ns = clock_now_ns();
    if (what & CHANGE_PATH) { /* at once: turns of another conversation are gone */
        scrollback_reload(&t->scrollback, t->app->conversation,
                          app_is_answering(t->app) ? t->app->answer : NULL);
        if (t->focus == FOCUS_TRANSCRIPT && !t->scrollback.has_cursor)
            tui_set_focus(t, FOCUS_TRANSCRIPT); /* the cursor, where there is a word for it */
    }
    tui_changed(t, false);
}

static bool view_edit_text(void *view, const char *text, char **out, struct error *err)
{
    struct tui *t = view;
    bool ok = editor_run(text, out, err);

    tui_redraw_all(t);
    return ok;
}

static bool view_copy(void *view, const char *text, struct error *err)
{
    (void)view;
    return terminal_copy(text, strlen(text), err);
}

static void view_set_input(void *view, const char *text)
{
    input_set_text(text);
    tui_set_focus(view, FOCUS_INPUT);
}

static const char *view_get_input(void *view)
{
    (void)view;
    return input_text();
}

static void view_show_page(void *view, const char *title, const char *text)
{
    struct tui *t = view;

    tui_close_overlay(t);
    page_init(&t->page, title, text);
    t->explains_keys = strcmp(title, "Keys") == 0;
    t->overlay = OVERLAY_PAGE;
}

static void view_pick_preset(void *view)
{
    tui_open_presets(view);
}

static bool use_theme(struct tui *t, const char *name, struct error *err)
{
    struct theme *theme = theme_load(name, err);

    if (theme == NULL)
        return false;
    theme_free(t->theme);
    t->theme = theme;
    styles_set(&t->styles, theme, t->styles.depth);
    tui_redraw_all(t);
    return true;
}

static bool view_set_theme(void *view, const char *name, struct error *err)
{
    return use_theme(view, name, err);
}

static void view_set_mouse(void *view, bool on)
{
    (void)view;
    terminal_set_mouse(on);
}

/* Waits for one of `keys`; Esc, Ctrl-C or the end of the terminal is no answer. Nothing else is
 * looked at meanwhile: the generator fills its ring and waits. */
static bool view_confirm_choice(void *view, const char *question, const char *keys, char *answer)
{
    struct tui *t = view;
    struct term_event event;
    int key = 0;

    t->question = question;
    while (key == 0) {
        struct pollfd fds[2] = {{terminal_fd(), POLLIN, 0}, {terminal_signal_fd(), POLLIN, 0}};
        tui_draw(t, clock_now_ns());
        int64_t wait = terminal_deadline() - clock_now_ns();
        poll(fds, 2,
             terminal_deadline() == INT64_MAX ? -1
             : wait > 0                       ? (int)(wait / 1000000 + 1)
                                              : 0);
        while (key == 0 && terminal_next_event(&event)) {
            if (event.kind != TERM_KEY)
                tui_handle(t, &event);
            else if (event.key == 27 || event.key == 3)
                key = 27;
            else if (event.key > 0 && event.key < 128 && strchr(keys, event.key) != NULL)
                key = event.key;
            else
                terminal_beep();
            if (t->app->quit)
                key = 27;
        }
    }
    t->question = NULL;
    tui_changed(t, true);
    *answer = (char)key;
    return key != 27;
}

static const struct view_ops ops = {
    .changed = view_changed,
    .act = tui_act,
    .edit_text = view_edit_text,
    .copy = view_copy,
    .set_input = view_set_input,
    .get_input = view_get_input,
    .show_page = view_show_page,
    .pick_preset = view_pick_preset,
    .set_theme = view_set_theme,
    .set_mouse = view_set_mouse,
    .confirm_choice = view_confirm_choice,
};

/* ---- the input's hooks ---------------------------------------------------------------------- */

static void input_was_entered(void *ctx, const char *text)
{
    struct tui *t = ctx;

    tui_clear_matches(t);
    scrollback_end(&t->scrollback);
    app_enter(t->app, text);
}

static void input_saw_eof(void *ctx)
{
    struct tui *t = ctx;

    t->app->quit = true;
}

static void input_has_matches(void *ctx, char *const *matches, size_t n)
{
    struct tui *t = ctx;

    tui_clear_matches(t);
    if (n == 0)
        return;
    n = n < MATCHES_MAX ? n : MATCHES_MAX;
    t->matches = mem_array(n, sizeof *t->matches);
    for (size_t i = 0; i < n; i++)
        t->matches[i] = mem_strdup(matches[i]);
    t->n_matches = n;
    tui_changed(t, true);
}

static void input_has_changed(void *ctx)
{
    struct tui *t = ctx;

    app_input_changed(t->app);
    tui_changed(t, true);
}

/* ---- frames --------------------------------------------------------------------------------- */

static void refill(struct tui *t, int64_t now)
{
    t->budget += (double)(now - t->refilled_ns) * FRAMES_PER_SECOND / SECOND_NS;
    t->budget = t->budget < BUDGET_MAX ? t->budget : BUDGET_MAX;
    t->refilled_ns = now;
}

/* Draws when a frame is due. Frames of the stream leave one in the budget, so that a key never
 * waits for its own. */
static int64_t view_tick(void *view, int64_t now)
{
    struct tui *t = view;
    int64_t next = INT64_MAX;

    tui_events(t);
    refill(t, now);
    if (t->notice_until_ns != 0 && now >= t->notice_until_ns)
        t->dirty = true;
    else if (t->notice_until_ns != 0)
        next = t->notice_until_ns;
    if (t->changed & CHANGE_DESK) { /* numbers that were put off */
        int64_t due = t->panel_ns + PANEL_EVERY_NS;
        if (now >= due)
            t->dirty = true;
        else
            next = due < next ? due : next;
    }
    if (t->dirty) {
        double need = t->urgent ? 1 : 2;
        if (t->budget >= need) {
            t->budget -= 1;
            tui_draw(t, now);
        } else {
            int64_t due = now + (int64_t)((need - t->budget) * SECOND_NS / FRAMES_PER_SECOND) + 1;
            next = due < next ? due : next;
        }
    }
    int64_t escape = terminal_deadline();
    return escape < next ? escape : next;
}

static void set_up(struct tui *t, struct app *app)
{
    const struct settings *settings = app->options.settings;
    const struct input_hooks hooks = {input_was_entered, input_saw_eof, input_has_matches,
                                      input_has_changed, t};
    struct error err;

    t->app = app;
    t->panel = (enum panel_mode)(
        settings->panel >= 0 && settings->panel < PANEL_COUNT ? settings->panel : 0);
    t->glyphs =
        glyphs_choose(settings->glyphs, getenv("TERM"), strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
    t->canvas = canvas_new(1, 1);
    scrollback_init(&t->scrollback);
    screen_init(&t->screen);
    t->styles.depth = styles_depth();
    const char *name = app->theme != NULL ? app->theme : settings->theme;
    if (!use_theme(t, name != NULL ? name : "dark", &err)) {
        app_say(app, SAY_ERROR, "%s", err.text);
        use_theme(t, "dark", &err);
    }
    input_open(app, &hooks);
    t->changed = CHANGE_ALL;
    t->anew = t->dirty = t->urgent = true;
    t->budget = BUDGET_MAX;
    t->refilled_ns = clock_now_ns();
}

static void tear_down(struct tui *t)
{
    input_close();
    terminal_close();
    tui_close_overlay(t);
    tui_clear_matches(t);
    scrollback_done(&t->scrollback);
    screen_done(&t->screen);
    canvas_free(t->canvas);
    theme_free(t->theme);
}

int tui_run(struct app *app)
{
    struct tui tui = {0};
    struct error err;

    if (!terminal_open(app->options.settings->mouse, &err)) {
        fprintf(stderr, "fader: %s\n", err.text);
        return 1;
    }
    set_up(&tui, app);
    app->ops = &ops;
    app->ops_ctx = &tui;
    app->view_fd = terminal_fd();
    app->input_ready = tui_events;
    app->signal_fd = terminal_signal_fd();
    app->signal_ready = tui_events;
    app->tick = view_tick;
    int status = app_run(app);
    app->ops = NULL;
    app->tick = NULL;
    app->view_fd = app->signal_fd = -1;
    tear_down(&tui);
    return tui.status != 0 ? tui.status : status;
}
