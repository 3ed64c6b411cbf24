/* What is run before it is asked for, what is reused of it and of all that was said before, and
 * that none of it changes a bit of any answer or disturbs what is on the desk. */
#include "local_rig.h"

#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "folder.h"

/* In tokens, which are bytes here where a text has no blanks. */
enum {
    HEAD = 6,    /* <|im_start|>user\n */
    CLOSE = 2,   /* <|im_end|>\n */
    OPEN = 11,   /* <|im_start|>assistant\n */
    UNWORTHY = 5 /* so few tokens of what is certain are not run by themselves */
};

/* ---- answers --------------------------------------------------------------------------------- */

enum { WORDS = 8 };

struct answer {
    int32_t prompt, reused, ahead; /* as its start said */
    int32_t ids[WORDS];
    double p[WORDS], logprob[WORDS];
};

/* Takes what the request owns. */
static struct answer ask(struct rig *r, struct request *q)
{
    struct answer a = {0};
    const int32_t given = (int32_t)q->n_answer;

    q->max_tokens = WORDS;
    r->tokens = given;
    rig_submit(r, q);
    const struct event *e = rig_await(r, EVENT_START);
    a.prompt = e->u.start.prompt_tokens;
    a.reused = e->u.start.reused_tokens;
    a.ahead = e->u.start.ahead_tokens;
    for (int32_t i = given; i < WORDS; i++) {
        e = rig_await(r, EVENT_TOKEN);
        a.ids[i] = e->u.token.draw.id;
        a.p[i] = e->u.token.draw.p;
        a.logprob[i] = e->u.token.draw.logprob;
    }
    rig_expect_end(r, END_MAX_TOKENS);
    return a;
}

static void assert_same_answer(const struct answer *a, const struct answer *b)
{
    assert_int_equal(a->prompt, b->prompt);
    assert_memory_equal(a->ids, b->ids, sizeof a->ids);
    assert_memory_equal(a->p, b->p, sizeof a->p); /* bit for bit */
    assert_memory_equal(a->logprob, b->logprob, sizeof a->logprob);
}

/* ---- conversations --------------------------------------------------------------------------- */

/* A request for the conversation `said`, and then `text`. */
static struct request request_of(struct rig *r, const struct message_list *said, const char *text)
{
    struct request q = rig_request(r, "");
    const uint32_t id = q.id;

    request_done(&q);
    q = (struct request){.id = id, .kind = REQUEST_CHAT, .seed = 7};
    for (size_t i = 0; said != NULL && i < said->n; i++)
        message_list_add(&q.messages, said->items[i].role, said->items[i].text,
                         said->items[i].tokens, said->items[i].n_tokens);
    rig_add_message(&q, ROLE_USER, text);
    return q;
}

static struct answer ask_text(struct rig *r, const struct message_list *said, const char *text)
{
    struct request q = request_of(r, said, text);

    return ask(r, &q);
}

static void expect(struct rig *r, const struct message_list *said, const char *text)
{
    struct request q = request_of(r, said, text);
    struct draft d = {.messages = q.messages};

    q.messages = (struct message_list){NULL, 0, 0};
    request_done(&q);
    backend_expect(r->b, &d);
    assert_null(d.messages.items); /* taken */
}

/* Waits until `certain` tokens are in the cache, but for those that are not worth it. */
static void wait_ahead(struct rig *r, int32_t certain)
{
    const struct timespec moment = {0, 1000000};
    const int64_t start = clock_now_ns();
    struct backend_status status;

    for (;;) {
        backend_status(r->b, &status);
        if (status.ahead >= certain - UNWORTHY && status.ahead <= certain)
            return;
        if (clock_since_s(start) > 30)
            fail_msg("%d tokens were run ahead, not %d", (int)status.ahead, (int)certain);
        nanosleep(&moment, NULL);
    }
}

static void add_turn(struct message_list *said, const char *text, const struct answer *a)
{
    message_list_add(said, ROLE_USER, text, NULL, 0);
    message_list_add(said, ROLE_ASSISTANT, "", a->ids, WORDS);
}

