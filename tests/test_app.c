/* The application without a screen: answers and what can be done to them, conversations, the loop.
 */
#include "app_fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app_private.h"
#include "app/marks.h"
#include "base/clock.h"
#include "base/mem.h"

#define RAIN  "{\"text\":\"Rain falls today.\"}\n"
#define AGAIN "{\"answer\":{}}\n" /* what follows is the next answer */

/* Three words at every draw, for ever: the dice decide. */
#define DICE "{\"draw\":[[\" a\",1],[\" b\",0.9],[\" c\",0.8]]}\n{\"repeat\":0}\n"

/* Five words, and then none until somebody stops it: however late that is. */
#define FIVE                                                                                       \
    "{\"draw\":[[\" a\",1],[\" b\",0.9],[\" c\",0.8]]}\n"                                          \
    "{\"draw\":[[\" a\",1],[\" b\",0.9],[\" c\",0.8]]}\n"                                          \
    "{\"draw\":[[\" a\",1],[\" b\",0.9],[\" c\",0.8]]}\n"                                          \
    "{\"draw\":[[\" a\",1],[\" b\",0.9],[\" c\",0.8]]}\n"                                          \
    "{\"draw\":[[\" a\",1],[\" b\",0.9],[\" c\",0.8]]}\n{\"hang\":true}\n"

/* The same choice six times, then the end. */
#define SIX                                                                                        \
    "{\"draw\":[[\" a\",3],[\" b\",2],[\" c\",1],[null,0]]}\n"                                     \
    "{\"draw\":[[\" a\",3],[\" b\",2],[\" c\",1],[null,0]]}\n"                                     \
    "{\"draw\":[[\" a\",3],[\" b\",2],[\" c\",1],[null,0]]}\n"                                     \
    "{\"draw\":[[\" a\",3],[\" b\",2],[\" c\",1],[null,0]]}\n"                                     \
    "{\"draw\":[[\" a\",3],[\" b\",2],[\" c\",1],[null,0]]}\n"                                     \
    "{\"draw\":[[\" a\",3],[\" b\",2],[\" c\",1],[null,0]]}\n"

static struct fixture f;

static void set_knob(enum knob knob, double value)
{
    struct error err;

    if (!app_set_knob(f.app, knob, value, &err))
        fail_msg("%s", err.text);
}

/* ---- an answer ------------------------------------------------------------------------------- */

static void test_answer(void **state)
{
    size_t len;
    (void)state;

    fixture_start(&f, RAIN);
    app_enter(f.app, "  \n");
    assert_false(app_is_answering(f.app));
    f.changed = 0;
    fixture_ask(&f, "Hello");
    assert_int_equal(conversation_depth(f.app->conversation), 2);
    assert_string_equal(fixture_text(&f, 0), "Hello");
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    const struct turn *t = fixture_turn(&f, 1);
    assert_int_equal(t->n_tokens, 3);
    assert_memory_equal(turn_token_text(t, 1, &len), " falls", 6);
    assert_near(t->tokens[0].p, 1, 1e-6);
    assert_near(t->tokens[0].logprob, 0, 1e-6);
    assert_true(t->complete);
    assert_int_equal(t->end_reason, END_EOG);
    assert_int_equal(t->branch_at, -1);
    assert_true(f.app->stats.valid);
    assert_int_equal(f.app->stats.tokens, 3);
    assert_int_equal(f.app->seed, t->seed);
    assert_int_equal(f.changed & (CHANGE_TRANSCRIPT | CHANGE_STATUS | CHANGE_PATH),
                     CHANGE_TRANSCRIPT | CHANGE_STATUS | CHANGE_PATH);
    assert_string_equal(f.app->message, "");
    fixture_ask(&f, "//slash");
    assert_string_equal(fixture_text(&f, 2), "/slash");
    fixture_stop(&f);
}

/* Bytes of a character that two tokens share are counted to the one that completes it, and what is
 * left over at the end is not lost. */
static void test_parts_of_characters(void **state)
{
    size_t len;
    (void)state;

    fixture_start(&f, "{\"draw\":[[{\"hex\":\"20e99b\"},1]]}\n{\"draw\":[[{\"hex\":\"a8\"},1]]}\n"
                      "{\"draw\":[[{\"hex\":\"f09f\"},1]]}\n");
    fixture_ask(&f, "rain?");
    const struct turn *t = fixture_turn(&f, 1);
    assert_string_equal(t->text.data, " 雨\xEF\xBF\xBD");
    assert_memory_equal(turn_token_text(t, 0, &len), " ", 1);
    assert_int_equal(len, 1);
    turn_token_text(t, 1, &len);
    assert_int_equal(len, 3);
    turn_token_text(t, 2, &len);
    assert_int_equal(len, 3);
    fixture_stop(&f);
}

static size_t wanted_tokens;

static bool has_tokens(const struct app *app)
{
    return app->answer != NULL && app->answer->n_tokens >= wanted_tokens;
}

static bool is_stepped(const struct app *app)
{
    return has_tokens(app) && is_paused_at_view(app) &&
           app->view.n == (int32_t)app->answer->n_tokens;
}

/* Draws single words until the answer has `n`, and stands before the next draw with its candidates.
 */
static void step_to(size_t n)
{
    for (wanted_tokens = f.app->answer->n_tokens + 1; wanted_tokens <= n; wanted_tokens++) {
        app_step(f.app);
        fixture_wait(&f, is_stepped);
    }
}

/* Asks while paused; the answer stands before its first draw. */
static void ask_paused(const char *line)
{
    app_set_paused(f.app, true);
    app_enter(f.app, line);
    fixture_wait(&f, is_paused_at_view);
    assert_int_equal(f.app->answer->n_tokens, 0);
}

/* A knob set before the draw of token n is in force for token n: every time. */
static void test_knob_is_in_force(void **state)
{
    struct mark marks[64];
    (void)state;

    fixture_start(&f, DICE);
    ask_paused("go");
    struct turn *t = f.app->answer;
    for (size_t n = 0; n < 40; n++) {
        double value = n % 2 == 0 ? 0.5 + (double)n / 100 : 0;
        set_knob(KNOB_TEMPERATURE, value);
        uint32_t version = f.app->control.version;
        step_to(n + 1);
        assert_int_equal(t->tokens[n].version, version + 1); /* the step is a publication too */
        assert_int_equal(t->n_moves, n + 1);
        assert_int_equal(t->moves[n].n, n);
        assert_near(t->moves[n].value, value, 0);
        if (value == 0) {
            assert_int_equal(t->tokens[n].rank, 0);
            assert_near(t->tokens[n].p, 1, 0);
        }
    }
    assert_int_equal(marks_of(t, marks, 64), 1); /* one long ride */
    app_stop(f.app);
    fixture_wait(&f, is_idle);
    assert_false(f.app->control.paused);
    fixture_stop(&f);
}

