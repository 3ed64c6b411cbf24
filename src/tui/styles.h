/* Styles as curses attributes: a theme's looks in the depth of colour that the terminal has. The
 * palette is never redefined. */
#ifndef FADER_TUI_STYLES_H
#define FADER_TUI_STYLES_H

#include "config/theme.h"

enum colour_depth { DEPTH_MONO, DEPTH_8, DEPTH_16, DEPTH_256, DEPTH_DIRECT };

struct styles {
    enum colour_depth depth;
    unsigned attrs[STYLE_COUNT]; /* curses' attributes, without colour */
    int pairs[STYLE_COUNT];      /* extended colour pairs; 0 in monochrome */
};

/* What curses and terminfo know about the terminal; mono under NO_COLOR. After newterm, once. */
enum colour_depth styles_depth(void);

/* Sets up the pairs of a theme. A look without a colour of its own has that of STYLE_TEXT. */
void styles_set(struct styles *s, const struct theme *theme, enum colour_depth depth);

#endif
