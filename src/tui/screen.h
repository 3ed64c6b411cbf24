/* The screen: copies a canvas to curses, and only what changed of it. The only drawing code that
 * includes curses. */
#ifndef FADER_TUI_SCREEN_H
#define FADER_TUI_SCREEN_H

#include "tui/canvas.h"
#include "tui/styles.h"

struct screen {
    struct canvas *shown; /* what curses was given; NULL: nothing yet */
};

void screen_init(struct screen *s);
void screen_done(struct screen *s);

/* Nothing is taken to stand on the terminal: the next flush draws everything (another theme,
 * Ctrl-L). */
void screen_forget(struct screen *s);

/* One frame. The cursor stands at (row, col), or is hidden when row < 0. Returns how many rows
 * changed. */
int screen_flush(struct screen *s, const struct canvas *c, const struct styles *styles, int row,
                 int col);

#endif