/* The word that is shown while paused is the one that is drawn. */
static void test_shown_is_drawn(void **state)
{
    (void)state;
    fixture_start(&f, DICE);
    ask_paused("go");
    for (size_t n = 0; n < 20; n++) {
        set_knob(KNOB_TOP_P, n % 2 == 0 ? 0.5 : 1);
        fixture_wait(&f, is_paused_at_view);
        int32_t pick = f.app->view.pick;
        step_to(n + 1);
        assert_int_equal(f.app->answer->tokens[n].id, pick);
    }
    fixture_stop(&f);
}

static void test_first_fader_slows_down(void **state)
{
    (void)state;
    fixture_start(&f, DICE);
    app_nudge(f.app, KNOB_TEMPERATURE, 1, false); /* nothing runs: nothing to slow */
    assert_near(f.app->control.pace, 0, 0);
    app_enter(f.app, "go");
    app_nudge(f.app, KNOB_TEMPERATURE, 1, false);
    assert_near(f.app->control.pace, 12, 0);
    expect_message(&f, "slowed to 12/s so that you can watch the fader; F8 faster");
    app_act(f.app, ACTION_FASTER);
    assert_near(f.app->control.pace, 20, 0);
    app_nudge(f.app, KNOB_TEMPERATURE, 1, false); /* once in a sitting */
    assert_near(f.app->control.pace, 20, 0);
    fixture_stop(&f);
}

static void test_paces(void **state)
{
    static const double down[] = {40, 20, 12, 5, 2, 2}, up[] = {5, 12, 20, 40, 0, 0};
    (void)state;

    fixture_start(&f, RAIN);
    for (size_t i = 0; i < 6; i++) {
        app_act(f.app, ACTION_SLOWER);
        assert_near(f.app->control.pace, down[i], 0);
    }
    for (size_t i = 0; i < 6; i++) {
        app_act(f.app, ACTION_FASTER);
        assert_near(f.app->control.pace, up[i], 0);
    }
    app_set_pace(f.app, 7);
    app_act(f.app, ACTION_SLOWER);
    assert_near(f.app->control.pace, 5, 0);
    fixture_stop(&f);
}

static void test_queue(void **state)
{
    (void)state;
    fixture_start(&f, "{\"answer\":{}}\n" RAIN "{\"answer\":{}}\n{\"text\":\"Sun shines.\"}\n");
    ask_paused("first");
    app_enter(f.app, "second");
    expect_message(&f, "queued; sent when this answer ends");
    assert_string_equal(f.app->queued, "second");
    app_enter(f.app, "and more");
    assert_string_equal(f.app->queued, "second\nand more");
    app_enter(f.app, "/set temp 1.5"); /* commands act at once */
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 1.5, 0);
    assert_int_equal(conversation_depth(f.app->conversation), 2);
    app_set_paused(f.app, false);
    fixture_wait(&f, is_idle);
    assert_null(f.app->queued);
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    assert_string_equal(fixture_text(&f, 2), "second\nand more");
    assert_string_equal(fixture_text(&f, 3), "Sun shines.");
    fixture_stop(&f);
}

static void test_stop(void **state)
{
    (void)state;
    fixture_start(&f, FIVE);
    app_enter(f.app, "go");
    wanted_tokens = 5;
    fixture_wait(&f, has_tokens);
    app_act(f.app, ACTION_STOP);
    fixture_wait(&f, is_idle);
    const struct turn *t = fixture_turn(&f, 1);
    assert_true(t->n_tokens >= 5);
    assert_int_equal(t->end_reason, END_STOPPED);
    assert_false(t->complete);
    expect_message(&f, "stopped");
    app_stop(f.app); /* nothing runs: nothing happens */
    fixture_ask(&f, "/set max_tokens 4");
    fixture_ask(&f, "again");
    assert_int_equal(fixture_turn(&f, 3)->n_tokens, 4);
    expect_message(&f, "limit of 4 tokens");
    fixture_stop(&f);
}

static bool is_second_asked(const struct app *app)
{
    return app->answer != NULL && app->answer == conversation_at(app->conversation, 3);
}

/* Stopping while the prompt is still worked on, and while the model hangs. */
static void test_stop_before_the_first_word(void **state)
{
    (void)state;
    fixture_start(&f, "{\"progress\":[64,512]}\n{\"hang\":true}\n{\"text\":\"Never.\"}\n");
    app_enter(f.app, "go");
    app_enter(f.app, "and then");
    app_stop(f.app);
    fixture_wait(&f, is_second_asked); /* what was queued is sent, and hangs too */
    assert_string_equal(fixture_text(&f, 2), "and then");
    app_stop(f.app);
    fixture_wait(&f, is_idle);
    assert_int_equal(fixture_turn(&f, 3)->end_reason, END_STOPPED);
    fixture_stop(&f);
}

/* ---- anew ------------------------------------------------------------------------------------ */

static void expect_versions(struct turn *t, size_t version, size_t n)
{
    size_t count;

    assert_int_equal(turn_version(f.app->conversation, t, &count), version);
    assert_int_equal(count, n);
}

/* How many tokens two answers have in common from the first on. */
static int32_t count_common(const struct turn *a, const struct turn *b)
{
    int32_t n = 0;

    while (n < (int32_t)a->n_tokens && n < (int32_t)b->n_tokens &&
           a->tokens[n].id == b->tokens[n].id)
        n++;
    return n;
}

static void test_retry(void **state)
{
    (void)state;
    fixture_start(&f, DICE);
    app_retry(f.app, false);
    expect_message(&f, "nothing to retry");
    fixture_ask(&f, "/set max_tokens 30");
    fixture_ask(&f, "go");
    struct turn *first = fixture_turn(&f, 1);

    app_retry(f.app, true); /* the same dice and the same faders: the same words */
    fixture_wait(&f, is_idle);
    struct turn *same = fixture_turn(&f, 1);
    assert_ptr_not_equal(same, first);
    assert_int_equal(same->seed, first->seed);
    assert_int_equal(count_common(same, first), 30);
    assert_int_equal(same->branch_at, -1);

    set_knob(KNOB_TEMPERATURE, 0); /* the same dice, present faders: they part where it matters */
    app_act(f.app, ACTION_RETRY_SAME);
    fixture_wait(&f, is_idle);
    struct turn *cold = fixture_turn(&f, 1);
    assert_int_equal(cold->seed, first->seed);
    assert_ptr_equal(cold->earlier, same);
    assert_int_equal(cold->branch_at, count_common(cold, same));
    assert_true(cold->branch_at < 30);

    app_act(f.app, ACTION_RETRY);
    fixture_wait(&f, is_idle);
    struct turn *fresh = fixture_turn(&f, 1);
    assert_int_not_equal(fresh->seed, first->seed);
    expect_versions(fresh, 3, 4);

    app_version(f.app, -1);
    assert_ptr_equal(fixture_turn(&f, 1), cold);
    expect_message(&f, "version 3 of 4");
    for (int i = 0; i < 5; i++)
        app_act(f.app, ACTION_VERSION_PREVIOUS);
    assert_ptr_equal(fixture_turn(&f, 1), first);
    expect_message(&f, "the first");
    assert_int_equal(f.acted, ACTION_VERSION_PREVIOUS); /* offered to the view first */
    app_act(f.app, ACTION_VERSION_NEXT);
    assert_ptr_equal(fixture_turn(&f, 1), same);
    fixture_stop(&f);
}

