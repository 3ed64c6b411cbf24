#include "config.h"

#include "tui/tui.h"

#include <langinfo.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command.h"
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

/* ---- focus and overlays --------------------------------------------------------------------- */

static bool can_focus(struct tui *t, enum focus focus)
{
    size_t token;

    switch (focus) {
    case FOCUS_FADERS:
        return t->layout.panel != PANEL_BARE;
    case FOCUS_CANDIDATES:
        return t->layout.candidates.rows > 0 && t->app->has_view;
    case FOCUS_TRANSCRIPT:
        return scrollback_cursor(&t->scrollback, &token) != NULL ||
               scrollback_enter(&t->scrollback);
    default:
        return true;
    }
}

void tui_set_focus(struct tui *t, enum focus focus)
{
    if (!can_focus(t, focus))
        focus = FOCUS_INPUT;
    if (t->focus == FOCUS_TRANSCRIPT && focus != FOCUS_TRANSCRIPT)
        scrollback_leave(&t->scrollback);
    t->focus = focus;
    t->typed[0] = '\0';
    t->changed |= CHANGE_DESK;
    tui_changed(t, true);
}

static void cycle_focus(struct tui *t, int direction)
{
    int focus = (int)t->focus;

    for (int i = 0; i < FOCUS_COUNT; i++) {
        focus = (focus + direction + FOCUS_COUNT) % FOCUS_COUNT;
        if (can_focus(t, (enum focus)focus))
            break;
    }
    tui_set_focus(t, (enum focus)focus);
}

void tui_close_overlay(struct tui *t)
{
    if (t->overlay == OVERLAY_PAGE)
        page_done(&t->page);
    else if (t->overlay == OVERLAY_PRESETS)
        picker_done(&t->picker);
    t->overlay = OVERLAY_NONE;
    t->anew = true;
    tui_changed(t, true);
}

void tui_open_presets(struct tui *t)
{
    struct preset_list list;

    tui_close_overlay(t);
    picker_init(&t->picker, "presets");
    preset_list_all(&list);
    for (size_t i = 0; i < list.n; i++) {
        const struct preset_entry *e = &list.items[i];
        picker_add(&t->picker, e->name, e->problem != NULL ? e->problem : e->description,
                   e->problem != NULL);
    }
    preset_list_done(&list);
    picker_select(&t->picker, t->app->desk.preset_name);
    t->overlay = OVERLAY_PRESETS;
}

void tui_clear_matches(struct tui *t)
{
    if (t->matches == NULL)
        return;
    for (size_t i = 0; i < t->n_matches; i++)
        free(t->matches[i]);
    free(t->matches);
    t->matches = NULL;
    t->n_matches = 0;
    t->anew = true;
    tui_changed(t, true);
}

/* ---- actions of the view's own -------------------------------------------------------------- */

static void scroll_by(struct tui *t, int rows)
{
    scrollback_scroll(&t->scrollback, rows);
    tui_changed(t, true);
}

static int page_rows(const struct tui *t)
{
    return t->scrollback.area.rows > 2 ? t->scrollback.area.rows - 1 : 1;
}

static void next_panel(struct tui *t)
{
    t->panel = (enum panel_mode)(((int)t->panel + 1) % PANEL_COUNT);
    if (t->panel == PANEL_STRIP && t->layout.panel == PANEL_STRIP)
        t->panel = PANEL_BARE; /* a screen too small for the desk shows the strip already */
    t->anew = true;
    tui_changed(t, true);
}

static void copy_text(struct tui *t, const char *text, size_t len)
{
    struct error err;

    if (terminal_copy(text, len, &err))
        app_say(t->app, SAY_INFO, "sent to the terminal's clipboard (it does not confirm)");
    else
        app_say(t->app, SAY_ERROR, "%s", err.text);
}

void tui_copy_selection(struct tui *t)
{
    struct str text = STR_INIT;

    scrollback_selected_text(&t->scrollback, &text);
    if (text.len > 0)
        copy_text(t, text.data, text.len);
    str_done(&text);
}

/* 'y': the selection, else the turn under the cursor; false: neither is there. */
static bool copy(struct tui *t)
{
    size_t token;
    const struct turn *turn = scrollback_cursor(&t->scrollback, &token);

    if (t->scrollback.has_selection)
        tui_copy_selection(t);
    else if (turn != NULL)
        copy_text(t, str_text(&turn->text), turn->text.len);
    return t->scrollback.has_selection || turn != NULL;
}

