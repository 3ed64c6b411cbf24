/* The dice: the candidates laid end to end, the mark where the number falls, and the word that it
 * means. */
#ifndef FADER_TUI_DICE_H
#define FADER_TUI_DICE_H

#include "app/app.h"
#include "tui/canvas.h"

/* Which candidate owns each of `cells` cells of the bar (its middle), -1: one that is not listed.
 * The cell of the mark lies in what the dice picked whenever that owns a cell. Returns the mark's
 * cell. */
int dice_cells(const struct view *view, int cells, int *owner);

void dice_draw(struct canvas *c, struct rect area, const struct app *app, bool large);

#endif
