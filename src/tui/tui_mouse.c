/* The mouse: drag and wheel on faders, choice of candidates, selection in the transcript. */
#include "config.h"

#include "tui/tui_impl.h"

#include "tui/candidates.h"
#include "tui/faders.h"

enum { WHEEL_ROWS = 3 };

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
        tui_overlay_key(t, e->mouse.kind == MOUSE_WHEEL_UP ? KEYS_UP : KEYS_DOWN);
    } else if (e->mouse.kind == MOUSE_PRESS &&
               picker_click(&t->picker, area, e->mouse.y, e->mouse.clicks) == PICKER_CHOSEN) {
        tui_overlay_key(t, '\r');
    }
}

void tui_handle_mouse(struct tui *t, const struct term_event *e)
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