/* ---- a draft --------------------------------------------------------------------------------- */

static void test_draft_is_run_ahead(void **state)
{
    static const char text[] = "Two-lines-about-rain-on-a-tin-roof-please.";
    static const char next[] = "And-two-about-snow-if-there-is-any.";
    struct rig plain, r;
    (void)state;

    open_tiny(&plain, &tiny, 1, 0);
    open_tiny(&r, &tiny, 2, 0);
    const struct answer a = ask_text(&plain, NULL, text);
    assert_int_equal(a.prompt, HEAD + (int32_t)strlen(text) + CLOSE + OPEN);
    assert_int_equal(a.reused, 0);

    const int32_t certain = HEAD + (int32_t)strlen("Two-lines-about-rain-on-a");
    expect(&r, NULL, "Two-lines-about-rain-on-a-ti");
    wait_ahead(&r, certain);
    const struct answer b = ask_text(&r, NULL, text);
    assert_same_answer(&b, &a);
    assert_in_range(b.reused, (uintmax_t)(certain - UNWORTHY), (uintmax_t)certain);
    assert_int_equal(b.ahead, b.reused);

    /* The next turn: what was said is in the cache anyway, what was typed is run ahead. */
    struct message_list said = {NULL, 0, 0};
    add_turn(&said, text, &a);
    const struct answer c = ask_text(&plain, &said, next);
    expect(&r, &said, "And-two-about-snow-if-th");
    const int32_t typed = CLOSE + HEAD + (int32_t)strlen("And-two-about-snow-if");
    wait_ahead(&r, b.prompt + WORDS + typed);
    const struct answer d = ask_text(&r, &said, next);
    assert_same_answer(&d, &c);
    assert_int_equal(c.reused, c.prompt - OPEN - CLOSE - HEAD - (int32_t)strlen(next) - CLOSE - 1);
    assert_int_equal(c.ahead, 0);
    assert_in_range(d.reused, (uintmax_t)(b.prompt + WORDS + typed - UNWORTHY),
                    (uintmax_t)(b.prompt + WORDS + typed));
    assert_int_equal(d.ahead, d.reused - c.reused);
    message_list_done(&said);
    rig_close(&plain);
    rig_close(&r);
}

/* The template's head and the system prompt, before anything was said. */
static void test_common_start(void **state)
{
    static const char system[] = "You-are-a-helpful-assistant-who-knows-the-sea.";
    struct message_list said = {NULL, 0, 0};
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    message_list_add(&said, ROLE_SYSTEM, system, NULL, 0);
    expect(&r, &said, "");
    const int32_t certain = 8 + (int32_t)strlen(system) + CLOSE + 1;
    wait_ahead(&r, certain);
    const struct answer a = ask_text(&r, &said, "Hello");
    assert_in_range(a.ahead, (uintmax_t)(certain - UNWORTHY), (uintmax_t)certain);
    message_list_done(&said);
    rig_close(&r);
}

/* A draft that changes in the middle is run anew from there; one that is taken back is kept. */
static void test_draft_changes(void **state)
{
    static const char first[] = "The-quick-brown-fox-jumps-over-the-lazy-dog-and-then";
    static const char second[] = "The-quick-brown-cat-sleeps-under-the-old-oak-tree-all-day";
    struct rig plain, r;
    (void)state;

    open_tiny(&plain, &tiny, 1, 0);
    open_tiny(&r, &tiny, 1, 0);
    expect(&r, NULL, first);
    wait_ahead(&r, HEAD + (int32_t)strlen(first) - 5);
    expect(&r, NULL, second);
    wait_ahead(&r, HEAD + (int32_t)strlen(second) - 4);
    expect(&r, NULL, "The-qu");
    wait_ahead(&r, HEAD + 3);
    const struct answer a = ask_text(&r, NULL, second), b = ask_text(&plain, NULL, second);
    assert_same_answer(&a, &b);
    assert_in_range(a.ahead, HEAD + sizeof second - 1 - 4 - UNWORTHY, HEAD + sizeof second - 1 - 4);
    rig_close(&plain);
    rig_close(&r);
}

