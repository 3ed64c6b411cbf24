#include "config.h"

#include "tui/candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/layout.h"
#include "tui/textwidth.h"

enum { SIGN_FULL = 0x2588, SIGN_MODEL = 0x2592, SIGN_RULE = 0x2500 };
enum { WANTED_SMALL = 5, WANTED_LARGE = 16 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool stage_cuts(const struct sampler_stage *s)
{
    return s->stage != STAGE_PENALTY && !s->skipped && s->changed > 0;
}

/* Examples of what `stage` cut: the index of the first one in view->candidates, and how many. */
static int find_examples(const struct view *view, enum stage stage, int *n)
{
    int first = -1;

    *n = 0;
    for (int i = view->n_listed; i < view->n_candidates; i++) {
        if (view->candidates[i].c.cut_by != (int32_t)stage)
            continue;
        if (first < 0)
            first = i;
        (*n)++;
    }
    return first;
}

int candidates_plan(const struct view *view, int rows, int wanted, int chosen,
                    struct candidate_row out[CANDIDATE_ROWS_MAX])
{
    int cuts = 0, n = 0, left = least(rows, CANDIDATE_ROWS_MAX) - 1;

    if (left < 0)
        return 0;
    out[n++] = (struct candidate_row){CANDIDATE_HEADING, 0};
    for (int i = 0; i < STAGE_COUNT; i++)
        cuts += stage_cuts(&view->stages[i]);
    wanted = least(wanted, view->n_listed);
    int more = view->n_survivors > wanted ? 1 : 0;
    if (left < cuts + least(wanted, 3) + more)
        cuts = 0;
    bool at_cut = chosen >= view->n_listed && cuts > 0; /* the chosen one is an example */
    int examples = at_cut ? least(cuts, left - cuts - 1) : least(cuts, left - cuts - wanted - more);
    examples = examples > 0 ? examples : 0;
    int listed = least(view->n_listed, left - cuts - examples);
    if (view->n_survivors > listed)
        listed = least(view->n_listed, left - cuts - examples - 1);
    listed = listed > 0 ? listed : 0;

    int first = chosen >= listed ? least(chosen - listed + 1, view->n_listed - listed) : 0;
    for (int i = 0; i < listed; i++)
        out[n++] = (struct candidate_row){CANDIDATE_WORD, first + i};
    if (view->n_survivors > listed && n <= left)
        out[n++] = (struct candidate_row){CANDIDATE_MORE, listed};
    int spare = left + 1 - n - cuts - examples;
    /* from the last cut back to the first: the way back up the waterfall */
    for (int i = STAGE_COUNT - 1; i >= 0 && cuts > 0; i--) {
        int available;
        if (!stage_cuts(&view->stages[i]))
            continue;
        out[n++] = (struct candidate_row){CANDIDATE_CUT, i};
        int at = find_examples(view, view->stages[i].stage, &available), last = at + available;
        int show = least(available, (examples > 0 ? 1 : 0) + (spare > 0 ? spare : 0));
        spare -= show - (examples > 0 ? 1 : 0);
        examples--;
        if (show > 0 && chosen >= at + show && chosen < last)
            at = chosen - show + 1;
        for (int k = 0; k < show && n <= left; k++)
            out[n++] = (struct candidate_row){CANDIDATE_WORD, at + k};
    }
    return n;
}

/* Columns of a row, from the panel's left edge: what a wider panel has over goes to the words and
 * bars. */
struct candidate_grid {
    int word, word_cols, bar, bar_cols, model_end, now_end;
};

static struct candidate_grid grid_of(int cols)
{
    int over = cols > LAYOUT_PANEL_SMALL ? cols - LAYOUT_PANEL_SMALL : 0;
    int words = 8 + over / 3, bars = 9 + over - over / 3;

