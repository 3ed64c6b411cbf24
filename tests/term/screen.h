/* What a user would see: libvterm, fed with a program's output, and the questions tests ask of it.
 *
 * Life cycle: screen_init -> screen_feed ... -> screen_done. */
#ifndef FADER_TESTS_TERM_SCREEN_H
#define FADER_TESTS_TERM_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <vterm.h>

#include "base/str.h"

struct screen {
    VTerm *vt;
    VTermScreen *screen;
    int rows, cols;
    bool cursor_visible;
    struct str log;     /* every byte that came, for modes and for what must never come */
    struct str replies; /* what the terminal wants to answer */
};

void screen_init(struct screen *s, int rows, int cols);
void screen_done(struct screen *s);
void screen_resize(struct screen *s, int rows, int cols);
void screen_feed(struct screen *s, const char *bytes, size_t len);

/* Row `row` as UTF-8 without the blanks at its end. */
void screen_row(const struct screen *s, int row, struct str *out);
bool screen_has(const struct screen *s, const char *text); /* in any one row */
void screen_cell(const struct screen *s, int row, int col, struct str *text,
                 struct str *attributes);
void screen_cursor(const struct screen *s, int *row, int *col);

/* Has the program set (1) or reset (0) private mode `mode` last? -1: neither. */
int screen_mode(const struct screen *s, int mode);

/* The screen's text, attributes and cursor, in the form of a golden file. Rows for which `masked`
 * (may be NULL: none) says so are left out of both. */
void screen_dump(const struct screen *s, bool with_attributes, const bool *masked, struct str *out);

#endif
