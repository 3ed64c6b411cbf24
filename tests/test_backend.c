/* The generation thread from outside, through the scripted backend: what events come, which knobs a
 * draw uses, and that pause, step, pace, cancel and close do what they say. Waits are for events.
 */
#include "rig.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sync/wake.h"

#define ENDLESS                                                                                    \
    "{\"model\":{\"ctx\":1000000}}\n"                                                              \
    "{\"draw\":[[\" a\",1],[\" b\",0.8],[\" c\",0.1],[\" d\",-1]]}\n{\"repeat\":0}\n"

/* ---- answers -------------------------------------------------------------------------------- */

static void test_answer(void **state)
{
    struct rig d;
    struct backend_status status;
    char piece[8];
    (void)state;

    rig_open_script(&d, "# a comment\n\n{\"model\":{\"name\":\"Toy\",\"loading\":[0.5]}}\n"
                        "{\"progress\":[2,4],\"text\":\"Rain falls.\"}\n"
                        "{\"draw\":[[{\"hex\":\"e4bd\"},0]]}\n{\"draw\":[[{\"hex\":\"a0\"},0]]}\n"
                        "{\"text\":\"\\u001b[2J\"}\n");
    assert_near(rig_await(&d, EVENT_LOADING)->u.loading.share, 0, 0);
    assert_near(rig_await(&d, EVENT_LOADING)->u.loading.share, 0.5, 0);
    assert_string_equal(rig_await(&d, EVENT_READY)->text, "Toy");
    rig_ask(&d, "one two three");
    struct event *e = rig_await(&d, EVENT_START);
    assert_int_equal(e->request, 1);
    assert_int_equal(e->u.start.seed, 7);
    assert_int_equal(e->u.start.prompt_tokens, 3);
    assert_int_equal(rig_await(&d, EVENT_PROGRESS)->u.progress.total, 4);
    e = rig_await(&d, EVENT_TOKEN);
    assert_string_equal(e->text, "Rain");
    assert_int_equal(e->u.token.ctx_used, 4);
    assert_near(e->u.token.draw.p, 1, 0);
    e = rig_await(&d, EVENT_END);
    assert_int_equal(e->u.end.reason, END_EOG);
    assert_int_equal(e->u.end.tokens, 5);
    assert_int_equal(e->u.end.ctx_used, 8);
    assert_true(e->u.end.ttft_ms > 0);
    assert_string_equal(d.text.data, "Rain falls.\xe4\xbd\xa0\x1b[2J");
    backend_status(d.b, &status);
    assert_true(status.ready && !status.failed);
    assert_string_equal(status.model->label, "Toy");
    assert_true(status.full_tps > 0);
    assert_int_equal(backend_piece(d.b, 1, piece, 2), 4);
    assert_memory_equal(piece, "Ra", 2);
    assert_int_equal(backend_piece(d.b, 99, piece, 2), 0);
    rig_close(&d);
}

static void test_answers_in_turn(void **state)
{
    struct rig d;
    static const char *const prompts[] = {"x", "a poem please", "x", "x"};
    static const char *const wanted[] = {"one", "verse", "two", "one"};
    (void)state;

    rig_open_script(&d, "{\"answer\":{}}\n{\"text\":\"one\"}\n"
                        "{\"answer\":{\"for\":\"poem\"}}\n{\"text\":\"verse\"}\n"
                        "{\"answer\":{}}\n{\"text\":\"two\"}\n");
    for (int i = 0; i < 4; i++) {
        rig_ask(&d, prompts[i]);
        rig_expect_end(&d, END_EOG);
        assert_string_equal(d.text.data, wanted[i]);
    }
    rig_close(&d);
}

