/* The user's own editor, for a text: $VISUAL, else $EDITOR, else vi. */
#ifndef FADER_TUI_EDITOR_H
#define FADER_TUI_EDITOR_H

#include <stdbool.h>

#include "base/error.h"

/* Lends the terminal to the editor on a temporary file (mode 0600, .md) holding `text`, and takes
 * it back.
 * `*out` (owned by the caller) is what was saved, without its last newline. False with `err` when
 * the editor could not be run or ended with an error; nothing is changed then. */
bool editor_run(const char *text, char **out, struct error *err);

#endif
