/* The lines that are always there: status above, hints below. */
#ifndef FADER_TUI_STATUS_H
#define FADER_TUI_STATUS_H

#include "app/app.h"
#include "tui/canvas.h"

/* Model, context, cache, pace, state: in the longest forms that fit. */
void status_draw(struct canvas *c, struct rect area, const struct app *app);

/* As many hints as fit; `hints` ends with key NULL. */
void hints_draw(struct canvas *c, struct rect area, const struct key_hint *hints);

/* The header rule: preset and "keeps" over the panel; `below` rows of the transcript are out of
 * sight. */
struct layout;
void header_draw(struct canvas *c, const struct layout *l, const struct app *app, enum focus focus,
                 size_t below);

/* "SmolLM2-135M" of "SmolLM2-135M-Instruct", and its first word, which speaks in the transcript. */
void status_model_name(const struct app *app, char *out, size_t size);
void status_speaker(const struct app *app, char *out, size_t size);

#endif