    return (struct candidate_grid){1, words, 2 + words, bars, cols - 7, cols - 1};
}

static void word_text(const struct view_candidate *v, int cols, char *out, size_t size)
{
    app_visible_text(v->text, v->len, v->eog, out, size);
    size_t len = strlen(out);
    if (text_width(out, len) <= cols)
        return;
    size_t fits = text_fit(out, len, cols - 1);
    snprintf(out + fits, size - fits, "…");
}

static void draw_bar(struct canvas *c, int row, int col, int cols,
                     const struct sampler_candidate *k, double scale)
{
    int eighths = (int)lround(k->now / scale * cols * 8);
    int model = (int)lround(k->model / scale * cols);
    /* where the model gave more than the chain does now, its part is at least a cell */
    bool longer = k->model > k->now && model > eighths / 8;
    int full = longer ? least((eighths + 4) / 8, model - 1) : eighths / 8;

    canvas_line(c, row, col, full, SIGN_FULL, STYLE_BAR);
    if (longer) {
        canvas_line(c, row, col + full, model - full, SIGN_MODEL, STYLE_BAR_MODEL);
        return;
    }
    struct glyph part = {{glyphs_bar(c->glyphs, eighths % 8)}, 1};
    if (eighths % 8 > 0 && full < cols && part.points[0] != 0)
        canvas_put(c, row, col + full, &part, STYLE_BAR, 0);
}

static void draw_word(struct canvas *c, int row, struct rect area, const struct view_candidate *v,
                      double scale, bool chosen)
{
    struct candidate_grid g = grid_of(area.cols);
    bool cut = v->c.cut_by >= 0;
    char text[128], number[FORMAT_MAX];
    enum style style = chosen ? STYLE_FOCUS : cut ? STYLE_DIM : STYLE_TEXT;

    word_text(v, g.word_cols, text, sizeof text);
    canvas_text(c, row, area.col + g.word, g.word_cols, style, text);
    if (!cut)
        draw_bar(c, row, area.col + g.bar, g.bar_cols, &v->c, scale);
    format_share(v->c.model, number);
    canvas_text_right(c, row, area.col + g.model_end, STYLE_DIM, number);
    format_share(v->c.now, number);
    canvas_text_right(c, row, area.col + g.now_end - (cut ? 2 : 0), cut ? STYLE_DIM : style,
                      cut ? "-" : number);
}

void panel_heading(struct canvas *c, int row, struct rect area, const char *text)
{
    canvas_line(c, row, area.col, area.cols, SIGN_RULE, STYLE_RULE);
    if (*text == '\0')
        return;
    canvas_sign(c, row, area.col + 1, ' ', STYLE_RULE);
    int used = canvas_text(c, row, area.col + 2, area.cols - 4, STYLE_TITLE, text);
    canvas_sign(c, row, area.col + 2 + used, ' ', STYLE_RULE);
}

/* Text at the right end of a heading, with a blank before it. */
static void heading_end(struct canvas *c, int row, int end, const char *text)
{
    int width = text_width(text, strlen(text));

    canvas_line(c, row, end - width - 1, width + 1, ' ', STYLE_RULE);
    canvas_text_right(c, row, end, STYLE_DIM, text);
}

static void draw_heading(struct canvas *c, int row, struct rect area, const struct app *app)
{
    struct candidate_grid g = grid_of(area.cols);
    const struct view *view = &app->view;
    char text[160] = "next word", word[128];

    if (app->has_view && view->drawn) {
        const struct view_candidate *pick = NULL;
        for (int i = 0; i < view->n_candidates && pick == NULL; i++)
            pick = view->candidates[i].c.id == view->pick ? &view->candidates[i] : NULL;
        if (pick != NULL)
            word_text(pick, g.word_cols, word, sizeof word);
        snprintf(text, sizeof text, "drawn%s%s", pick != NULL ? ": " : "",
                 pick != NULL ? word : "");
    }
    panel_heading(c, row, area, text);
    heading_end(c, row, area.col + g.model_end + 1, "model ");
    heading_end(c, row, area.col + g.now_end, "now ");
}

static void draw_more(struct canvas *c, int row, struct rect area, const struct view *view,
                      const struct candidate_row *rows, int n)
{
    struct candidate_grid g = grid_of(area.cols);
    char count[FORMAT_MAX], number[FORMAT_MAX];
    double rest = 1.0;
    int shown = 0;

    for (int i = 0; i < n; i++) {
        if (rows[i].kind == CANDIDATE_WORD && rows[i].index < view->n_listed) {
            rest -= view->candidates[rows[i].index].c.now;
            shown++;
        }
    }
    format_count(view->n_survivors - shown, count);
    canvas_format(c, row, area.col + g.word, area.cols - 8, STYLE_DIM, "… %s more", count);
    format_share(rest > 0 ? rest : 0, number);
    canvas_text_right(c, row, area.col + g.now_end, STYLE_DIM, number);
}

static void draw_cut(struct canvas *c, int row, struct rect area, const struct view *view,
                     const struct sampler_stage *stage)
{
    char count[FORMAT_MAX], text[64];

    format_count(stage->changed, count);
    /* the stages bear the names of their knobs, but a temperature that cuts is the greedy guard */
    const char *name = view->greedy && stage->stage == STAGE_TEMPERATURE
                           ? "greedy"
                           : knob_traits[stage->stage].label;
    snprintf(text, sizeof text, "%s cut %s", name, count);
    panel_heading(c, row, area, text);
    if (!isfinite(stage->cut_share))
        return;
    snprintf(text, sizeof text, "%4.1f %%", 100.0 * stage->cut_share);
    heading_end(c, row, area.col + area.cols, text);
}

static int plan_for(const struct app *app, struct rect area, bool large, bool focused,
                    struct candidate_row rows[CANDIDATE_ROWS_MAX])
{
    return candidates_plan(&app->view, area.rows, large ? WANTED_LARGE : WANTED_SMALL,
                           focused ? app->candidate : -1, rows);
}

void candidates_draw(struct canvas *c, struct rect area, const struct app *app, bool large,
                     bool focused)
{
    struct candidate_row rows[CANDIDATE_ROWS_MAX];
    const struct view *view = &app->view;
    double scale = 1e-9;

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows == 0)
        return;
    if (!app->has_view) {
        draw_heading(c, area.row, area, app);
        return;
    }
    int n = plan_for(app, area, large, focused, rows);
    for (int i = 0; i < view->n_listed; i++)
        scale = fmax(scale, fmax(view->candidates[i].c.model, view->candidates[i].c.now));
    for (int i = 0; i < n; i++) {
        int row = area.row + i;
        switch (rows[i].kind) {
        case CANDIDATE_HEADING:
            draw_heading(c, row, area, app);
            break;
        case CANDIDATE_WORD:
            draw_word(c, row, area, &view->candidates[rows[i].index], scale,
                      focused && rows[i].index == app->candidate);
            break;
        case CANDIDATE_MORE:
            draw_more(c, row, area, view, rows, n);
            break;
        case CANDIDATE_CUT:
            draw_cut(c, row, area, view, &view->stages[rows[i].index]);
            break;
        }
    }
}

int candidates_hit(struct rect area, const struct app *app, bool large, bool focused, int row)
{
    struct candidate_row rows[CANDIDATE_ROWS_MAX];

    if (!app->has_view || row < area.row || row >= area.row + area.rows)
        return -1;
    int n = plan_for(app, area, large, focused, rows);
    int i = row - area.row;
    return i < n && rows[i].kind == CANDIDATE_WORD ? rows[i].index : -1;
}
