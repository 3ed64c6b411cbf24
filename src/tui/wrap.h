/* Wrapping: a text that only grows, cut into rows of a given width. Appending never changes a row
 * but the last, so that lines already read stay where they are, and costs the last row only.
 *
 * Rows break at blanks and between wide characters, else inside a word that is longer than a row.
 * Blanks at a row's end hang over it. Between ``` fences every character counts and rows break only
 * where they are full. Tabs go to the next multiple of TEXT_TAB columns. */
#ifndef FADER_TUI_WRAP_H
#define FADER_TUI_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wrap_flag {
    WRAP_CODE = 1,  /* inside a fence, the fences included */
    WRAP_FENCE = 2, /* a ``` line (its first row) */
    WRAP_FIRST = 4  /* begins a line of the text */
};

struct wrap_row {
    uint32_t start, end; /* bytes; with the blanks and the newline that end it */
    uint8_t flags;
};

/* A label shall stand at the end of the row that holds byte `at`: from there on the row is
 * `columns` shorter, or, where the text has come too far for that, `least`; where that is too much
 * too and the row may break before `at`, it does. */
struct wrap_reserve {
    uint32_t at;
    int columns, least;
};

struct wrap {
    int width;
    struct wrap_row *rows; /* at least one once a text was given */
    size_t n, cap;
    const struct wrap_reserve *reserves; /* sorted by `at`; borrowed; may only grow at its end */
    size_t n_reserves;
    size_t line;  /* the row with which the last row's line begins ... */
    bool in_code; /* ... and whether that lies inside a fence */
};

void wrap_init(struct wrap *w, int width);
void wrap_done(struct wrap *w);
void wrap_reset(struct wrap *w, int width); /* forgets the rows */

/* Lays out what was added since the last call: `text` is the same as before with more at its end.
 * Returns the first row that changed. */
size_t wrap_extend(struct wrap *w, const char *text, size_t len);

/* The row that holds byte `at`. */
size_t wrap_find(const struct wrap *w, size_t at);

#endif
