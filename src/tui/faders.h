/* The faders: one row each in the order in which they act (two rows on a large desk), the seed, and
 * the strip that stands for them in a small terminal. */
#ifndef FADER_TUI_FADERS_H
#define FADER_TUI_FADERS_H

#include <stdbool.h>

#include "app/app.h"
#include "tui/canvas.h"

struct faders_look {
    bool large;
    bool focused;
    const char *typed; /* an exact value being typed for the selected fader; NULL: none */
};

void faders_draw(struct canvas *c, struct rect area, const struct app *app,
                 const struct faders_look *look);
void faders_draw_seed(struct canvas *c, struct rect area, const struct app *app);
/* `named`: with the preset's name in front, where it stands nowhere else and there is room. */
void faders_draw_strip(struct canvas *c, struct rect area, const struct app *app, bool named,
                       bool focused);

/* "4711 kept", "4711", or "new each time" before the first answer. */
void faders_seed_text(const struct app *app, char *out, size_t size);

/* The fader at a cell. *travel (0 - 1) is where on its track the column lies, -1 beside it. */
bool faders_hit(struct rect area, const struct app *app, bool large, int row, int col,
                enum knob *knob, double *travel);

/* The travel that a column means for a fader that is being dragged, beyond the track's ends too. */
double faders_travel_at(struct rect area, bool large, int col);

#endif
