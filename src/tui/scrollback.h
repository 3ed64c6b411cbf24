/* The transcript on the screen: the turns of the current path, wrapped once and remembered. What an
 * answer adds costs its last row; drawing costs the rows that changed; neither depends on how long
 * the transcript is.
 *
 * Each turn is a block: a row with the speaker's name, a notice where the oldest turns left the
 * context, the text, and a blank row. The margin (LAYOUT_MARGIN columns) holds the letters of marks
 * and the sign of a branch; labels stand at the end of the rows that hold the marked tokens.
 *
 * The view follows the end only while it is at the end. A change of width keeps the top row's text
 * at the top.
 *
 * Life cycle: scrollback_init -> [scrollback_sync -> scrollback_place -> scrollback_draw]* ->
 * scrollback_done. It borrows the turns of the conversation last given. */
#ifndef FADER_TUI_SCROLLBACK_H
#define FADER_TUI_SCROLLBACK_H

#include <stdbool.h>
#include <stddef.h>

#include "app/marks.h"
#include "base/str.h"
#include "chat/conversation.h"
#include "tui/canvas.h"
#include "tui/wrap.h"

struct block {
    const struct turn *turn;
    struct wrap wrap;
    size_t laid; /* bytes of turn->text that are laid out */
    size_t top;  /* its first row, counted from the start of the transcript */
    size_t version, n_versions;
    struct mark *marks; /* by token */
    size_t n_marks, cap_marks;
    size_t moves_seen; /* turn->n_moves when the marks were made */
    struct wrap_reserve *reserves;
    size_t n_reserves, cap_reserves;
    bool has_notice;
    size_t n_hidden; /* rows at the end that hold nothing, of a turn that is complete */
};

/* A place in the transcript: a byte of a turn's text. */
struct place {
    size_t block, byte;
};

struct scrollback {
    struct rect area;
    int width; /* columns of text */
    struct block *blocks;
    size_t n, cap;
    size_t total; /* rows in all */
    size_t top;   /* the row at the top of the area */
    bool follow;
    bool heat;       /* tokens coloured by their surprise */
    bool has_cursor; /* the token cursor, while the transcript has the focus */
    size_t cursor_block, cursor_token;
    bool has_selection;
    struct place anchor, head;
    size_t dirty; /* rows from here on are not as drawn */
    size_t drawn_top;
    const struct turn *growing; /* the answer under way */
    bool all_dirty;
};

struct scrollback_names {
    const char *user, *model; /* "you", "SmolLM2" */
};

void scrollback_init(struct scrollback *s);
void scrollback_done(struct scrollback *s);

/* Brings the blocks up to the conversation's current path. `growing` (may be NULL) is the answer
 * under way: it ends with a cursor. */
void scrollback_sync(struct scrollback *s, const struct conversation *c,
                     const struct turn *growing);

/* The same for another path or another conversation: nothing that was borrowed is looked at again
 * (it may be gone). The place in the transcript and the token cursor stay where there is something.
 */
void scrollback_reload(struct scrollback *s, const struct conversation *c,
                       const struct turn *growing);

/* Where it stands, and how wide its text is; lays out anew when the width changed. */
void scrollback_place(struct scrollback *s, struct rect area, int width);

void scrollback_draw(struct scrollback *s, struct canvas *c, const struct scrollback_names *names);
void scrollback_touch(struct scrollback *s); /* everything must be drawn again */

void scrollback_scroll(struct scrollback *s, int rows); /* down > 0 */
void scrollback_home(struct scrollback *s);
void scrollback_end(struct scrollback *s);
size_t scrollback_below(const struct scrollback *s); /* rows below the area */

/* The token cursor. _enter puts it on the last token that is visible; false: there is no answer. */
bool scrollback_enter(struct scrollback *s);
void scrollback_leave(struct scrollback *s);
void scrollback_move_token(struct scrollback *s, int direction);
void scrollback_move_row(struct scrollback *s, int direction);
/* Its turn and token; NULL without a cursor. */
const struct turn *scrollback_cursor(const struct scrollback *s, size_t *token);

/* The place at a cell; false where there is no text. Selecting goes from press to drag. */
bool scrollback_hit(const struct scrollback *s, int row, int col, struct place *out);
void scrollback_select(struct scrollback *s, struct place anchor, struct place head);
void scrollback_unselect(struct scrollback *s);
void scrollback_selected_text(const struct scrollback *s, struct str *out);

/* ---- for its parts (scrollback_draw.c, scrollback_cursor.c) ---------------------------------- */

enum row_kind { ROW_NAME, ROW_NOTICE, ROW_TEXT, ROW_BLANK };
struct row_ref {
    enum row_kind kind;
    size_t block, row; /* row: of block.wrap, for ROW_TEXT */
};
/* What stands in row `row` of the transcript; false past its end. */
bool scrollback_row(const struct scrollback *s, size_t row, struct row_ref *out);
size_t scrollback_row_of(const struct scrollback *s, size_t block, size_t byte);
void scrollback_show_row(struct scrollback *s, size_t row); /* scrolls as little as needed */
/* The token that byte `at` of an answer belongs to, and the first byte from `token` on
 * that can be seen. */
size_t block_token_at(const struct block *b, size_t at);
size_t block_token_byte(const struct block *b, size_t token);

#endif