/* A retry in the middle of an answer stops that one, which is kept, and what it still says is
 * ignored. */
static void test_retry_while_answering(void **state)
{
    (void)state;
    fixture_start(&f, FIVE);
    app_enter(f.app, "go");
    wanted_tokens = 3;
    fixture_wait(&f, has_tokens);
    struct turn *first = f.app->answer;
    app_retry(f.app, true);
    size_t kept = first->n_tokens;
    assert_int_equal(first->end_reason, END_STOPPED);
    assert_true(app_is_answering(f.app));
    fixture_wait(&f, has_tokens);
    struct turn *second = f.app->answer;
    assert_ptr_not_equal(second, first);
    assert_ptr_equal(fixture_turn(&f, 1), second);
    assert_int_equal(first->n_tokens, kept);
    assert_int_equal(second->tokens[0].id, first->tokens[0].id);
    assert_int_equal(second->tokens[2].id, first->tokens[2].id);
    fixture_stop(&f);
}

static void test_seed_kept(void **state)
{
    (void)state;
    fixture_start(&f, DICE);
    app_enter(f.app, "/set seed 4711");
    app_enter(f.app, "/set max_tokens 9");
    assert_true(f.app->seed_kept);
    fixture_ask(&f, "go");
    assert_int_equal(fixture_turn(&f, 1)->seed, 4711);
    fixture_ask(&f, "/retry");
    assert_int_not_equal(f.app->kept_seed, 4711); /* a new one was asked for, and is kept */
    assert_int_equal(fixture_turn(&f, 1)->seed, f.app->kept_seed);
    fixture_ask(&f, "on");
    assert_int_equal(fixture_turn(&f, 3)->seed, f.app->kept_seed);
    fixture_stop(&f);
}

static const struct view_candidate *candidate(const char *text)
{
    for (int32_t i = 0; i < f.app->view.n_candidates; i++) {
        const struct view_candidate *c = &f.app->view.candidates[i];
        if (c->len == strlen(text) && memcmp(c->text, text, c->len) == 0 && !c->eog)
            return c;
    }
    fail_msg("no candidate \"%s\"", text);
    return NULL;
}

static void test_pick(void **state)
{
    (void)state;
    fixture_start(&f, SIX);
    set_knob(KNOB_TEMPERATURE, 0);
    set_knob(KNOB_REPETITION_PENALTY, 1);
    ask_paused("go");
    step_to(3);
    struct turn *first = f.app->answer;
    set_knob(KNOB_TEMPERATURE, 0.8);
    set_knob(KNOB_TOP_K, 3);
    fixture_wait(&f, is_paused_at_view);
    assert_string_equal(f.app->conversation->models[first->model], "script");
    app_pick(f.app, candidate(" b")->c.id);
    fixture_wait(&f, is_stepped);
    struct turn *second = f.app->answer;
    assert_ptr_not_equal(second, first);
    assert_string_equal(second->text.data, " a a a b");
    assert_int_equal(second->n_given, 4);
    assert_int_equal(second->branch_at, 3);
    assert_ptr_equal(second->earlier, first);
    assert_int_equal(second->seed, first->seed);
    assert_int_equal(second->tokens[3].rank, -1);
    assert_true(second->tokens[3].p > 0 && second->tokens[3].p < 0.5f);
    assert_int_equal(first->end_reason, END_STOPPED);
    assert_int_equal(first->n_tokens, 3); /* the first version is kept */
    assert_int_equal(f.app->view.n, 4);   /* it goes on from there */
    set_knob(KNOB_TOP_K, 1);
    app_set_paused(f.app, false);
    fixture_wait(&f, is_idle);
    assert_string_equal(fixture_text(&f, 1), " a a a b a a");
    assert_true(second->complete);
    /* the branch knows that it was begun greedily, and with what it went on from the word that was
     * picked */
    assert_near(second->knobs.value[KNOB_TEMPERATURE], 0, 0);
    struct knobs last;
    assert_true(conversation_last_knobs(f.app->conversation, &last));
    assert_near(last.value[KNOB_TEMPERATURE], 0.8, 0);
    assert_near(last.value[KNOB_TOP_K], 1, 0);
    for (size_t i = 0; i < second->n_moves; i++)
        assert_int_equal(second->moves[i].n, 4);
    expect_versions(second, 1, 2);
    fixture_stop(&f);
}

/* The candidates stay when the answer has ended: another word instead of its end. */
static void test_pick_after_the_end(void **state)
{
    (void)state;
    fixture_start(&f, "{\"answer\":{}}\n{\"draw\":[[\" x\",1]]}\n{\"draw\":[[null,2],[\" y\",1]]}\n"
                      "{\"draw\":[[\" z\",1]]}\n");
    set_knob(KNOB_TEMPERATURE, 0);
    fixture_ask(&f, "go");
    assert_string_equal(fixture_text(&f, 1), " x");
    set_knob(KNOB_TEMPERATURE, 1); /* posts a look at the logits in hand */
    app_set_paused(f.app, true);
    fixture_wait(&f, is_paused_at_view);
    app_set_paused(f.app, false);
    assert_int_equal(f.app->view.n, 1);
    app_pick(f.app, candidate(" y")->c.id);
    fixture_wait(&f, is_idle);
    assert_string_equal(fixture_text(&f, 1), " x y z");
    app_pick(f.app, 99);
    expect_message(&f, "no such word");
    fixture_stop(&f);
}

static void test_pick_the_end(void **state)
{
    (void)state;
    fixture_start(&f, SIX);
    set_knob(KNOB_TEMPERATURE, 0); /* the dice must not end it first */
    ask_paused("go");
    step_to(2);
    struct turn *first = f.app->answer;
    set_knob(KNOB_TEMPERATURE, 1);
    set_knob(KNOB_TOP_K, 0);
    set_knob(KNOB_TOP_P, 1);
    fixture_wait(&f, is_paused_at_view);
    f.app->candidate = -1;
    for (int i = 0; i < f.app->view.n_candidates; i++) {
        if (f.app->view.candidates[i].eog)
            f.app->candidate = i;
    }
    app_act(f.app, ACTION_CANDIDATE_PICK);
    fixture_wait(&f, is_idle);
    struct turn *second = fixture_turn(&f, 1);
    assert_ptr_not_equal(second, first);
    assert_int_equal(second->n_tokens, 2);
    assert_true(second->complete);
    assert_string_equal(second->text.data, first->text.data);
    fixture_stop(&f);
}

