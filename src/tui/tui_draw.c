/* A frame: lays the screen out, draws the regions that changed, hands the canvas to curses. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tui/candidates.h"
#include "tui/dice.h"
#include "tui/faders.h"
#include "tui/glyphs.h"
#include "tui/input.h"
#include "tui/plot.h"
#include "tui/status.h"
#include "tui/textwidth.h"
#include "tui/tui_impl.h"

enum { INPUT_MARGIN = 1, SIGN_DIVIDER = 0x2502, PANEL_EVERY_NS = 100000000, MATCH_ROWS = 6 };

static const char empty_text[] = "Ask something, or press F2 and choose a demonstration.";

/* ---- the input line ------------------------------------------------------------------------- */

struct input_picture {
    struct input_row rows[INPUT_ROWS_MAX];
    size_t n, cursor_row, top;
    int cursor_column;
};

static void lay_input(struct tui *t, struct input_picture *p, int cols)
{
    int width = cols - INPUT_MARGIN - 1;

    (void)t;
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

static void draw_input(struct tui *t, const struct input_picture *p)
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

/* ---- the transcript ------------------------------------------------------------------------- */

static void draw_wrapped(struct canvas *c, struct rect area, enum style style, const char *text)
{
    struct wrap w;

    wrap_init(&w, area.cols);
    wrap_extend(&w, text, strlen(text));
    for (size_t i = 0; i < w.n && (int)i < area.rows; i++) {
        char *line = mem_strndup(text + w.rows[i].start, w.rows[i].end - w.rows[i].start);
        canvas_text(c, area.row + (int)i, area.col, area.cols, style, line);
        free(line);
    }
    wrap_done(&w);
}

static void draw_empty(struct tui *t)
{
    struct rect area = t->layout.transcript, text;
    char name[80];

    canvas_fill(t->canvas, area, STYLE_TEXT);
    text = (struct rect){area.row + (area.rows > 4 ? area.rows / 3 : 0), area.col + LAYOUT_MARGIN,
                         area.rows, area.cols - LAYOUT_MARGIN - 1};
    text.rows = area.row + area.rows - text.row;
    if (text.cols < 8)
        return;
    draw_wrapped(t->canvas, text, STYLE_DIM, empty_text);
    if (t->app->state != APP_LOADING || text.rows < 5)
        return;
    status_model_name(t->app, name, sizeof name);
    int cells = text.cols < 30 ? text.cols : 30;
    int done = (int)lround(t->app->load_share * cells);
    canvas_format(t->canvas, text.row + 3, text.col, text.cols, STYLE_DIM, "loading %s", name);
    canvas_line(t->canvas, text.row + 4, text.col, cells, 0x2591, STYLE_BAR_MODEL);
    canvas_line(t->canvas, text.row + 4, text.col, done < cells ? done : cells, 0x2588, STYLE_BAR);
}

static void draw_transcript(struct tui *t)
{
    char speaker[80];

    if (t->scrollback.n == 0) {
        draw_empty(t);
        scrollback_touch(&t->scrollback);
        return;
    }
    status_speaker(t->app, speaker, sizeof speaker);
    const struct scrollback_names names = {"you", speaker};
    scrollback_draw(&t->scrollback, t->canvas, &names);
}

/* Completions, in columns, over the last rows of the transcript. */
static void draw_matches(struct tui *t)
{
    struct rect area = t->layout.transcript;
    int widest = 1;

    area.cols = t->layout.cols;
    for (size_t i = 0; i < t->n_matches; i++) {
        int w = text_width(t->matches[i], strlen(t->matches[i]));
        widest = w > widest ? w : widest;
    }
    int columns = (area.cols - 2) / (widest + 2);
    columns = columns > 1 ? columns : 1;
    int rows = ((int)t->n_matches + columns - 1) / columns;
    int shown = rows < MATCH_ROWS ? rows : MATCH_ROWS;
    shown = shown < area.rows ? shown : area.rows;
    area.row += area.rows - shown;
    area.rows = shown;
    canvas_fill(t->canvas, area, STYLE_TEXT);
    for (int i = 0; i < (int)t->n_matches && i / columns < shown; i++) {
        if (i == shown * columns - 1 && (int)t->n_matches > shown * columns) {
            canvas_format(t->canvas, area.row + shown - 1,
                          area.col + 1 + (i % columns) * (widest + 2), widest, STYLE_DIM,
                          "… %d more", (int)t->n_matches - i);
            return;
        }
        canvas_text(t->canvas, area.row + i / columns, area.col + 1 + (i % columns) * (widest + 2),
                    widest, STYLE_KEY, t->matches[i]);
    }
}

/* ---- the panel ------------------------------------------------------------------------------ */

/* While words stream by, the numbers are redrawn ten times a second; at once when a knob was moved.
 */
static bool panel_is_due(struct tui *t, int64_t now)
{
    bool streams = app_is_answering(t->app) && !t->app->control.paused;

    if (t->anew || t->urgent || t->app->control.version != t->panel_version)
        return true;
    return (t->changed & CHANGE_DESK) != 0 && (!streams || now - t->panel_ns >= PANEL_EVERY_NS);
}

static const struct turn *shown_answer(const struct app *app)
{
    const struct turn *turn =
        app->answer != NULL ? app->answer : conversation_leaf(app->conversation);

    while (turn != NULL && turn->role != ROLE_ASSISTANT)
        turn = turn->parent;
    return turn;
}

static void draw_panel(struct tui *t, int64_t now)
{
    const struct layout *l = &t->layout;
    const struct faders_look look = {l->large, t->focus == FOCUS_FADERS,
                                     t->typed[0] != '\0' ? t->typed : NULL};

    if (!panel_is_due(t, now))
        return;
    t->panel_ns = now;
    t->panel_version = t->app->control.version;
    t->changed &= ~(unsigned)CHANGE_DESK;
    if (l->panel == PANEL_STRIP)
        faders_draw_strip(t->canvas, l->strip, t->app, t->focus == FOCUS_FADERS);
    if (l->panel != PANEL_DESK)
        return;
    for (int r = 0; r < l->divider.rows; r++)
        canvas_sign(t->canvas, l->divider.row + r, l->divider.col, SIGN_DIVIDER, STYLE_RULE);
    faders_draw(t->canvas, l->faders, t->app, &look);
    faders_draw_seed(t->canvas, l->seed, t->app);
    candidates_draw(t->canvas, l->candidates, t->app, l->large, t->focus == FOCUS_CANDIDATES);
    if (l->plot.rows > 0)
        plot_draw(t->canvas, l->plot, shown_answer(t->app));
    dice_draw(t->canvas, l->dice, t->app, l->large);
}

/* ---- the lines below ------------------------------------------------------------------------ */

/* What is known of the token under the cursor. */
static bool token_facts(struct tui *t, char *out, size_t size)
{
    size_t i, len;
    char word[128], value[16];
    const struct turn *turn = scrollback_cursor(&t->scrollback, &i);

    if (turn == NULL || t->focus != FOCUS_TRANSCRIPT)
        return false;
    const struct answer_token *token = &turn->tokens[i];
    const char *text = turn_token_text(turn, i, &len);
    struct knobs knobs = turn->knobs;
    for (size_t k = 0; k < turn->n_moves && turn->moves[k].n <= (int32_t)i; k++)
        knobs.value[turn->moves[k].knob] = turn->moves[k].value;
    app_visible_text(text, len, false, word, sizeof word);
    size_t at = (size_t)snprintf(out, size, "%s  ", len > 0 ? word : "(part of a character)");
    if (token->rank < 0)
        at += (size_t)snprintf(out + at, size - at, "picked by hand");
    else
        at += (size_t)snprintf(out + at, size - at, "p %.1f %%  model %.1f %% (ln %.2f)  rank %d",
                               100.0 * (double)token->p, 100.0 * exp((double)token->logprob),
                               (double)token->logprob, (int)token->rank);
    for (int k = 0; k < DESK_FADERS && at < size; k++) {
        fader_value_text((enum knob)k, knobs.value[k], value);
        at += (size_t)snprintf(out + at, size - at, "  %s %s", knob_traits[k].label, value);
    }
    return true;
}

static void draw_bottom(struct tui *t, int64_t now)
{
    const struct layout *l = &t->layout;
    char facts[512];

    if (l->hints.rows == 0)
        return;
    hints_draw(t->canvas, l->hints, t->app, t->focus);
    if (l->message.row != l->hints.row)
        canvas_fill(t->canvas, l->message, STYLE_TEXT);
    bool asked = t->question != NULL;
    if (asked || (token_facts(t, facts, sizeof facts) &&
                  !message_draw(t->canvas, l->message, t->app, now))) {
        canvas_fill(t->canvas, l->message, STYLE_TEXT);
        canvas_text(t->canvas, l->message.row, l->message.col + 1, l->message.cols - 2,
                    asked ? STYLE_WARNING : STYLE_MESSAGE, asked ? t->question : facts);
        return;
    }
    message_draw(t->canvas, l->message, t->app, now);
}

/* ---- the frame ------------------------------------------------------------------------------ */

struct rect tui_overlay_area(const struct tui *t)
{
    struct rect area = t->layout.transcript;

    area.col = 0;
    area.cols = t->layout.cols;
    if (t->layout.header.rows > 0) {
        area.row = t->layout.header.row;
        area.rows += t->layout.header.rows;
    }
    return area;
}

static void lay_out(struct tui *t, struct input_picture *input)
{
    int rows, cols;

    terminal_size(&rows, &cols);
    lay_input(t, input, cols);
    struct layout l = layout_compute(rows, cols, t->panel, (int)input->n);
    if (rows != t->canvas->rows || cols != t->canvas->cols) {
        canvas_resize(t->canvas, rows, cols);
        t->anew = true;
    }
    if (memcmp(&l, &t->layout, sizeof l) != 0)
        t->anew = true;
    t->layout = l;
    t->canvas->glyphs = t->glyphs;
    if (input->cursor_row >= (size_t)l.input.rows)
        input->top = input->cursor_row - (size_t)l.input.rows + 1;
    if (t->anew) {
        canvas_fill(t->canvas, (struct rect){0, 0, rows, cols}, STYLE_TEXT);
        scrollback_touch(&t->scrollback);
        app_set_candidates(t->app, l.candidates.rows > 0 ? VIEW_MAX : 1);
    }
    scrollback_place(&t->scrollback, l.transcript, layout_text_width(&l));
}

static void draw_overlay(struct tui *t)
{
    if (t->overlay == OVERLAY_PAGE)
        page_draw(&t->page, t->canvas, tui_overlay_area(t));
    else
        picker_draw(&t->picker, t->canvas, tui_overlay_area(t));
}

void tui_draw(struct tui *t, int64_t now_ns)
{
    struct input_picture input = {.top = 0};
    struct app *app = t->app;

    lay_out(t, &input);
    if (t->changed & CHANGE_PATH)
        scrollback_touch(&t->scrollback);
    scrollback_sync(&t->scrollback, app->conversation, app_is_answering(app) ? app->answer : NULL);
    status_draw(t->canvas, t->layout.status, app);
    if (t->overlay != OVERLAY_NONE) {
        draw_overlay(t);
    } else {
        header_draw(t->canvas, &t->layout, app, t->focus, scrollback_below(&t->scrollback));
        draw_transcript(t);
        draw_panel(t, now_ns);
        if (t->matches != NULL)
            draw_matches(t);
    }
    draw_bottom(t, now_ns);
    draw_input(t, &input);
    bool typing = t->focus == FOCUS_INPUT && t->overlay == OVERLAY_NONE && t->question == NULL;
    int row = t->layout.input.row + (int)(input.cursor_row - input.top);
    screen_flush(&t->screen, t->canvas, &t->styles, typing ? row : -1,
                 t->layout.input.col + INPUT_MARGIN + input.cursor_column);
    /* what the panel has put off stays to be drawn */
    t->changed &= (unsigned)CHANGE_DESK;
    t->anew = t->urgent = false;
    t->dirty = false;
}
