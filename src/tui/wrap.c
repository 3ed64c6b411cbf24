#include "config.h"

#include "tui/wrap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tui/textwidth.h"

/* Columns that must be left between a reservation and the label for the word it belongs to. */
enum { RESERVE_WORD = 8 };

void wrap_init(struct wrap *w, int width)
{
    *w = (struct wrap){.width = width};
}

void wrap_done(struct wrap *w)
{
    free(w->rows);
    *w = (struct wrap){0};
}

void wrap_reset(struct wrap *w, int width)
{
    w->width = width > 0 ? width : 1;
    w->n = 0;
    w->line = 0;
    w->in_code = false;
}

/* ``` after at most three blanks opens and closes a fence. */
static bool is_fence(const char *line, size_t len)
{
    size_t at = 0;

    while (at < len && at < 3 && line[at] == ' ')
        at++;
    return len - at >= 3 && memcmp(line + at, "```", 3) == 0;
}

/* Characters that must not begin a row in Chinese and Japanese. */
static bool closes(uint32_t cp)
{
    static const uint32_t closing[] = {
        '!',    ')',    ',',    '.',    ':',    ';',    '?',    ']',    '}',    0x2019, 0x201D,
        0x2026, 0x3001, 0x3002, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0x3015, 0x3017, 0x30FC,
        0xFF01, 0xFF09, 0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF3D, 0xFF5D, 0xFF61, 0xFF64};

    for (size_t i = 0; i < sizeof closing / sizeof *closing; i++) {
        if (closing[i] == cp)
            return true;
    }
    return false;
}

/* ... or end one. */
static bool opens(uint32_t cp)
{
    return cp == '(' || cp == '[' || cp == '{' || cp == 0x2018 || cp == 0x201C || cp == 0x3008 ||
           cp == 0x300A || cp == 0x300C || cp == 0x300E || cp == 0x3010 || cp == 0x3014 ||
           cp == 0xFF08 || cp == 0xFF3B || cp == 0xFF5B;
}

static bool may_break_between(const struct grapheme *before, const struct grapheme *g)
{
    if (before->kind == GRAPHEME_SPACE || before->kind == GRAPHEME_TAB)
        return true;
    return (before->width == 2 || g->width == 2) && !closes(g->first) && !opens(before->first);
}

/* The first reservation at or after byte `at`. */
static size_t find_reserve(const struct wrap *w, size_t at)
{
    size_t i = w->n_reserves;

    while (i > 0 && w->reserves[i - 1].at >= at)
        i--;
    return i;
}

/* The columns of a row of which `room` were free until now, when its text reaches a reservation at
 * `column`; -1: it should end before it. */
static int make_room(const struct wrap *w, const struct wrap_reserve *r, int column, int room)
{
    if (room < w->width)
        return room;
    if (column + RESERVE_WORD <= w->width - r->columns)
        return w->width - r->columns;
    if (column + RESERVE_WORD <= w->width - r->least)
        return w->width - r->least;
    return column > 0 && r->columns > 0 ? -1 : room;
}

/* Lays one row from `start`; returns its end. *newline: it ends with one. */
static size_t lay_row(const struct wrap *w, const char *text, size_t len, size_t start, bool code,
                      bool *newline)
{
    struct grapheme g, before = {GRAPHEME_TEXT, 0, 0, 0};
    size_t at = start, word = start, next = find_reserve(w, start);
    int column = 0, room = w->width;

    *newline = false;
    while (at < len) {
        text_next(text + at, len - at, &g);
        if (g.kind == GRAPHEME_NEWLINE) {
            *newline = true;
            return at + g.len;
        }
        int width = g.kind == GRAPHEME_TAB ? text_tab_width(column) : g.width;
        bool hangs = !code && (g.kind == GRAPHEME_SPACE || g.kind == GRAPHEME_TAB);
        if (at > start && !hangs && may_break_between(&before, &g))
            word = at;
        for (; !hangs && next < w->n_reserves && w->reserves[next].at <= at; next++) {
            int left = make_room(w, &w->reserves[next], column, room);
            if (left < 0 && word == at && !code)
                return at;
            room = left < 0 ? room : left;
        }
        if (column + width > room && at > start && !hangs)
            return word > start && !code ? word : at;
        column += width;
        before = g;
        at += g.len;
    }
    return at;
}

/* Fence state of the line that starts at `start`: *code for its rows; returns that of the next
 * line. */
static bool line_state(const char *text, size_t len, size_t start, bool in_code, uint8_t *flags)
{
    bool fence = is_fence(text + start, len - start);

    *flags = (uint8_t)((in_code || fence ? WRAP_CODE : 0) | (fence ? WRAP_FENCE : 0) | WRAP_FIRST);
    return fence ? !in_code : in_code;
}

size_t wrap_extend(struct wrap *w, const char *text, size_t len)
{
    size_t first = w->n > 0 ? w->n - 1 : 0;
    struct wrap_row row = w->n > 0 ? w->rows[first] : (struct wrap_row){0, 0, WRAP_FIRST};
    bool newline;

    w->n = first;
    for (;;) {
        if (row.flags & WRAP_FIRST)
            w->line = w->n;
        size_t line = w->line < w->n ? w->rows[w->line].start : row.start;
        uint8_t flags;
        bool after = line_state(text, len, line, w->in_code, &flags);
        if (row.flags & WRAP_FIRST)
            row.flags = flags;
        row.end =
            (uint32_t)lay_row(w, text, len, row.start, (row.flags & WRAP_CODE) != 0, &newline);
        mem_grow(&w->rows, &w->cap, w->n + 1, sizeof *w->rows);
        w->rows[w->n++] = row;
        if (row.end >= len && !newline)
            return first;
        row.start = row.end;
        row.flags = newline ? WRAP_FIRST : row.flags & WRAP_CODE;
        if (newline)
            w->in_code = after;
    }
}

size_t wrap_find(const struct wrap *w, size_t at)
{
    size_t low = 0, high = w->n;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (w->rows[middle].start <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}
