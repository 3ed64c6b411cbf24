/* The lines at the bottom: message, input, hints. */
#include "config.h"

#include "tui/tui_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/marks.h"
#include "base/mem.h"
#include "tui/input.h"
#include "tui/status.h"
#include "tui/textwidth.h"

/* ---- the input line ------------------------------------------------------------------------- */

void tui_lay_input(struct input_picture *p, int cols)
{
    int width = cols - INPUT_MARGIN - 1;

    p->n = input_layout(width > 1 ? width : 1, p->rows, INPUT_ROWS_MAX, &p->cursor_row,
                        &p->cursor_column);
    if (p->n > INPUT_ROWS_MAX)
        p->n = INPUT_ROWS_MAX;
}

static void draw_input_row(struct canvas *c, int row, int col, int cols, const char *text,
                           size_t len)
{
    struct glyph glyphs[GRAPHEME_GLYPHS];
    struct grapheme g;
    int used = 0;

    for (size_t at = 0; at < len && used < cols; at += g.len) {
        unsigned char byte = (unsigned char)text[at];
        if (byte < 0x20 || byte == 0x7F) {
            g.len = 1;
            used += canvas_format(c, row, col + used, cols - used, STYLE_DIM, "^%c", byte ^ 0x40);
            continue;
        }
        text_next(text + at, len - at, &g);
        size_t n = text_glyphs(text + at, &g, glyphs);
        for (size_t i = 0; i < n && used + glyphs[i].width <= cols; i++)
            used += canvas_put(c, row, col + used, &glyphs[i], STYLE_USER, 0);
    }
}

void tui_draw_input(struct tui *t, const struct input_picture *p)
{
    struct rect area = t->layout.input;
    const char *text = input_text(), *prompt = input_prompt();
    int indent = text_width(prompt, strlen(prompt));

    canvas_fill(t->canvas, area, STYLE_TEXT);
    for (int r = 0; r < area.rows && p->top + (size_t)r < p->n; r++) {
        const struct input_row *row = &p->rows[p->top + (size_t)r];
        int col = area.col + INPUT_MARGIN;
        if (p->top + (size_t)r == 0)
            canvas_text(t->canvas, area.row, col, area.cols - 1,
                        t->focus == FOCUS_INPUT ? STYLE_ACCENT : STYLE_DIM, prompt);
        draw_input_row(t->canvas, area.row + r, col + indent, area.cols - INPUT_MARGIN - indent,
                       text + row->start, row->end - row->start);
    }
}

/* ---- the message line ----------------------------------------------------------------------- */

/* What was told of a token when it was drawn; `form` 0 is the most generous. */
static size_t draw_facts(const struct answer_token *token, int form, char *out, size_t size)
{
    const double p = 100.0 * (double)token->p, model = 100.0 * exp((double)token->logprob);

    if (token->rank < 0)
        return (size_t)snprintf(out, size, "picked by hand");
    if (form == 0)
        return (size_t)snprintf(out, size, "p %.1f %%  model %.1f %%  ln %.2f  rank %d", p, model,
                                (double)token->logprob, (int)token->rank);
    if (form < 3)
        return (size_t)snprintf(out, size, "p %.1f %%  model %.1f %%  rank %d", p, model,
                                (int)token->rank);
    return (size_t)snprintf(out, size, "p %.1f %%", p);
}

/* What is known of the token under the cursor, in one line where that can be: it changes at every
 * step of the cursor, and must not cover the text then. */
static bool token_facts(struct tui *t, char *out, size_t size)
{
    /* all; without the logarithm; without the faders too; the share alone */
    enum { FORMS = 4, WITH_FADERS = 2 };
    size_t i, len;
    char word[128], value[16];
    const struct turn *turn = scrollback_cursor(&t->scrollback, &i);

    if (turn == NULL || t->focus != FOCUS_TRANSCRIPT)
        return false;
    const char *text = turn_token_text(turn, i, &len);
    struct knobs knobs = turn->knobs;
    for (size_t k = 0; k < turn->n_moves && turn->moves[k].n <= (int32_t)i; k++)
        knobs.value[turn->moves[k].knob] = turn->moves[k].value;
    app_visible_text(text, len, false, word, sizeof word);
    for (int form = 0; form < FORMS; form++) {
        size_t at = (size_t)snprintf(out, size, "%s  ", len > 0 ? word : "(part of a character)");
        at += draw_facts(&turn->tokens[i], form, out + at, size - at);
        for (int k = 0; form < WITH_FADERS && k < DESK_FADERS && at < size; k++) {
            fader_value_text((enum knob)k, knobs.value[k], value);
            at += (size_t)snprintf(out + at, size - at, "%s%c%s", k == 0 ? "  " : " ",
                                   mark_letter((enum knob)k), value);
        }
        if (text_width(out, strlen(out)) <= t->layout.message.cols - 2)
            break;
    }
    return true;
}

