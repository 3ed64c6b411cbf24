#include "config.h"

#include "tui/faders.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/marks.h"
#include "tui/format.h"
#include "tui/textwidth.h"

enum {
    SIGN_SELECTED = 0x25B8,
    SIGN_TRACK = 0x2500,
    SIGN_HANDLE = 0x25CF,
    SIGN_NOTCH = 0x253F,
    SIGN_BEYOND = 0x25B6
};

enum {
    LABEL_COL = 1,
    TRACK_COL = 8,
    SMALL_REST = 21, /* columns of a small panel that are not track: 32 - 11 */
    LARGE_REST = 23,
    LARGE_TRACK_COL = 12,
    END_LABEL = 3,
    KEEPS_MAX = FORMAT_MAX + 8
};

/* Where the parts of a row stand, from the panel's left edge. */
struct fader_grid {
    int track, track_cols, value, keeps;
};

static struct fader_grid grid_of(int cols, bool large)
{
    if (large) {
        int track = cols - LARGE_REST;
        return (struct fader_grid){LARGE_TRACK_COL, track,
                                   LARGE_TRACK_COL + track + 1 + END_LABEL + 1, cols - 2};
    }
    int track = cols - SMALL_REST;
    return (struct fader_grid){TRACK_COL, track, TRACK_COL + track + 1, cols - 4};
}

static const char *const end_labels[KNOB_COUNT][2] = {
    [KNOB_REPETITION_PENALTY] = {"1.0", "1.5"},
    [KNOB_TEMPERATURE] = {"0", "2"},
    [KNOB_TOP_K] = {"1", "off"},
    [KNOB_TOP_P] = {"0", "1"},
    [KNOB_MIN_P] = {"off", "1"},
    [KNOB_REPEAT_LAST_N] = {"", ""},
};

static int travel_cell(double travel, int cells)
{
    int cell = (int)lround(travel * (cells - 1));

    return cell < 0 ? 0 : cell >= cells ? cells - 1 : cell;
}

static void draw_track(struct canvas *c, int row, int col, int cols, const struct app *app,
                       enum knob knob, bool idle)
{
    const struct desk *d = &app->desk;
    bool beyond;
    double at = fader_travel(knob, d->now.value[knob], d->n_vocab, &beyond);
    double notch = fader_travel(knob, d->preset.value[knob], d->n_vocab, NULL);
    enum style handle = idle ? STYLE_DIM : desk_knob_changed(d, knob) ? STYLE_ACCENT : STYLE_HANDLE;
    enum style track = idle ? STYLE_DIM : STYLE_FADER;

    if (c->glyphs == GLYPHS_ASCII) {
        cols--; /* the brackets stand beside the track; a blank goes before the value */
        canvas_sign(c, row, col - 1, '[', track);
        canvas_sign(c, row, col + cols, ']', track);
    }
    canvas_line(c, row, col, cols, SIGN_TRACK, track);
    canvas_sign(c, row, col + travel_cell(notch, cols), SIGN_NOTCH, track);
    canvas_sign(c, row, col + travel_cell(at, cols), beyond ? SIGN_BEYOND : SIGN_HANDLE, handle);
}

/* What this knob's stage leaves: "36 ids", "10.7 b", "50"; "" when it is not known. */
static void keeps_text(const struct app *app, enum knob knob, bool large, char out[KEEPS_MAX])
{
    const struct sampler_stage *stage = NULL;

    out[0] = '\0';
    if (fader_is_idle(&app->desk, knob)) {
        snprintf(out, KEEPS_MAX, "%s", large ? "" : "unused");
        return;
    }
    for (int i = 0; app->has_view && i < STAGE_COUNT; i++) {
        if (app->view.stages[i].stage == (enum stage)knob)
            stage = &app->view.stages[i];
    }
    if (stage == NULL || (stage->kept == 0 && knob != KNOB_REPETITION_PENALTY))
        return;
    if (knob == KNOB_REPETITION_PENALTY) {
        char count[FORMAT_MAX];
        format_count(stage->skipped ? 0 : stage->changed, count);
        snprintf(out, KEEPS_MAX, "%s ids", count);
    } else if (knob == KNOB_TEMPERATURE) {
        if (!app->view.greedy && isfinite(stage->entropy))
            snprintf(out, KEEPS_MAX, "%.1f b", stage->entropy);
    } else {
        format_count(stage->kept, out);
    }
}

/* The number ends at column `end`, its unit stands behind; it gives way to the value
 * on its left. */
static void draw_keeps(struct canvas *c, int row, int from, int end, int limit, const char *text)
{
    const char *unit = strchr(text, ' ');
    int digits = (int)(unit != NULL ? unit - text : (long)strlen(text));
    int col = end - digits > from ? end - digits : from;

    canvas_text(c, row, col, limit - col, STYLE_DIM, text);
}

static enum style row_style(const struct app *app, enum knob knob, bool focused, bool idle)
{
    if (focused && app->selected == knob)
        return STYLE_FOCUS;
    return idle ? STYLE_DIM : STYLE_TEXT;
}