static void test_limits(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS "{\"model\":{\"ctx\":10}}\n");
    struct request r = rig_request(&d, "a b c");
    r.max_tokens = 3;
    rig_submit(&d, &r);
    rig_expect_end(&d, END_MAX_TOKENS);
    assert_int_equal(d.tokens, 3);
    assert_int_equal(d.last.u.end.ctx_used,
                     5); /* the last token is not run: nobody asks what follows */
    r = rig_request(&d, "a b c");
    r.max_tokens = 0;
    rig_submit(&d, &r);
    rig_expect_end(&d, END_MAX_TOKENS);
    assert_int_equal(d.tokens, 0);
    rig_ask(&d, "a b c");
    rig_expect_end(&d, END_CONTEXT_FULL); /* seven fit, and one more that nobody runs */
    assert_int_equal(d.tokens, 8);
    r = rig_request(&d, "a b c");
    rig_add_message(&r, ROLE_ASSISTANT, "d");
    rig_add_message(&r, ROLE_USER, "e");
    r.on_full = CONTEXT_DROP_OLDEST;
    r.max_tokens = 7;
    rig_submit(&d, &r);
    assert_int_equal(rig_await(&d, EVENT_DROPPED)->u.dropped.messages, 2);
    rig_expect_end(&d, END_MAX_TOKENS);
    rig_close(&d);
}

static void test_same_dice_and_branches(void **state)
{
    struct rig d;
    int32_t ids[30];
    (void)state;

    rig_open_script(&d, ENDLESS);
    for (int round = 0; round < 2; round++) {
        struct request r = rig_request(&d, "x");
        r.max_tokens = 30;
        rig_submit(&d, &r);
        for (int i = 0; i < 30; i++) {
            int32_t id = rig_await(&d, EVENT_TOKEN)->u.token.draw.id;
            assert_true(round == 0 || id == ids[i]);
            ids[i] = id;
        }
        rig_expect_end(&d, END_MAX_TOKENS);
    }
    /* The tokens that a request brings along are context: the draws go on with their numbers. */
    struct request r = rig_request(&d, "x");
    r.max_tokens = 30;
    r.answer = mem_dup(ids, 10 * sizeof *ids);
    r.n_answer = 10;
    d.tokens = 10;
    rig_submit(&d, &r);
    for (int i = 10; i < 30; i++)
        assert_int_equal(rig_await(&d, EVENT_TOKEN)->u.token.draw.id, ids[i]);
    rig_expect_end(&d, END_MAX_TOKENS);
    assert_int_equal(d.last.u.end.tokens, 30);
    rig_close(&d);
}

static void test_failures(void **state)
{
    struct rig d;
    struct error err;
    struct backend_status status;
    (void)state;

    rig_open_script(&d, "{\"text\":\"so far\"}\n{\"error\":\"the script says so\"}\n");
    rig_ask(&d, "x");
    struct request second = {
        .id = 2, .kind = REQUEST_RAW, .text = mem_strdup("y"), .text_len = 1, .max_tokens = -1};
    assert_false(backend_submit(d.b, &second, &err));
    assert_string_equal(err.text, "an answer is already under way");
    struct event *e = rig_await(&d, EVENT_ERROR);
    assert_int_equal(e->request, 1);
    assert_string_equal(e->text, "the script says so");
    d.tokens = 0;
    rig_submit(&d, &second); /* after the error the next one may come */
    rig_await(&d, EVENT_ERROR);
    rig_close(&d);

    rig_open_script(&d, "{\"model\":{\"error\":\"no such model\"}}\n");
    struct request r = rig_request(&d, "x");
    bool taken = backend_submit(d.b, &r, &err); /* before or after it has failed */
    assert_string_equal(rig_await(&d, EVENT_ERROR)->text, "no such model");
    if (taken)
        assert_int_equal(rig_await(&d, EVENT_ERROR)->request, 2 - 1);
    else
        request_done(&r);
    backend_status(d.b, &status);
    assert_true(status.failed);
    r = rig_request(&d, "x");
    assert_false(backend_submit(d.b, &r, &err));
    request_done(&r);
    rig_close(&d);
}