/* A question, else a message, else what is known of the token under the cursor. */
void tui_choose_notice(struct tui *t, int64_t now_ns)
{
    const struct app *app = t->app;
    static const enum style styles[] = {
        [SAY_INFO] = STYLE_MESSAGE, [SAY_WARNING] = STYLE_WARNING, [SAY_ERROR] = STYLE_ERROR};

    t->notice[0] = '\0';
    t->notice_style = STYLE_MESSAGE;
    t->notice_until_ns = 0;
    if (t->question != NULL) {
        snprintf(t->notice, sizeof t->notice, "%s", t->question);
        t->notice_style = STYLE_WARNING;
    } else if (t->typed[0] != '\0' && t->layout.panel != PANEL_DESK) {
        snprintf(t->notice, sizeof t->notice, "%s %s▌", knob_traits[app->selected].label, t->typed);
    } else if (t->key_text[0] != '\0') {
        snprintf(t->notice, sizeof t->notice, "%s", t->key_text);
    } else if (app->message[0] != '\0' &&
               (app->message_until_ns == 0 || now_ns < app->message_until_ns)) {
        snprintf(t->notice, sizeof t->notice, "%s", app->message);
        t->notice_style = styles[app->severity];
        t->notice_until_ns = app->message_until_ns;
    } else if (!token_facts(t, t->notice, sizeof t->notice)) {
        t->notice[0] = '\0';
    }
}

int tui_draw_wrapped(struct canvas *c, struct rect area, enum style style, const char *text)
{
    struct wrap w;

    wrap_init(&w, area.cols);
    wrap_extend(&w, text, strlen(text));
    for (size_t i = 0; c != NULL && i < w.n && (int)i < area.rows; i++) {
        char *line = mem_strndup(text + w.rows[i].start, w.rows[i].end - w.rows[i].start);
        canvas_text(c, area.row + (int)i, area.col, area.cols, style, line);
        free(line);
    }
    int rows = (int)w.n;
    wrap_done(&w);
    return rows;
}

/* A notice longer than its line takes the last rows of the region above the input. */
static void draw_long_notice(struct tui *t)
{
    struct rect area = t->layout.transcript;
    struct rect text = {0, 1, area.rows, t->layout.cols - 2};
    int rows = tui_draw_wrapped(NULL, text, t->notice_style, t->notice);

    rows = rows < area.rows ? rows : area.rows;
    text.row = area.row + area.rows - rows;
    text.rows = rows;
    canvas_fill(t->canvas, (struct rect){text.row, 0, rows, t->layout.cols}, STYLE_TEXT);
    tui_draw_wrapped(t->canvas, text, t->notice_style, t->notice);
}

/* Whether the notice must stand above the input: the next frame that needs less draws all. */
bool tui_notice_is_long(const struct tui *t)
{
    return text_width(t->notice, strlen(t->notice)) > t->layout.message.cols - 2;
}

static const struct key_hint *hints_of(const struct tui *t)
{
    static const struct key_hint page[] = {
        {"Up/Down", "scroll"}, {"Space", "next page"}, {"q", "back"}, {NULL, NULL}};
    static const struct key_hint keys[] = {
        {"Up/Down", "scroll"}, {"any other key", "what it is"}, {"q", "back"}, {NULL, NULL}};
    static const struct key_hint presets[] = {
        {"Up/Down", "choose"}, {"Enter", "take it"}, {"Esc", "back"}, {NULL, NULL}};

    switch (t->overlay) {
    case OVERLAY_PAGE:
        return t->explains_keys ? keys : page;
    case OVERLAY_PRESETS:
        return presets;
    default:
        return keys_hints(t->focus, app_is_answering(t->app), t->app->control.paused);
    }
}

void tui_draw_bottom(struct tui *t)
{
    const struct layout *l = &t->layout;

    if (l->hints.rows == 0)
        return;
    hints_draw(t->canvas, l->hints, hints_of(t));
    if (l->message.row != l->hints.row)
        canvas_fill(t->canvas, l->message, STYLE_TEXT);
    if (t->notice[0] == '\0')
        return;
    if (tui_notice_is_long(t) && l->transcript.rows > 1) {
        draw_long_notice(t);
        return;
    }
    canvas_fill(t->canvas, l->message, STYLE_TEXT);
    canvas_text_cut(t->canvas, l->message.row, l->message.col + 1, l->message.cols - 2,
                    t->notice_style, t->notice);
}