/* ---- what is on the desk --------------------------------------------------------------------- */

static struct view peek(struct rig *r)
{
    rig_publish(r);
    do {
        rig_await(r, EVENT_VIEW);
    } while (r->last.u.view.version != r->control.version);
    return r->last.u.view;
}

static void assert_same_view(const struct view *a, const struct view *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->pick, b->pick);
    assert_true(a->pick_p == b->pick_p && a->entropy == b->entropy);
    assert_int_equal(a->n_candidates, b->n_candidates);
    for (int32_t i = 0; i < a->n_candidates; i++) {
        assert_int_equal(a->candidates[i].c.id, b->candidates[i].c.id);
        assert_true(a->candidates[i].c.model == b->candidates[i].c.model);
        assert_true(a->candidates[i].c.now == b->candidates[i].c.now);
    }
}

/* The logits in hand, and the tokens that the penalty looks at, are still there when
 * something else was run ahead. */
static void test_peek_lives_on(void **state)
{
    struct message_list said = {NULL, 0, 0};
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    r.control.candidates = VIEW_MAX;
    r.control.knobs.value[KNOB_REPETITION_PENALTY] = 1.3;
    rig_publish(&r);
    const struct answer a = ask_text(&r, NULL, "Write-a-lullaby-about-the-sea.");
    const struct view before = peek(&r);
    add_turn(&said, "Write-a-lullaby-about-the-sea.", &a);
    expect(&r, &said, "And-now-one-about-the-mountains-and");
    wait_ahead(&r, a.prompt + WORDS + CLOSE + HEAD +
                       (int32_t)strlen("And-now-one-about-the-mountains"));
    const struct view after = peek(&r);
    assert_same_view(&after, &before);

    /* From another word of that answer it goes on without running any of it again. */
    struct request q = request_of(&r, NULL, "Write-a-lullaby-about-the-sea.");
    q.answer = mem_dup(a.ids, (WORDS - 1) * sizeof *a.ids);
    q.n_answer = WORDS - 1;
    const struct answer b = ask(&r, &q);
    assert_int_equal(b.reused, b.prompt - 1);
    assert_int_equal(b.ahead, 0);
    message_list_done(&said);
    rig_close(&r);
}

/* ---- anything, at any time ------------------------------------------------------------------- */

static uint32_t dice(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 16) % n;
}

static void random_text(uint32_t *state, char *out, size_t words)
{
    static const char *const all[] = {"rain ", "sea, ", "I'll ", "roof\n", "12 ", "a ", "drum. "};

    *out = '\0';
    for (size_t i = 0; i < words; i++)
        strcat(out, all[dice(state, sizeof all / sizeof all[0])]);
}

/* A backend that is told of drafts, peeked at and interrupted at random gives the answers of one
 * that is not. */
static void test_any_schedule(void **state)
{
    struct message_list said = {NULL, 0, 0};
    struct rig plain, r;
    char text[128], draft[128];
    uint32_t random = 4711;
    int answers = 0;
    (void)state;

    open_tiny(&plain, &tiny, 1, 0);
    open_tiny(&r, &tiny, 2, 7);
    r.control.candidates = 3;
    random_text(&random, text, 6);
    while (answers < 40) {
        strcpy(draft, text);
        switch (dice(&random, 6)) {
        case 0: /* something else is typed */
            random_text(&random, text, 1 + dice(&random, 6));
            break;
        case 1: /* it is being typed, or changed at its end */
        case 2:
            draft[dice(&random, (uint32_t)strlen(draft) + 1)] = '\0';
            expect(&r, &said, draft);
            break;
        case 3:
            rig_publish(&r);
            break;
        case 4: { /* it is asked for, and stopped at once */
            struct request q = request_of(&r, &said, text);
            rig_submit(&r, &q);
            backend_cancel(r.b);
            rig_await(&r, EVENT_END);
            break;
        }
        default: {
            const struct answer a = ask_text(&r, &said, text);
            const struct answer b = ask_text(&plain, &said, text);
            assert_same_answer(&a, &b);
            answers++;
            if (said.n > 2 || dice(&random, 3) == 0) {
                message_list_done(&said);
                said = (struct message_list){NULL, 0, 0};
            } else {
                add_turn(&said, text, &a);
            }
        }
        }
    }
    message_list_done(&said);
    rig_close(&plain);
    rig_close(&r);
}