static void test_bad_scripts(void **state)
{
    static const char *const scripts[] = {
        "{\"draw\":[[\"a\"]]}", "{\"draw\":[]}",
        "{\"volume\":3}",       "nonsense",
        "{\"repeat\":5}",       "{\"draw\":[[{\"hex\":\"e\"},1]]}",
        "{\"text\":3}"};
    struct control c = {.knobs = knobs_default()};
    (void)state;

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char path[] = "/tmp/fader-script-XXXXXX";
        struct error err = {""};
        int fd = mkstemp(path);
        assert_int_equal(write(fd, scripts[i], strlen(scripts[i])), (ssize_t)strlen(scripts[i]));
        close(fd);
        assert_null(scripted_backend_new(path, &c, &err));
        unlink(path);
        assert_non_null(strstr(err.text, ":1: "));
    }
}

/* ---- knobs ---------------------------------------------------------------------------------- */

static void test_moves(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    struct request r = rig_request(&d, "x");
    r.max_tokens = 8;
    rig_add_move(&r, 0, KNOB_TOP_K, 3);
    rig_add_move(&r, 5, KNOB_TEMPERATURE, 1.6);
    rig_add_move(&r, 5, KNOB_TOP_P, 0.9); /* no change: no event */
    rig_submit(&d, &r);
    struct event *e = rig_await(&d, EVENT_KNOB);
    assert_int_equal(e->u.knob.n, 0);
    assert_int_equal(e->u.knob.knob, KNOB_TOP_K);
    assert_near(e->u.knob.from, 50, 0);
    for (int n = 0; n < 5; n++)
        assert_near(rig_await(&d, EVENT_TOKEN)->u.token.knobs.value[KNOB_TEMPERATURE], 0.8, 0);
    assert_true(rig_next(&d));
    assert_int_equal(d.last.type, EVENT_KNOB); /* right before the token that it is in force for */
    assert_int_equal(d.last.u.knob.n, 5);
    assert_near(d.last.u.knob.value, 1.6, 1e-6);
    for (int n = 5; n < 8; n++) {
        assert_true(rig_next(&d));
        assert_int_equal(d.last.type, EVENT_TOKEN);
        assert_near(d.last.u.token.knobs.value[KNOB_TEMPERATURE], 1.6, 0);
        assert_near(d.last.u.token.knobs.value[KNOB_TOP_K], 3, 0);
    }
    rig_expect_end(&d, END_MAX_TOKENS);
    /* With the answer the movements end. */
    r = rig_request(&d, "x");
    r.max_tokens = 1;
    rig_submit(&d, &r);
    assert_near(rig_await(&d, EVENT_TOKEN)->u.token.knobs.value[KNOB_TEMPERATURE], 0.8, 0);
    rig_expect_end(&d, END_MAX_TOKENS);
    rig_close(&d);
}

/* Movements of tokens that a request brings along are in force, but were told long ago. */
static void test_moves_of_a_branch(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    struct request r = rig_request(&d, "x");
    const int32_t given[] = {1, 1, 1, 1};
    r.answer = mem_dup(given, sizeof given);
    r.n_answer = 4;
    r.max_tokens = 6;
    rig_add_move(&r, 2, KNOB_TEMPERATURE, 1.5);
    rig_add_move(&r, 4, KNOB_TOP_K, 2);
    d.tokens = 4;
    rig_submit(&d, &r);
    struct event *e = rig_await(&d, EVENT_KNOB);
    assert_int_equal(e->u.knob.n, 4);
    assert_int_equal(e->u.knob.knob, KNOB_TOP_K);
    for (int n = 4; n < 6; n++) {
        assert_true(rig_next(&d));
        assert_int_equal(d.last.type, EVENT_TOKEN);
        assert_true(d.last.u.token.knobs.value[KNOB_TEMPERATURE] == 1.5);
    }
    rig_expect_end(&d, END_MAX_TOKENS);
    /* The answer is over, and so are its movements: what is shown now is the desk's. */
    d.control.candidates = 4;
    rig_publish(&d);
    assert_int_equal(rig_await(&d, EVENT_VIEW)->u.view.n_survivors, 3); /* top-k 50, top-p 0.9 */
    rig_close(&d);
}