static void test_candidate_rows(void **state)
{
    (void)state;
    fixture_start(&f, SIX);
    app_act(f.app, ACTION_CANDIDATE_PICK);
    expect_message(&f, "no word to choose");
    ask_paused("go");
    app_act(f.app, ACTION_CANDIDATE_UP);
    assert_int_equal(f.app->candidate, 0);
    for (int i = 0; i < 40; i++)
        app_act(f.app, ACTION_CANDIDATE_DOWN);
    assert_int_equal(f.app->candidate, f.app->view.n_candidates - 1);
    step_to(1); /* another word: the first row again */
    assert_int_equal(f.app->candidate, 0);
    app_set_candidates(f.app, 1);
    fixture_wait(&f, is_paused_at_view);
    assert_int_equal(f.app->view.n_listed, 1);
    fixture_stop(&f);
}

static void test_faders_by_action(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    assert_int_equal(f.app->selected, KNOB_TEMPERATURE);
    app_act(f.app, ACTION_NUDGE_RIGHT);
    app_act(f.app, ACTION_COARSE_RIGHT);
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 1.05, 1e-12);
    app_act(f.app, ACTION_FADER_UNDO);
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 0.85, 1e-12);
    app_act(f.app, ACTION_FADER_RESET);
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 0.8, 0);
    app_act(f.app, ACTION_FADER_DOWN);
    assert_int_equal(f.app->selected, KNOB_TOP_K);
    app_act(f.app, ACTION_FADER_MUTE);
    assert_near(f.app->control.knobs.value[KNOB_TOP_K], 0, 0);
    app_act(f.app, ACTION_FADER_MUTE);
    assert_near(f.app->control.knobs.value[KNOB_TOP_K], 50, 0);
    for (int i = 0; i < 3; i++)
        app_act(f.app, ACTION_FADER_DOWN);
    assert_int_equal(f.app->selected, KNOB_REPETITION_PENALTY); /* round the end */
    app_act(f.app, ACTION_FADER_UP);
    assert_int_equal(f.app->selected, KNOB_MIN_P);
    app_act(f.app, ACTION_FADER_MUTE);
    expect_message(&f, "does nothing already");
    app_move_fader(f.app, KNOB_TEMPERATURE, 1);
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 2, 0);
    app_act(f.app, ACTION_SCROLL_UP); /* the view's */
    assert_int_equal(f.acted, ACTION_SCROLL_UP);
    app_act(f.app, ACTION_PRESETS);
    assert_int_equal(f.presets_asked, 1);
    fixture_stop(&f);
}

/* ---- presets --------------------------------------------------------------------------------- */

static struct preset *preset_new(const char *name, double temperature)
{
    struct preset *p = mem_zalloc(sizeof *p);

    p->name = mem_strdup(name);
    p->description = mem_strdup("one sentence");
    p->knobs = knobs_default();
    p->knobs.value[KNOB_TEMPERATURE] = temperature;
    for (int i = 0; i < KNOB_COUNT; i++)
        p->has[i] = true;
    p->seed = -1;
    return p;
}

static void test_preset_in_an_answer(void **state)
{
    struct preset *p = preset_new("cold", 0);
    (void)state;

    fixture_start(&f, DICE);
    app_enter(f.app, "/set max_tokens 6");
    ask_paused("go");
    struct turn *t = f.app->answer;
    uint32_t seed = t->seed;
    step_to(2);
    p->system = mem_strdup("Be cold.");
    p->seed = 4711;
    app_use_preset(f.app, p);
    expect_message(&f, "cold: knobs now; its system prompt and seed from the next message");
    app_set_paused(f.app, false);
    fixture_wait(&f, is_idle);
    assert_int_equal(t->moves[0].n, 2); /* the knobs now */
    assert_int_equal(t->moves[0].knob, KNOB_TEMPERATURE);
    assert_int_equal(t->tokens[2].rank, 0);
    assert_int_equal(t->seed, seed); /* the rest later */
    assert_null(t->system);
    fixture_ask(&f, "next");
    assert_int_equal(fixture_turn(&f, 3)->seed, 4711);
    assert_string_equal(fixture_turn(&f, 3)->system, "Be cold.");

    app_use_preset(f.app, preset_new("plain", 1)); /* what a preset had said goes with it */
    expect_message(&f, "plain: one sentence");
    assert_false(f.app->seed_kept);
    assert_null(f.app->conversation->system);
    app_enter(f.app, "/system Be mine.");
    app_use_preset(f.app, preset_new("plain", 1)); /* what was typed stays */
    assert_string_equal(f.app->conversation->system, "Be mine.");
    fixture_stop(&f);
}

/* ---- versions of messages -------------------------------------------------------------------- */

static void test_undo_and_edit(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/undo");
    expect_message(&f, "nothing to take back");
    app_enter(f.app, "/edit");
    expect_message(&f, "no message to edit");
    fixture_ask(&f, "one");
    fixture_ask(&f, "two");
    app_enter(f.app, "/undo");
    assert_int_equal(conversation_depth(f.app->conversation), 2);
    fixture_ask(&f, "two again");
    struct turn *again = fixture_turn(&f, 2);
    expect_versions(again, 1, 2);

    app_enter(f.app, "/edit");
    assert_string_equal(f.input, "two again");
    fixture_ask(&f, "two for good");
    assert_string_equal(fixture_text(&f, 2), "two for good");
    expect_versions(fixture_turn(&f, 2), 2, 3);
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    assert_null(f.app->editing);

    app_enter(f.app, "/edit"); /* thought better of it */
    app_cancel_edit(f.app);
    expect_message(&f, "not edited");
    fixture_ask(&f, "three");
    assert_string_equal(fixture_text(&f, 4), "three");
    app_enter(f.app, "/undo");

    app_version(f.app, -1);
    assert_string_equal(fixture_text(&f, 2), "two again");
    app_version_of(f.app, again, -1);
    assert_string_equal(fixture_text(&f, 2), "two");
    assert_int_equal(conversation_depth(f.app->conversation), 4); /* with its answer */
    app_enter(f.app, "/clear");
    assert_int_equal(conversation_depth(f.app->conversation), 0);
    assert_true(f.app->conversation->n_turns >= 8);
    fixture_stop(&f);
}

/* ---- what is being typed --------------------------------------------------------------------- */

static int32_t wanted_ahead;

static bool is_ahead(const struct app *app)
{
    struct backend_status now;

    backend_status(app->backend, &now);
    return now.ahead == wanted_ahead;
}