/* Whatever is under way, the close comes through. */
static void test_close_while_running_ahead(void **state)
{
    const struct tiny_gguf_options slow = {
        .n_ctx = CTX, .seed = 3, .n_layer = 8, .n_embd = 512, .n_ff = 2048, .n_head = 8};
    struct rig r;
    (void)state;

    open_tiny(&r, &slow, 2, 0);
    expect(&r, NULL, filler(100));
    expect(&r, NULL, filler(200));
    rig_close(&r);
}

/* ---- what is reused -------------------------------------------------------------------------- */

static void test_reuse_is_counted(void **state)
{
    static const char first[] = "What-is-rain?", second[] = "And-what-is-snow?";
    struct message_list said = {NULL, 0, 0};
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    const struct answer a = ask_text(&r, NULL, first);
    assert_int_equal(a.reused, 0);
    add_turn(&said, first, &a);

    /* A turn: all but the last word of the answer before, which was never run. */
    const struct answer b = ask_text(&r, &said, second);
    assert_int_equal(b.prompt, a.prompt + WORDS + CLOSE + HEAD + 17 + CLOSE + OPEN);
    assert_int_equal(b.reused, a.prompt + WORDS - 1);

    /* A retry: all but the last token, whose logits are wanted. */
    const struct answer c = ask_text(&r, &said, second);
    assert_int_equal(c.reused, c.prompt - 1);
    assert_same_answer(&c, &b);

    /* A branch: the prompt, and the words of the answer up to there. */
    struct request q = request_of(&r, &said, second);
    q.answer = mem_dup(b.ids, 4 * sizeof *b.ids);
    q.n_answer = 4;
    struct answer d = ask(&r, &q);
    assert_int_equal(d.prompt, b.prompt + 4);
    assert_int_equal(d.reused, d.prompt - 1);
    d.prompt = b.prompt;
    memcpy(d.ids, b.ids, 4 * sizeof *d.ids);
    memcpy(d.p, b.p, 4 * sizeof *d.p);
    memcpy(d.logprob, b.logprob, 4 * sizeof *d.logprob);
    assert_same_answer(&d, &b);

    /* An edit: up to the first letter that differs. */
    const struct answer e = ask_text(&r, &said, "And-what-was-snow?");
    assert_int_equal(e.reused, a.prompt + WORDS + CLOSE + HEAD + (int32_t)strlen("And-what-"));

    /* The turn is taken back, and another asked for: up to where the user speaks. */
    const struct answer f = ask_text(&r, &said, "Why?");
    assert_int_equal(f.reused, a.prompt + WORDS + CLOSE + HEAD);

    /* A new conversation: the head. */
    const struct answer g = ask_text(&r, NULL, "Then?");
    assert_int_equal(g.reused, HEAD);
    message_list_done(&said);
    rig_close(&r);
}

/* When the oldest turns leave, what stays is run anew behind the system prompt, and from then on
 * reused; a draft leaves out what its request will. */
