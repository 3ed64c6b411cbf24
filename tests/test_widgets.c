/* The widgets, drawn on a canvas and read as text: the desk of the founding picture, its states,
 * the transcript with its marks. */
#include "test.h"

#include <locale.h>
#include <math.h>

#include "app/app.h"
#include "base/mem.h"
#include "tui/candidates.h"
#include "tui/canvas.h"
#include "tui/dice.h"
#include "tui/faders.h"
#include "tui/layout.h"
#include "tui/page.h"
#include "tui/picker.h"
#include "tui/plot.h"
#include "tui/scrollback.h"
#include "tui/status.h"

/* All rows of an area, its blanks at the end left out. */
static const char *picture(struct canvas *c)
{
    static struct str out;

    str_clear(&out);
    for (int row = 0; row < c->rows; row++) {
        canvas_row_text(c, row, &out);
        str_add_char(&out, '\n');
    }
    return str_text(&out);
}

static struct rect whole(const struct canvas *c)
{
    return (struct rect){0, 0, c->rows, c->cols};
}

static void add_word(struct view *v, const char *text, double model, double now, int cut_by)
{
    struct view_candidate *k = &v->candidates[v->n_candidates];

    k->c = (struct sampler_candidate){v->n_candidates, cut_by, model, now};
    k->len = (uint8_t)strlen(text);
    memcpy(k->text, text, k->len);
    v->n_candidates++;
    if (cut_by < 0)
        v->n_listed++;
}

/* The state of the founding picture: poetry, its temperature at 1.60, paused before "dance". */
static struct app *desk_of_the_picture(void)
{
    static struct app app;
    const double preset[] = {1.1, 0.8, 50, 0.9, 0};
    struct view *v = &app.view;

    memset(&app, 0, sizeof app);
    desk_init(&app.desk);
    snprintf(app.desk.preset_name, sizeof app.desk.preset_name, "poetry");
    app.desk.n_vocab = 49152;
    for (int k = 0; k < DESK_FADERS; k++)
        app.desk.now.value[k] = app.desk.preset.value[k] = preset[k];
    app.desk.now.value[KNOB_TEMPERATURE] = 1.6;
    app.desk.fader[KNOB_TEMPERATURE].origin = ORIGIN_SLIDER;
    app.selected = KNOB_TEMPERATURE;
    app.seed_kept = true;
    app.kept_seed = 4711;
    app.has_view = true;
    app.control.paused = true;
    app.control.pace = 12;
    app.ctx_used = 64;
    app.kv_used = 1500000;
    app.state = APP_ANSWERING;
    v->entropy = 4.4;
    v->dice = 0.33;
    v->pick = 1;
    v->pick_p = 0.051;
    v->n_survivors = 39;
    v->stages[0] = (struct sampler_stage){STAGE_PENALTY, 49152, 36, 0, 6.1, false};
    v->stages[1] = (struct sampler_stage){STAGE_TEMPERATURE, 49152, 0, 0, 10.7, false};
    v->stages[2] = (struct sampler_stage){STAGE_TOP_K, 50, 49102, 0.715, 4.9, false};
    v->stages[3] = (struct sampler_stage){STAGE_TOP_P, 39, 11, 0.093, 4.4, false};
    v->stages[4] = (struct sampler_stage){STAGE_MIN_P, 39, 0, 0, 4.4, true};
    add_word(v, " play", 0.548, 0.319, -1);
    add_word(v, " dance", 0.029, 0.051, -1);
    add_word(v, " beat", 0.015, 0.033, -1);
    add_word(v, " read", 0.013, 0.030, -1);
    add_word(v, " sing", 0.013, 0.030, -1);
    add_word(v, " rap", 0.002, 0, STAGE_TOP_P);
    add_word(v, " be", 0.002, 0, STAGE_TOP_K);
    return &app;
}

