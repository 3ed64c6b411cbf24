/* What stands for fader's own signs (tracks, handles, bars, arrows) where a terminal or its font
 * lacks them. Widgets write Unicode; glyphs_replace gives what the set in use has instead: cp437
 * for the Linux console (no eighths, no braille), ascii for anything. Text of people and models is
 * not touched. */
#ifndef FADER_TUI_GLYPHS_H
#define FADER_TUI_GLYPHS_H

#include <stdint.h>

#include "config/settings.h"

/* The code point to draw for `cp`: itself in Unicode, or where the set has it. Always
 * one column. */
uint32_t glyphs_replace(enum glyph_set set, uint32_t cp);

/* What GLYPHS_AUTO means for this locale and TERM: ascii without UTF-8, cp437 on the
 * Linux console. */
enum glyph_set glyphs_choose(enum glyph_set wanted, const char *term, int utf8_locale);

/* A bar's end, `eighths` 1 - 8 of a cell: as near as the set comes; 0 where it rounds
 * to nothing. */
uint32_t glyphs_bar(enum glyph_set set, int eighths);

#endif
