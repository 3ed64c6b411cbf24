/* A picker: a list to choose from, laid over the transcript. */
#ifndef FADER_TUI_PICKER_H
#define FADER_TUI_PICKER_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/canvas.h"

struct picker_item {
    char *name;  /* owned */
    char *text;  /* a description, owned; or NULL */
    bool broken; /* cannot be chosen: the text says why */
};

struct picker {
    const char *title;
    struct picker_item *items;
    size_t n, cap;
    size_t selected, top;
};

/* `title` is borrowed; names and texts are copied. `broken`: shown, but cannot be chosen. */
void picker_init(struct picker *p, const char *title);
void picker_add(struct picker *p, const char *name, const char *text, bool broken);
void picker_select(struct picker *p, const char *name);
void picker_done(struct picker *p);

enum picker_answer { PICKER_OPEN, PICKER_CHOSEN, PICKER_CLOSED };

/* Arrows, PgUp, PgDn, Home, End, Enter, Esc, q; a letter goes to the next name that
 * begins with it. */
enum picker_answer picker_key(struct picker *p, int key, int page);
void picker_draw(struct picker *p, struct canvas *c, struct rect area);
/* A click on the row of an item selects it; a second one chooses it. */
enum picker_answer picker_click(struct picker *p, struct rect area, int row, int clicks);

#endif