/* Another order of the stages and another exemption, from a token on; what the board says after that
 * wins. */
static void test_chains(void **state)
{
    static const uint8_t order[] = {STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE,
                                    STAGE_PENALTY};
    const int32_t given[] = {1, 1};
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    struct knobs first = d.control.knobs, second = d.control.knobs;
    memcpy(first.order, order, sizeof order);
    second.exempt_mode = EXEMPT_NONE;
    const struct chain_move chains[] = {{1, first}, {3, second}, {6, first}};
    struct request r = rig_request(&d, "x");
    r.answer = mem_dup(given, sizeof given);
    r.n_answer = 2;
    r.chains = mem_dup(chains, sizeof chains);
    r.n_chains = 3;
    d.tokens = 2;
    d.control.paused = true;
    rig_publish(&d);
    rig_submit(&d, &r);
    for (int n = 2; n < 9; n++) {
        const struct knobs *want = n < 3 || (n >= 6 && n < 8) ? &first : &second;
        if (n == 8) {
            d.control.knobs.exempt_mode = EXEMPT_NONE;
            rig_publish(&d);
        }
        rig_step(&d);
        assert_true(knobs_same_chain(&rig_await(&d, EVENT_TOKEN)->u.token.knobs, want));
    }
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    rig_close(&d);
}

/* Paused, a knob moves before every draw: each draw uses its own, and the hand wins over movements.
 */
static void test_knob_before_every_draw(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    d.control.paused = true;
    rig_publish(&d);
    struct request r = rig_request(&d, "x");
    rig_add_move(&r, 10, KNOB_TEMPERATURE, 3);
    rig_submit(&d, &r);
    for (int n = 0; n < 200; n++) {
        d.control.knobs.value[KNOB_TOP_K] = 1 + n % 4;
        if (n == 15)
            d.control.knobs.value[KNOB_TEMPERATURE] = 0.5;
        rig_publish(&d);
        rig_step(&d);
        struct event *e = rig_await(&d, EVENT_TOKEN);
        assert_near(e->u.token.knobs.value[KNOB_TOP_K], 1 + n % 4, 0);
        assert_int_equal(e->u.token.version, d.control.version);
        assert_near(e->u.token.knobs.value[KNOB_TEMPERATURE], n < 10 ? 0.8 : n < 15 ? 3 : 0.5, 0);
        if (n % 4 == 0)
            assert_string_equal(e->text, " a"); /* top-k 1 */
    }
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    rig_close(&d);
}

/* At full speed: once a token was drawn after a publication, the next uses it. */
static void test_knob_at_full_speed(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    rig_ask(&d, "x");
    for (int round = 0; round < 300; round++) {
        d.control.knobs.value[KNOB_TEMPERATURE] = 0.5 + 0.01 * (round % 100);
        rig_publish(&d);
        const int64_t published = clock_now_ns();
        while (rig_await(&d, EVENT_TOKEN)->u.token.time_ns <= published)
            continue;
        rig_await(&d, EVENT_TOKEN);
        assert_int_equal(d.last.u.token.version, d.control.version);
        assert_true(d.last.u.token.knobs.value[KNOB_TEMPERATURE] ==
                    d.control.knobs.value[KNOB_TEMPERATURE]);
    }
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    rig_close(&d);
}

/* A board written without pause while an answer runs, read by nobody else. */
static void test_board_without_pause(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    struct request r = rig_request(&d, "x");
    r.max_tokens = 3000;
    d.control.candidates = 8;
    rig_submit(&d, &r);
    bool over = false;
    uint32_t version = 0;
    while (!over) {
        d.control.knobs.value[KNOB_TOP_P] = 0.5 + (d.control.version % 50) * 0.01;
        rig_publish(&d);
        while (!over && backend_next_event(d.b, &d.last)) {
            over = d.last.type == EVENT_END;
            if (d.last.type != EVENT_TOKEN)
                continue;
            assert_true(d.last.u.token.version >= version); /* never an older one again */
            version = d.last.u.token.version;
            assert_true(d.last.u.token.knobs.value[KNOB_TOP_P] ==
                        (version > 0 ? 0.5 + ((version - 1) % 50) * 0.01 : 0.9));
        }
    }
    assert_int_equal(d.last.u.end.reason, END_MAX_TOKENS);
    rig_close(&d);
}

