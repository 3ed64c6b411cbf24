/* The token cursor and the selection. */
#include "config.h"

#include "tui/scrollback.h"

#include "tui/layout.h"
#include "tui/textwidth.h"

static bool has_tokens(const struct scrollback *s, size_t block)
{
    return block < s->n && s->blocks[block].turn->n_tokens > 0;
}

static void put_cursor(struct scrollback *s, size_t block, size_t token)
{
    s->has_cursor = true;
    s->cursor_block = block;
    s->cursor_token = token;
    s->all_dirty = true;
    scrollback_show_row(s, scrollback_row_of(s, block, block_token_byte(&s->blocks[block], token)));
}

bool scrollback_enter(struct scrollback *s)
{
    size_t rows = (size_t)(s->area.rows > 0 ? s->area.rows : 0);

    for (size_t r = s->top + rows; r-- > s->top;) {
        struct row_ref at;
        if (!scrollback_row(s, r, &at) || at.kind != ROW_TEXT || !has_tokens(s, at.block))
            continue;
        const struct wrap_row *row = &s->blocks[at.block].wrap.rows[at.row];
        put_cursor(
            s, at.block,
            block_token_at(&s->blocks[at.block], row->end > row->start ? row->end - 1 : row->end));
        return true;
    }
    for (size_t i = s->n; i-- > 0;) {
        if (has_tokens(s, i)) {
            put_cursor(s, i, s->blocks[i].turn->n_tokens - 1);
            return true;
        }
    }
    return false;
}

void scrollback_leave(struct scrollback *s)
{
    s->has_cursor = false;
    s->all_dirty = true;
}

void scrollback_move_token(struct scrollback *s, int direction)
{
    size_t block = s->cursor_block, token = s->cursor_token;

    if (!s->has_cursor)
        return;
    if (direction > 0) {
        if (token + 1 < s->blocks[block].turn->n_tokens) {
            put_cursor(s, block, token + 1);
            return;
        }
        while (++block < s->n && !has_tokens(s, block))
            ;
        if (block < s->n)
            put_cursor(s, block, 0);
    } else if (token > 0) {
        put_cursor(s, block, token - 1);
    } else {
        while (block-- > 0) {
            if (has_tokens(s, block)) {
                put_cursor(s, block, s->blocks[block].turn->n_tokens - 1);
                return;
            }
        }
    }
}

/* The byte of a row at `column` columns of text, or its last one. */
static size_t byte_at_column(const struct block *b, size_t row, int column)
{
    const struct wrap_row *r = &b->wrap.rows[row];
    const char *text = str_text(&b->turn->text);
    size_t at = r->start;
    int col = 0;

    while (at < r->end) {
        struct grapheme g;
        text_next(text + at, r->end - at, &g);
        col += g.kind == GRAPHEME_TAB ? text_tab_width(col) : g.width;
        if (col > column || at + g.len >= r->end)
            break;
        at += g.len;
    }
    return at;
}

static int column_of_byte(const struct block *b, size_t row, size_t byte)
{
    const struct wrap_row *r = &b->wrap.rows[row];

    return byte > r->start ? text_width(str_text(&b->turn->text) + r->start, byte - r->start) : 0;
}

void scrollback_move_row(struct scrollback *s, int direction)
{
    struct row_ref at;

    if (!s->has_cursor)
        return;
    const struct block *b = &s->blocks[s->cursor_block];
    size_t byte = block_token_byte(b, s->cursor_token);
    size_t row = scrollback_row_of(s, s->cursor_block, byte);
    int column = column_of_byte(b, wrap_find(&b->wrap, byte), byte);

    while (direction < 0 ? row-- > 0 : ++row < s->total) {
        if (!scrollback_row(s, row, &at) || at.kind != ROW_TEXT || !has_tokens(s, at.block))
            continue;
        b = &s->blocks[at.block];
        size_t token = block_token_at(b, byte_at_column(b, at.row, column));
        if (direction > 0 && at.block == s->cursor_block && token <= s->cursor_token)
            continue;
        put_cursor(s, at.block, token);
        return;
    }
}

const struct turn *scrollback_cursor(const struct scrollback *s, size_t *token)
{
    if (!s->has_cursor)
        return NULL;
    *token = s->cursor_token;
    return s->blocks[s->cursor_block].turn;
}

bool scrollback_hit(const struct scrollback *s, int row, int col, struct place *out)
{
    struct row_ref at;

    if (row < s->area.row || row >= s->area.row + s->area.rows || col < s->area.col ||
        col >= s->area.col + s->area.cols)
        return false;
    if (!scrollback_row(s, s->top + (size_t)(row - s->area.row), &at) || at.kind != ROW_TEXT)
        return false;
    out->block = at.block;
    out->byte = byte_at_column(&s->blocks[at.block], at.row, col - s->area.col - LAYOUT_MARGIN);
    return true;
}

void scrollback_select(struct scrollback *s, struct place anchor, struct place head)
{
    s->has_selection = true;
    s->anchor = anchor;
    s->head = head;
    s->all_dirty = true;
}

void scrollback_unselect(struct scrollback *s)
{
    if (s->has_selection)
        s->all_dirty = true;
    s->has_selection = false;
}

void scrollback_selected_text(const struct scrollback *s, struct str *out)
{
    struct place from = s->anchor, to = s->head;

    if (!s->has_selection)
        return;
    if (to.block < from.block || (to.block == from.block && to.byte < from.byte)) {
        from = s->head;
        to = s->anchor;
    }
    for (size_t i = from.block; i <= to.block && i < s->n; i++) {
        const struct str *text = &s->blocks[i].turn->text;
        size_t start = i == from.block ? from.byte : 0, end = text->len;
        if (i == to.block && to.byte < text->len) {
            struct grapheme g;
            text_next(str_text(text) + to.byte, text->len - to.byte, &g);
            end = to.byte + g.len;
        }
        if (i > from.block)
            str_add_text(out, "\n\n");
        if (end > start)
            str_add(out, str_text(text) + start, end - start);
    }
}
