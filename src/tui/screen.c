#include "config.h"

#include "tui/screen.h"

#include <curses.h>
#include <string.h>
#include <wchar.h>

#include "tui/terminal.h"

enum { RUN_MAX = 512 };

void screen_init(struct screen *s)
{
    s->shown = NULL;
}

void screen_done(struct screen *s)
{
    canvas_free(s->shown);
    s->shown = NULL;
}

void screen_forget(struct screen *s)
{
    screen_done(s);
    clearok(curscr, TRUE);
}

static void to_curses(const struct cell *cell, const struct styles *styles, cchar_t *out)
{
    wchar_t text[GLYPH_POINTS + 1] = {0};
    attr_t attrs = styles->attrs[cell->style];
    int pair = styles->pairs[cell->style];

    if (cell->flags & CELL_UNDERLINE)
        attrs |= A_UNDERLINE;
    if (cell->flags & CELL_REVERSE)
        attrs ^= A_REVERSE;
    for (int i = 0; i < GLYPH_POINTS && cell->points[i] != 0; i++)
        text[i] = (wchar_t)cell->points[i];
    setcchar(out, text, attrs, (short)pair, &pair);
}

/* Copies the cells [from, to) of a row. */
static void copy_run(const struct canvas *c, int row, int from, int to, const struct styles *styles)
{
    const struct cell *cells = c->cells + (size_t)row * (size_t)c->cols;
    cchar_t run[RUN_MAX];
    int n = 0, start = from;

    for (int col = from; col < to; col++) {
        if (cells[col].width == 0)
            continue;
        if (n == RUN_MAX) {
            mvadd_wchnstr(row, start, run, n);
            n = 0;
            start = col;
        }
        to_curses(&cells[col], styles, &run[n++]);
    }
    if (n > 0)
        mvadd_wchnstr(row, start, run, n);
}

/* Copies what differs of a row. Both cells of a wide character change together, so that none is
 * cut. */
static bool copy_row(const struct canvas *c, const struct canvas *shown, int row,
                     const struct styles *styles)
{
    const struct cell *now = c->cells + (size_t)row * (size_t)c->cols;
    const struct cell *old = shown->cells + (size_t)row * (size_t)c->cols;
    int from = 0, to = c->cols;

    while (from < to && memcmp(&now[from], &old[from], sizeof *now) == 0)
        from++;
    if (from == to)
        return false;
    while (to > from && memcmp(&now[to - 1], &old[to - 1], sizeof *now) == 0)
        to--;
    copy_run(c, row, from, to, styles);
    return true;
}

int screen_flush(struct screen *s, const struct canvas *c, const struct styles *styles, int row,
                 int col)
{
    int changed = 0;
    bool fresh = s->shown == NULL || s->shown->rows != c->rows || s->shown->cols != c->cols;

    if (fresh) {
        canvas_free(s->shown);
        s->shown = canvas_new(c->rows, c->cols);
    }
    for (int r = 0; r < c->rows; r++) {
        if (fresh) {
            copy_run(c, r, 0, c->cols, styles);
            changed++;
        } else if (copy_row(c, s->shown, r, styles)) {
            changed++;
        }
    }
    memcpy(s->shown->cells, c->cells, (size_t)c->rows * (size_t)c->cols * sizeof *c->cells);
    curs_set(row >= 0 ? 1 : 0);
    move(row >= 0 ? row : 0, row >= 0 ? col : 0);
    terminal_frame_begin();
    wnoutrefresh(stdscr);
    doupdate();
    terminal_frame_end();
    return changed;
}
