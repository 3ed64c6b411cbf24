/* The transcript's rows: margin, text, labels. */
#include "config.h"

#include "tui/scrollback.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "tui/glyphs.h"
#include "tui/layout.h"
#include "tui/textwidth.h"

enum { SIGN_BRANCH = 0x25C6, SIGN_CURSOR = 0x258C };

/* What a row is being drawn with. */
struct row_pen {
    const struct scrollback *s;
    const struct block *b;
    size_t block;
    struct canvas *canvas;
    int row;      /* on the canvas */
    size_t token; /* the one under the pen; n_tokens: none */
};

/* Bits of surprise at which a token gets warmer. */
static enum style heat_style(float logprob)
{
    static const double steps[] = {1.0, 3.0, 6.0};
    double bits = -(double)logprob / log(2.0);
    int level = 0;

    while (level < 3 && bits >= steps[level])
        level++;
    return (enum style)(STYLE_HEAT_0 + level);
}

static bool place_before(struct place a, struct place b)
{
    return a.block != b.block ? a.block < b.block : a.byte < b.byte;
}

static bool is_selected(const struct scrollback *s, size_t block, size_t byte)
{
    struct place at = {block, byte}, from = s->anchor, to = s->head;

    if (!s->has_selection)
        return false;
    if (place_before(to, from)) {
        from = s->head;
        to = s->anchor;
    }
    return !place_before(at, from) && !place_before(to, at);
}