static void value_text(const struct app *app, enum knob knob, const struct faders_look *look,
                       char *out, size_t size)
{
    char value[16];

    if (look->typed != NULL && app->selected == knob) {
        snprintf(out, size, "%s▌", look->typed);
        return;
    }
    fader_value_text(knob, app->desk.now.value[knob], value);
    snprintf(out, size, "%s", app->desk.fader[knob].muted ? "muted" : value);
}

/* The second row of a large fader: where the value came from, and what the preset has. */
static void draw_origin(struct canvas *c, int row, struct rect area, const struct app *app,
                        enum knob knob)
{
    char notch[16], text[64];
    const struct desk *d = &app->desk;

    fader_value_text(knob, d->preset.value[knob], notch);
    if (fader_is_idle(d, knob))
        snprintf(text, sizeof text, "not used while greedy");
    else if (desk_knob_changed(d, knob))
        snprintf(text, sizeof text, "%s (%s %s)", origin_name(d->fader[knob].origin),
                 origin_name(d->fader[knob].notch_origin), notch);
    else
        snprintf(text, sizeof text, "%s", origin_name(d->fader[knob].origin));
    canvas_text(c, row, area.col + TRACK_COL, area.cols - TRACK_COL - 8, STYLE_DIM, text);
}

static void draw_fader(struct canvas *c, int row, struct rect area, const struct app *app,
                       enum knob knob, const struct faders_look *look)
{
    struct fader_grid g = grid_of(area.cols, look->large);
    bool idle = fader_is_idle(&app->desk, knob) || app->desk.fader[knob].muted;
    bool typing = look->typed != NULL && app->selected == knob;
    enum style style = row_style(app, knob, look->focused, idle);
    char value[48], keeps[KEEPS_MAX];

    if (app->selected == knob)
        canvas_sign(c, row, area.col, SIGN_SELECTED, look->focused ? STYLE_FOCUS : STYLE_DIM);
    canvas_text(c, row, area.col + LABEL_COL, TRACK_COL - LABEL_COL - 1, style,
                knob_traits[knob].label);
    draw_track(c, row, area.col + g.track, g.track_cols, app, knob, idle);
    value_text(app, knob, look, value, sizeof value);
    int end = area.col + g.value +
              canvas_text(c, row, area.col + g.value, area.cols - g.value,
                          typing                                ? STYLE_FOCUS
                          : idle                                ? STYLE_DIM
                          : desk_knob_changed(&app->desk, knob) ? STYLE_ACCENT
                                                                : STYLE_TEXT,
                          value);
    keeps_text(app, knob, look->large, keeps);
    if (!look->large) {
        draw_keeps(c, row, end + 1, area.col + g.keeps, area.col + area.cols, keeps);
        return;
    }
    canvas_text_right(c, row, area.col + g.track - 1, STYLE_DIM, end_labels[knob][0]);
    canvas_text(c, row, area.col + g.track + g.track_cols + 1, END_LABEL, STYLE_DIM,
                end_labels[knob][1]);
    draw_origin(c, row + 1, area, app, knob);
    canvas_text_right(c, row + 1, area.col + area.cols - 1, STYLE_DIM, keeps);
}

void faders_draw(struct canvas *c, struct rect area, const struct app *app,
                 const struct faders_look *look)
{
    enum knob rows[DESK_FADERS];
    int step = look->large ? 2 : 1;

    canvas_fill(c, area, STYLE_TEXT);
    desk_rows(&app->desk, rows);
    for (int i = 0; i < DESK_FADERS && (i + 1) * step <= area.rows; i++)
        draw_fader(c, area.row + i * step, area, app, rows[i], look);
}

void faders_seed_text(const struct app *app, char *out, size_t size)
{
    if (app->seed_kept)
        snprintf(out, size, "%u kept", (unsigned)app->kept_seed);
    else if (app->last_request > 0)
        snprintf(out, size, "%u", (unsigned)app->seed);
    else
        snprintf(out, size, "new each time");
}

void faders_draw_seed(struct canvas *c, struct rect area, const struct app *app)
{
    char seed[48], bits[FORMAT_MAX];

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows == 0)
        return;
    faders_seed_text(app, seed, sizeof seed);
    int used = canvas_text(c, area.row, area.col + LABEL_COL, area.cols, STYLE_TEXT, "seed ");
    used += canvas_text(c, area.row, area.col + LABEL_COL + used, area.cols - used - 1, STYLE_DIM,
                        seed);
    if (!app->has_view || !isfinite(app->view.entropy))
        return;
    snprintf(bits, sizeof bits, "%.1f b", app->view.entropy);
    draw_keeps(c, area.row, area.col + LABEL_COL + used + 1, area.col + area.cols - 4,
               area.col + area.cols, bits);
}

/* The strip in its forms, the most generous first: with the preset's name, with "temp 1.60" or
 * "T1.60", with so many columns between them, with how many words are left ("→ 39 words", "→ 39")
 * or without. The last one packs: "T1.6K50P.9M-". */
