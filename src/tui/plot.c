#include "config.h"

#include "tui/plot.h"

#include <math.h>
#include <stdio.h>

#include "tui/candidates.h"

enum { LEVELS = 8 }; /* ▁ ... █ in a cell */
static const double least_scale = 8.0;

static double bits_of(const struct answer_token *t)
{
    double bits = -(double)t->logprob / log(2.0);

    return isfinite(bits) && bits > 0 && t->rank >= 0 ? bits : 0;
}

static enum style style_of(double bits)
{
    return bits < 1   ? STYLE_HEAT_0
           : bits < 3 ? STYLE_HEAT_1
           : bits < 6 ? STYLE_HEAT_2
                      : STYLE_HEAT_3;
}

/* A column of `rows` cells, filled from the bottom; a token without surprise still
 * leaves a trace. */
static void draw_column(struct canvas *c, struct rect area, int col, double bits, double scale)
{
    int levels = (int)lround(bits / scale * area.rows * LEVELS);

    if (levels < 1)
        levels = 1;
    for (int r = area.rows - 1; r >= 0 && levels > 0; r--) {
        int part = levels < LEVELS ? levels : LEVELS;
        canvas_sign(c, area.row + r, area.col + col, 0x2580u + (uint32_t)part, style_of(bits));
        levels -= part;
    }
}

void plot_draw(struct canvas *c, struct rect area, const struct turn *answer)
{
    struct rect plot = {area.row + 1, area.col + 1, area.rows - 1, area.cols - 2};
    double highest = 0, sum = 0;
    char heading[64] = "surprise";

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows < 2 || plot.cols < 1)
        return;
    size_t n = answer != NULL ? answer->n_tokens : 0;
    size_t shown = n < (size_t)plot.cols ? n : (size_t)plot.cols;
    for (size_t i = n - shown; i < n; i++) {
        double bits = bits_of(&answer->tokens[i]);
        highest = fmax(highest, bits);
        sum += bits;
    }
    if (shown > 0)
        snprintf(heading, sizeof heading, "surprise: mean %.1f, most %.1f bits",
                 sum / (double)shown, highest);
    panel_heading(c, area.row, area, heading);
    for (size_t i = 0; i < shown; i++)
        draw_column(c, plot, (int)i, bits_of(&answer->tokens[n - shown + i]),
                    fmax(highest, least_scale));
}
