/* The plot of surprise: one column a token, how many bits the model did not expect of it. */
#ifndef FADER_TUI_PLOT_H
#define FADER_TUI_PLOT_H

#include "chat/conversation.h"
#include "tui/canvas.h"

/* Draws the last tokens of `answer` (may be NULL); the newest stands at the right. */
void plot_draw(struct canvas *c, struct rect area, const struct turn *answer);

#endif
