/* Focus, overlays, and the actions that are the view's own. */
#include "config.h"

#include "tui/tui_impl.h"

#include <stdlib.h>

#include "app/command.h"
#include "config/preset.h"
#include "tui/input.h"

/* ---- focus and overlays --------------------------------------------------------------------- */

static bool can_focus(struct tui *t, enum focus focus)
{
    size_t token;

    switch (focus) {
    case FOCUS_FADERS:
        return t->layout.panel != PANEL_BARE;
    case FOCUS_CANDIDATES:
        return t->layout.candidates.rows > 0 && t->app->has_view;
    case FOCUS_TRANSCRIPT: /* its versions are there to be chosen even where no word is shown */
        return scrollback_cursor(&t->scrollback, &token) != NULL ||
               scrollback_enter(&t->scrollback) || t->app->conversation->n_turns > 0;
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
    if (t->focus != focus && t->app->severity == SAY_INFO)
        app_say(t->app, SAY_INFO, "%s", ""); /* the hints of the new place are of more use */
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
    t->key_text[0] = '\0';
    t->explains_keys = false;
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

void tui_redraw_all(struct tui *t)
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
        if (!t->scrollback.has_cursor) /* there was no word when the focus came */
            return scrollback_enter(&t->scrollback);
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
        tui_redraw_all(t);
        return true;
    case ACTION_EDITOR:
        edit_input(t);
        return true;
    case ACTION_SUSPEND:
        terminal_stop();
        tui_redraw_all(t);
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