/* Until the backend has run `words` of the next prompt ahead: the whole ones. */
static void wait_ahead(int32_t words)
{
    wanted_ahead = words;
    fixture_wait(&f, is_ahead);
}

static void type(const char *text)
{
    f.typed = text;
    app_input_changed(f.app);
}

/* What is expected is what Enter would send, and behind what. */
static void test_draft(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    type("one two thr");
    wait_ahead(2);
    type("/set temp 1"); /* a command is no message */
    wait_ahead(0);
    type("//slash is not");
    wait_ahead(2);
    f.typed = "";
    fixture_ask(&f, "//slash is not it");
    assert_int_equal(f.app->stats.prompt_tokens, 4);
    assert_int_equal(f.app->stats.reused_tokens, 2);
    assert_int_equal(f.app->stats.ahead_tokens, 2);
    wait_ahead(4 + 3); /* the answer, too */
    type("two words");
    wait_ahead(4 + 3 + 1);
    app_enter(f.app, "/undo");
    wait_ahead(1);
    app_enter(f.app, "/system You are brief.");
    wait_ahead(3 + 1);
    f.typed = "";
    fixture_ask(&f, "a b");
    app_enter(f.app, "/edit");
    type("c d e");
    wait_ahead(3 + 2);
    app_cancel_edit(f.app);
    wait_ahead(3 + 2 + 3 + 2);
    app_enter(f.app, "/new");
    wait_ahead(3 + 2);
    fixture_stop(&f);
}

/* While an answer is under way nothing is told; when it has ended, with all of it. */
static void test_draft_while_answering(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    ask_paused("go on now");
    type("then go h");
    while (f.app->draft_due_ns != 0)
        app_poll(f.app, 100);
    app_set_paused(f.app, false);
    wait_ahead(3 + 3 + 2);
    fixture_stop(&f);
}

/* A hand that never rests is told of now and then. */
static void test_draft_typed_on(void **state)
{
    const int64_t start = clock_now_ns();
    (void)state;

    fixture_start(&f, RAIN);
    wanted_ahead = 2;
    while (!is_ahead(f.app)) {
        type("one two three");
        app_poll(f.app, 20);
        if (clock_since_s(start) > 30)
            fail_msg("it was never told");
    }
    fixture_stop(&f);
}

static void test_draft_off(void **state)
{
    (void)state;
    fixture_prepare(&f);
    f.settings.prefill = PREFILL_OFF;
    fixture_open(&f, RAIN);
    assert_int_equal(f.app->prefill_origin, ORIGIN_SETTINGS);
    type("one two three");
    while (f.app->draft_due_ns != 0)
        app_poll(f.app, 100);
    fixture_ask(&f, "one two three");
    assert_int_equal(f.app->stats.ahead_tokens, 0);
    app_enter(f.app, "/set prefill_while_typing auto");
    type("four five six");
    wait_ahead(3 + 3 + 2);
    fixture_stop(&f);
}

static void test_edit_in_editor(void **state)
{
    struct view_ops no_line;
    (void)state;

    fixture_start(&f, RAIN);
    fixture_ask(&f, "one");
    no_line = *f.app->ops;
    no_line.set_input = NULL;
    f.app->ops = &no_line;
    app_enter(f.app, "/edit");
    expect_message(&f, "no editor");
    assert_null(f.app->editing);
    f.edited = mem_strdup("won");
    app_enter(f.app, "/edit");
    fixture_wait(&f, is_idle);
    assert_string_equal(fixture_text(&f, 0), "won");
    expect_versions(fixture_turn(&f, 0), 1, 2);
    fixture_stop(&f);
}

/* What happened before /new is not heard of again, though its answer still comes. */
static void test_new_while_answering(void **state)
{
    (void)state;
    fixture_start(&f, "{\"answer\":{\"for\":\"go\"}}\n" DICE "{\"answer\":{}}\n" RAIN);
    for (int i = 0; i < 20; i++) {
        app_enter(f.app, "go");
        app_enter(f.app, i % 2 == 0 ? "/new" : "/clear");
        fixture_ask(&f, "Hello");
        assert_int_equal(conversation_depth(f.app->conversation), 2);
        assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
        app_enter(f.app, "/new");
        assert_false(f.app->has_view);
    }
    app_nudge(f.app, KNOB_TEMPERATURE, 1, false); /* a look at logits of what is gone */
    for (int i = 0; i < 20; i++)
        app_poll(f.app, 10);
    assert_false(f.app->has_view);
    fixture_stop(&f);
}

/* ---- ends, errors ---------------------------------------------------------------------------- */

static void test_context(void **state)
{
    (void)state;
    fixture_start(&f, "{\"model\":{\"ctx\":20}}\n" DICE);
    app_enter(f.app, "/set on_full stop");
    fixture_ask(&f, "one two three");
    assert_int_equal(fixture_turn(&f, 1)->end_reason, END_CONTEXT_FULL);
    expect_message(&f, "the context is full");
    assert_true(f.app->context_warned);
    fixture_stop(&f);

    fixture_start(&f, "{\"model\":{\"ctx\":20}}\n" DICE);
    fixture_ask(&f, "one two"); /* to drop, but nothing could leave yet */
    assert_int_equal(fixture_turn(&f, 1)->end_reason, END_CONTEXT_FULL);
    app_enter(f.app, "/clear");
    assert_false(f.app->context_warned);
    fixture_stop(&f);
}

static bool is_warned(const struct app *app)
{
    return app->context_warned;
}

static void test_context_warning(void **state)
{
    (void)state;
    fixture_start(&f, "{\"model\":{\"ctx\":100}}\n" DICE);
    ask_paused("go");
    step_to(83); /* and one of the prompt */
    assert_false(f.app->context_warned);
    step_to(84);
    fixture_wait(&f, is_warned);
    expect_message(&f, "the context is 85 % full: the oldest turns will leave it");
    fixture_stop(&f);
}

static void test_dropped(void **state)
{
    char text[128];
    (void)state;

    fixture_start(&f, "{\"dropped\":[2,311]}\n" RAIN);
    fixture_ask(&f, "Hello");
    app_dropped_text(fixture_turn(&f, 1), text, sizeof text);
    assert_string_equal(text, "the oldest 2 messages left the context (311 tokens: it was full)");
    expect_message(&f, "311 tokens");
    app_dropped_text(fixture_turn(&f, 0), text, sizeof text);
    assert_string_equal(text, "");
    fixture_stop(&f);
}

