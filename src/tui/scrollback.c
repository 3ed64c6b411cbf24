#include "config.h"

#include "tui/scrollback.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tui/layout.h"

/* Room for a label like "temp 0.80▸1.60", or like "▸1.60", and a blank: kept free at the end of a
 * marked row. */
enum { LABEL_COLUMNS = 17, LABEL_LEAST = 8, LABEL_FROM_WIDTH = 32, MARKS_MAX = 4096 };

static void block_done(struct block *b)
{
    wrap_done(&b->wrap);
    free(b->marks);
    free(b->reserves);
    *b = (struct block){0};
}

static size_t block_text_top(const struct block *b)
{
    return b->top + (b->has_notice ? 2 : 1);
}

static size_t block_rows(const struct block *b)
{
    return b->wrap.n - b->n_hidden + (b->has_notice ? 3 : 2);
}

size_t block_token_at(const struct block *b, size_t at)
{
    const struct turn *t = b->turn;
    size_t low = 0, high = t->n_tokens;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (t->tokens[middle].text_at <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

size_t block_token_byte(const struct block *b, size_t token)
{
    const struct str *text = &b->turn->text;
    size_t at = b->turn->tokens[token].text_at, seen = at;

    while (seen < text->len && text->data[seen] == ' ')
        seen++;
    return seen < text->len ? seen : at;
}

static void update_marks(struct scrollback *s, struct block *b)
{
    const struct turn *t = b->turn;

    if (b->moves_seen == t->n_moves && b->n_marks == b->n_reserves)
        return;
    b->moves_seen = t->n_moves;
    size_t n = t->n_moves < MARKS_MAX ? t->n_moves : MARKS_MAX; /* no more marks than movements */
    mem_grow(&b->marks, &b->cap_marks, n + 1, sizeof *b->marks);
    size_t all = marks_of(t, b->marks, n);
    n = all < n ? all : n;
    b->n_marks = n;
    mem_grow(&b->reserves, &b->cap_reserves, n + 1, sizeof *b->reserves);
    b->n_reserves = 0;
    for (size_t i = 0; i < n && (size_t)b->marks[i].n < t->n_tokens; i++)
        b->reserves[b->n_reserves++] =
            (struct wrap_reserve){(uint32_t)block_token_byte(b, (size_t)b->marks[i].n),
                                  s->width >= LABEL_FROM_WIDTH ? LABEL_COLUMNS : 0,
                                  s->width >= LABEL_FROM_WIDTH ? LABEL_LEAST : 0};
    b->wrap.reserves = b->reserves;
    b->wrap.n_reserves = b->n_reserves;
    s->all_dirty = true;
}

static void note_dirty(struct scrollback *s, size_t row)
{
    if (row < s->dirty)
        s->dirty = row;
}

static void number_rows(struct scrollback *s, size_t first)
{
    size_t top = first > 0 ? s->blocks[first - 1].top + block_rows(&s->blocks[first - 1]) : 0;

    for (size_t i = first; i < s->n; i++) {
        s->blocks[i].top = top;
        top += block_rows(&s->blocks[i]);
    }
    s->total = top > 0 ? top - 1 : 0; /* no blank row after the last */
}

static void clamp_top(struct scrollback *s)
{
    size_t rows = (size_t)(s->area.rows > 0 ? s->area.rows : 0);
    size_t last = s->total > rows ? s->total - rows : 0;

    s->follow = s->follow || s->top >= last;
    if (s->follow)
        s->top = last;
}

/* Rows at the end of a text without anything to see, but never its only one. */
static size_t blank_rows(const struct wrap *w, const char *text)
{
    size_t n = 0;

    while (n + 1 < w->n) {
        const struct wrap_row *row = &w->rows[w->n - 1 - n];
        for (size_t at = row->start; at < row->end; at++) {
            if (text[at] != ' ' && text[at] != '\n')
                return n;
        }
        n++;
    }
    return n;
}

/* Lays out what the turn has gained. */
static void extend(struct scrollback *s, size_t i)
{
    struct block *b = &s->blocks[i];
    const struct turn *t = b->turn;
    size_t rows = block_rows(b), first;

    if (s->width <= 0)
        return;
    bool notice = t->dropped_messages > 0;
    if (notice != b->has_notice) {
        b->has_notice = notice;
        note_dirty(s, b->top);
    }
    update_marks(s, b);
    if (b->laid != t->text.len || b->wrap.n == 0) {
        first = wrap_extend(&b->wrap, str_text(&t->text), t->text.len);
        b->laid = t->text.len;
        note_dirty(s, block_text_top(b) + first);
    }
    b->n_hidden = t == s->growing ? 0 : blank_rows(&b->wrap, str_text(&t->text));
    if (block_rows(b) != rows || b->top == 0)
        number_rows(s, i);
}

static void truncate_blocks(struct scrollback *s, size_t n)
{
    if (n >= s->n)
        return;
    note_dirty(s, s->blocks[n].top);
    for (size_t i = n; i < s->n; i++)
        block_done(&s->blocks[i]);
    s->n = n;
    s->has_selection = s->has_selection && s->anchor.block < n && s->head.block < n;
    s->has_cursor = s->has_cursor && s->cursor_block < n;
    number_rows(s, n);
}

static void add_block(struct scrollback *s, const struct turn *t)
{
    mem_grow(&s->blocks, &s->cap, s->n + 1, sizeof *s->blocks);
    s->blocks[s->n] = (struct block){.turn = t, .moves_seen = 0};
    wrap_init(&s->blocks[s->n].wrap, s->width > 0 ? s->width : 1);
    s->n++;
    number_rows(s, s->n - 1);
    note_dirty(s, s->blocks[s->n - 1].top);
}

void scrollback_init(struct scrollback *s)
{
    *s = (struct scrollback){.follow = true, .all_dirty = true};
}

void scrollback_done(struct scrollback *s)
{
    truncate_blocks(s, 0);
    free(s->blocks);
    *s = (struct scrollback){0};
}

void scrollback_sync(struct scrollback *s, const struct conversation *c, const struct turn *growing)
{
    const struct turn *t;
    size_t i = 0, n_versions;

    if (growing != s->growing && s->n > 0)
        note_dirty(s, s->blocks[s->n - 1].top);
    s->growing = growing;
    for (t = conversation_leaf(c); t != NULL; t = t->parent)
        i++;
    size_t depth = i;
    /* the path from the leaf up, compared with the blocks from the last down: only what differs
       is looked at, for a path that merely grew its last turn */
    size_t same = depth < s->n ? depth : s->n;
    for (t = conversation_leaf(c), i = depth; t != NULL && i > 0; t = t->parent, i--) {
        if (i <= s->n && s->blocks[i - 1].turn != t && i - 1 < same)
            same = i - 1;
    }
    truncate_blocks(s, same);
    for (i = same; i < depth; i++)
        add_block(s, conversation_at(c, i));
    for (i = same > 0 ? same - 1 : 0; i < s->n; i++) {
        struct block *b = &s->blocks[i];
        size_t version = turn_version(c, b->turn, &n_versions);
        if (version != b->version || n_versions != b->n_versions)
            note_dirty(s, b->top);
        b->version = version;
        b->n_versions = n_versions;
        extend(s, i);
    }
    clamp_top(s);
}

void scrollback_reload(struct scrollback *s, const struct conversation *c,
                       const struct turn *growing)
{
    bool had_cursor = s->has_cursor;

    truncate_blocks(s, 0);
    s->growing = NULL;
    s->all_dirty = true;
    scrollback_sync(s, c, growing);
    size_t n = s->cursor_block < s->n ? s->blocks[s->cursor_block].turn->n_tokens : 0;
    s->has_cursor = had_cursor && n > 0;
    if (s->cursor_token >= n)
        s->cursor_token = n > 0 ? n - 1 : 0;
}

static void lay_out_anew(struct scrollback *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct block *b = &s->blocks[i];
        wrap_reset(&b->wrap, s->width);
        b->laid = 0;
        b->n_marks = SIZE_MAX; /* reservations depend on the width */
        extend(s, i);
    }
    number_rows(s, 0);
}

void scrollback_place(struct scrollback *s, struct rect area, int width)
{
    struct row_ref at = {ROW_BLANK, 0, 0};
    size_t byte = 0;

    if (memcmp(&area, &s->area, sizeof area) != 0)
        s->all_dirty = true;
    s->area = area;
    if (width != s->width) {
        bool known = scrollback_row(s, s->top, &at);
        if (known && at.kind == ROW_TEXT)
            byte = s->blocks[at.block].wrap.rows[at.row].start;
        s->width = width;
        lay_out_anew(s);
        if (known && !s->follow)
            s->top = at.kind == ROW_TEXT ? scrollback_row_of(s, at.block, byte)
                                         : s->blocks[at.block].top;
        s->all_dirty = true;
    }
    clamp_top(s);
}

void scrollback_touch(struct scrollback *s)
{
    s->all_dirty = true;
}

bool scrollback_row(const struct scrollback *s, size_t row, struct row_ref *out)
{
    size_t low = 0, high = s->n;

    if (row >= s->total || s->n == 0)
        return false;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s->blocks[middle].top <= row)
            low = middle;
        else
            high = middle;
    }
    const struct block *b = &s->blocks[low];
    size_t text = block_text_top(b);
    out->block = low;
    out->row = 0;
    if (row == b->top)
        out->kind = ROW_NAME;
    else if (row < text)
        out->kind = ROW_NOTICE;
    else if (row - text < b->wrap.n - b->n_hidden) {
        out->kind = ROW_TEXT;
        out->row = row - text;
    } else
        out->kind = ROW_BLANK;
    return true;
}