enum strip_left { LEFT_NONE, LEFT_NUMBER, LEFT_WORDS };
struct strip_form {
    bool preset, labels;
    int gap;
    enum strip_left left;
    bool packed;
};
static const struct strip_form strip_forms[] = {
    {true, true, 2, LEFT_WORDS, false},   {false, true, 2, LEFT_WORDS, false},
    {false, true, 1, LEFT_NUMBER, false}, {false, false, 1, LEFT_WORDS, false},
    {false, false, 1, LEFT_NONE, false},  {false, false, 0, LEFT_NONE, true},
};

/* "0.90" is ".90" here, and ".9" where every column counts. */
static void strip_value(const struct app *app, enum knob knob, bool packed, char out[16])
{
    char value[16];

    fader_value_text(knob, app->desk.now.value[knob], value);
    if (app->desk.fader[knob].muted)
        snprintf(value, sizeof value, packed ? "-" : "mute");
    else if (packed && strcmp(value, "off") == 0)
        snprintf(value, sizeof value, "-");
    size_t len = strlen(value);
    while (packed && strchr(value, '.') != NULL && (value[len - 1] == '0' || value[len - 1] == '.'))
        value[--len] = '\0';
    snprintf(out, 16, "%s", value[0] == '0' && value[1] == '.' ? value + 1 : value);
}

static enum style strip_style(const struct app *app, enum knob knob, bool here)
{
    if (here)
        return STYLE_FOCUS;
    if (fader_is_idle(&app->desk, knob) || app->desk.fader[knob].muted)
        return STYLE_DIM;
    return desk_knob_changed(&app->desk, knob) ? STYLE_ACCENT : STYLE_TEXT;
}

/* Draws one form (c NULL: only measures); returns its columns. */
static int strip_form_draw(struct canvas *c, struct rect area, const struct app *app,
                           const struct strip_form *form, bool focused)
{
    enum knob rows[DESK_FADERS];
    char text[128], value[16], left[FORMAT_MAX];
    int col = 1;

    desk_rows(&app->desk, rows);
    if (form->preset) {
        snprintf(text, sizeof text, "%s%s", app->desk.preset_name,
                 desk_is_changed(&app->desk) ? "*" : "");
        if (c != NULL)
            canvas_text(c, area.row, area.col + col, area.cols - col, STYLE_TITLE, text);
        col += text_width(text, strlen(text)) + 2;
    }
    for (int i = 0; i < DESK_FADERS; i++) {
        bool here = focused && app->selected == rows[i];
        if (form->labels)
            snprintf(text, sizeof text, "%s ", knob_traits[rows[i]].label);
        else
            snprintf(text, sizeof text, "%c", mark_letter(rows[i]));
        strip_value(app, rows[i], form->packed, value);
        if (c != NULL) {
            int at = col + canvas_text(c, area.row, area.col + col, area.cols - col,
                                       here ? STYLE_FOCUS : STYLE_DIM, text);
            canvas_text(c, area.row, area.col + at, area.cols - at, strip_style(app, rows[i], here),
                        value);
        }
        col += (int)(strlen(text) + strlen(value)) + form->gap;
    }
    if (form->left == LEFT_NONE || !app->has_view)
        return col - form->gap;
    format_count(app->view.n_survivors, left);
    snprintf(text, sizeof text, "→ %s%s%s", left, form->left == LEFT_WORDS ? " word" : "",
             form->left == LEFT_NUMBER || app->view.n_survivors == 1 ? "" : "s");
    if (c != NULL)
        canvas_text(c, area.row, area.col + col, area.cols - col, STYLE_DIM, text);
    return col + text_width(text, strlen(text));
}

void faders_draw_strip(struct canvas *c, struct rect area, const struct app *app, bool named,
                       bool focused)
{
    enum { FORMS = sizeof strip_forms / sizeof *strip_forms };
    int form = named ? 0 : 1; /* the first is the only one with the name */

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows == 0)
        return;
    while (form < FORMS - 1 &&
           strip_form_draw(NULL, area, app, &strip_forms[form], focused) > area.cols)
        form++;
    strip_form_draw(c, area, app, &strip_forms[form], focused);
}

bool faders_hit(struct rect area, const struct app *app, bool large, int row, int col,
                enum knob *knob, double *travel)
{
    enum knob rows[DESK_FADERS];
    struct fader_grid g = grid_of(area.cols, large);
    int index = (row - area.row) / (large ? 2 : 1);

    if (row < area.row || row >= area.row + area.rows || col < area.col ||
        col >= area.col + area.cols || index >= DESK_FADERS)
        return false;
    desk_rows(&app->desk, rows);
    *knob = rows[index];
    int cell = col - area.col - g.track;
    *travel = cell < 0 || cell >= g.track_cols ? -1.0 : (double)cell / (g.track_cols - 1);
    return true;
}

double faders_travel_at(struct rect area, bool large, int col)
{
    struct fader_grid g = grid_of(area.cols, large);
    double travel = (double)(col - area.col - g.track) / (g.track_cols - 1);

    return travel < 0 ? 0 : travel > 1 ? 1 : travel;
}