static void faders_of_the_picture(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(6, 32);
    const struct faders_look look = {false, false, NULL};
    (void)state;

    faders_draw(c, (struct rect){0, 0, 5, 32}, app, &look);
    faders_draw_seed(c, (struct rect){5, 0, 1, 32}, app);
    assert_string_equal(picture(c), " repeat ──●──────── 1.10  36 ids\n"
                                    "▸temp   ────┿───●── 1.60 10.7 b\n"
                                    " top-k  ───●─────── 50    50\n"
                                    " top-p  ────────●── 0.90  39\n"
                                    " min-p  ●────────── off   39\n"
                                    " seed 4711 kept          4.4 b\n");
    assert_int_equal(canvas_at(c, 1, 16)->style, STYLE_ACCENT);
    assert_int_equal(canvas_at(c, 0, 10)->style, STYLE_HANDLE);
    canvas_free(c);
}

static void faders_in_every_state(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(5, 32);
    struct faders_look look = {false, true, NULL};
    (void)state;

    app->desk.now.value[KNOB_TEMPERATURE] = 3.5;
    app->desk.fader[KNOB_MIN_P].muted = true;
    look.typed = "3.";
    faders_draw(c, whole(c), app, &look);
    assert_non_null(strstr(picture(c), "▸temp   ────┿─────▶ 3.▌"));
    assert_non_null(strstr(picture(c), "muted"));
    look.typed = NULL;
    app->desk.now.value[KNOB_TEMPERATURE] = 0;
    app->desk.fader[KNOB_MIN_P].muted = false;
    faders_draw(c, whole(c), app, &look);
    assert_non_null(strstr(picture(c), "greedy"));
    assert_non_null(strstr(picture(c), " 50 unused"));
    assert_int_equal(canvas_at(c, 2, 1)->style, STYLE_DIM);
    assert_int_equal(canvas_at(c, 0, 1)->style, STYLE_TEXT);
    assert_int_equal(canvas_at(c, 1, 1)->style, STYLE_FOCUS);
    canvas_free(c);
}

static void faders_in_ascii(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(5, 32);
    const struct faders_look look = {false, false, NULL};
    (void)state;

    c->glyphs = GLYPHS_ASCII;
    faders_draw(c, whole(c), app, &look);
    assert_non_null(strstr(picture(c), ">temp  [----|--O--] 1.60 10.7 b"));
    for (const char *p = picture(c); *p != '\0'; p++)
        assert_true((unsigned char)*p < 0x80);
    canvas_free(c);
}

static void large_faders(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(10, 43);
    const struct faders_look look = {true, false, NULL};
    enum knob knob;
    double travel;
    (void)state;

    faders_draw(c, whole(c), app, &look);
    const char *text = picture(c);
    assert_non_null(strstr(text, "▸temp     0 ────────┿──────●──── 2   1.60\n"));
    assert_non_null(strstr(text, "        slider (built in 0.80)      10.7 b\n"));
    app->desk.now.value[KNOB_TEMPERATURE] = 0;
    faders_draw(c, whole(c), app, &look);
    assert_non_null(strstr(picture(c), "        not used while greedy\n"));
    assert_true(faders_hit(whole(c), app, true, 3, 12, &knob, &travel));
    assert_int_equal(knob, KNOB_TEMPERATURE);
    assert_true(travel == 0);
    assert_true(faders_hit(whole(c), app, true, 4, 31, &knob, &travel));
    assert_int_equal(knob, KNOB_TOP_K);
    assert_true(travel == 1);
    assert_true(faders_hit(whole(c), app, true, 4, 3, &knob, &travel));
    assert_true(travel < 0);
    canvas_free(c);
}

