/* Layout: where each region of the screen stands. Pure rectangles from a size, tested as strings.
 *
 *      status                                   the desk, from 60 x 12 on
 *      header  ─────────────┬─ title
 *      transcript           │ faders, candidates, plot, dice
 *      message                                  its own row where there are 44; else it is
 *      input                                    laid over the hints
 *      hints
 *
 * In a smaller terminal, or when asked for, the faders are one line above the input (strip) or not
 * there at all (bare). A region that has no room is empty: rows 0. */
#ifndef FADER_TUI_LAYOUT_H
#define FADER_TUI_LAYOUT_H

#include "tui/canvas.h"

enum panel_mode { PANEL_DESK, PANEL_STRIP, PANEL_BARE, PANEL_COUNT };

enum {
    LAYOUT_DESK_ROWS = 12,
    LAYOUT_DESK_COLS = 60, /* below, the desk becomes the strip */
    LAYOUT_PANEL_SMALL = 32,
    LAYOUT_PANEL_LARGE = 43,
    LAYOUT_TEXT_MAX = 100 /* columns of text, however wide the screen */
};

struct layout {
    int rows, cols;
    enum panel_mode panel; /* as it is, not as it was wished */
    int large; /* true: faders of two rows, with end labels and origins (an int: layouts are
                  compared as bytes) */
    struct rect status, header, transcript, divider, strip, message, input, hints;
    struct rect faders, seed, candidates, plot, dice; /* the desk; each with its heading; a large
                                                         one tells the seed in the dice's */
};

/* `input_rows`: what the input would like; it gets at least 1 and at most a third of the screen. */
struct layout layout_compute(int rows, int cols, enum panel_mode wished, int input_rows);

/* Columns of the transcript's text: its region less the margin and a blank at the right, at most
 * LAYOUT_TEXT_MAX. */
enum { LAYOUT_MARGIN = 3 };
int layout_text_width(const struct layout *l);

#endif