/* ---- pause, views, the dice ----------------------------------------------------------------- */

static void test_pause_shows_the_next_word(void **state)
{
    struct rig d;
    struct event *e;
    (void)state;

    rig_open_script(&d, ENDLESS);
    d.control.paused = true;
    d.control.candidates = 3;
    rig_publish(&d);
    rig_ask(&d, "x");
    for (int n = 0; n < 50; n++) {
        e = rig_await(&d, EVENT_VIEW);
        assert_int_equal(e->u.view.n, n);
        assert_false(e->u.view.drawn);
        assert_int_equal(e->u.view.n_listed, 3);
        assert_near(e->u.view.dice, sampler_uniform(7, (uint64_t)n), 0);
        d.control.knobs.value[KNOB_TEMPERATURE] = 0.5 + (n * 37 % 100) * 0.02;
        rig_publish(&d);
        e = rig_await(&d, EVENT_VIEW); /* the same logits, the new knob, no draw */
        assert_int_equal(e->u.view.n, n);
        assert_int_equal(e->u.view.version, d.control.version);
        const int32_t promised = e->u.view.pick;
        const double promised_p = e->u.view.pick_p;
        rig_step(&d);
        e = rig_await(&d, EVENT_TOKEN);
        assert_int_equal(e->u.token.n, n);
        assert_int_equal(e->u.token.draw.id, promised);
        assert_true(e->u.token.draw.p == promised_p);
        e = rig_await(&d, EVENT_VIEW);
        assert_true(e->u.view.drawn);
        assert_int_equal(e->u.view.pick, promised);
    }
    rig_await(
        &d,
        EVENT_VIEW); /* of the next word: and then nothing more comes, however often it is asked */
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    assert_int_equal(d.last.u.end.tokens, 50);
    rig_close(&d);
}

/* Several steps at once are several tokens, not one; steps made while running are not saved up. */
static void test_steps(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    d.control.steps = 100; /* before the answer: not for it */
    rig_publish(&d);
    d.control.paused = true;
    d.control.candidates = 1;
    rig_publish(&d);
    rig_ask(&d, "x");
    rig_await(&d, EVENT_VIEW);
    assert_int_equal(d.tokens, 0);
    d.control.steps += 5;
    rig_publish(&d);
    for (int i = 0; i < 5; i++)
        rig_await(&d, EVENT_TOKEN);
    do {
        rig_await(&d, EVENT_VIEW);
    } while (d.last.u.view.drawn);
    assert_int_equal(d.last.u.view.n, 5);
    rig_publish(&d);
    rig_await(&d, EVENT_VIEW);
    assert_int_equal(d.last.u.view.n, 5);
    assert_int_equal(d.tokens, 5);
    d.control.paused = false; /* steps while it runs are none */
    d.control.steps += 3;
    rig_publish(&d);
    while (rig_await(&d, EVENT_TOKEN)->u.token.version < d.control.version)
        continue;
    d.control.paused = true;
    rig_publish(&d);
    do {
        assert_true(rig_next(&d));
    } while (d.last.type != EVENT_VIEW || d.last.u.view.version < d.control.version);
    const int32_t stands_at = d.last.u.view.n;
    rig_publish(&d);
    assert_int_equal(rig_await(&d, EVENT_VIEW)->u.view.n, stands_at);
    rig_close(&d);
}

