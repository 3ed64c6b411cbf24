#include "config.h"

#include "tui/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/candidates.h"
#include "tui/format.h"
#include "tui/layout.h"
#include "tui/textwidth.h"

enum { SIGN_RULE = 0x2500, SIGN_TEE = 0x252C };

void status_model_name(const struct app *app, char *out, size_t size)
{
    static const char *const endings[] = {"-Instruct", "-instruct", "-Chat", "-chat", "-it"};
    const struct model_info *m = app->status.model;
    const char *path = app->model_name != NULL ? app->model_name : "";
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;

    /* until the file is open, its name has to do */
    snprintf(out, size, "%s", m != NULL ? m->label : base);
    size_t len = strlen(out);
    if (m == NULL && len > 5 && strcmp(out + len - 5, ".gguf") == 0)
        out[len -= 5] = '\0';
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (len > n && strcmp(out + len - n, endings[i]) == 0) {
            out[len - n] = '\0';
            return;
        }
    }
}

void status_speaker(const struct app *app, char *out, size_t size)
{
    status_model_name(app, out, size);
    size_t word = strcspn(out, "- ");
    if (word >= 2)
        out[word] = '\0';
    if (*out == '\0')
        snprintf(out, size, "model");
}

/* ---- status --------------------------------------------------------------------------------- */

/* Each field in up to FORMS forms, the longest first; "" leaves it out. */
enum { FIELD_MODEL, FIELD_CONTEXT, FIELD_CACHE, FIELD_PACE, FIELD_STATE, FIELDS };
enum { FORMS = 3, FIELD_TEXT = 96 };

struct fields {
    char text[FIELDS][FORMS][FIELD_TEXT];
};

static void set_field(struct fields *f, int field, const char *longest, const char *shorter,
                      const char *shortest)
{
    snprintf(f->text[field][0], FIELD_TEXT, "%s", longest);
    snprintf(f->text[field][1], FIELD_TEXT, "%s", shorter);
    snprintf(f->text[field][2], FIELD_TEXT, "%s", shortest);
}

static void model_field(struct fields *f, const struct app *app)
{
    char name[FIELD_TEXT - 24], full[FIELD_TEXT];
    const struct model_info *m = app->status.model;

    status_model_name(app, name, sizeof name);
    snprintf(full, sizeof full, "%s%s%.16s", name, m != NULL ? " " : "", m != NULL ? m->type : "");
    set_field(f, FIELD_MODEL, full, name, "");
}

static void context_field(struct fields *f, const struct app *app)
{
    char used[FORMAT_MAX], size[FORMAT_MAX], full[FIELD_TEXT], brief[FIELD_TEXT], bytes[FORMAT_MAX];
    int32_t total = app->status.ctx_size;

    if (total <= 0) {
        set_field(f, FIELD_CONTEXT, "", "", "");
        set_field(f, FIELD_CACHE, "", "", "");
        return;
    }
    /* up, so that a context with anything in it is not at 0 %, and not at 100 % before
     * it is full */
    int64_t percent = ((int64_t)app->ctx_used * 100 + total - 1) / total;
    if (percent == 100 && app->ctx_used < total)
        percent = 99;
    format_count(app->ctx_used, used);
    format_count(total, size);
    format_bytes(app->kv_used, bytes);
    snprintf(full, sizeof full, "ctx %" PRId64 "%% %s/%s", percent, used, size);
    snprintf(brief, sizeof brief, "ctx %" PRId64 "%%", percent);
    set_field(f, FIELD_CONTEXT, full, brief, brief + 4);
    set_field(f, FIELD_CACHE, app->kv_used > 0 ? bytes : "", "", "");
}

static void pace_field(struct fields *f, const struct app *app)
{
    char full[FIELD_TEXT], brief[FIELD_TEXT], tiny[FIELD_TEXT], able[FORMAT_MAX], pace[FORMAT_MAX];
    double could = app->status.full_tps > 0 ? app->status.full_tps : app->tps;

    snprintf(pace, sizeof pace, "%g", app->control.pace);
    format_rate(could, able);
    if (app->control.pace > 0 && could > 0) {
        snprintf(full, sizeof full, "pace %s of %s/s", pace, able);
        snprintf(brief, sizeof brief, "%s of %s/s", pace, able);
    } else if (app->control.pace > 0) {
        snprintf(full, sizeof full, "pace %s/s", pace);
        snprintf(brief, sizeof brief, "%s/s", pace);
    } else if (could > 0) {
        snprintf(full, sizeof full, "pace full, %s/s", able);
        snprintf(brief, sizeof brief, "%s/s", able);
    } else {
        snprintf(full, sizeof full, "pace full");
        snprintf(brief, sizeof brief, "full");
    }
    snprintf(tiny, sizeof tiny, app->control.pace > 0 ? "%s/s" : "full", pace);
    set_field(f, FIELD_PACE, full, brief, tiny);
}

