/* Keys and the mouse: to an overlay, to the region that has the focus, to app, or to readline. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tui/candidates.h"
#include "tui/faders.h"
#include "tui/input.h"
#include "tui/tui_impl.h"

enum { ENTER = '\r', TAB = '\t', ESCAPE = 27, CTRL_C = 3, BACKSPACE = 127, CTRL_H = 8 };
enum { WHEEL_ROWS = 3 };
static const int64_t interrupt_window_ns = 1500000000;

/* ---- an exact value for the selected fader --------------------------------------------------- */

static void commit_typed(struct tui *t)
{
    struct error err;
    char *end;
    double value = strtod(t->typed, &end);

    t->typed[0] = '\0';
    if (!app_set_knob(t->app, t->app->selected, value, &err))
        app_say(t->app, SAY_ERROR, "%s", err.text);
}

/* True when the key belonged to a value being typed. */
static bool type_value(struct tui *t, int key)
{
    size_t len = strlen(t->typed);

    if ((key >= '0' && key <= '9') || (key == '.' && strchr(t->typed, '.') == NULL)) {
        if (len + 1 < 8) {
            t->typed[len] = (char)key;
            t->typed[len + 1] = '\0';
        }
        return true;
    }
    if (len == 0)
        return false;
    switch (key) {
    case ENTER:
        commit_typed(t);
        return true;
    case ESCAPE:
        t->typed[0] = '\0';
        return true;
    case BACKSPACE:
    case CTRL_H:
        t->typed[len - 1] = '\0';
        return true;
    default:
        commit_typed(t);
        return false;
    }
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void interrupt(struct tui *t)
{
    int64_t now = clock_now_ns();

    if (app_is_answering(t->app)) {
        app_act(t->app, ACTION_STOP);
        return;
    }
    if (t->focus != FOCUS_INPUT) {
        tui_set_focus(t, FOCUS_INPUT);
    } else if (!input_is_empty()) {
        input_set_text("");
        t->interrupt_ns = 0;
        return;
    } else if (t->interrupt_ns != 0 && now - t->interrupt_ns <= interrupt_window_ns) {
        t->app->quit = true;
        return;
    }
    t->interrupt_ns = now;
    app_say(t->app, SAY_INFO, "Ctrl-C again leaves, as /quit and Ctrl-D do");
}

/* Keys whose action depends on what the input holds. True: readline's. */
static bool is_readline_key(const struct tui *t, int key, enum action action)
{
    if (input_is_searching())
        return key != CTRL_C;
    if (key == TAB)
        return input_wants_tab();
    if (key == ESCAPE)
        return !app_is_answering(t->app) || input_takes_escape();
    if (action == ACTION_SCROLL_HOME || action == ACTION_SCROLL_END || action == ACTION_QUIT)
        return !input_is_empty();
    return action == ACTION_NONE || action == ACTION_SEND;
}

static bool is_text(int key)
{
    return key > ' ' && key != BACKSPACE && key < 0x110000;
}

static void focused_key(struct tui *t, const struct term_event *event)
{
    int key = event->key;
    enum action action = keys_find(t->focus, key);

    if (t->focus == FOCUS_INPUT && is_readline_key(t, key, action)) {
        input_feed(event);
        return;
    }
    if (t->focus == FOCUS_FADERS && type_value(t, key)) {
        t->changed |= CHANGE_DESK;
        return;
    }
    if (action == ACTION_STOP && key == CTRL_C) {
        interrupt(t);
    } else if (action != ACTION_NONE) {
        app_act(t->app, action);
    } else if (is_text(key)) {
        tui_set_focus(t, FOCUS_INPUT);
        input_feed(event);
    }
}

static void overlay_key(struct tui *t, int key)
{
    struct rect area = tui_overlay_area(t);
    struct error err;

    if (t->overlay == OVERLAY_PAGE) {
        if (!page_key(&t->page, key, area.rows - 1))
            tui_close_overlay(t);
        return;
    }
    switch (picker_key(&t->picker, key, area.rows - 1)) {
    case PICKER_CHOSEN:
        if (!app_choose_preset(t->app, t->picker.items[t->picker.selected].name, &err))
            app_say(t->app, SAY_ERROR, "%s", err.text);
        tui_close_overlay(t);
        break;
    case PICKER_CLOSED:
        tui_close_overlay(t);
        break;
    default:
        break;
    }
}

static void handle_key(struct tui *t, const struct term_event *event)
{
    tui_changed(t, true);
    if (event->key != CTRL_C)
        t->interrupt_ns = 0;
    if (t->overlay != OVERLAY_NONE)
        overlay_key(t, event->key);
    else
        focused_key(t, event);
}

/* ---- mouse ---------------------------------------------------------------------------------- */

/* The mouse chooses as the arrows do: app alone writes what is chosen. */
static void select_fader(struct tui *t, enum knob knob)
{
    for (int i = 0; i < DESK_FADERS && t->app->selected != knob; i++)
        app_act(t->app, ACTION_FADER_DOWN);
}

static void select_candidate(struct tui *t, int index)
{
    int n = t->app->view.n_candidates;

    for (int i = 0; i < n && t->app->candidate != index; i++)
        app_act(t->app, t->app->candidate < index ? ACTION_CANDIDATE_DOWN : ACTION_CANDIDATE_UP);
}

static bool mouse_on_faders(struct tui *t, const struct term_event *e)
{
    enum knob knob;
    double travel;

    if (t->layout.panel != PANEL_DESK || !faders_hit(t->layout.faders, t->app, t->layout.large,
                                                     e->mouse.y, e->mouse.x, &knob, &travel))
        return false;
    switch (e->mouse.kind) {
    case MOUSE_WHEEL_UP:
    case MOUSE_WHEEL_DOWN:
        select_fader(t, knob);
        app_nudge(t->app, knob, e->mouse.kind == MOUSE_WHEEL_UP ? 1 : -1, false);
        break;
    case MOUSE_PRESS:
        if (e->mouse.button != 1)
            break;
        tui_set_focus(t, FOCUS_FADERS);
        select_fader(t, knob);
        if (e->mouse.clicks >= 2) {
            app_reset_fader(t->app, knob);
        } else if (travel >= 0) {
            t->drag = DRAG_FADER;
            t->drag_knob = knob;
            app_move_fader(t->app, knob, travel);
        }
        break;
    default:
        break;
    }
    return true;
}

static void mouse_on_candidates(struct tui *t, const struct term_event *e)
{
    int index = candidates_hit(t->layout.candidates, t->app, t->layout.large,
                               t->focus == FOCUS_CANDIDATES, e->mouse.y);

    if (index < 0 || e->mouse.kind != MOUSE_PRESS || e->mouse.button != 1)
        return;
    tui_set_focus(t, FOCUS_CANDIDATES);
    select_candidate(t, index);
    if (e->mouse.clicks >= 2)
        app_act(t->app, ACTION_CANDIDATE_PICK);
}

static void tell_selection(struct tui *t)
{
    if (!t->selection_told)
        app_say(t->app, SAY_INFO,
                "sent to the terminal; Shift-drag (Option on a Mac) for its own selection");
    t->selection_told = true;
}

static void mouse_in_transcript(struct tui *t, const struct term_event *e)
{
    struct place place;

    switch (e->mouse.kind) {
    case MOUSE_WHEEL_UP:
    case MOUSE_WHEEL_DOWN:
        scrollback_scroll(&t->scrollback,
                          e->mouse.kind == MOUSE_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS);
        break;
    case MOUSE_PRESS:
        scrollback_unselect(&t->scrollback);
        if (e->mouse.button == 1 &&
            scrollback_hit(&t->scrollback, e->mouse.y, e->mouse.x, &place)) {
            t->drag = DRAG_SELECT;
            t->drag_from = place;
        }
        break;
    default:
        break;
    }
}

static void mouse_drag(struct tui *t, const struct term_event *e)
{
    struct rect area = t->layout.transcript;
    struct place place;

    if (t->drag == DRAG_FADER) {
        app_move_fader(t->app, t->drag_knob,
                       faders_travel_at(t->layout.faders, t->layout.large, e->mouse.x));
        return;
    }
    if (t->drag != DRAG_SELECT)
        return;
    if (e->mouse.y < area.row)
        scrollback_scroll(&t->scrollback, -1);
    else if (e->mouse.y >= area.row + area.rows)
        scrollback_scroll(&t->scrollback, 1);
    if (scrollback_hit(&t->scrollback, e->mouse.y, e->mouse.x, &place))
        scrollback_select(&t->scrollback, t->drag_from, place);
}

static void mouse_release(struct tui *t)
{
    if (t->drag == DRAG_SELECT && t->scrollback.has_selection) {
        tui_copy_selection(t);
        tell_selection(t);
    }
    t->drag = DRAG_NONE;
}

static bool inside(struct rect r, const struct term_event *e)
{
    return e->mouse.y >= r.row && e->mouse.y < r.row + r.rows && e->mouse.x >= r.col &&
           e->mouse.x < r.col + r.cols;
}

static void overlay_mouse(struct tui *t, const struct term_event *e)
{
    struct rect area = tui_overlay_area(t);
    bool wheel = e->mouse.kind == MOUSE_WHEEL_UP || e->mouse.kind == MOUSE_WHEEL_DOWN;

    if (t->overlay == OVERLAY_PAGE) {
        if (wheel)
            page_scroll(&t->page, e->mouse.kind == MOUSE_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS,
                        area.rows - 1);
    } else if (wheel) {
        overlay_key(t, e->mouse.kind == MOUSE_WHEEL_UP ? KEYS_UP : KEYS_DOWN);
    } else if (e->mouse.kind == MOUSE_PRESS &&
               picker_click(&t->picker, area, e->mouse.y, e->mouse.clicks) == PICKER_CHOSEN) {
        overlay_key(t, ENTER);
    }
}

static void handle_mouse(struct tui *t, const struct term_event *e)
{
    tui_changed(t, true);
    if (t->overlay != OVERLAY_NONE)
        overlay_mouse(t, e);
    else if (e->mouse.kind == MOUSE_DRAG)
        mouse_drag(t, e);
    else if (e->mouse.kind == MOUSE_RELEASE)
        mouse_release(t);
    else if (mouse_on_faders(t, e))
        return;
    else if (inside(t->layout.candidates, e))
        mouse_on_candidates(t, e);
    else if (inside(t->layout.transcript, e))
        mouse_in_transcript(t, e);
    else if (inside(t->layout.input, e) && e->mouse.kind == MOUSE_PRESS)
        tui_set_focus(t, FOCUS_INPUT);
}

/* ---- events --------------------------------------------------------------------------------- */

static void redraw(struct tui *t)
{
    t->anew = true;
    screen_forget(&t->screen);
    tui_changed(t, true);
}

void tui_handle(struct tui *t, const struct term_event *event)
{
    switch (event->kind) {
    case TERM_KEY:
        handle_key(t, event);
        break;
    case TERM_MOUSE:
        handle_mouse(t, event);
        break;
    case TERM_PASTE:
        tui_set_focus(t, FOCUS_INPUT);
        input_paste(event->text, event->len);
        break;
    case TERM_REPLY:
        /* a terminal that gives one ● two columns would tear every row with it */
        if (event->reply == REPLY_CURSOR && terminal_glyph_columns() == 2 &&
            t->app->options.settings->glyphs == GLYPHS_AUTO && t->glyphs != GLYPHS_ASCII) {
            t->glyphs = GLYPHS_ASCII;
            redraw(t);
        }
        break;
    case TERM_RESIZE:
    case TERM_RESUMED:
        redraw(t);
        break;
    case TERM_QUIT:
        t->status = event->status;
        t->app->quit = true;
        break;
    }
}

void tui_events(void *view)
{
    struct term_event event;

    while (terminal_next_event(&event))
        tui_handle(view, &event);
}