static void test_view_of_what_is_cut(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, "{\"draw\":[[\"a\",4],[\"b\",3],[\"c\",2],[\"d\",1],[\"e\",0],"
                        "[null,-1]]}\n");
    d.control.paused = true;
    d.control.candidates = 10;
    d.control.knobs.value[KNOB_TEMPERATURE] = 1;
    d.control.knobs.value[KNOB_TOP_K] = 4;
    d.control.knobs.value[KNOB_TOP_P] = 0.8;
    rig_publish(&d);
    rig_ask(&d, "x");
    const struct view *v = &rig_await(&d, EVENT_VIEW)->u.view;
    assert_int_equal(v->n_survivors, 2);
    assert_int_equal(v->n_listed, 2);
    assert_int_equal(v->n_candidates, 6);
    assert_int_equal(v->candidates[2].c.cut_by, STAGE_TOP_K);
    assert_memory_equal(v->candidates[2].text, "e", 1);
    assert_int_equal(v->candidates[3].c.cut_by, STAGE_TOP_K);
    assert_true(v->candidates[3].eog);
    assert_int_equal(v->candidates[4].c.cut_by, STAGE_TOP_P);
    assert_memory_equal(v->candidates[4].text, "c", 1);
    assert_int_equal(v->stages[2].kept, 4);
    assert_true(v->stages[2].cut_share > 0 && v->stages[2].cut_share < 0.05);
    assert_true(v->entropy < v->stages[0].entropy);
    rig_close(&d);
}

/* However fast it went, the desk ends with the last draw, the end token's included. */
static void test_last_draw_is_shown(void **state)
{
    struct rig d;
    struct view last = {0};
    (void)state;

    rig_open_script(&d, "{\"text\":\"one two three four\"}\n{\"draw\":[[null,3],[\" more\",0]]}\n");
    d.control.candidates = 2;
    rig_publish(&d);
    for (int i = 0; i < 2; i++) {
        struct request r = rig_request(&d, "x");
        r.max_tokens = i == 0 ? -1 : 2;
        rig_submit(&d, &r);
        last.n = -1;
        do {
            assert_true(rig_next(&d));
            if (d.last.type == EVENT_VIEW && d.last.request == d.next_id - 1)
                last = d.last.u.view;
        } while (d.last.type != EVENT_END);
        assert_int_equal(last.n, i == 0 ? 4 : 1);
        assert_true(last.drawn);
    }
    rig_close(&d);
}

static void test_peek_while_idle(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, "{\"text\":\"one two\"}\n{\"draw\":[[\" x\",1],[\" y\",0],[null,9]]}\n"
                        "{\"draw\":[[null,5],[\" z\",0]]}\n");
    rig_ask(&d, "x");
    rig_expect_end(&d, END_EOG);
    d.control.candidates = 5;
    rig_publish(&d);
    struct event *e = rig_await(&d, EVENT_VIEW);
    assert_int_equal(e->request, 1);
    assert_int_equal(e->u.view.n, 2);
    assert_int_equal(e->u.view.pick, 0); /* the end is a candidate */
    d.control.knobs.value[KNOB_TEMPERATURE] = 0;
    rig_publish(&d);
    assert_true(rig_await(&d, EVENT_VIEW)->u.view.greedy);
    rig_close(&d);
}

/* ---- pace ----------------------------------------------------------------------------------- */

static void test_pace_holds_back(void **state)
{
    struct rig d;
    int64_t first = 0, last = 0;
    (void)state;

    rig_open_script(&d, ENDLESS);
    d.control.pace = 250;
    rig_publish(&d);
    struct request r = rig_request(&d, "x");
    r.max_tokens = 51;
    rig_submit(&d, &r);
    for (int i = 0; i < 51; i++) {
        last = rig_await(&d, EVENT_TOKEN)->u.token.time_ns;
        if (i == 0)
            first = last;
    }
    /* 50 intervals of 4 ms; the beat may be 1 late at the start and on time at the end */
    assert_true(last - first >= 49 * 4000000ll);
    rig_expect_end(&d, END_MAX_TOKENS);
    /* decode_tps is what the work took, without the waits */
    assert_true(d.last.u.end.decode_tps > 50 / ((double)(last - first) * 1e-9));
    rig_close(&d);
}

