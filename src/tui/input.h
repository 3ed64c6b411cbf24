/* The input line: GNU readline's callback interface, fed from the decoder, shown by the view.
 * Readline keeps its bindings, history, vi mode, INPUTRC and completion; it never touches the
 * terminal. The text may hold several lines ('\n').
 *
 * Life cycle: input_open -> (input_feed, input_paste ...) -> input_close. One line editor exists,
 * as readline has one; UI thread only. */
#ifndef FADER_TUI_INPUT_H
#define FADER_TUI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "tui/decoder.h"

struct app;

struct input_hooks {
    void (*entered)(void *ctx,
                    const char *text); /* Enter: the whole text; the input is empty again */
    void (*eof)(void *ctx);            /* Ctrl-D on an empty line */
    void (*matches)(void *ctx, char *const *matches,
                    size_t n);  /* completions to list; n 0: take them away */
    void (*changed)(void *ctx); /* text, cursor or prompt differ: draw the input */
    void *ctx;
};

/* `app` is for completion. Reads INPUTRC and the history ($XDG_STATE_HOME/fader/history). A history
 * that cannot be read is an empty one. */
void input_open(struct app *app, const struct input_hooks *hooks);
void input_close(void);

/* A key that no binding of fader's took. Enter sends (after a backslash it is a new line); arrows
 * move between the lines of a text that has several. */
void input_feed(const struct term_event *event);
void input_paste(const char *text, size_t len); /* inserts at the cursor, never sends */
void input_new_line(void);                      /* Ctrl-J, Alt-Enter */
void input_send(void);
void input_set_text(const char *text); /* replaces it all; the cursor goes to the end */
void input_cancel(void);               /* Ctrl-C: ends a search, empties the line */

/* The text through $VISUAL or $EDITOR; the terminal is lent to it meanwhile. */
bool input_edit(struct error *err);

const char *input_text(void);   /* UTF-8; until the next call */
size_t input_cursor(void);      /* byte offset */
const char *input_prompt(void); /* "> ", or readline's: "(reverse-i-search)`..': ", "(arg: 4) " */
bool input_is_empty(void);
bool input_is_searching(void); /* readline is in the middle of something: every key is its own */
bool input_takes_escape(void); /* Esc means something to readline now (vi insertion, a search) */

/* Lays the text out at `width` columns (>= 1) beside the prompt: rows, in bytes of input_text().
 * All rows begin at column input_indent(width): after the prompt in the first, below it in the
 * others. Graphemes and their widths are those of tui/textwidth.h; none is split. Returns how many
 * rows there are, at least 1; the first `max_rows` are written. The cursor's column counts the
 * indent. */
struct input_row {
    size_t start, end; /* bytes [start, end); the '\n' that ends a line is in no row */
};
size_t input_layout(int width, struct input_row *rows, size_t max_rows, size_t *cursor_row,
                    int *cursor_column);
int input_indent(int width);

/* Tab completes here (the line begins with a slash) and does not move the focus. */
bool input_wants_tab(void);

#endif