static void change_version(struct tui *t, int direction)
{
    size_t token;
    const struct turn *turn = scrollback_cursor(&t->scrollback, &token);

    /* the conversation owns its turns; the scrollback only borrowed this one to show it */
    for (size_t i = 0; turn != NULL && i < t->app->conversation->n_turns; i++) {
        if (t->app->conversation->turns[i] == turn) {
            app_version_of(t->app, t->app->conversation->turns[i], direction);
            return;
        }
    }
    app_version(t->app, direction);
}

static void edit_input(struct tui *t)
{
    struct error err;

    if (!input_edit(&err))
        app_say(t->app, SAY_ERROR, "%s", err.text);
    t->anew = true;
    screen_forget(&t->screen);
}

static void redraw_all(struct tui *t)
{
    t->anew = true;
    screen_forget(&t->screen);
    tui_changed(t, true);
}

static bool act_scroll(struct tui *t, enum action action)
{
    switch (action) {
    case ACTION_SCROLL_UP:
        scroll_by(t, -page_rows(t));
        return true;
    case ACTION_SCROLL_DOWN:
        scroll_by(t, page_rows(t));
        return true;
    case ACTION_SCROLL_HOME:
        scrollback_home(&t->scrollback);
        return true;
    case ACTION_SCROLL_END:
        scrollback_end(&t->scrollback);
        return true;
    case ACTION_TOKEN_LEFT:
    case ACTION_TOKEN_RIGHT:
        scrollback_move_token(&t->scrollback, action == ACTION_TOKEN_LEFT ? -1 : 1);
        return true;
    case ACTION_LINE_UP:
    case ACTION_LINE_DOWN:
        scrollback_move_row(&t->scrollback, action == ACTION_LINE_UP ? -1 : 1);
        return true;
    case ACTION_VERSION_PREVIOUS:
    case ACTION_VERSION_NEXT:
        change_version(t, action == ACTION_VERSION_PREVIOUS ? -1 : 1);
        return true;
    case ACTION_COPY:
        return copy(t);
    case ACTION_HEAT:
        t->scrollback.heat = !t->scrollback.heat;
        scrollback_touch(&t->scrollback);
        return true;
    default:
        return false;
    }
}

bool tui_act(void *view, enum action action)
{
    struct tui *t = view;

    tui_changed(t, true);
    switch (action) {
    case ACTION_FOCUS_NEXT:
        cycle_focus(t, 1);
        return true;
    case ACTION_FOCUS_PREVIOUS:
        cycle_focus(t, -1);
        return true;
    case ACTION_FOCUS_INPUT:
        tui_set_focus(t, FOCUS_INPUT);
        return true;
    case ACTION_PANEL:
        next_panel(t);
        return true;
    case ACTION_PRESETS:
        tui_open_presets(t);
        return true;
    case ACTION_HELP:
        command_run(t->app, "/help");
        return true;
    case ACTION_REDRAW:
        redraw_all(t);
        return true;
    case ACTION_EDITOR:
        edit_input(t);
        return true;
    case ACTION_SUSPEND:
        terminal_stop();
        redraw_all(t);
        return true;
    case ACTION_NEW_LINE:
        input_new_line();
        return true;
    case ACTION_SEND:
        input_send();
        return true;
    case ACTION_QUIT:
        t->app->quit = true;
        return true;
    default:
        return act_scroll(t, action);
    }
}

/* ---- what app asks of the view -------------------------------------------------------------- */

static void view_changed(void *view, unsigned what)
{
    struct tui *t = view;

    t->changed |= what;
    if (what & CHANGE_PATH)
        scrollback_unselect(&t->scrollback);
    tui_changed(t, false);
}

static bool view_edit_text(void *view, const char *text, char **out, struct error *err)
{
    struct tui *t = view;
    bool ok = editor_run(text, out, err);

    redraw_all(t);
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

static void view_show_page(void *view, const char *title, const char *text)
{
    struct tui *t = view;

    tui_close_overlay(t);
    page_init(&t->page, title, text);
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
    redraw_all(t);
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
    tui_changed(ctx, true);
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
