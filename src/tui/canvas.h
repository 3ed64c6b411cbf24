/* The canvas: the screen as cells in memory. Widgets draw into it and know nothing of curses, so
 * that a test reads them as strings; tui/screen.c copies what changed to the terminal.
 *
 * A cell names a semantic style (config/theme.h), never a colour. Everything is clipped, a wide
 * character that is overwritten by half goes whole, and only printable code points can stand in a
 * cell. */
#ifndef FADER_TUI_CANVAS_H
#define FADER_TUI_CANVAS_H

#include <stdint.h>

#include "base/str.h"
#include "config/settings.h"
#include "config/theme.h"
#include "tui/textwidth.h"

struct rect {
    int row, col, rows, cols;
};

enum cell_flag { CELL_UNDERLINE = 1, CELL_REVERSE = 2 };

struct cell {
    uint32_t points[GLYPH_POINTS];
    uint8_t width;  /* 1, 2, or 0: covered by the wide one to the left */
    uint8_t style;  /* enum style */
    uint8_t flags;  /* enum cell_flag, on top of the style */
    uint8_t unused; /* 0: cells are compared as bytes */
};

struct canvas {
    int rows, cols;
    enum glyph_set glyphs; /* what fader's own signs become */
    struct cell *cells;    /* [rows, cols] */
};

struct canvas *canvas_new(int rows, int cols);
void canvas_free(struct canvas *c);
void canvas_resize(struct canvas *c, int rows, int cols); /* blank afterwards */

struct cell *canvas_at(struct canvas *c, int row, int col);             /* must lie inside */
void canvas_fill(struct canvas *c, struct rect area, enum style style); /* with blanks */

/* One glyph; nothing when it does not fit. Returns its columns. */
int canvas_put(struct canvas *c, int row, int col, const struct glyph *g, enum style style,
               unsigned flags);

/* One of fader's own signs, replaced by what the glyph set has for it. */
int canvas_sign(struct canvas *c, int row, int col, uint32_t sign, enum style style);
void canvas_line(struct canvas *c, int row, int col, int cols, uint32_t sign, enum style style);

/* A text of the interface, at most `cols` columns: signs replaced, newlines left out. Returns the
 * columns used. canvas_text_right ends it at column `end` (exclusive). */
int canvas_text(struct canvas *c, int row, int col, int cols, enum style style, const char *text);
int canvas_text_cut(struct canvas *c, int row, int col, int cols, enum style style,
                    const char *text); /* ends with "…" where it does not fit */
int canvas_text_right(struct canvas *c, int row, int end, enum style style, const char *text);
int canvas_format(struct canvas *c, int row, int col, int cols, enum style style,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

/* For tests: a row as UTF-8, blanks at the end left out. */
void canvas_row_text(const struct canvas *c, int row, struct str *out);

#endif