static bool starts_mark(const struct block *b, size_t token)
{
    size_t low = 0, high = b->n_marks;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((size_t)b->marks[middle].n < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < b->n_marks && (size_t)b->marks[low].n == token;
}

static bool is_branch(const struct turn *t, size_t token)
{
    return t->branch_at >= 0 && (size_t)t->branch_at == token;
}

/* How the character at byte `at` looks. */
static enum style text_style(struct row_pen *pen, size_t at, bool blank, uint8_t row_flags,
                             unsigned *flags)
{
    const struct turn *t = pen->b->turn;
    enum style style = t->role == ROLE_USER ? STYLE_USER : STYLE_TEXT;

    *flags = 0;
    if (row_flags & WRAP_CODE)
        style = STYLE_CODE;
    if (pen->token < t->n_tokens) {
        while (pen->token + 1 < t->n_tokens && t->tokens[pen->token + 1].text_at <= at)
            pen->token++;
        if (pen->s->heat && t->tokens[pen->token].rank >= 0)
            style = heat_style(t->tokens[pen->token].logprob);
        if (!blank && starts_mark(pen->b, pen->token))
            *flags |= CELL_UNDERLINE;
        if (!blank && is_branch(t, pen->token)) {
            style = STYLE_MARK;
            *flags |= CELL_UNDERLINE;
        }
        if (pen->s->has_cursor && pen->s->cursor_block == pen->block &&
            pen->s->cursor_token == pen->token)
            *flags |= CELL_REVERSE;
    }
    if (is_selected(pen->s, pen->block, at))
        style = STYLE_SELECTION;
    return style;
}

/* Draws the bytes of one row; returns the column after them. */
static int draw_text(struct row_pen *pen, const struct wrap_row *row)
{
    const struct turn *t = pen->b->turn;
    const char *text = str_text(&t->text);
    int left = pen->s->area.col + LAYOUT_MARGIN, col = 0, width = pen->s->width;
    struct glyph glyphs[GRAPHEME_GLYPHS];
    struct grapheme g;

    pen->token = t->n_tokens > 0 ? block_token_at(pen->b, row->start) : 0;
    for (size_t at = row->start; at < row->end; at += g.len) {
        unsigned flags;
        text_next(text + at, row->end - at, &g);
        bool blank = g.kind == GRAPHEME_SPACE || g.kind == GRAPHEME_TAB;
        enum style style = text_style(pen, at, blank, row->flags, &flags);
        size_t n = text_glyphs(text + at, &g, glyphs);
        if (g.kind == GRAPHEME_TAB) {
            n = (size_t)text_tab_width(col);
            for (size_t i = 0; i < n; i++)
                glyphs[i] = (struct glyph){{' '}, 1};
        }
        for (size_t i = 0; i < n && col + glyphs[i].width <= width; i++) {
            if (g.kind == GRAPHEME_CONTROL)
                glyphs[i].points[0] = glyphs_replace(pen->canvas->glyphs, glyphs[i].points[0]);
            canvas_put(pen->canvas, pen->row, left + col, &glyphs[i],
                       g.kind == GRAPHEME_CONTROL ? STYLE_DIM : style, flags);
            col += glyphs[i].width;
        }
    }
    return left + col;
}

/* The longest form of a label that fits in `columns`: whole, without the length of the ride,
 * without the knob's name, the new value alone. */
static const char *fit_label(const struct mark *m, int columns, char *out, size_t size)
{
    const char *over = strstr(m->label, " over "), *blank = strchr(m->label, ' ');
    char value[16];

    snprintf(out, size, "%s", m->label);
    if (text_width(out, strlen(out)) <= columns)
        return out;
    if (over != NULL)
        out[over - m->label] = '\0';
    if (text_width(out, strlen(out)) <= columns)
        return out;
    if (blank != NULL)
        memmove(out, out + (blank + 1 - m->label), strlen(out + (blank + 1 - m->label)) + 1);
    if (text_width(out, strlen(out)) <= columns)
        return out;
    fader_value_text(m->knob, m->to, value);
    snprintf(out, size, "▸%s", value);
    return text_width(out, strlen(out)) <= columns ? out : NULL;
}

/* Letters of the marks whose first token stands in this row, and the label of the last. */
static void draw_marks(struct row_pen *pen, const struct wrap_row *row, int text_end)
{
    const struct block *b = pen->b;
    const struct mark *last = NULL;
    bool branch = false;
    int margin = pen->s->area.col + 1, end = pen->s->area.col + pen->s->area.cols;
    char label[MARK_LABEL + 16];

    if (b->turn->branch_at >= 0 && (size_t)b->turn->branch_at < b->turn->n_tokens) {
        size_t at = block_token_byte(b, (size_t)b->turn->branch_at);
        if (at >= row->start && at < row->end)
            branch = true;
    }
    for (size_t i = 0; i < b->n_marks; i++) {
        if ((size_t)b->marks[i].n >= b->turn->n_tokens)
            break;
        size_t at = block_token_byte(b, (size_t)b->marks[i].n);
        if (at < row->start || at >= row->end)
            continue;
        if (last != NULL && last->letter != b->marks[i].letter)
            canvas_sign(pen->canvas, pen->row, margin - 1, (uint32_t)last->letter, STYLE_MARK);
        canvas_sign(pen->canvas, pen->row, margin, (uint32_t)b->marks[i].letter, STYLE_MARK);
        last = &b->marks[i];
    }
    if (branch)
        canvas_sign(pen->canvas, pen->row, last != NULL ? margin - 1 : margin, SIGN_BRANCH,
                    STYLE_MARK);
    if (end > pen->s->area.col + LAYOUT_MARGIN + LAYOUT_TEXT_MAX)
        end = pen->s->area.col + LAYOUT_MARGIN + LAYOUT_TEXT_MAX;
    if (last != NULL && fit_label(last, end - text_end - 1, label, sizeof label) != NULL)
        canvas_text_right(pen->canvas, pen->row, end, STYLE_MARK, label);
}

static void draw_text_row(struct row_pen *pen, size_t index)
{
    const struct wrap_row *row = &pen->b->wrap.rows[index];
    int end = draw_text(pen, row);

    if (pen->b->turn == pen->s->growing && index + 1 == pen->b->wrap.n) {
        if (end < pen->s->area.col + pen->s->area.cols)
            canvas_sign(pen->canvas, pen->row, end, SIGN_CURSOR, STYLE_ACCENT);
        end++;
    }
    draw_marks(pen, row, end);
}

static void draw_name(struct row_pen *pen, const struct scrollback_names *names)
{
    const struct block *b = pen->b;
    int col = pen->s->area.col + 1, cols = pen->s->area.cols - 1;

    col += canvas_text(pen->canvas, pen->row, col, cols, STYLE_TITLE,
                       b->turn->role == ROLE_USER ? names->user : names->model);
    if (b->n_versions > 1)
        canvas_format(pen->canvas, pen->row, col + 2, cols - 2, STYLE_DIM, "version %zu of %zu",
                      b->version + 1, b->n_versions);
}

static void draw_row(struct scrollback *s, struct canvas *c, int screen_row,
                     const struct scrollback_names *names)
{
    struct rect line = {s->area.row + screen_row, s->area.col, 1, s->area.cols};
    struct row_ref at;
    char notice[256];

    canvas_fill(c, line, STYLE_TEXT);
    if (!scrollback_row(s, s->top + (size_t)screen_row, &at))
        return;
    struct row_pen pen = {s, &s->blocks[at.block], at.block, c, line.row, 0};
    switch (at.kind) {
    case ROW_NAME:
        draw_name(&pen, names);
        break;
    case ROW_NOTICE:
        app_dropped_text(pen.b->turn, notice, sizeof notice);
        canvas_text_cut(c, line.row, line.col + LAYOUT_MARGIN, s->width, STYLE_WARNING, notice);
        break;
    case ROW_TEXT:
        draw_text_row(&pen, at.row);
        break;
    default:
        break;
    }
}

void scrollback_draw(struct scrollback *s, struct canvas *c, const struct scrollback_names *names)
{
    bool all = s->all_dirty || s->top != s->drawn_top;

    for (int r = 0; r < s->area.rows; r++) {
        if (all || s->top + (size_t)r >= s->dirty)
            draw_row(s, c, r, names);
    }
    s->all_dirty = false;
    s->dirty = SIZE_MAX;
    s->drawn_top = s->top;
}