static void test_error(void **state)
{
    (void)state;
    fixture_start(&f,
                  "{\"answer\":{}}\n{\"text\":\"Half\"}\n{\"error\":\"the map was cut short\"}\n"
                  "{\"text\":\"way\"}\n{\"answer\":{}}\n" RAIN);
    app_enter(f.app, "Hello");
    app_enter(f.app, "typed meanwhile");
    fixture_wait(&f, is_idle);
    expect_message(&f, "the map was cut short");
    assert_int_equal(fixture_turn(&f, 1)->end_reason, END_ERROR);
    assert_string_equal(fixture_text(&f, 1), "Half");
    assert_string_equal(f.input, "typed meanwhile"); /* not sent into the fire, not lost */
    fixture_ask(&f, "/retry");
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    fixture_stop(&f);
}

/* What never got a word is not left in the way of the next message. */
static void test_prompt_failed(void **state)
{
    (void)state;
    fixture_start(
        &f, "{\"answer\":{}}\n{\"error\":\"the prompt is too long\"}\n" AGAIN RAIN AGAIN RAIN);
    app_enter(f.app, "A long story");
    app_enter(f.app, "and more");
    fixture_wait(&f, is_idle);
    expect_message(&f, "too long");
    assert_string_equal(f.input, "A long story\nand more");
    fixture_ask(&f, "A story");
    assert_int_equal(conversation_depth(f.app->conversation), 2);
    assert_string_equal(fixture_text(&f, 0), "A story");
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    fixture_ask(&f, "On");
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    fixture_stop(&f);
}

/* Asked again as it is, it is an edit no more. */
static void test_prompt_failed_retry(void **state)
{
    (void)state;
    fixture_start(&f, "{\"answer\":{}}\n{\"error\":\"no memory\"}\n" AGAIN RAIN AGAIN RAIN);
    app_enter(f.app, "Hello");
    fixture_wait(&f, is_idle);
    fixture_ask(&f, "/retry");
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    fixture_ask(&f, "On");
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    fixture_stop(&f);
}

static bool has_failed(const struct app *app)
{
    return app->state == APP_FAILED;
}

static void test_no_model(void **state)
{
    struct error err;
    (void)state;

    fixture_prepare(&f);
    assert_true(
        fixture_try_open(&f, "{\"model\":{\"error\":\"type Q2_K is not known\"}}\n", NULL, &err));
    app_enter(f.app, "Hello"); /* asked for while it loads */
    fixture_wait(&f, has_failed);
    fixture_wait(&f, is_idle);
    expect_message(&f, "type Q2_K is not known");
    assert_int_equal(fixture_turn(&f, 1)->end_reason, END_ERROR);
    app_enter(f.app, "Hello?");
    expect_message(&f, "no model");
    app_enter(f.app, "/retry");
    expect_message(&f, "no model");
    assert_int_equal(conversation_depth(f.app->conversation), 2);
    fixture_stop(&f);
}

/* A message may be typed before the model is there; it is asked when it is, with its ids. */
static void test_asked_while_loading(void **state)
{
    struct error err;
    (void)state;

    fixture_prepare(&f);
    assert_true(fixture_try_open(&f, "{\"model\":{\"name\":\"Toy\",\"loading\":[0.3,0.7]}}\n" RAIN,
                                 NULL, &err));
    app_enter(f.app, "Hello");
    app_enter(f.app, "And then?");
    assert_int_equal(f.app->state, APP_LOADING);
    assert_true(app_is_answering(f.app));
    fixture_wait(&f, is_idle);
    assert_near(f.app->load_share, 1, 0);
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    assert_string_equal(fixture_text(&f, 2), "And then?");
    assert_string_equal(f.app->conversation->models[fixture_turn(&f, 1)->model], "Toy");
    fixture_close(&f);

    assert_true(fixture_try_open(&f, RAIN, NULL, &err));
    app_enter(f.app, "Hello");
    app_stop(f.app); /* before it could begin */
    fixture_wait(&f, is_idle);
    assert_int_equal(fixture_turn(&f, 1)->end_reason, END_STOPPED);
    assert_int_equal(fixture_turn(&f, 1)->n_tokens, 0);
    fixture_stop(&f);
}

/* ---- other models ---------------------------------------------------------------------------- */

static struct backend *open_model(void *ctx, const char *name, const struct control *initial,
                                  struct error *err)
{
    char *path = fixture_write(ctx, "other",
                               strcmp(name, "bad") == 0
                                   ? "{\"model\":{\"error\":\"half a file\"}}\n"
                                   : "{\"model\":{\"name\":\"Other\"}}\n{\"text\":\"Me too.\"}\n");
    struct backend *b = strcmp(name, "none") == 0 ? (error_set(err, "no model none"), NULL)
                                                  : scripted_backend_new(path, initial, err);

    free(path);
    return b;
}