static void the_strip(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(1, 80);
    (void)state;

    faders_draw_strip(c, (struct rect){0, 0, 1, 80}, app, true, false);
    assert_string_equal(picture(c),
                        " poetry*  repeat 1.10  temp 1.60  top-k 50  top-p .90  min-p off"
                        "  → 39 words\n");
    canvas_resize(c, 1, 59);
    faders_draw_strip(c, (struct rect){0, 0, 1, 59}, app, true, false);
    assert_string_equal(picture(c), " repeat 1.10 temp 1.60 top-k 50 top-p .90 min-p off → 39\n");
    canvas_resize(c, 1, 40);
    faders_draw_strip(c, (struct rect){0, 0, 1, 40}, app, true, false);
    assert_string_equal(picture(c), " R1.10 T1.60 K50 P.90 Moff → 39 words\n");
    canvas_resize(c, 1, 20);
    faders_draw_strip(c, (struct rect){0, 0, 1, 20}, app, true, false);
    assert_string_equal(picture(c), " R1.1T1.6K50P.9M-\n");
    canvas_free(c);
}

static void candidates_of_the_picture(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(11, 32);
    (void)state;

    candidates_draw(c, whole(c), app, false, false);
    assert_string_equal(picture(c), "─ next word ─────── model  now ─\n"
                                    " ␣play    █████▒▒▒▒  54.8  31.9\n"
                                    " ␣dance   ▉           2.9   5.1\n"
                                    " ␣beat    ▌           1.5   3.3\n"
                                    " ␣read    ▌           1.3   3.0\n"
                                    " ␣sing    ▌           1.3   3.0\n"
                                    " … 34 more                 53.7\n"
                                    "─ top-p cut 11 ──────────  9.3 %\n"
                                    " ␣rap                 0.2   -\n"
                                    "─ top-k cut 49,102 ────── 71.5 %\n"
                                    " ␣be                  0.2   -\n");
    assert_int_equal(candidates_hit(whole(c), app, false, false, 2), 1);
    assert_int_equal(candidates_hit(whole(c), app, false, false, 6), -1);
    assert_int_equal(candidates_hit(whole(c), app, false, false, 8), 5);
    app->view.drawn = true;
    candidates_draw(c, whole(c), app, false, false);
    assert_non_null(strstr(picture(c), "─ drawn: ␣dance ─── model  now ─\n"));
    c->glyphs = GLYPHS_ASCII;
    candidates_draw(c, whole(c), app, false, false);
    assert_non_null(strstr(picture(c), " _play    #####====  54.8  31.9\n"));
    canvas_free(c);
}

/* A bar is the share now; what the model gave it shows only where that was more. */
static void bars_say_who_gave_more(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(5, 43);
    (void)state;

    app->view.n_candidates = app->view.n_listed = 0;
    add_word(&app->view, "a", 0.314, 0.357, -1);
    add_word(&app->view, "b", 0.011, 0.019, -1);
    add_word(&app->view, "c", 0.050, 0.019, -1);
    candidates_draw(c, whole(c), app, true, false);
    const char *text = picture(c);
    assert_non_null(strstr(text, " a           █████████████████  31.4  35.7\n"));
    assert_non_null(strstr(text, " b           ▉                   1.1   1.9\n"));
    assert_non_null(strstr(text, " c           █▒                  5.0   1.9\n"));
    canvas_free(c);
}

/* However few the rows: the heading, then survivors, and the count of the others. */
static void candidates_share_their_rows(void **state)
{
    struct app *app = desk_of_the_picture();
    struct candidate_row rows[CANDIDATE_ROWS_MAX];
    (void)state;

    for (int n = 0; n < 40; n++) {
        int used = candidates_plan(&app->view, n, 5, -1, rows);
        assert_true(used <= n);
        for (int i = 1; i < used; i++) {
            if (rows[i].kind == CANDIDATE_WORD)
                assert_in_range(rows[i].index, 0, app->view.n_candidates - 1);
        }
        if (n >= 2)
            assert_int_equal(rows[0].kind, CANDIDATE_HEADING);
        if (n >= 3)
            assert_int_equal(rows[1].kind, CANDIDATE_WORD);
    }
    /* the chosen one stays in sight, be it in or cut */
    add_word(&app->view, " by", 0.001, 0, STAGE_TOP_K);
    add_word(&app->view, " of", 0.001, 0, STAGE_TOP_K);
    for (int chosen = 0; chosen < app->view.n_candidates; chosen++) {
        for (int n = 8; n < 12; n++) {
            int used = candidates_plan(&app->view, n, 5, chosen, rows);
            bool seen = false;
            for (int i = 1; i < used; i++)
                seen = seen || (rows[i].kind == CANDIDATE_WORD && rows[i].index == chosen);
            assert_true(seen);
        }
    }
}

