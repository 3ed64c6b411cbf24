#include "config.h"

#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void keep_reply(const char *bytes, size_t len, void *user)
{
    struct screen *s = user;

    str_add(&s->replies, bytes, len);
}

static int note_property(VTermProp property, VTermValue *value, void *user)
{
    struct screen *s = user;

    if (property == VTERM_PROP_CURSORVISIBLE)
        s->cursor_visible = value->boolean != 0;
    return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = note_property};

void screen_init(struct screen *s, int rows, int cols)
{
    memset(s, 0, sizeof *s);
    s->rows = rows;
    s->cols = cols;
    s->cursor_visible = true;
    s->vt = vterm_new(rows, cols);
    vterm_set_utf8(s->vt, 1);
    vterm_output_set_callback(s->vt, keep_reply, s);
    s->screen = vterm_obtain_screen(s->vt);
    vterm_screen_set_callbacks(s->screen, &callbacks, s);
    vterm_screen_enable_altscreen(s->screen, 1);
    vterm_screen_reset(s->screen, 1);
}

void screen_done(struct screen *s)
{
    if (s->vt != NULL)
        vterm_free(s->vt);
    str_done(&s->log);
    str_done(&s->replies);
    memset(s, 0, sizeof *s);
}

void screen_resize(struct screen *s, int rows, int cols)
{
    s->rows = rows;
    s->cols = cols;
    vterm_set_size(s->vt, rows, cols);
}

void screen_feed(struct screen *s, const char *bytes, size_t len)
{
    str_add(&s->log, bytes, len);
    vterm_input_write(s->vt, bytes, len);
}

static VTermScreenCell cell_at(const struct screen *s, int row, int col)
{
    VTermScreenCell cell;

    memset(&cell, 0, sizeof cell);
    vterm_screen_get_cell(s->screen, (VTermPos){.row = row, .col = col}, &cell);
    return cell;
}

static void add_cell_text(const VTermScreenCell *cell, struct str *out)
{
    char bytes[4];

    if (cell->chars[0] == 0)
        str_add_char(out, ' ');
    for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i] != 0; i++)
        str_add(out, bytes, utf8_encode(cell->chars[i], bytes));
}

void screen_row(const struct screen *s, int row, struct str *out)
{
    size_t start = out->len;

    for (int col = 0; col < s->cols;) {
        VTermScreenCell cell = cell_at(s, row, col);
        add_cell_text(&cell, out);
        col += cell.width > 1 ? cell.width : 1;
    }
    while (out->len > start && out->data[out->len - 1] == ' ')
        str_truncate(out, out->len - 1);
}

bool screen_has(const struct screen *s, const char *text)
{
    struct str row = STR_INIT;
    bool found = false;

    for (int i = 0; i < s->rows && !found; i++) {
        str_clear(&row);
        screen_row(s, i, &row);
        found = strstr(str_text(&row), text) != NULL;
    }
    str_done(&row);
    return found;
}

static void add_color(const char *name, const VTermColor *color, bool standard, struct str *out)
{
    if (standard)
        return;
    if (VTERM_COLOR_IS_INDEXED(color))
        str_add_format(out, " %s=%d", name, color->indexed.idx);
    else
        str_add_format(out, " %s=#%02x%02x%02x", name, color->rgb.red, color->rgb.green,
                       color->rgb.blue);
}

/* "bold underline reverse fg=75 bg=#102030"; empty for plain. */
static void add_attributes(const VTermScreenCell *cell, struct str *out)
{
    size_t start = out->len;

    if (cell->attrs.bold)
        str_add_text(out, " bold");
    if (cell->attrs.underline)
        str_add_text(out, " underline");
    if (cell->attrs.italic)
        str_add_text(out, " italic");
    if (cell->attrs.reverse)
        str_add_text(out, " reverse");
    add_color("fg", &cell->fg, VTERM_COLOR_IS_DEFAULT_FG(&cell->fg), out);
    add_color("bg", &cell->bg, VTERM_COLOR_IS_DEFAULT_BG(&cell->bg), out);
    if (out->len > start)
        str_erase(out, start, 1);
}

void screen_cell(const struct screen *s, int row, int col, struct str *text, struct str *attributes)
{
    VTermScreenCell cell = cell_at(s, row, col);

    add_cell_text(&cell, text);
    add_attributes(&cell, attributes);
}

void screen_cursor(const struct screen *s, int *row, int *col)
{
    VTermPos pos;

    vterm_state_get_cursorpos(vterm_obtain_state(s->vt), &pos);
    *row = pos.row;
    *col = pos.col;
}

int screen_mode(const struct screen *s, int mode)
{
    const char *p = str_text(&s->log), *end = p + s->log.len;
    int state = -1;

    while ((p = memmem(p, (size_t)(end - p), "\033[?", 3)) != NULL) {
        bool named = false;
        p += 3;
        do {
            char *after;
            named |= strtol(p, &after, 10) == mode && after > p;
            p = after;
        } while (*p == ';' && p++ != NULL);
        if (named && (*p == 'h' || *p == 'l'))
            state = *p == 'h';
    }
    return state;
}

/* ---- dumps ---------------------------------------------------------------------------------- */

enum { LEGEND_MAX = 52 };

/* The letter of these attributes, a new one when they were not met yet; '.' is plain. */
static char letter_of(struct str legend[LEGEND_MAX], int *n, const char *attributes)
{
    int i = 0;

    if (*attributes == '\0')
        return '.';
    while (i < *n && strcmp(str_text(&legend[i]), attributes) != 0)
        i++;
    if (i == LEGEND_MAX)
        return '?';
    if (i == *n)
        str_add_text(&legend[(*n)++], attributes);
    return (char)(i < 26 ? 'A' + i : 'a' + i - 26);
}

static void dump_attributes(const struct screen *s, const bool *masked, struct str *out)
{
    struct str legend[LEGEND_MAX], attributes = STR_INIT;
    int n = 0;

    memset(legend, 0, sizeof legend);
    str_add_text(out, "attributes\n");
    for (int row = 0; row < s->rows; row++) {
        str_add_char(out, '|');
        if (masked != NULL && masked[row]) {
            str_add_text(out, "~\n");
            continue;
        }
        for (int col = 0; col < s->cols; col++) {
            VTermScreenCell cell = cell_at(s, row, col);
            str_clear(&attributes);
            add_attributes(&cell, &attributes);
            str_add_char(out, letter_of(legend, &n, str_text(&attributes)));
        }
        while (out->data[out->len - 1] == '.')
            str_truncate(out, out->len - 1);
        str_add_char(out, '\n');
    }
    for (int i = 0; i < n; i++) {
        str_add_format(out, "%c = %s\n", i < 26 ? 'A' + i : 'a' + i - 26, str_text(&legend[i]));
        str_done(&legend[i]);
    }
    str_done(&attributes);
}

void screen_dump(const struct screen *s, bool with_attributes, const bool *masked, struct str *out)
{
    int row, col;

    screen_cursor(s, &row, &col);
    str_add_format(out, "size %dx%d cursor %d,%d%s\n", s->rows, s->cols, row, col,
                   s->cursor_visible ? "" : " hidden");
    for (int i = 0; i < s->rows; i++) {
        str_add_char(out, '|');
        if (masked != NULL && masked[i])
            str_add_char(out, '~');
        else
            screen_row(s, i, out);
        str_add_char(out, '\n');
    }
    if (with_attributes)
        dump_attributes(s, masked, out);
}
