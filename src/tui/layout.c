#include "config.h"

#include "tui/layout.h"

enum {
    FADERS = 5,
    DICE_ROWS = 3, /* heading, bar, the word */
    SEED_ROWS = 1,
    CANDIDATES_MIN = 3,    /* heading and two of them */
    MESSAGE_ROWS = 44,     /* from here on the message has a row of its own */
    LARGE_PANEL_ROWS = 34, /* from here on faders have two rows, and the plot appears */
    PLOT_ROWS = 3,
    PLOT_ROWS_MAX = 7
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

static int panel_cols(int cols)
{
    if (cols <= 100)
        return LAYOUT_PANEL_SMALL;
    if (cols <= 140)
        return LAYOUT_PANEL_SMALL + (cols - 100) * (LAYOUT_PANEL_LARGE - LAYOUT_PANEL_SMALL) / 40;
    return least(LAYOUT_PANEL_LARGE + (cols - 140) / 4, 60);
}

/* Takes `rows` off the top of `area`; all of it when there are fewer. */
static struct rect take(struct rect *area, int rows)
{
    struct rect top = *area;

    top.rows = least(most(rows, 0), area->rows);
    area->row += top.rows;
    area->rows -= top.rows;
    return top;
}

static struct rect take_bottom(struct rect *area, int rows)
{
    struct rect bottom = *area;

    bottom.rows = least(most(rows, 0), area->rows);
    bottom.row = area->row + area->rows - bottom.rows;
    area->rows -= bottom.rows;
    return bottom;
}

/* Shares the panel out. Faders come first, then the dice, then candidates; the plot takes what a
 * large screen has over. */
static void lay_panel(struct layout *l, struct rect panel)
{
    l->large = panel.cols >= LAYOUT_PANEL_LARGE && panel.rows >= LARGE_PANEL_ROWS;
    l->faders = take(&panel, l->large ? 2 * FADERS : FADERS);
    if (!l->large && panel.rows >= SEED_ROWS + DICE_ROWS)
        l->seed = take(&panel, SEED_ROWS);
    if (panel.rows >= DICE_ROWS)
        l->dice = take_bottom(&panel, DICE_ROWS);
    if (l->large)
        l->plot =
            take_bottom(&panel, least(PLOT_ROWS + most(panel.rows - 24, 0) / 2, PLOT_ROWS_MAX));
    if (panel.rows >= CANDIDATES_MIN)
        l->candidates = panel;
}

struct layout layout_compute(int rows, int cols, enum panel_mode wished, int input_rows)
{
    struct layout l = {.rows = rows, .cols = cols, .panel = wished};
    struct rect area = {0, 0, rows, cols};

    if (wished == PANEL_DESK && (cols < LAYOUT_DESK_COLS || rows < LAYOUT_DESK_ROWS))
        l.panel = PANEL_STRIP;
    l.status = take(&area, rows >= 3 ? 1 : 0);
    l.hints = take_bottom(&area, rows >= 2 ? 1 : 0);
    l.input = take_bottom(&area, least(most(input_rows, 1), most(rows / 3, 1)));
    l.message = rows >= MESSAGE_ROWS ? take_bottom(&area, 1) : l.hints;
    if (l.panel != PANEL_BARE && area.rows >= 2)
        l.header = take(&area, l.panel == PANEL_DESK || rows >= LAYOUT_DESK_ROWS ? 1 : 0);
    if (l.panel == PANEL_STRIP && area.rows >= 2)
        l.strip = take_bottom(&area, 1);
    l.transcript = area;
    if (l.panel == PANEL_DESK) {
        struct rect panel = area;
        panel.cols = panel_cols(cols);
        panel.col = cols - panel.cols;
        l.divider = (struct rect){area.row, panel.col - 1, area.rows, 1};
        l.transcript.cols = l.divider.col;
        lay_panel(&l, panel);
    }
    return l;
}

int layout_text_width(const struct layout *l)
{
    return most(least(l->transcript.cols - LAYOUT_MARGIN - 1, LAYOUT_TEXT_MAX), 1);
}