static void state_field(struct fields *f, const struct app *app)
{
    char full[FIELD_TEXT], brief[FIELD_TEXT], done[FORMAT_MAX], total[FORMAT_MAX];
    int percent;

    switch (app->state) {
    case APP_LOADING:
        snprintf(full, sizeof full, "loading %.0f%%", 100.0 * app->load_share);
        set_field(f, FIELD_STATE, full, full, full + 8);
        return;
    case APP_PREFILL:
        if (app->control.paused && app->prefill_done >= app->prefill_total)
            break;
        if (app->prefill_total <= 0) {
            set_field(f, FIELD_STATE, "reading", "reading", "reading");
            return;
        }
        format_count(app->prefill_done, done);
        format_count(app->prefill_total, total);
        percent = (int)((int64_t)app->prefill_done * 100 / app->prefill_total);
        snprintf(full, sizeof full, "reading %s of %s", done, total);
        snprintf(brief, sizeof brief, "reading %d%%", percent);
        set_field(f, FIELD_STATE, full, brief, brief);
        return;
    case APP_FAILED:
        set_field(f, FIELD_STATE, "no model", "no model", "failed");
        return;
    default:
        break;
    }
    const char *state = app->stopping           ? "stopping"
                        : app->control.paused   ? "PAUSED"
                        : app_is_answering(app) ? "answering"
                        : app->editing != NULL  ? "editing"
                                                : "ready";
    set_field(f, FIELD_STATE, state, state, state);
}

static int field_width(const struct fields *f, int field, int form)
{
    return text_width(f->text[field][form], strlen(f->text[field][form]));
}

/* Columns of all fields, two blanks between; a blank at either end. */
static int total_width(const struct fields *f, const int form[FIELDS])
{
    int width = 2, shown = 0;

    for (int i = 0; i < FIELDS; i++) {
        int w = field_width(f, i, form[i]);
        width += w;
        shown += w > 0;
    }
    return width + (shown > 1 ? 2 * (shown - 1) : 0);
}

/* Shortens what matters least first until all fits. */
static void choose_forms(const struct fields *f, int cols, int form[FIELDS])
{
    static const struct {
        int field, form;
    } steps[] = {{FIELD_CACHE, 1}, {FIELD_MODEL, 1},   {FIELD_CONTEXT, 1},
                 {FIELD_PACE, 1},  {FIELD_STATE, 1},   {FIELD_MODEL, 2},
                 {FIELD_PACE, 2},  {FIELD_CONTEXT, 2}, {FIELD_STATE, 2}};

    for (int i = 0; i < FIELDS; i++)
        form[i] = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && total_width(f, form) > cols; i++)
        form[steps[i].field] = steps[i].form;
}

static enum style field_style(const struct app *app, int field)
{
    if (field == FIELD_STATE)
        return app->state == APP_FAILED ? STYLE_ERROR : STYLE_STATUS_STATE;
    return STYLE_STATUS;
}

void status_draw(struct canvas *c, struct rect area, const struct app *app)
{
    struct fields f = {0};
    int form[FIELDS], shown = 0, gaps = 0;

    canvas_fill(c, area, STYLE_STATUS);
    if (area.rows == 0)
        return;
    model_field(&f, app);
    context_field(&f, app);
    pace_field(&f, app);
    state_field(&f, app);
    choose_forms(&f, area.cols, form);
    int spare = area.cols - total_width(&f, form);
    for (int i = 0; i < FIELDS; i++)
        shown += field_width(&f, i, form[i]) > 0;
    int col = area.col + 1;
    for (int i = 0; i < FIELDS; i++) {
        int width = field_width(&f, i, form[i]);
        if (width == 0)
            continue;
        /* context and cache belong together; the gaps between the others share what is over */
        int parts = shown - 1 - (field_width(&f, FIELD_CACHE, form[FIELD_CACHE]) > 0 ? 1 : 0);
        if (gaps > 0 && i != FIELD_CACHE && spare > 0 && parts > 0)
            col += spare / parts;
        canvas_text(c, area.row, i == FIELD_STATE ? area.col + area.cols - 1 - width : col,
                    area.cols, field_style(app, i), f.text[i][form[i]]);
        col += width + 2;
        gaps++;
    }
}

/* ---- below ---------------------------------------------------------------------------------- */

void hints_draw(struct canvas *c, struct rect area, const struct key_hint *h)
{
    int col = area.col + 1, end = area.col + area.cols;

    canvas_fill(c, area, STYLE_TEXT);
    if (area.rows == 0)
        return;
    for (; h->key != NULL; h++) {
        int need = text_width(h->key, strlen(h->key)) + text_width(h->what, strlen(h->what)) + 1;
        if (col + need > end)
            break;
        col += canvas_text(c, area.row, col, end - col, STYLE_KEY, h->key) + 1;
        if (*h->what != '\0')
            col += canvas_text(c, area.row, col, end - col, STYLE_DIM, h->what) + 1;
        col += 2;
    }
}

void header_draw(struct canvas *c, const struct layout *l, const struct app *app, enum focus focus,
                 size_t below)
{
    char text[128], count[FORMAT_MAX];
    struct rect h = l->header;
    enum style title = focus == FOCUS_FADERS ? STYLE_FOCUS : STYLE_TITLE;

    if (h.rows == 0)
        return;
    canvas_line(c, h.row, h.col, h.cols, SIGN_RULE, STYLE_RULE);
    if (below > 0) {
        format_count((int64_t)below, count);
        snprintf(text, sizeof text, " %s line%s below ↓ ", count, below == 1 ? "" : "s");
        canvas_text(c, h.row, h.col + 2, l->transcript.cols - 3, STYLE_DIM, text);
    }
    int col = h.col + h.cols - 28;
    if (l->panel == PANEL_DESK) {
        canvas_sign(c, h.row, l->divider.col, SIGN_TEE, STYLE_RULE);
        col = l->divider.col + 1;
        canvas_text_right(c, h.row, h.col + h.cols, STYLE_DIM, " keeps");
    }
    snprintf(text, sizeof text, " %s%s ", app->desk.preset_name,
             desk_is_changed(&app->desk) ? "*" : "");
    if (col > h.col)
        canvas_text(c, h.row, col + 1, h.col + h.cols - col - 7, title, text);
}
