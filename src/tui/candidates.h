/* The candidates: the likeliest survivors with their share under the model and now, how many more
 * there are, and what each stage cut. */
#ifndef FADER_TUI_CANDIDATES_H
#define FADER_TUI_CANDIDATES_H

#include <stdbool.h>

#include "app/app.h"
#include "tui/canvas.h"

enum candidate_row_kind { CANDIDATE_HEADING, CANDIDATE_WORD, CANDIDATE_MORE, CANDIDATE_CUT };

/* What stands in a row: of CANDIDATE_WORD the index into view.candidates, of CANDIDATE_CUT into
 * view.stages. */
struct candidate_row {
    enum candidate_row_kind kind;
    int index;
};

enum { CANDIDATE_ROWS_MAX = 64 };

/* Shares `rows` rows (heading included) among survivors and cut sections; `wanted` survivors come
 * before examples of what was cut. `chosen` (an index, or -1) is kept in sight. Returns the rows
 * used. */
int candidates_plan(const struct view *view, int rows, int wanted, int chosen,
                    struct candidate_row out[CANDIDATE_ROWS_MAX]);

void candidates_draw(struct canvas *c, struct rect area, const struct app *app, bool large,
                     bool focused);

/* The candidate at a row of the screen, or -1. */
int candidates_hit(struct rect area, const struct app *app, bool large, bool focused, int row);

/* A heading in the panel: "─ text ─────── ". */
void panel_heading(struct canvas *c, int row, struct rect area, const char *text);

#endif
