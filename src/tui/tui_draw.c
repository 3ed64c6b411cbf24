/* A frame: lays the screen out, draws the regions that changed, hands the canvas to curses. */
#include "config.h"

#include "tui/tui_impl.h"

#include <math.h>
#include <string.h>

#include "tui/candidates.h"
#include "tui/dice.h"
#include "tui/faders.h"
#include "tui/plot.h"
#include "tui/status.h"
#include "tui/textwidth.h"

enum { SIGN_DIVIDER = 0x2502, MATCH_ROWS = 6 };

static const char empty_text[] = "Ask something, or press F2 and choose a demonstration.";

/* ---- the transcript ------------------------------------------------------------------------- */

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
    tui_draw_wrapped(t->canvas, text, STYLE_DIM, empty_text);
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

static struct panel_hand hand_of(const struct tui *t)
{
    struct panel_hand hand = {t->app->control.version, t->focus, t->app->selected,
                              t->app->candidate, ""};

    memcpy(hand.typed, t->typed, strlen(t->typed));
    return hand;
}

/* While words stream by, the numbers are redrawn ten times a second; at once when a hand did
 * something. */
static bool panel_is_due(const struct tui *t, const struct panel_hand *hand, int64_t now)
{
    bool streams = app_is_answering(t->app) && !t->app->control.paused;

    if (t->anew || memcmp(hand, &t->panel_hand, sizeof *hand) != 0)
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

    const struct panel_hand hand = hand_of(t);

    if (!panel_is_due(t, &hand, now))
        return;
    t->panel_ns = now;
    t->panel_hand = hand;
    t->changed &= ~(unsigned)CHANGE_DESK;
    if (l->panel == PANEL_STRIP)
        faders_draw_strip(t->canvas, l->strip, t->app, l->header.rows == 0,
                          t->focus == FOCUS_FADERS);
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

static void lay_out(struct tui *t, struct input_picture *input, int64_t now_ns)
{
    int rows, cols;

    terminal_size(&rows, &cols);
    tui_lay_input(input, cols);
    struct layout l = layout_compute(rows, cols, t->panel, (int)input->n);
    if (rows != t->canvas->rows || cols != t->canvas->cols) {
        canvas_resize(t->canvas, rows, cols);
        t->anew = true;
    }
    if (memcmp(&l, &t->layout, sizeof l) != 0)
        t->anew = true;
    t->layout = l;
    tui_choose_notice(t, now_ns);
    if (t->notice_was_long)
        t->anew = true;
    t->notice_was_long = tui_notice_is_long(t);
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

    lay_out(t, &input, now_ns);
    scrollback_sync(&t->scrollback, app->conversation, app_is_answering(app) ? app->answer : NULL);
    status_draw(t->canvas, t->layout.status, app);
    if (t->overlay != OVERLAY_NONE) {
        draw_overlay(t);
        t->changed &= ~(unsigned)CHANGE_DESK;
    } else {
        header_draw(t->canvas, &t->layout, app, t->focus, scrollback_below(&t->scrollback));
        draw_transcript(t);
        draw_panel(t, now_ns);
        if (t->matches != NULL)
            draw_matches(t);
    }
    tui_draw_bottom(t);
    tui_draw_input(t, &input);
    bool typing = t->focus == FOCUS_INPUT && t->overlay == OVERLAY_NONE && t->question == NULL;
    int row = t->layout.input.row + (int)(input.cursor_row - input.top);
    screen_flush(&t->screen, t->canvas, &t->styles, typing ? row : -1,
                 t->layout.input.col + INPUT_MARGIN + input.cursor_column);
    /* what the panel has put off stays to be drawn */
    t->changed &= (unsigned)CHANGE_DESK;
    t->anew = t->urgent = false;
    t->dirty = false;
}