static void dice_of_the_picture(void **state)
{
    struct app *app = desk_of_the_picture();
    struct canvas *c = canvas_new(3, 32);
    int owner[24];
    (void)state;

    /* the number .33 falls on the second word, and so does its mark */
    assert_int_equal(dice_cells(&app->view, 24, owner), 8);
    assert_int_equal(owner[7], 0);
    assert_int_equal(owner[8], 1);
    dice_draw(c, whole(c), app, false);
    assert_string_equal(picture(c), "─ dice ─────────────────────────\n"
                                    " ▕████████▲░▒░▒░▒░▒░▒░▒░▒░▏ .33\n"
                                    " go on: ␣dance  5.1 %\n");
    app->view.greedy = true;
    dice_draw(c, whole(c), app, true);
    assert_non_null(strstr(picture(c), "─ dice ─ seed 4711 kept ─"));
    assert_non_null(strstr(picture(c), "not thrown while greedy"));
    canvas_free(c);
}

static void the_mark_of_the_dice_lies_in_its_word(void **state)
{
    struct app *app = desk_of_the_picture();
    int owner[64];
    (void)state;

    for (int cells = 4; cells <= 64; cells += 5) {
        double low = 0;
        for (int i = 0; i < app->view.n_listed; i++) {
            double now = app->view.candidates[i].c.now;
            app->view.pick = i;
            app->view.dice = low + now * 0.99;
            int mark = dice_cells(&app->view, cells, owner);
            assert_in_range(mark, 0, cells - 1);
            bool owns = false;
            for (int k = 0; k < cells; k++)
                owns = owns || owner[k] == i;
            if (owns)
                assert_int_equal(owner[mark], i);
            low += now;
        }
    }
}

static void status_shortens_what_matters_least(void **state)
{
    struct app *app = desk_of_the_picture();
    static const struct model_info model = {.label = "SmolLM2-135M-Instruct", .type = "Q4_1"};
    struct canvas *c = canvas_new(1, 80);
    (void)state;

    app->status.model = &model;
    app->status.ctx_size = 8192;
    app->status.full_tps = 168;
    status_draw(c, whole(c), app);
    const char *text = picture(c);
    static const char *const whole_forms[] = {" SmolLM2-135M Q4_1  ", "ctx 1% 64/8,192  1.5 MB",
                                              "pace 12 of 168/s", "PAUSED\n"};
    for (size_t i = 0; i < sizeof whole_forms / sizeof *whole_forms; i++)
        assert_non_null(strstr(text, whole_forms[i]));
    canvas_resize(c, 1, 20);
    status_draw(c, whole(c), app);
    assert_string_equal(picture(c), " 1%   12/s   PAUSED\n");
    app->state = APP_PREFILL;
    app->prefill_done = 512;
    app->prefill_total = 2048;
    canvas_resize(c, 1, 80);
    status_draw(c, whole(c), app);
    assert_non_null(strstr(picture(c), "reading 512 of 2,048\n"));
    canvas_free(c);
}

/* ---- the transcript ------------------------------------------------------------------------- */

static void say(struct turn *t, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct answer_token token = {(int32_t)i, (uint32_t)t->text.len, -0.5f, 0.6f, 0, 1.0f, 1};
        turn_add_token(t, &token, words[i], strlen(words[i]));
    }
}

static const struct scrollback_names names = {"you", "SmolLM2"};

