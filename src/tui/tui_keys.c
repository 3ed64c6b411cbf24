/* Keys: to an overlay, to the region that has the focus, to app, or to readline. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tui/input.h"
#include "tui/tui_impl.h"

enum { ENTER = '\r', TAB = '\t', ESCAPE = 27, CTRL_C = 3, BACKSPACE = 127, CTRL_H = 8 };
static const int64_t interrupt_window_ns = 1500000000;
static const int64_t late_stop_ns = 1000000000;
static const int64_t escape_tab_ns = 1500000000;

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
        input_cancel();
        app_cancel_edit(t->app);
        t->interrupt_ns = 0;
        return;
    } else if (t->interrupt_ns != 0 && now - t->interrupt_ns <= interrupt_window_ns) {
        t->app->quit = true;
        return;
    }
    t->interrupt_ns = now;
    app_say(t->app, SAY_INFO, "Ctrl-C again leaves, as /quit and Ctrl-D do");
}

/* Esc stops an answer. On an empty line it is ours too: to readline it would be the Meta of the
 * next key, however late that comes, and the first letter of the next message would be lost. */
static bool is_our_escape(const struct tui *t)
{
    return (app_is_answering(t->app) || input_is_empty()) && !input_takes_escape();
}

/* Nothing to stop: the message line is cleared. One that came just after the end was meant for the
 * answer, and is told so. */
static void take_idle_escape(struct tui *t)
{
    int64_t now = clock_now_ns();

    t->escape_ns = now;
    app_clear_message(t->app);
    if (t->answering_ns != 0 && now - t->answering_ns < late_stop_ns)
        app_say(t->app, SAY_INFO, "the answer had ended already");
}

/* Esc, then Tab: Shift-Tab by hand. */
static bool is_escape_tab(struct tui *t, int key)
{
    int64_t since = clock_now_ns() - t->escape_ns;
    bool escaped = t->escape_ns != 0 && since < escape_tab_ns;

    t->escape_ns = 0;
    return escaped && key == TAB;
}

/* Keys whose action depends on what the input holds. True: readline's. */
static bool is_readline_key(const struct tui *t, int key, enum action action)
{
    if (input_is_searching())
        return key != CTRL_C;
    if (key == TAB)
        return input_wants_tab();
    if (key == ESCAPE)
        return !is_our_escape(t);
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
    enum action action = is_escape_tab(t, key) ? ACTION_FOCUS_PREVIOUS : keys_find(t->focus, key);

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
    } else if (action == ACTION_STOP && !app_is_answering(t->app)) {
        take_idle_escape(t);
    } else if (action != ACTION_NONE) {
        app_act(t->app, action);
    } else if (is_text(key)) {
        tui_set_focus(t, FOCUS_INPUT);
        input_feed(event);
    }
}

/* On the page of keys every key says what it is, but those that are needed to read and
 * to leave it. */
static bool is_to_explain(int key)
{
    bool scrolls = key >= KEYS_UP && key <= KEYS_PAGE_DOWN && key != KEYS_LEFT && key != KEYS_RIGHT;

    return key != ESCAPE && key != 'q' && !scrolls;
}

void tui_overlay_key(struct tui *t, int key)
{
    struct rect area = tui_overlay_area(t);
    struct error err;

    if (t->overlay == OVERLAY_PAGE && t->explains_keys && is_to_explain(key)) {
        keys_explain(key, t->key_text, sizeof t->key_text);
        return;
    }
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
        tui_overlay_key(t, event->key);
    else
        focused_key(t, event);
}

/* ---- events --------------------------------------------------------------------------------- */

void tui_handle(struct tui *t, const struct term_event *event)
{
    switch (event->kind) {
    case TERM_KEY:
        handle_key(t, event);
        break;
    case TERM_MOUSE:
        tui_handle_mouse(t, event);
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
            tui_redraw_all(t);
        }
        break;
    case TERM_RESIZE:
    case TERM_RESUMED:
        tui_redraw_all(t);
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