size_t scrollback_row_of(const struct scrollback *s, size_t block, size_t byte)
{
    const struct block *b = &s->blocks[block];
    size_t row = wrap_find(&b->wrap, byte), last = b->wrap.n - b->n_hidden - 1;

    return block_text_top(b) + (row < last ? row : last);
}

void scrollback_show_row(struct scrollback *s, size_t row)
{
    size_t rows = (size_t)(s->area.rows > 0 ? s->area.rows : 1);

    if (row < s->top)
        s->top = row;
    else if (row >= s->top + rows)
        s->top = row - rows + 1;
    s->follow = s->top + rows >= s->total;
    clamp_top(s);
}

void scrollback_scroll(struct scrollback *s, int rows)
{
    size_t visible = (size_t)(s->area.rows > 0 ? s->area.rows : 0);

    if (rows < 0)
        s->top -= (size_t)-rows < s->top ? (size_t)-rows : s->top;
    else
        s->top += (size_t)rows;
    s->follow = s->top + visible >= s->total;
    clamp_top(s);
}

void scrollback_home(struct scrollback *s)
{
    s->top = 0;
    s->follow = s->total <= (size_t)(s->area.rows > 0 ? s->area.rows : 0);
}

void scrollback_end(struct scrollback *s)
{
    s->follow = true;
    clamp_top(s);
}

size_t scrollback_below(const struct scrollback *s)
{
    size_t seen = s->top + (size_t)(s->area.rows > 0 ? s->area.rows : 0);

    return s->total > seen ? s->total - seen : 0;
}
