#include "config.h"

#include "tui/dice.h"

#include <stdio.h>
#include <stdlib.h>

#include "tui/candidates.h"
#include "tui/faders.h"

enum {
    SIGN_FIRST = 0x2588,
    SIGN_ODD = 0x2592,
    SIGN_EVEN = 0x2591,
    SIGN_MARK = 0x25B2,
    SIGN_OPEN = 0x2595,
    SIGN_CLOSE = 0x258F
};
enum { BAR_REST = 8, BAR_MAX = 128 };

int dice_cells(const struct view *view, int cells, int *owner)
{
    double low = 0;
    int at = 0, mark = (int)(view->dice * cells), best = -1;

    for (int i = 0; i < view->n_listed; i++) {
        double high = low + view->candidates[i].c.now;
        while (at < cells && (at + 0.5) / cells < high) {
            owner[at] = i;
            if (view->candidates[i].c.id == view->pick &&
                (best < 0 || abs(at - mark) < abs(best - mark)))
                best = at;
            at++;
        }
        low = high;
    }
    while (at < cells)
        owner[at++] = -1;
    if (best >= 0)
        return best;
    return mark < cells ? mark : cells - 1;
}

static void draw_bar(struct canvas *c, int row, struct rect area, const struct view *view)
{
    int owner[BAR_MAX], cells = area.cols - BAR_REST, shade = 0;
    char number[16];

    if (cells > BAR_MAX)
        cells = BAR_MAX;
    if (cells < 1)
        return;
    int mark = dice_cells(view, cells, owner);
    canvas_sign(c, row, area.col + 1, SIGN_OPEN, STYLE_RULE);
    for (int i = 0; i < cells; i++) {
        if (i > 0 && (owner[i] != owner[i - 1] || owner[i] < 0))
            shade++;
        uint32_t sign = owner[i] == 0 ? SIGN_FIRST : shade % 2 == 1 ? SIGN_ODD : SIGN_EVEN;
        canvas_sign(c, row, area.col + 2 + i, sign, owner[i] >= 0 ? STYLE_BAR : STYLE_BAR_MODEL);
    }
    canvas_sign(c, row, area.col + 2 + mark, SIGN_MARK, STYLE_DICE);
    canvas_sign(c, row, area.col + 2 + cells, SIGN_CLOSE, STYLE_RULE);
    /* cut, not rounded: .999 is not 1 */
    snprintf(number, sizeof number, ".%02d", (int)(view->dice * 100));
    canvas_text_right(c, row, area.col + area.cols - 1, STYLE_TEXT, number);
}

/* The words of the pick, or NULL when it is not among those listed. */
static const struct view_candidate *picked(const struct view *view)
{
    for (int i = 0; i < view->n_candidates; i++) {
        if (view->candidates[i].c.id == view->pick)
            return &view->candidates[i];
    }
    return NULL;
}

static void draw_word(struct canvas *c, int row, struct rect area, const struct app *app)
{
    const struct view *view = &app->view;
    const struct view_candidate *pick = picked(view);
    char text[160], piece[VIEW_TEXT];
    int col = area.col + 1;

    if (pick != NULL) {
        app_visible_text(pick->text, pick->len, pick->eog, text, sizeof text);
    } else {
        size_t len =
            app->backend != NULL ? backend_piece(app->backend, view->pick, piece, sizeof piece) : 0;
        app_visible_text(piece, len < sizeof piece ? len : sizeof piece, false, text, sizeof text);
    }
    col += canvas_text(c, row, col, area.cols - 1, STYLE_DIM, view->drawn ? "said: " : "go on: ");
    col += canvas_text(c, row, col, area.col + area.cols - col, STYLE_DICE, text);
    canvas_format(c, row, col + 2, area.col + area.cols - col - 2, STYLE_DIM, "%.1f %%",
                  100.0 * view->pick_p);
}

void dice_draw(struct canvas *c, struct rect area, const struct app *app, bool large)
{
    char heading[80] = "dice", seed[48];

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows == 0)
        return;
    if (large) {
        faders_seed_text(app, seed, sizeof seed);
        snprintf(heading, sizeof heading, "dice ─ seed %s", seed);
    }
    panel_heading(c, area.row, area, heading);
    if (!app->has_view || area.rows < 3)
        return;
    if (app->view.greedy)
        canvas_text(c, area.row + 1, area.col + 1, area.cols - 1, STYLE_DIM,
                    "not thrown while greedy");
    else
        draw_bar(c, area.row + 1, area, &app->view);
    draw_word(c, area.row + 2, area, app);
}