static void transcript_with_a_mark(void **state)
{
    static const char *const words[] = {"The",   " rain", " taps",     " out", " a", " code",
                                        " on",   " the",  " tin",      ",",    "\n", "a",
                                        " drum", "mer",   " learning", " to"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(8, 47);
    struct scrollback s;
    (void)state;

    struct turn *user =
        conversation_add(conv, NULL, ROLE_USER, "Two lines about rain on a tin roof.");
    struct turn *answer = conversation_add(conv, user, ROLE_ASSISTANT, "");
    scrollback_init(&s);
    scrollback_place(&s, whole(c), 44);
    say(answer, words, 11);
    scrollback_sync(&s, conv, answer);
    turn_add_knob(answer, 11, KNOB_TEMPERATURE, 0.8, 1.6);
    say(answer, words + 11, 5);
    scrollback_sync(&s, conv, answer);
    scrollback_draw(&s, c, &names);
    assert_string_equal(picture(c), " you\n"
                                    "   Two lines about rain on a tin roof.\n"
                                    "\n"
                                    " SmolLM2\n"
                                    "   The rain taps out a code on the tin,\n"
                                    " T a drummer learning to▌        temp 0.80▸1.60\n"
                                    "\n\n");
    assert_int_equal(canvas_at(c, 5, 3)->flags, CELL_UNDERLINE);
    assert_int_equal(canvas_at(c, 5, 5)->flags, 0);
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

static void transcript_follows_only_at_its_end(void **state)
{
    static const char *const line[] = {"word\n"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(4, 20);
    struct scrollback s;
    (void)state;

    struct turn *answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    scrollback_init(&s);
    scrollback_place(&s, whole(c), 17);
    for (int i = 0; i < 20; i++)
        say(answer, line, 1);
    scrollback_sync(&s, conv, NULL);
    assert_int_equal(scrollback_below(&s), 0);
    scrollback_scroll(&s, -5);
    size_t top = s.top;
    for (int i = 0; i < 7; i++)
        say(answer, line, 1);
    scrollback_sync(&s, conv, NULL);
    assert_int_equal(s.top, top);
    assert_int_equal(scrollback_below(&s), 12);
    scrollback_scroll(&s, 99);
    say(answer, line, 1);
    scrollback_sync(&s, conv, NULL);
    assert_int_equal(scrollback_below(&s), 0);
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

/* A resize keeps what was at the top at the top. */
static void transcript_keeps_its_place(void **state)
{
    struct conversation *conv = conversation_new();
    struct str text = STR_INIT;
    struct scrollback s;
    struct row_ref at;
    (void)state;

    for (int i = 0; i < 400; i++)
        str_add_format(&text, "word%03d ", i);
    conversation_add(conv, NULL, ROLE_USER, str_text(&text));
    scrollback_init(&s);
    scrollback_place(&s, (struct rect){0, 0, 10, 47}, 44);
    scrollback_sync(&s, conv, NULL);
    scrollback_home(&s);
    scrollback_scroll(&s, 30);
    assert_true(scrollback_row(&s, s.top, &at));
    size_t byte = s.blocks[0].wrap.rows[at.row].start;
    static const int widths[] = {20, 90, 44};
    for (size_t i = 0; i < 3; i++) {
        scrollback_place(&s, (struct rect){0, 0, 10, widths[i] + 3}, widths[i]);
        assert_true(scrollback_row(&s, s.top, &at));
        const struct wrap_row *row = &s.blocks[0].wrap.rows[at.row];
        assert_true(row->start <= byte && byte < row->end);
        byte = row->start;
    }
    scrollback_done(&s);
    str_done(&text);
    conversation_free(conv);
}

/* What an answer adds is drawn by rows that changed, and only by those. */
static void transcript_draws_what_changed(void **state)
{
    static const char *const words[] = {"one", "\n", "two", "\n", "three"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(10, 30);
    struct scrollback s;
    (void)state;

    struct turn *answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    scrollback_init(&s);
    scrollback_place(&s, whole(c), 27);
    say(answer, words, 4);
    scrollback_sync(&s, conv, answer);
    scrollback_draw(&s, c, &names);
    for (int row = 0; row < 10; row++)
        canvas_text(c, row, 20, 9, STYLE_TEXT, "untouched");
    say(answer, words + 4, 1);
    scrollback_sync(&s, conv, answer);
    scrollback_draw(&s, c, &names);
    assert_string_equal(picture(c), " you                untouched\n"
                                    "   go               untouched\n"
                                    "                    untouched\n"
                                    " SmolLM2            untouched\n"
                                    "   one              untouched\n"
                                    "   two              untouched\n"
                                    "   three▌\n\n\n\n");
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

static void transcript_shows_the_branch_and_versions(void **state)
{
    static const char *const words[] = {"one", " two", " three"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(6, 40);
    struct scrollback s;
    (void)state;

    struct turn *user = conversation_add(conv, NULL, ROLE_USER, "go");
    say(conversation_add(conv, user, ROLE_ASSISTANT, ""), words, 2);
    struct turn *second = conversation_add(conv, user, ROLE_ASSISTANT, "");
    say(second, words, 3);
    second->branch_at = 1;
    scrollback_init(&s);
    scrollback_place(&s, whole(c), 37);
    scrollback_sync(&s, conv, NULL);
    scrollback_draw(&s, c, &names);
    assert_non_null(strstr(picture(c), " SmolLM2  version 2 of 2\n ◆ one two three\n"));
    assert_int_equal(canvas_at(c, 4, 7)->style, STYLE_MARK);
    /* back to the first: the block is another turn's */
    turn_choose_version(conv, second, 0);
    scrollback_sync(&s, conv, NULL);
    scrollback_draw(&s, c, &names);
    assert_non_null(strstr(picture(c), " SmolLM2  version 1 of 2\n   one two\n"));
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

/* Another conversation, with the old one freed: nothing of that is looked at, and the end is
 * followed. */
static void transcript_of_another_conversation(void **state)
{
    static const char *const line[] = {"old\n"}, *const other[] = {"new"};
    struct canvas *c = canvas_new(4, 20);
    struct scrollback s;
    size_t token;
    (void)state;

    scrollback_init(&s);
    scrollback_place(&s, whole(c), 17);
    struct conversation *conv = conversation_new();
    struct turn *answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    for (int i = 0; i < 20; i++)
        say(answer, line, 1);
    scrollback_sync(&s, conv, NULL);
    assert_true(scrollback_enter(&s));
    scrollback_scroll(&s, -5);
    conversation_free(conv);

    conv = conversation_new();
    answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    say(answer, other, 1);
    scrollback_reload(&s, conv, NULL);
    assert_ptr_equal(scrollback_cursor(&s, &token), answer);
    assert_int_equal(token, 0);
    scrollback_draw(&s, c, &names);
    assert_string_equal(picture(c), "   go\n\n SmolLM2\n   new\n");
    say(answer, line, 1);
    say(answer, line, 1);
    scrollback_sync(&s, conv, answer);
    assert_int_equal(scrollback_below(&s), 0);
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

static void transcript_cursor_and_selection(void **state)
{
    static const char *const words[] = {"one", " two", "\n", "three", " 雨", " end"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(8, 30);
    struct scrollback s;
    struct place from, to;
    struct str text = STR_INIT;
    size_t token;
    (void)state;

    struct turn *answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    say(answer, words, 6);
    scrollback_init(&s);
    scrollback_place(&s, whole(c), 27);
    scrollback_sync(&s, conv, NULL);
    assert_null(scrollback_cursor(&s, &token));
    assert_true(scrollback_enter(&s));
    assert_ptr_equal(scrollback_cursor(&s, &token), answer);
    assert_int_equal(token, 5);
    scrollback_move_token(&s, 1);
    scrollback_move_token(&s, -1);
    scrollback_cursor(&s, &token);
    assert_int_equal(token, 4);
    scrollback_move_row(&s, -1);
    scrollback_cursor(&s, &token);
    assert_int_equal(token, 1);
    scrollback_move_row(&s, -1);
    scrollback_cursor(&s, &token);
    assert_int_equal(token, 1);
    scrollback_draw(&s, c, &names);
    assert_int_equal(canvas_at(c, 4, 7)->flags, CELL_REVERSE);

    /* a token that reaches into the next row does not hold the cursor back */
    static const char *const long_one[] = {"\nword-that-is-longer-than-one-whole-row", " last"};
    say(answer, long_one, 2);
    scrollback_sync(&s, conv, NULL);
    scrollback_move_row(&s, 1);
    scrollback_move_row(&s, 1);
    scrollback_cursor(&s, &token);
    assert_int_equal(token, 6);
    scrollback_move_token(&s, -1);
    scrollback_move_token(&s, 1);
    scrollback_move_row(&s, 1);
    scrollback_cursor(&s, &token);
    assert_int_equal(token, 7);

    assert_false(scrollback_hit(&s, 0, 3, &from));
    assert_true(scrollback_hit(&s, 4, 7, &from));
    assert_true(scrollback_hit(&s, 5, 10, &to)); /* the right half of the wide one */
    scrollback_select(&s, to, from);
    scrollback_selected_text(&s, &text);
    assert_string_equal(str_text(&text), "two\nthree 雨");
    scrollback_leave(&s);
    scrollback_draw(&s, c, &names);
    assert_int_equal(canvas_at(c, 5, 9)->style, STYLE_SELECTION);
    assert_int_equal(canvas_at(c, 5, 12)->style, STYLE_TEXT);
    str_done(&text);
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

static void escape_sequences_are_text(void **state)
{
    static const char *const words[] = {"a\x1b[31mred\x07", "\xC2\x9B", "2J"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(6, 40);
    struct scrollback s;
    (void)state;

    struct turn *answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    say(answer, words, 3);
    scrollback_init(&s);
    scrollback_place(&s, whole(c), 37);
    scrollback_sync(&s, conv, NULL);
    scrollback_draw(&s, c, &names);
    assert_non_null(strstr(picture(c), "   a␛[31mred␇‹9B›2J\n"));
    scrollback_done(&s);
    conversation_free(conv);
    canvas_free(c);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static void wide_characters_are_overwritten_whole(void **state)
{
    struct canvas *c = canvas_new(1, 10);
    (void)state;

    canvas_text(c, 0, 0, 10, STYLE_TEXT, "雨雨x");
    canvas_text(c, 0, 1, 1, STYLE_TEXT, "a");
    assert_string_equal(picture(c), " a雨x\n");
    canvas_text(c, 0, 2, 1, STYLE_TEXT, "b");
    assert_string_equal(picture(c), " ab x\n");
    /* one that would stick out at the right is not drawn */
    canvas_text(c, 0, 9, 5, STYLE_TEXT, "雨");
    assert_string_equal(picture(c), " ab x\n");
    canvas_free(c);
}

static void the_plot_has_a_column_a_token(void **state)
{
    static const char *const words[] = {"a", "b", "c"};
    struct conversation *conv = conversation_new();
    struct canvas *c = canvas_new(2, 40);
    (void)state;

    struct turn *answer =
        conversation_add(conv, conversation_add(conv, NULL, ROLE_USER, "go"), ROLE_ASSISTANT, "");
    say(answer, words, 3);
    answer->tokens[0].logprob = (float)(-8 * log(2));
    answer->tokens[1].logprob = (float)(-4 * log(2));
    answer->tokens[2].logprob = 0;
    plot_draw(c, whole(c), answer);
    assert_string_equal(picture(c), "─ surprise: mean 4.0, most 8.0 bits ────\n █▄▁\n");
    plot_draw(c, whole(c), NULL);
    assert_string_equal(picture(c), "─ surprise ─────────────────────────────\n\n");
    conversation_free(conv);
    canvas_free(c);
}

static void the_picker_chooses(void **state)
{
    struct picker p;
    struct canvas *c = canvas_new(4, 40);
    (void)state;

    picker_init(&p, "presets");
    picker_add(&p, "default", "the course's", false);
    picker_add(&p, "poetry", "refrains allowed", false);
    picker_add(&p, "rain", "rain.yaml:3: no", true);
    picker_select(&p, "poetry");
    picker_draw(&p, c, whole(c));
    assert_string_equal(picture(c), "─ presets ──────────────────────────────\n"
                                    " default  the course's\n"
                                    "▸poetry   refrains allowed\n"
                                    " rain     rain.yaml:3: no\n");
    assert_int_equal(picker_key(&p, KEYS_DOWN, 3), PICKER_OPEN);
    assert_int_equal(picker_key(&p, '\r', 3), PICKER_OPEN); /* it does not load */
    assert_int_equal(picker_key(&p, 'd', 3), PICKER_OPEN);
    assert_int_equal(p.selected, 0);
    assert_int_equal(picker_key(&p, '\r', 3), PICKER_CHOSEN);
    assert_int_equal(picker_key(&p, 27, 3), PICKER_CLOSED);
    picker_done(&p);
    canvas_free(c);
}

static void the_page_scrolls(void **state)
{
    struct page p;
    struct canvas *c = canvas_new(4, 30);
    (void)state;

    page_init(&p, "help", "one\ntwo\nthree\nfour\nfive\n");
    page_draw(&p, c, whole(c));
    assert_string_equal(picture(c), "─ help ─────────── 1-3 of 5 ──\n one\n two\n three\n");
    assert_true(page_key(&p, ' ', 3));
    page_draw(&p, c, whole(c));
    assert_string_equal(picture(c), "─ help ─────────── 3-5 of 5 ──\n three\n four\n five\n");
    assert_false(page_key(&p, 'q', 3));
    page_done(&p);
    canvas_free(c);
}

static void the_page_keeps_its_columns(void **state)
{
    struct page p;
    struct canvas *c = canvas_new(7, 30);
    (void)state;

    page_init(&p, "help",
              "/retry  answer again with a new seed\n  a line of its own that is long\n");
    page_draw(&p, c, whole(c));
    assert_string_equal(picture(c), "─ help ───────────────────────\n"
                                    " /retry  answer again with a\n"
                                    "         new seed\n"
                                    "   a line of its own that is\n"
                                    "   long\n\n\n");
    page_done(&p);
    page_init(&p, "nothing", "");
    page_draw(&p, c, whole(c));
    page_done(&p);
    canvas_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faders_of_the_picture),
        cmocka_unit_test(faders_in_every_state),
        cmocka_unit_test(faders_in_ascii),
        cmocka_unit_test(large_faders),
        cmocka_unit_test(the_strip),
        cmocka_unit_test(candidates_of_the_picture),
        cmocka_unit_test(bars_say_who_gave_more),
        cmocka_unit_test(candidates_share_their_rows),
        cmocka_unit_test(dice_of_the_picture),
        cmocka_unit_test(the_mark_of_the_dice_lies_in_its_word),
        cmocka_unit_test(status_shortens_what_matters_least),
        cmocka_unit_test(transcript_with_a_mark),
        cmocka_unit_test(transcript_follows_only_at_its_end),
        cmocka_unit_test(transcript_keeps_its_place),
        cmocka_unit_test(transcript_draws_what_changed),
        cmocka_unit_test(transcript_shows_the_branch_and_versions),
        cmocka_unit_test(transcript_of_another_conversation),
        cmocka_unit_test(transcript_cursor_and_selection),
        cmocka_unit_test(escape_sequences_are_text),
        cmocka_unit_test(wide_characters_are_overwritten_whole),
        cmocka_unit_test(the_plot_has_a_column_a_token),
        cmocka_unit_test(the_picker_chooses),
        cmocka_unit_test(the_page_scrolls),
        cmocka_unit_test(the_page_keeps_its_columns),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("widgets", tests, NULL, NULL);
}
