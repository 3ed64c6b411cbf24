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

void page_init(struct page *p, const char *title, const char *text)
{
    *p = (struct page){.title = mem_strdup(title), .text = STR_INIT};
    str_add_text(&p->text, text);
    while (p->text.len > 0 && p->text.data[p->text.len - 1] == '\n')
        str_truncate(&p->text, p->text.len - 1);
    wrap_init(&p->wrap, 1);
}

void page_done(struct page *p)
{
    free(p->title);
    str_done(&p->text);
    wrap_done(&p->wrap);
    *p = (struct page){0};
}

void page_scroll(struct page *p, long by, int rows)
{
    long last = (long)p->wrap.n - rows, to = (long)p->top + by;

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
        page_scroll(p, (long)p->wrap.n, rows);
        return true;
    default:
        return key != 'q' && key != 27 && key != '\r' && key != 3 && key != KEYS_F1;
    }
}

static void draw_row(const struct page *p, struct canvas *c, struct rect area, int row,
                     size_t index)
{
    const struct wrap_row *r = &p->wrap.rows[index];
    char *line = mem_strndup(p->text.data + r->start, r->end - r->start);
    bool heading = line[0] != ' ' && line[0] != '\n' && (r->flags & WRAP_FIRST) != 0;

    canvas_text(c, row, area.col + 1, area.cols - 2, heading ? STYLE_TITLE : STYLE_TEXT, line);
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
    if (width != p->width) {
        p->width = width;
        wrap_reset(&p->wrap, width);
        wrap_extend(&p->wrap, str_text(&p->text), p->text.len);
    }
    page_scroll(p, 0, rows);
    panel_heading(c, area.row, area, p->title);
    for (int i = 0; i < rows && p->top + (size_t)i < p->wrap.n; i++)
        draw_row(p, c, area, area.row + 1 + i, p->top + (size_t)i);
    if (p->wrap.n > (size_t)rows) {
        snprintf(below, sizeof below, " %zu-%zu of %zu ", p->top + 1,
                 p->top + (size_t)rows < p->wrap.n ? p->top + (size_t)rows : p->wrap.n, p->wrap.n);
        canvas_text_right(c, area.row, area.col + area.cols - 2, STYLE_DIM, below);
    }
}
