#include "config.h"

#include "tui/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/keys.h"
#include "base/mem.h"
#include "tui/candidates.h"
#include "tui/layout.h"
#include "tui/textwidth.h"
#include "tui/wrap.h"

void page_init(struct page *p, const char *title, const char *text)
{
    *p = (struct page){.title = mem_strdup(title), .text = STR_INIT};
    str_add_text(&p->text, text);
    while (p->text.len > 0 && p->text.data[p->text.len - 1] == '\n')
        str_truncate(&p->text, p->text.len - 1);
}

void page_done(struct page *p)
{
    free(p->title);
    str_done(&p->text);
    free(p->rows);
    *p = (struct page){0};
}

void page_scroll(struct page *p, long by, int rows)
{
    long last = (long)p->n - rows, to = (long)p->top + by;

    if (to > last)
        to = last;
    p->top = to > 0 ? (size_t)to : 0;
}

bool page_key(struct page *p, int key, int rows)
{
    switch (key) {
    case KEYS_UP:
    case 'k':
        page_scroll(p, -1, rows);
        return true;
    case KEYS_DOWN:
    case 'j':
        page_scroll(p, 1, rows);
        return true;
    case KEYS_PAGE_UP:
    case 'b':
        page_scroll(p, -rows, rows);
        return true;
    case KEYS_PAGE_DOWN:
    case ' ':
        page_scroll(p, rows, rows);
        return true;
    case KEYS_HOME:
        p->top = 0;
        return true;
    case KEYS_END:
        page_scroll(p, (long)p->n, rows);
        return true;
    default:
        return key != 'q' && key != 27 && key != '\r' && key != 3 && key != KEYS_F1;
    }
}

/* Where the rows after a line's first begin: below its last column, if that leaves room, else below
 * its own beginning. */
static int hanging_indent(const char *line, size_t len, int width)
{
    size_t own = 0, column;

    while (own < len && line[own] == ' ')
        own++;
    column = own;
    for (size_t i = own + 2; i < len; i++) {
        if (line[i - 1] == ' ' && line[i - 2] == ' ' && line[i] != ' ')
            column = i;
    }
    int indent = text_width(line, column);
    return indent <= width / 2 ? indent : text_width(line, own);
}

static void add_row(struct page *p, size_t start, size_t end, int indent, bool first)
{
    mem_grow(&p->rows, &p->cap, p->n + 1, sizeof *p->rows);
    p->rows[p->n++] = (struct page_row){start, end, indent, first};
}

static void lay_line(struct page *p, size_t start, size_t end)
{
    const char *text = str_text(&p->text);
    int indent = hanging_indent(text + start, end - start, p->width);
    struct wrap w;

    wrap_init(&w, p->width);
    wrap_extend(&w, text + start, end - start);
    size_t at = start + w.rows[0].end;
    add_row(p, start, at, 0, true);
    if (at < end) {
        wrap_reset(&w, p->width - indent);
        wrap_extend(&w, text + at, end - at);
        for (size_t i = 0; i < w.n; i++)
            add_row(p, at + w.rows[i].start, at + w.rows[i].end, indent, false);
    }
    wrap_done(&w);
}

static void lay_out(struct page *p, int width)
{
    const char *text = str_text(&p->text);

    p->width = width;
    p->n = 0;
    for (size_t start = 0; start <= p->text.len;) {
        size_t end = start + strcspn(text + start, "\n");
        lay_line(p, start, end);
        start = end + 1;
    }
}

static void draw_row(const struct page *p, struct canvas *c, struct rect area, int row,
                     size_t index)
{
    const struct page_row *r = &p->rows[index];
    char *line = mem_strndup(str_text(&p->text) + r->start, r->end - r->start);
    bool heading = r->first && line[0] != ' ' && line[0] != '\0' && strstr(line, "  ") == NULL;

    canvas_text(c, row, area.col + 1 + r->indent, area.cols - 2 - r->indent,
                heading ? STYLE_TITLE : STYLE_TEXT, line);
    free(line);
}

void page_draw(struct page *p, struct canvas *c, struct rect area)
{
    int rows = area.rows - 1;
    int width = area.cols - 2 < LAYOUT_TEXT_MAX ? area.cols - 2 : LAYOUT_TEXT_MAX;
    char below[48];

    canvas_fill(c, area, STYLE_TEXT);
    if (rows < 1)
        return;
    if (width != p->width)
        lay_out(p, width > 1 ? width : 1);
    page_scroll(p, 0, rows);
    panel_heading(c, area.row, area, p->title);
    for (int i = 0; i < rows && p->top + (size_t)i < p->n; i++)
        draw_row(p, c, area, area.row + 1 + i, p->top + (size_t)i);
    if (p->n > (size_t)rows) {
        snprintf(below, sizeof below, " %zu-%zu of %zu ", p->top + 1,
                 p->top + (size_t)rows < p->n ? p->top + (size_t)rows : p->n, p->n);
        canvas_text_right(c, area.row, area.col + area.cols - 2, STYLE_DIM, below);
    }
}