static void test_switch_model(void **state)
{
    struct message_list m;
    (void)state;

    fixture_prepare(&f);
    f.options.open_model = open_model;
    f.options.open_model_ctx = &f;
    fixture_open(&f, "{\"model\":{\"name\":\"Toy\"}}\n" RAIN);
    fixture_ask(&f, "Hello");
    set_knob(KNOB_TEMPERATURE, 1.3);
    app_enter(f.app, "/model none");
    expect_message(&f, "no model none");
    assert_string_equal(f.app->status.model->label, "Toy");
    app_enter(f.app, "/model other");
    fixture_wait(&f, is_idle);
    assert_string_equal(f.app->status.model->label, "Other");
    assert_int_equal(conversation_depth(f.app->conversation), 2); /* the conversation stays */
    fixture_ask(&f, "And you?");
    assert_string_equal(fixture_text(&f, 3), "Me too.");
    assert_near(fixture_turn(&f, 3)->knobs.value[KNOB_TEMPERATURE], 1.3, 0);
    conversation_messages(f.app->conversation, NULL, &m);
    assert_null(m.items[1].tokens); /* Toy's ids mean nothing to Other */
    assert_non_null(m.items[3].tokens);
    message_list_done(&m);

    app_enter(f.app, "/model bad"); /* back to the one before */
    fixture_wait(&f, is_idle);
    assert_string_equal(f.app->status.model->label, "Other");
    assert_int_equal(f.app->state, APP_IDLE);
    expect_message(&f, "half a file; back to other");
    fixture_ask(&f, "Still there?");
    assert_string_equal(fixture_text(&f, 5), "Me too.");
    fixture_stop(&f);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *newest(void)
{
    char folder[256];

    snprintf(folder, sizeof folder, "%s/fader/transcripts", f.folder);
    return transcript_newest(folder);
}

static void test_saved_and_continued(void **state)
{
    struct stat st;
    (void)state;

    fixture_start(&f, DICE);
    fixture_close(&f);
    assert_null(newest()); /* an empty chat leaves no file */
    fixture_open(&f, DICE);
    app_enter(f.app, "/system Be brief.");
    app_enter(f.app, "/set max_tokens 7");
    ask_paused("go");
    step_to(3);
    set_knob(KNOB_TEMPERATURE, 1.65);
    app_set_paused(f.app, false);
    fixture_wait(&f, is_idle);
    fixture_ask(&f, "/retry same");
    app_version(f.app, -1);
    fixture_ask(&f, "more");
    char *path = newest();
    assert_non_null(path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct conversation *live = f.app->conversation;
    struct str before = STR_INIT, after = STR_INIT;
    transcript_format(live, "script", &before);
    fixture_close(&f);

    f.options.continue_path = path;
    fixture_open(&f, DICE);
    transcript_format(f.app->conversation, "script", &after);
    assert_string_equal(strchr(before.data, '\n'), strchr(after.data, '\n')); /* all but the time */
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 1.65, 0);
    assert_true(desk_is_changed(&f.app->desk));
    assert_string_equal(f.app->conversation->system, "Be brief.");
    size_t turns = f.app->conversation->n_turns;
    app_enter(f.app, "/set max_tokens 2");
    fixture_ask(&f, "and more"); /* into the same file */
    fixture_close(&f);
    char *again = newest();
    assert_string_equal(again, path);
    fixture_open(&f, DICE);
    assert_int_equal(f.app->conversation->n_turns, turns + 2);
    assert_string_equal(fixture_text(&f, 4), "and more");
    f.options.continue_path = NULL;
    free(path);
    free(again);
    str_done(&before);
    str_done(&after);
    fixture_stop(&f);
}

/* A crash tore the last line: what stands before it goes on. */
static void test_torn(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    fixture_ask(&f, "Hello");
    fixture_close(&f);
    char *path = newest(), *text = fixture_read(path);
    assert_int_equal(truncate(path, (off_t)strlen(text) - 20), 0);
    f.options.continue_path = path;
    fixture_open(&f, RAIN);
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    assert_int_equal(fixture_turn(&f, 1)->end_reason, END_STOPPED);
    fixture_ask(&f, "And now?");
    fixture_close(&f);
    fixture_open(&f, RAIN);
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    free(path);
    free(text);
    fixture_stop(&f);
}

/* Turns leave before the answer starts, and its record must come first all the same. */
static void test_dropped_reopens(void **state)
{
    static const char script[] = "{\"model\":{\"name\":\"Toy\",\"ctx\":12}}\n" RAIN;
    (void)state;

    fixture_start(&f, script);
    fixture_ask(&f, "one two three");
    fixture_ask(&f, "four five six seven eight nine ten");
    assert_int_equal(fixture_turn(&f, 3)->dropped_messages, 2);
    assert_string_equal(fixture_text(&f, 3), "Rain falls today.");
    fixture_close(&f);
    char *path = newest();
    f.options.continue_path = path;
    fixture_open(&f, script);
    assert_int_equal(fixture_turn(&f, 3)->dropped_messages, 2);
    assert_string_equal(fixture_text(&f, 3), "Rain falls today.");
    free(path);
    fixture_stop(&f);
}

static void test_continue_fails(void **state)
{
    struct error err;
    (void)state;

    fixture_prepare(&f);
    f.options.continue_path = "/nowhere/at/all.jsonl";
    assert_false(fixture_try_open(&f, RAIN, NULL, &err));
    assert_non_null(strstr(err.text, "/nowhere/at/all.jsonl"));
    fixture_stop(&f);
}

/* At the start the command line wins over what the conversation was last played with. */
static void test_continue_with_a_preset(void **state)
{
    struct error err;
    (void)state;

    fixture_start(&f, RAIN);
    set_knob(KNOB_TEMPERATURE, 1.65);
    fixture_ask(&f, "Hello");
    fixture_close(&f);
    char *path = newest();
    f.options.continue_path = path;
    struct preset *cold = preset_new("cold", 0);
    assert_true(fixture_try_open(&f, RAIN, cold, &err));
    fixture_wait(&f, is_idle);
    assert_near(f.app->control.knobs.value[KNOB_TEMPERATURE], 0.8, 0); /* the desk it was given */
    free(path);
    fixture_stop(&f);
}

static void test_not_saved(void **state)
{
    (void)state;
    fixture_prepare(&f);
    f.options.no_save = true;
    fixture_open(&f, RAIN);
    fixture_ask(&f, "Hello");
    fixture_close(&f);
    assert_null(newest());
    f.options.no_save = false;
    f.settings.save = false;
    fixture_open(&f, RAIN);
    fixture_ask(&f, "Hello");
    fixture_close(&f);
    assert_null(newest());
    fixture_stop(&f);
}

static void limit_files(bool limit)
{
    struct rlimit r;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = limit ? 64 : r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* A full disk is said once, nothing is lost while the program lives, and it is tried again. */
static void test_full_disk(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    limit_files(true);
    fixture_ask(&f, "Hello");
    assert_true(f.app->save_failed);
    expect_message(&f, "not saved");
    f.app->message[0] = '\0';
    app_poll(f.app, 0);
    fixture_ask(&f, "And now?");
    f.app->save_after_ns = 0; /* it is time to try again: still full, and not said again */
    app_poll(f.app, 0);
    assert_true(f.app->save_failed);
    assert_string_equal(f.app->message, "");
    char *path = mem_strdup(transcript_path(f.app->transcript));
    app_enter(f.app, "/new"); /* leaving it does not lose it */
    struct error err;
    assert_false(app_finish(f.app, &err)); /* whoever ends the program now can say so */
    assert_non_null(strstr(err.text, path));
    limit_files(false);
    f.app->save_after_ns = 0;
    app_poll(f.app, 0);
    assert_false(f.app->save_failed);
    expect_message(&f, "saved again");
    assert_true(app_finish(f.app, &err));
    fixture_close(&f);
    f.options.continue_path = path;
    fixture_open(&f, RAIN);
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    assert_string_equal(fixture_text(&f, 3), "Rain falls today.");
    free(path);
    fixture_stop(&f);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int inputs, signals, ticks;
static int64_t tick_due;

static void input_ready(void *view)
{
    char byte;
    const struct fixture *fixture = view;

    inputs += read(fixture->app->view_fd, &byte, 1) == 1 ? 1 : 0;
}

static void signal_ready(void *view)
{
    char byte;
    const struct fixture *fixture = view;

    signals += read(fixture->app->signal_fd, &byte, 1) == 1 ? 1 : 0;
}

static int64_t tick(void *view, int64_t now_ns)
{
    (void)view;
    (void)now_ns;
    ticks++;
    return tick_due;
}

static int64_t tick_quits(void *view, int64_t now_ns)
{
    (void)now_ns;
    ((struct fixture *)view)->app->quit = true;
    return INT64_MAX;
}

/* A view that finds a reason to leave while it draws is not left to sleep. */
static void test_quit_while_drawing(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    f.app->tick = tick_quits;
    assert_int_equal(app_run(f.app), 0); /* would sleep for ever */
    fixture_stop(&f);
}

/* One round that lasts until `due_ns`. A byte that was late for an earlier wait (sync/wake.h) may end
 * a round before its time, once. */
static void poll_until(int64_t due_ns)
{
    app_poll(f.app, -1);
    if (clock_now_ns() < due_ns)
        app_poll(f.app, -1);
    assert_true(clock_now_ns() >= due_ns);
}

static void test_loop(void **state)
{
    int in[2], sig[2];
    (void)state;

    fixture_start(&f, RAIN);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(sig), 0);
    f.app->view_fd = in[0];
    f.app->signal_fd = sig[0];
    f.app->input_ready = input_ready;
    f.app->signal_ready = signal_ready;
    f.app->tick = tick;
    tick_due = INT64_MAX;
    f.app->draft_due_ns = 0; /* nothing else is due */
    assert_int_equal(write(in[1], "xy", 2), 2);
    app_poll(f.app, -1); /* returns at once: there is input */
    app_poll(f.app, -1);
    assert_int_equal(inputs, 2);
    assert_int_equal(write(sig[1], "x", 1), 1);
    app_poll(f.app, -1);
    assert_int_equal(signals, 1);
    assert_int_equal(ticks, 3); /* once a round */
    tick_due = clock_now_ns() + 20000000;
    poll_until(tick_due); /* ends when the next frame is due */
    tick_due = INT64_MAX;

    app_say(f.app, SAY_INFO, "gone soon\033[2J");
    assert_string_equal(f.app->message, "gone soon [2J"); /* one clean line */
    f.app->message_until_ns = clock_now_ns() + 20000000;
    poll_until(f.app->message_until_ns); /* ends when the message does */
    app_poll(f.app, 0);
    assert_string_equal(f.app->message, "");
    app_say(f.app, SAY_ERROR, "stays");
    assert_int_equal(f.app->message_until_ns, 0);

    assert_int_equal(write(in[1], "x", 1), 1);
    f.app->quit = true;
    assert_int_equal(app_run(f.app), 0);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(sig[i]);
    }
    fixture_stop(&f);
}

/* Without anything to do no time is used: the wake pipe stays empty, poll sleeps. */
static void test_idle(void **state)
{
    int early = 0;
    (void)state;

    fixture_start(&f, RAIN);
    fixture_ask(&f, "Hello");
    app_poll(f.app, 0);
    f.app->tick = tick;
    tick_due = INT64_MAX;
    f.app->message_until_ns = 0;
    ticks = 0;
    for (int i = 0; i < 5; i++) {
        const int64_t start = clock_now_ns();
        app_poll(f.app, 20);
        early += clock_now_ns() - start < 20000000;
    }
    assert_int_equal(ticks, 5);
    assert_true(early <= 1); /* a byte that was late for the last wait */
    fixture_stop(&f);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void expect_visible(const char *bytes, size_t len, const char *want)
{
    char out[64];

    app_visible_text(bytes, len, false, out, sizeof out);
    assert_string_equal(out, want);
}

static bool names(const char *languages, const char *text, const char *want)
{
    struct str s = STR_INIT;
    bool said = app_names_languages(languages, text, &s);
    bool right = !said || strcmp(str_text(&s), want) == 0;

    str_done(&s);
    return said && right;
}

static void test_language(void **state)
{
    struct model_info english = {.languages = "en"};
    (void)state;

    assert_true(names("en", "你好，世界", "English"));
    assert_true(names("en,de", "Как дела? ok", "English, German"));
    assert_false(names("en", "Что is the best word for a home", "")); /* mostly Latin */
    assert_false(names("en", "Élan, naïveté, 12:30 …", ""));
    assert_false(names("en", "1 + 1 = ?", ""));
    assert_false(names("en,zh", "你好", ""));
    assert_false(names("", "你好", ""));
    assert_false(names(NULL, "你好", ""));

    fixture_start(&f, "");
    f.app->status.model = &english;
    app_note_language(f.app, "你好");
    expect_message(&f, "this model was made for English");
    f.app->message[0] = '\0';
    app_note_language(f.app, "你好"); /* once is enough */
    assert_string_equal(f.app->message, "");
    fixture_stop(&f);
}

static void test_visible_text(void **state)
{
    char out[8];
    (void)state;

    expect_visible(" play", 5, "␣play");
    expect_visible("\n\n\t", 3, "⏎⏎⇥");
    expect_visible("\xE4", 1, "‹E4›");
    expect_visible("\xE4\xBD", 2, "‹E4BD›");
    expect_visible("\xBD\x20", 2, "‹BD›␣");
    expect_visible("\033[2J", 4, "‹1B›[2J");
    expect_visible("\0x", 2, "‹00›x");
    expect_visible("\xC2\x85", 2, "‹85›");
    expect_visible("\xE2\x80\xAE", 3, "‹U+202E›"); /* right-to-left override */
    expect_visible("\xC2\xA0", 2, "‹U+00A0›");
    expect_visible("你好", 6, "你好");
    expect_visible("", 0, "");
    app_visible_text("x", 1, true, out, sizeof out);
    assert_string_equal(out, ""); /* "‹end›" is nine bytes: whole or not at all */
    app_visible_text("a你好b", 8, false, out, sizeof out);
    assert_string_equal(out, "a你好");
    char big[16];
    app_visible_text("x", 1, true, big, sizeof big);
    assert_string_equal(big, "‹end›");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_parts_of_characters),
        cmocka_unit_test(test_knob_is_in_force),
        cmocka_unit_test(test_shown_is_drawn),
        cmocka_unit_test(test_first_fader_slows_down),
        cmocka_unit_test(test_paces),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_before_the_first_word),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_retry_while_answering),
        cmocka_unit_test(test_seed_kept),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_pick_after_the_end),
        cmocka_unit_test(test_pick_the_end),
        cmocka_unit_test(test_candidate_rows),
        cmocka_unit_test(test_faders_by_action),
        cmocka_unit_test(test_preset_in_an_answer),
        cmocka_unit_test(test_undo_and_edit),
        cmocka_unit_test(test_draft),
        cmocka_unit_test(test_draft_while_answering),
        cmocka_unit_test(test_draft_typed_on),
        cmocka_unit_test(test_draft_off),
        cmocka_unit_test(test_edit_in_editor),
        cmocka_unit_test(test_new_while_answering),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_context_warning),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_prompt_failed),
        cmocka_unit_test(test_prompt_failed_retry),
        cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_asked_while_loading),
        cmocka_unit_test(test_switch_model),
        cmocka_unit_test(test_saved_and_continued),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_dropped_reopens),
        cmocka_unit_test(test_continue_fails),
        cmocka_unit_test(test_continue_with_a_preset),
        cmocka_unit_test(test_not_saved),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_quit_while_drawing),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_language),
        cmocka_unit_test(test_visible_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
