#include "config.h"

#include "tui/canvas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tui/glyphs.h"

static const struct cell blank = {{' '}, 1, STYLE_TEXT, 0, 0};

struct canvas *canvas_new(int rows, int cols)
{
    struct canvas *c = mem_zalloc(sizeof *c);

    c->glyphs = GLYPHS_UNICODE;
    canvas_resize(c, rows, cols);
    return c;
}

void canvas_free(struct canvas *c)
{
    if (c == NULL)
        return;
    free(c->cells);
    free(c);
}

void canvas_resize(struct canvas *c, int rows, int cols)
{
    size_t n = (size_t)rows * (size_t)cols;

    free(c->cells);
    c->rows = rows;
    c->cols = cols;
    c->cells = mem_array(n, sizeof *c->cells);
    for (size_t i = 0; i < n; i++)
        c->cells[i] = blank;
}

struct cell *canvas_at(struct canvas *c, int row, int col)
{
    return &c->cells[(size_t)row * (size_t)c->cols + (size_t)col];
}

/* Blanks both halves of a wide character of which `col` is one. */
static void break_wide(struct canvas *c, int row, int col)
{
    struct cell *cell = canvas_at(c, row, col);
    uint8_t style = cell->style;

    if (cell->width == 1)
        return;
    if (cell->width == 0) {
        cell[-1] = blank;
        cell[-1].style = style;
    } else {
        cell[1] = blank;
        cell[1].style = style;
    }
    *cell = blank;
    cell->style = style;
}

void canvas_fill(struct canvas *c, struct rect area, enum style style)
{
    for (int r = area.row; r < area.row + area.rows; r++)
        canvas_line(c, r, area.col, area.cols, ' ', style);
}

int canvas_put(struct canvas *c, int row, int col, const struct glyph *g, enum style style,
               unsigned flags)
{
    if (row < 0 || row >= c->rows || col < 0 || g->width < 1 || col + g->width > c->cols)
        return 0;
    for (int i = 0; i < g->width; i++)
        break_wide(c, row, col + i);
    struct cell *cell = canvas_at(c, row, col);
    *cell = blank;
    memcpy(cell->points, g->points, sizeof cell->points);
    cell->width = (uint8_t)g->width;
    cell->style = (uint8_t)style;
    cell->flags = (uint8_t)flags;
    if (g->width == 2)
        cell[1] = (struct cell){{0}, 0, (uint8_t)style, (uint8_t)flags, 0};
    return g->width;
}

int canvas_sign(struct canvas *c, int row, int col, uint32_t sign, enum style style)
{
    struct glyph g = {{glyphs_replace(c->glyphs, sign)}, 1};

    return canvas_put(c, row, col, &g, style, 0);
}

void canvas_line(struct canvas *c, int row, int col, int cols, uint32_t sign, enum style style)
{
    for (int i = 0; i < cols; i++)
        canvas_sign(c, row, col + i, sign, style);
}

int canvas_text(struct canvas *c, int row, int col, int cols, enum style style, const char *text)
{
    struct glyph glyphs[GRAPHEME_GLYPHS];
    struct grapheme g;
    size_t len = strlen(text);
    int used = 0;

    for (size_t at = 0; at < len; at += g.len) {
        text_next(text + at, len - at, &g);
        if (g.width > cols - used)
            break;
        size_t n = text_glyphs(text + at, &g, glyphs);
        for (size_t i = 0; i < n; i++) {
            glyphs[i].points[0] = glyphs_replace(c->glyphs, glyphs[i].points[0]);
            canvas_put(c, row, col + used, &glyphs[i], style, 0);
            used += glyphs[i].width;
        }
    }
    return used;
}

int canvas_text_cut(struct canvas *c, int row, int col, int cols, enum style style,
                    const char *text)
{
    if (text_width(text, strlen(text)) <= cols)
        return canvas_text(c, row, col, cols, style, text);
    int used = canvas_text(c, row, col, cols - 1, style, text);
    return used + (cols > 0 ? canvas_text(c, row, col + used, 1, style, "…") : 0);
}

int canvas_text_right(struct canvas *c, int row, int end, enum style style, const char *text)
{
    int width = text_width(text, strlen(text));

    return canvas_text(c, row, end - width, width, style, text);
}

int canvas_format(struct canvas *c, int row, int col, int cols, enum style style,
                  const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return canvas_text(c, row, col, cols, style, text);
}

void canvas_row_text(const struct canvas *c, int row, struct str *out)
{
    const struct cell *cells = c->cells + (size_t)row * (size_t)c->cols;
    int end = c->cols;
    char bytes[4];

    while (end > 0 && cells[end - 1].points[0] == ' ' && cells[end - 1].width == 1)
        end--;
    for (int col = 0; col < end; col++) {
        for (int i = 0; i < GLYPH_POINTS && cells[col].points[i] != 0; i++)
            str_add(out, bytes, utf8_encode(cells[col].points[i], bytes));
    }
}