static void test_reuse_of_what_stays(void **state)
{
    struct message_list said = {NULL, 0, 0};
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    message_list_add(&said, ROLE_SYSTEM, "Be brief.", NULL, 0);
    for (int i = 0; i < 5; i++) {
        message_list_add(&said, ROLE_USER, filler(20), NULL, 0);
        message_list_add(&said, ROLE_ASSISTANT, filler(20), NULL, 0);
    }
    struct request q = request_of(&r, &said, "short");
    q.on_full = CONTEXT_DROP_OLDEST;
    q.max_tokens = WORDS;
    rig_submit(&r, &q);
    rig_await(&r, EVENT_DROPPED);
    const int32_t prompt = rig_await(&r, EVENT_START)->u.start.prompt_tokens;
    rig_expect_end(&r, END_MAX_TOKENS);
    assert_int_equal(r.last.u.end.ctx_used, prompt + WORDS - 1);

    q = request_of(&r, &said, "short-and-sweet-if-that-can-be-done");
    struct draft d = {.messages = q.messages, .on_full = CONTEXT_DROP_OLDEST};
    q.messages = (struct message_list){NULL, 0, 0};
    backend_expect(r.b, &d);
    const int32_t certain = prompt - OPEN - CLOSE + (int32_t)strlen("-and-sweet-if-that-can-be");
    wait_ahead(&r, certain);
    q = request_of(&r, &said, "short-and-sweet-if-that-can-be-done-at-all");
    q.on_full = CONTEXT_DROP_OLDEST;
    q.max_tokens = WORDS;
    rig_submit(&r, &q);
    do {
        assert_true(rig_next(&r));
        assert_int_not_equal(r.last.type, EVENT_DROPPED);
    } while (r.last.type != EVENT_START);
    assert_in_range(r.last.u.start.reused_tokens, (uintmax_t)(certain - UNWORTHY),
                    (uintmax_t)certain);
    rig_expect_end(&r, END_MAX_TOKENS);
    message_list_done(&said);
    rig_close(&r);
}

/* A draft that is too long for the context is left to the request, which says so. */
static void test_too_long(void **state)
{
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    expect(&r, NULL, filler(CTX));
    struct request q = request_of(&r, NULL, filler(CTX));
    rig_submit(&r, &q);
    assert_non_null(strstr(rig_await(&r, EVENT_ERROR)->text, "the context has 256"));
    const struct answer a = ask_text(&r, NULL, "Hello");
    assert_int_equal(a.reused, 0);
    rig_close(&r);
}

/* ---- power ----------------------------------------------------------------------------------- */

static void write_attribute(const char *name, const char *value)
{
    char *path = file_join(folder, name);
    struct error err;

    assert_true(file_write_atomic(path, value, strlen(value), 0600, &err));
    free(path);
}

static void expect_on_mains(struct rig *r, const char *text)
{
    struct draft d = {.mains_only = true};

    message_list_add(&d.messages, ROLE_USER, text, NULL, 0);
    backend_expect(r->b, &d);
}

static void wait_battery(struct rig *r)
{
    const struct timespec moment = {0, 1000000};
    const int64_t start = clock_now_ns();
    struct backend_status status;

    while (backend_status(r->b, &status), !status.on_battery) {
        if (clock_since_s(start) > 30)
            fail_msg("the battery was not seen");
        nanosleep(&moment, NULL);
    }
    assert_int_equal(status.ahead, 0);
}

static void test_not_on_battery(void **state)
{
    static const char text[] = "a-long-text-of-which-much-is-certain-already";
    struct rig r;
    (void)state;

    assert_int_equal(folder_make(NULL), 0);
    write_attribute("BAT0/type", "Battery\n");
    write_attribute("BAT0/status", "Discharging\n");
    open_local(&r, &tiny,
               (struct local_options){.session = {.ctx_size = CTX}, .power_folder = folder});
    expect_on_mains(&r, text);
    wait_battery(&r);
    assert_int_equal(ask_text(&r, NULL, text).reused, 0);

    expect(&r, NULL, "all-the-same-as-it-was-wanted-so"); /* whatever the power is */
    wait_ahead(&r, HEAD + (int32_t)strlen("all-the-same-as-it-was-wanted"));
    write_attribute("BAT0/status", "Charging\n");
    expect_on_mains(&r, text);
    wait_ahead(&r, HEAD + (int32_t)strlen(text) - 8);
    rig_close(&r);
    assert_int_equal(folder_remove(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draft_is_run_ahead), cmocka_unit_test(test_common_start),
        cmocka_unit_test(test_draft_changes),      cmocka_unit_test(test_peek_lives_on),
        cmocka_unit_test(test_any_schedule),       cmocka_unit_test(test_close_while_running_ahead),
        cmocka_unit_test(test_reuse_is_counted),   cmocka_unit_test(test_reuse_of_what_stays),
        cmocka_unit_test(test_too_long),           cmocka_unit_test(test_not_on_battery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
