/* A page: text to read (help, keys, statistics), laid over the transcript. */
#ifndef FADER_TUI_PAGE_H
#define FADER_TUI_PAGE_H

#include <stdbool.h>

#include "base/str.h"
#include "tui/canvas.h"

/* A row of a line; those after its first are indented to where its last column begins. */
struct page_row {
    size_t start, end; /* bytes */
    int indent;
    bool first;
};

struct page {
    char *title; /* owned */
    struct str text;
    struct page_row *rows; /* as laid out for `width` */
    size_t n, cap;
    int width;
    size_t top;
};

void page_init(struct page *p, const char *title, const char *text); /* both are copied */
void page_done(struct page *p);

/* Arrows, Space, PgUp, PgDn, Home, End scroll by `rows`; false for q, Esc, Enter: it is to be
 * closed. */
bool page_key(struct page *p, int key, int rows);
void page_scroll(struct page *p, long by, int rows);
void page_draw(struct page *p, struct canvas *c, struct rect area);

#endif
