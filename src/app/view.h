/* The view: what app asks of whoever shows it. tui fills it for the screen, cli/plain.c for
 * a line-by-line terminal, tests with a recorder. Drawing itself reads struct app. */
#ifndef FADER_APP_VIEW_H
#define FADER_APP_VIEW_H

#include <stdbool.h>

#include "app/keys.h"
#include "base/error.h"

struct app;

enum app_change {                        /* what a redraw must look at again */
                  CHANGE_TRANSCRIPT = 1, /* the last answer grew, or a turn was added */
                  CHANGE_DESK = 2,       /* knobs, candidates, dice */
                  CHANGE_STATUS = 4,     /* status and message line */
                  CHANGE_PATH = 8, /* another version or conversation is shown: lay out anew */
                  CHANGE_THEME = 16,
                  CHANGE_ALL = 31
};

struct view_ops {
    void (*changed)(void *view, unsigned what);  /* note it; draw at the next frame */
    bool (*act)(void *view, enum action action); /* an action of the view's own (focus,
                                                    scrolling, help); false: not its */
    bool (*edit_text)(void *view, const char *text, char **out, struct error *err); /* $EDITOR */
    bool (*copy)(void *view, const char *text, struct error *err); /* to the clipboard: OSC 52 */
    void (*set_input)(void *view, const char *text);               /* replaces the input line */
    const char *(*get_input)(void *view); /* what is being typed; until the next call of any */
    void (*show_page)(void *view, const char *title,
                      const char *text); /* help, /keys, /stats: a pager */
    void (*pick_preset)(void *view);     /* opens the preset picker */
    bool (*set_theme)(void *view, const char *name, struct error *err);
    void (*set_mouse)(void *view, bool on);
    bool (*confirm_choice)(void *view, const char *question, const char *keys,
                           char *answer); /* one key */
};

#endif
