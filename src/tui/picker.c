#include "config.h"

#include "tui/picker.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "app/keys.h"
#include "base/mem.h"
#include "tui/candidates.h"
#include "tui/textwidth.h"

enum { SIGN_SELECTED = 0x25B8, ENTER = '\r', ESCAPE = 27, NAME_MAX_COLS = 24 };

void picker_init(struct picker *p, const char *title)
{
    *p = (struct picker){.title = title};
}

void picker_add(struct picker *p, const char *name, const char *text, bool broken)
{
    mem_grow(&p->items, &p->cap, p->n + 1, sizeof *p->items);
    p->items[p->n++] = (struct picker_item){mem_strdup(name), mem_strdup(text), broken};
}

void picker_select(struct picker *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->items[i].name, name) == 0)
            p->selected = i;
    }
}

void picker_done(struct picker *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->items[i].name);
        free(p->items[i].text);
    }
    free(p->items);
    *p = (struct picker){0};
}

static void move(struct picker *p, long by)
{
    long to = (long)p->selected + by;

    if (p->n == 0)
        return;
    p->selected = to < 0 ? 0 : to >= (long)p->n ? p->n - 1 : (size_t)to;
}

static void find_letter(struct picker *p, int letter)
{
    for (size_t i = 1; i <= p->n; i++) {
        size_t at = (p->selected + i) % p->n;
        if (tolower((unsigned char)p->items[at].name[0]) == tolower(letter)) {
            p->selected = at;
            return;
        }
    }
}

enum picker_answer picker_key(struct picker *p, int key, int page)
{
    switch (key) {
    case KEYS_UP:
        move(p, -1);
        break;
    case KEYS_DOWN:
        move(p, 1);
        break;
    case KEYS_PAGE_UP:
        move(p, -page);
        break;
    case KEYS_PAGE_DOWN:
        move(p, page);
        break;
    case KEYS_HOME:
        move(p, -(long)p->n);
        break;
    case KEYS_END:
        move(p, (long)p->n);
        break;
    case ENTER:
        return p->n > 0 && !p->items[p->selected].broken ? PICKER_CHOSEN : PICKER_OPEN;
    case ESCAPE:
    case 3:
    case 'q':
    case KEYS_F2:
        return PICKER_CLOSED;
    default:
        if (key > ' ' && key < 127)
            find_letter(p, key);
        break;
    }
    return PICKER_OPEN;
}

static int name_columns(const struct picker *p)
{
    int cols = 0;

    for (size_t i = 0; i < p->n; i++) {
        int width = text_width(p->items[i].name, strlen(p->items[i].name));
        cols = width > cols ? width : cols;
    }
    return cols < NAME_MAX_COLS ? cols : NAME_MAX_COLS;
}

/* The rest of a description stands at the bottom, whole, for the item that is selected. */
static int draw_description(const struct picker *p, struct canvas *c, struct rect area)
{
    const char *text = p->items[p->selected].text;
    size_t len = text != NULL ? strlen(text) : 0, at = 0;
    int rows = 0;

    while (at < len && rows < area.rows) {
        size_t fits = text_fit(text + at, len - at, area.cols - 2), end = at + fits;
        if (end < len) {
            while (end > at && text[end] != ' ')
                end--;
            if (end == at)
                end = at + fits;
        }
        char *line = mem_strndup(text + at, end - at);
        canvas_text(c, area.row + rows, area.col + 1, area.cols - 2, STYLE_TEXT, line);
        free(line);
        at = end;
        while (at < len && text[at] == ' ')
            at++;
        rows++;
    }
    return rows;
}

enum { DESCRIPTION_ROWS = 3, FRAME_ROWS = 1 };

static int list_rows(struct rect area)
{
    int rows = area.rows - FRAME_ROWS - (area.rows >= 12 ? DESCRIPTION_ROWS + 1 : 0);

    return rows > 1 ? rows : 1;
}

void picker_draw(struct picker *p, struct canvas *c, struct rect area)
{
    int rows = list_rows(area), names = name_columns(p);

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows < 2 || p->n == 0)
        return;
    if (p->selected < p->top)
        p->top = p->selected;
    if (p->selected >= p->top + (size_t)rows)
        p->top = p->selected - (size_t)rows + 1;
    panel_heading(c, area.row, area, p->title);
    for (int i = 0; i < rows && p->top + (size_t)i < p->n; i++) {
        size_t at = p->top + (size_t)i;
        const struct picker_item *item = &p->items[at];
        int row = area.row + FRAME_ROWS + i;
        bool here = at == p->selected;
        enum style style = here ? STYLE_FOCUS : item->broken ? STYLE_DIM : STYLE_TEXT;
        if (here)
            canvas_sign(c, row, area.col, SIGN_SELECTED, STYLE_FOCUS);
        canvas_text(c, row, area.col + 1, names, style, item->name);
        if (item->text != NULL)
            canvas_text_cut(c, row, area.col + names + 3, area.cols - names - 4,
                            item->broken ? STYLE_WARNING : STYLE_DIM, item->text);
    }
    if (area.rows < 12)
        return;
    struct rect below = {area.row + area.rows - DESCRIPTION_ROWS, area.col, DESCRIPTION_ROWS,
                         area.cols};
    panel_heading(c, below.row - 1, area, p->items[p->selected].name);
    draw_description(p, c, below);
}

enum picker_answer picker_click(struct picker *p, struct rect area, int row, int clicks)
{
    int i = row - area.row - FRAME_ROWS;

    if (i < 0 || i >= list_rows(area) || p->top + (size_t)i >= p->n)
        return PICKER_OPEN;
    p->selected = p->top + (size_t)i;
    return clicks > 1 && !p->items[p->selected].broken ? PICKER_CHOSEN : PICKER_OPEN;
}