/* A pace of one token in ten minutes: whatever is done must act at once. */
static void test_pace_changes_at_once(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    d.control.pace = 1.0 / 600;
    rig_publish(&d);
    rig_ask(&d, "x");
    rig_await(&d, EVENT_TOKEN);
    d.control.pace = 0;
    rig_publish(&d);
    rig_await(&d, EVENT_TOKEN);
    d.control.pace = 1.0 / 600;
    rig_publish(&d);
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    rig_close(&d);
}

/* ---- cancel and close ----------------------------------------------------------------------- */

static void test_cancel_everywhere(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, "{\"answer\":{\"for\":\"hang\"}}\n{\"hang\":true}\n"
                        "{\"answer\":{\"for\":\"later\"}}\n{\"text\":\"a b\"}\n{\"hang\":true}\n"
                        "{\"answer\":{}}\n" ENDLESS);
    for (int round = 0; round < 50; round++) {
        rig_ask(&d, "hang"); /* in the prefill */
        rig_await(&d, EVENT_START);
        rig_publish(&d);
        backend_cancel(d.b);
        backend_cancel(d.b);
        rig_expect_end(&d, END_STOPPED);
        rig_ask(&d, "later"); /* while a token runs */
        rig_await(&d, EVENT_TOKEN);
        backend_cancel(d.b);
        rig_expect_end(&d, END_STOPPED);
        rig_ask(&d, "x"); /* at once, and in the middle */
        for (int i = 0; i < round % 7; i++)
            rig_await(&d, EVENT_TOKEN);
        backend_cancel(d.b);
        rig_expect_end(&d, END_STOPPED);
        assert_int_equal(d.last.u.end.tokens, d.tokens); /* what is counted was told */
        backend_cancel(d.b);                             /* of nothing: does not hit the next one */
        struct request r = rig_request(&d, "x");
        r.max_tokens = 2;
        rig_submit(&d, &r);
        rig_expect_end(&d, END_MAX_TOKENS);
    }
    rig_close(&d);
}

/* Lets events come and takes none, until no more come: the ring is full. */
static void fill_ring(struct rig *d)
{
    struct pollfd p = {d->b->wake_fd, POLLIN, 0};

    do {
        wake_arm(d->b->wake);
    } while (poll(&p, 1, 1000) == 1 && (wake_disarm(d->b->wake), true));
    wake_disarm(d->b->wake);
}

/* All that was counted is there, however full the ring was when the cancel came. */
/* A stop in mid-word: when the end was said, the candidates of the next word come all the same. */
static void test_next_word_after_a_stop(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, "{\"draw\":[[\"a\",1]]}\n{\"draw\":[[\" b\",1]]}\n"
                        "{\"hang\":true}\n{\"draw\":[[\" c\",1]]}\n");
    d.control.candidates = 3;
    rig_publish(&d);
    rig_ask(&d, "x");
    rig_await(&d, EVENT_TOKEN);
    rig_await(&d, EVENT_TOKEN);
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    const struct view *view = &rig_await(&d, EVENT_VIEW)->u.view;
    assert_int_equal(view->n, 2);
    assert_false(view->drawn);
    assert_int_equal(view->n_candidates, 1);
    assert_int_equal(view->candidates[0].c.id, 3);
    rig_ask(&d, "x"); /* and the next answer is none the worse */
    rig_await(&d, EVENT_TOKEN);
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    rig_close(&d);
}

static void test_cancel_while_full(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    rig_ask(&d, "x");
    fill_ring(&d);
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    assert_int_equal(d.last.u.end.tokens, d.tokens);
    assert_true(d.tokens > 200);
    rig_ask(&d, "x");
    fill_ring(&d);
    rig_close(&d); /* hangs when the one who waits for room is not roused */
}

/* The loading model fills the ring with its progress, so it is still loading when the cancel comes.
 */
