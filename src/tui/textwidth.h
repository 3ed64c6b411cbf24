/* Text as a terminal shows it: graphemes (utf8proc), their width in columns (the C library's
 * wcwidth, which is what curses believes), and the cells that they are drawn in.
 *
 * A grapheme is never split. A joined emoji, a flag or a skin tone is drawn as its first code
 * point; combining marks are drawn on their letter; spacing marks (Indic vowels) take columns of
 * their own inside the grapheme. What is not text is shown and never sent: control characters as ␛
 * or ‹9B›, direction overrides and lone marks as ‹202E›, invalid bytes as U+FFFD. */
#ifndef FADER_TUI_TEXTWIDTH_H
#define FADER_TUI_TEXTWIDTH_H

#include <stddef.h>
#include <stdint.h>

enum { GLYPH_POINTS = 4, GRAPHEME_GLYPHS = 8 };

enum grapheme_kind {
    GRAPHEME_TEXT,
    GRAPHEME_SPACE,
    GRAPHEME_TAB,
    GRAPHEME_NEWLINE,
    GRAPHEME_CONTROL
};

struct grapheme {
    enum grapheme_kind kind;
    size_t len;     /* bytes */
    int width;      /* columns; 0 for a newline; a tab's is text_tab_width of its column */
    uint32_t first; /* its first code point */
};

/* What one terminal cell (or two, for a wide character) holds: a base and its marks, 0 after the
 * last. */
struct glyph {
    uint32_t points[GLYPH_POINTS];
    int width; /* 1 or 2 */
};

enum { TEXT_TAB = 4 };

/* Cuts the next grapheme off `len` > 0 bytes. Bytes appended later may still join it when it
 * reaches the end of the text. */
void text_next(const char *bytes, size_t len, struct grapheme *out);

/* The glyphs of a grapheme (at most GRAPHEME_GLYPHS); returns how many. None for
 * newlines and tabs. */
size_t text_glyphs(const char *bytes, const struct grapheme *g, struct glyph out[GRAPHEME_GLYPHS]);

int text_tab_width(int column);

/* Columns of a whole text on one line; newlines count nothing. */
int text_width(const char *bytes, size_t len);

/* The longest prefix of whole graphemes that fits in `columns`: its bytes. */
size_t text_fit(const char *bytes, size_t len, int columns);

#endif