static void test_cancel_while_loading(void **state)
{
    struct str script = STR_INIT;
    struct rig d;
    (void)state;

    str_add_text(&script, "{\"model\":{\"loading\":[0");
    for (int i = 0; i < 15000; i++)
        str_add_text(&script, ",0.5");
    str_add_text(&script, "]}}\n{\"text\":\"too late\"}\n");
    rig_open_script(&d, script.data);
    str_done(&script);
    rig_ask(&d, "x");
    backend_cancel(d.b);
    do {
        assert_true(rig_next(&d));
        assert_int_not_equal(d.last.type, EVENT_READY);
    } while (d.last.type != EVENT_END);
    assert_int_equal(d.last.u.end.reason, END_STOPPED);
    rig_ask(&d, "x"); /* this one waits for the model */
    rig_await(&d, EVENT_READY);
    rig_expect_end(&d, END_EOG);
    assert_string_equal(d.text.data, "too late");
    rig_close(&d);
}

static void expect_text(struct rig *d, const char *text)
{
    struct draft draft = {.on_full = CONTEXT_STOP};

    message_list_add(&draft.messages, ROLE_USER, text, NULL, 0);
    backend_expect(d->b, &draft);
}

/* Drafts may come at any time, as many as will: the newest counts, and none of those that were made
 * before the request that they lead to. */
static void test_drafts(void **state)
{
    struct rig d;
    (void)state;

    rig_open_script(&d, ENDLESS);
    for (int i = 0; i < 100; i++)
        expect_text(&d, "one of many");
    expect_text(&d, "one two three four");
    rig_ask(&d, "one two three four five");
    const struct event *e = rig_await(&d, EVENT_START);
    assert_int_equal(e->u.start.prompt_tokens, 5);
    assert_in_range(e->u.start.ahead_tokens, 0, 3); /* as many as there was time for */
    assert_int_equal(e->u.start.ahead_tokens, e->u.start.reused_tokens);
    for (int i = 0; i < 100; i++) {
        expect_text(&d, "in the middle of the answer");
        rig_await(&d, EVENT_TOKEN);
    }
    backend_cancel(d.b);
    rig_expect_end(&d, END_STOPPED);
    expect_text(&d, "left at the end");
    rig_close(&d);

    rig_open_script(&d, "{\"model\":{\"error\":\"it is broken\"}}\n");
    rig_await(&d, EVENT_ERROR);
    expect_text(&d, "nobody will run it");
    rig_close(&d);
}

static void test_close_everywhere(void **state)
{
    static const char *const prompts[] = {"hang", "x", "paused"};
    (void)state;

    for (int round = 0; round < 60; round++) {
        struct rig d;
        rig_open_script(&d, "{\"answer\":{\"for\":\"hang\"}}\n{\"hang\":true}\n"
                            "{\"answer\":{}}\n" ENDLESS);
        d.control.paused = round % 3 == 2;
        rig_publish(&d);
        if (round % 4 != 3)
            rig_ask(&d, prompts[round % 3]);
        if (round % 5 == 1 && round % 4 != 3)
            rig_await(&d, EVENT_START);
        rig_close(&d); /* hangs when something is not roused */
    }
    backend_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_answers_in_turn),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_same_dice_and_branches),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_bad_scripts),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_moves_of_a_branch),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_knob_before_every_draw),
        cmocka_unit_test(test_knob_at_full_speed),
        cmocka_unit_test(test_board_without_pause),
        cmocka_unit_test(test_pause_shows_the_next_word),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_view_of_what_is_cut),
        cmocka_unit_test(test_last_draw_is_shown),
        cmocka_unit_test(test_peek_while_idle),
        cmocka_unit_test(test_pace_holds_back),
        cmocka_unit_test(test_pace_changes_at_once),
        cmocka_unit_test(test_cancel_everywhere),
        cmocka_unit_test(test_next_word_after_a_stop),
        cmocka_unit_test(test_cancel_while_full),
        cmocka_unit_test(test_cancel_while_loading),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_close_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
