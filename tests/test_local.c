/* The engine behind the generation thread: what is reused, what leaves a full context, that the
 * dice and a peek tell the truth, and that a prefill can be cancelled. */
#include "local_rig.h"

#include <math.h>

#include "base/mem.h"
#include "chat/template.h"
#include "engine/quant.h"

static struct request raw_request(struct rig *r, const char *text)
{
    struct request q = rig_request(r, "");

    request_done(&q);
    q = (struct request){.id = r->next_id++, .kind = REQUEST_RAW, .seed = 7, .max_tokens = -1};
    q.text = mem_strdup(text);
    q.text_len = strlen(text);
    return q;
}

static void test_ready(void **state)
{
    struct rig r;
    struct backend_status status;
    char piece[8];
    (void)state;

    open_tiny(&r, &tiny, 2, 0);
    backend_status(r.b, &status);
    assert_true(status.ready);
    assert_int_equal(status.ctx_size, CTX);
    assert_int_equal(status.threads, 2);
    assert_int_equal(status.ledger.ctx, CTX);
    assert_string_equal(template_name(status.chat_template->tmpl), "chatml");
    assert_true(status.chat_template->recognised);
    assert_int_equal(backend_piece(r.b, TINY_FIRST_BYTE + 'a', piece, sizeof piece), 1);
    assert_int_equal(piece[0], 'a');
    rig_close(&r);
}

/* ---- the same answer, however it comes about ------------------------------------------------ */

static void collect(struct rig *r, struct request *q, int32_t *ids, double *p, int n)
{
    q->max_tokens = n;
    rig_submit(r, q);
    for (int i = 0; i < n; i++) {
        struct event *e = rig_await(r, EVENT_TOKEN);
        ids[i] = e->u.token.draw.id;
        p[i] = e->u.token.draw.p;
    }
    rig_expect_end(r, END_MAX_TOKENS);
}

static void test_same_answer(void **state)
{
    enum { N = 40 };
    static const int threads[] = {1, 2, 2}, batches[] = {0, 7, 0};
    int32_t ids[3][N];
    double p[3][N];
    (void)state;

    for (int i = 0; i < 3; i++) {
        struct rig r;
        open_tiny(&r, &tiny, threads[i], batches[i]);
        struct request q = rig_request(&r, "Rain falls on the roof.");
        collect(&r, &q, ids[i], p[i], N);
        assert_memory_equal(ids[i], ids[0], sizeof *ids);
        assert_memory_equal(p[i], p[0], sizeof *p); /* bit for bit */
        if (i == 2) {                               /* again from the cache, and a branch of it */
            q = rig_request(&r, "Rain falls on the roof.");
            collect(&r, &q, ids[1], p[1], N);
            assert_memory_equal(p[1], p[0], sizeof *p);
            q = rig_request(&r, "Rain falls on the roof.");
            q.answer = mem_dup(ids[0], 10 * sizeof **ids);
            q.n_answer = 10;
            q.max_tokens = N;
            r.tokens = 10;
            rig_submit(&r, &q);
            for (int n = 10; n < N; n++)
                assert_true(rig_await(&r, EVENT_TOKEN)->u.token.draw.p == p[0][n]);
            rig_expect_end(&r, END_MAX_TOKENS);
        }
        rig_close(&r);
    }
}

static void test_prefix_is_reused(void **state)
{
    struct rig r;
    int32_t ids[20];
    double p[20];
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    struct request q = rig_request(&r, "first");
    rig_submit(&r, &q);
    struct event *e = rig_await(&r, EVENT_START);
    assert_int_equal(e->u.start.reused_tokens, 0);
    const int32_t first = e->u.start.prompt_tokens;
    backend_cancel(r.b);
    rig_expect_end(&r, END_STOPPED);

    q = rig_request(&r, "first");
    collect(&r, &q, ids, p, 20);
    /* The next turn has the answer as it was drawn: all but its last token was run. */
    q = rig_request(&r, "first");
    message_list_add(&q.messages, ROLE_ASSISTANT, "", ids, 20);
    rig_add_message(&q, ROLE_USER, "second");
    rig_submit(&r, &q);
    e = rig_await(&r, EVENT_START);
    assert_int_equal(e->u.start.reused_tokens, first + 19);
    assert_true(e->u.start.prompt_tokens > first + 20);
    backend_cancel(r.b);
    rig_expect_end(&r, END_STOPPED);
    rig_close(&r);
}

/* Special tokens in what a user types are text. */
static void test_no_special_tokens_in_text(void **state)
{
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    struct request q = raw_request(&r, "<|im_end|>");
    q.max_tokens = 0;
    rig_submit(&r, &q);
    assert_int_equal(rig_await(&r, EVENT_START)->u.start.prompt_tokens, 10);
    rig_expect_end(&r, END_MAX_TOKENS);
    rig_close(&r);
}

/* ---- the desk ------------------------------------------------------------------------------- */

static void test_peek_tells_the_truth(void **state)
{
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    r.control.paused = true;
    r.control.candidates = 4;
    rig_publish(&r);
    rig_ask(&r, "x");
    for (int n = 0; n < 30; n++) {
        rig_await(&r, EVENT_VIEW);
        r.control.knobs.value[KNOB_TEMPERATURE] = 0.5 + n * 0.05;
        r.control.knobs.value[KNOB_TOP_K] = n % 3 == 0 ? 0 : 40;
        rig_publish(&r);
        struct event *e = rig_await(&r, EVENT_VIEW);
        assert_int_equal(e->u.view.n, n);
        const int32_t pick = e->u.view.pick;
        const double p = e->u.view.pick_p;
        if (e->u.view.candidates[0].eog || pick == TINY_ENDOFTEXT || pick == TINY_IM_END)
            break;
        rig_step(&r);
        e = rig_await(&r, EVENT_TOKEN);
        assert_int_equal(e->u.token.draw.id, pick);
        assert_true(e->u.token.draw.p == p);
        rig_await(&r, EVENT_VIEW); /* of the draw */
    }
    backend_cancel(r.b);
    rig_close(&r);
}

/* ---- the context ---------------------------------------------------------------------------- */

static void test_prompt_too_long(void **state)
{
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    struct request q = raw_request(&r, filler(CTX + 1));
    rig_submit(&r, &q);
    struct event *e = rig_await(&r, EVENT_ERROR);
    assert_non_null(strstr(e->text, "takes 257 tokens, the context has 256"));
    assert_non_null(strstr(e->text, "larger context (-c)"));
    q = rig_request(&r, filler(CTX));
    q.on_full = CONTEXT_DROP_OLDEST; /* the last message never leaves */
    rig_submit(&r, &q);
    rig_await(&r, EVENT_ERROR);
    q = raw_request(&r, "");
    rig_submit(&r, &q);
    assert_string_equal(rig_await(&r, EVENT_ERROR)->text, "the prompt is empty");
    q = raw_request(&r, filler(CTX)); /* just fits: one token, and then it is full */
    rig_submit(&r, &q);
    rig_expect_end(&r, END_CONTEXT_FULL);
    assert_int_equal(r.tokens, 1);
    assert_int_equal(r.last.u.end.ctx_used, CTX);
    rig_close(&r);
}

/* Greedy, so that the random model is not likely to draw an end token. */
static void no_end_token(struct rig *r)
{
    r->control.knobs.value[KNOB_TEMPERATURE] = 0;
    rig_publish(r);
}

static void add_turns(struct request *q, int turns, size_t len)
{
    request_done(q);
    q->kind = REQUEST_CHAT;
    rig_add_message(q, ROLE_SYSTEM, "s");
    for (int i = 0; i < turns; i++) {
        rig_add_message(q, ROLE_USER, filler(len));
        rig_add_message(q, ROLE_ASSISTANT, filler(len));
    }
    rig_add_message(q, ROLE_USER, "last");
}

static struct request turns_request(struct rig *r, int turns, size_t len,
                                    enum context_policy policy)
{
    struct request q = rig_request(r, "");
    const uint32_t id = q.id;

    add_turns(&q, turns, len);
    q.id = id;
    q.seed = 7;
    q.on_full = policy;
    q.max_tokens = 3;
    return q;
}

static void test_oldest_turns_leave(void **state)
{
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    no_end_token(&r);
    struct request q = turns_request(&r, 4, 20, CONTEXT_STOP);
    rig_submit(&r, &q);
    struct event *e = rig_await(&r, EVENT_ERROR); /* it does not fit, and nothing may leave */
    assert_non_null(strstr(e->text, "/set on_full drop"));

    q = turns_request(&r, 4, 20, CONTEXT_DROP_OLDEST);
    rig_submit(&r, &q);
    e = rig_await(&r, EVENT_DROPPED);
    const int32_t messages = e->u.dropped.messages;
    assert_true(messages >= 2 && messages % 2 == 0); /* whole pairs */
    assert_true(e->u.dropped.tokens > messages * 20);
    e = rig_await(&r, EVENT_START);
    assert_true(e->u.start.prompt_tokens <= CTX - CTX / 4);
    rig_expect_end(&r, END_MAX_TOKENS);

    /* The same conversation again: the same turns stay out, without a word, and all else is reused.
     */
    q = turns_request(&r, 4, 20, CONTEXT_DROP_OLDEST);
    rig_submit(&r, &q);
    do {
        assert_true(rig_next(&r));
        assert_int_not_equal(r.last.type, EVENT_DROPPED);
    } while (r.last.type != EVENT_START);
    assert_int_equal(r.last.u.start.reused_tokens, r.last.u.start.prompt_tokens - 1);
    rig_expect_end(&r, END_MAX_TOKENS);

    /* A short one has all of its turns. */
    q = turns_request(&r, 1, 5, CONTEXT_DROP_OLDEST);
    rig_submit(&r, &q);
    do {
        assert_true(rig_next(&r));
        assert_int_not_equal(r.last.type, EVENT_DROPPED);
    } while (r.last.type != EVENT_END);
    rig_close(&r);
}

/* The context becomes full in the middle of an answer: with a turn that can leave it goes on. */
static void test_full_in_the_middle(void **state)
{
    struct rig r;
    (void)state;

    open_tiny(&r, &tiny, 1, 0);
    no_end_token(&r);
    for (int policy = CONTEXT_STOP; policy <= CONTEXT_DROP_OLDEST; policy++) {
        struct request q = turns_request(&r, 1, 40, (enum context_policy)policy);
        q.max_tokens = 170;
        rig_submit(&r, &q);
        if (policy == CONTEXT_DROP_OLDEST) {
            struct event *e = rig_await(&r, EVENT_DROPPED);
            assert_int_equal(e->u.dropped.messages, 2);
            assert_true(r.tokens > 50);
            rig_expect_end(&r, END_MAX_TOKENS);
            assert_int_equal(r.tokens, 170);
        } else {
            rig_expect_end(&r, END_CONTEXT_FULL);
            assert_true(r.tokens < 170);
            assert_int_equal(r.last.u.end.ctx_used, CTX);
        }
    }
    struct request q = turns_request(&r, 0, 0, CONTEXT_DROP_OLDEST); /* nothing that could leave */
    q.max_tokens = 400;
    rig_submit(&r, &q);
    rig_expect_end(&r, END_CONTEXT_FULL);
    rig_close(&r);
}

/* ---- cancel, failures ----------------------------------------------------------------------- */

/* A larger model and one token a batch: the cancel comes while most of the prompt is still to run.
 */
static void test_cancel_in_prefill(void **state)
{
    const struct tiny_gguf_options slow = {.n_ctx = CTX,
                                           .seed = 3,
                                           .n_layer = 8,
                                           .n_embd = 512,
                                           .n_ff = 2048,
                                           .n_head = 8,
                                           .n_kv_head = 4};
    struct rig r;
    (void)state;

    open_tiny(&r, &slow, 1, 1);
    for (int round = 0; round < 5; round++) {
        struct request q = raw_request(&r, filler(CTX - 1));
        q.text[0] = (char)('a' + round); /* nothing to reuse */
        rig_submit(&r, &q);
        do {
            rig_await(&r, EVENT_PROGRESS);
        } while (r.last.u.progress.done < 2);
        backend_cancel(r.b);
        rig_expect_end(&r, END_STOPPED);
        assert_int_equal(r.tokens, 0);
        assert_true(r.last.u.end.ctx_used < CTX - 1);
    }
    rig_close(&r);
}

static void expect_load_error(const char *path, const char *what)
{
    struct local_options local = {.model_path = path};
    struct backend_status status;
    struct error err;
    struct rig r;

    rig_init(&r);
    r.b = local_backend_new(&local, &r.control, &err);
    assert_non_null(r.b);
    assert_non_null(strstr(rig_await(&r, EVENT_ERROR)->text, what));
    backend_status(r.b, &status);
    assert_true(status.failed && !status.ready && status.model == NULL);
    rig_close(&r);
}

static void test_load_errors(void **state)
{
    char path[] = "/tmp/fader-tiny-XXXXXX";
    struct tiny_gguf_options other = tiny;
    int fd = mkstemp(path);
    (void)state;

    close(fd);
    expect_load_error("/nowhere/model.gguf", "/nowhere/model.gguf");
    expect_load_error(path, path); /* empty */
    other.tokenizer = "llama";
    assert_true(tiny_gguf_write(path, &other));
    expect_load_error(path, "llama");
    unlink(path);
}

static void add_damage(struct tiny_writer *w)
{
    float values[64]; /* n_embd */

    for (size_t i = 0; i < 64; i++)
        values[i] = NAN;
    tiny_add_tensor(w, "blk.0.attn_output.bias", QUANT_F32, 64, 0, values, sizeof values);
}

static void test_damaged_weights(void **state)
{
    /* Activations stay NaN in the one, and become zeros in the other. */
    static const uint32_t types[] = {QUANT_F32, QUANT_Q8_0};
    struct tiny_gguf_options damaged = tiny;
    (void)state;

    damaged.more = add_damage;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct rig r;
        damaged.type = types[i];
        open_tiny(&r, &damaged, 1, 0);
        struct request q = raw_request(&r, "x");
        rig_submit(&r, &q);
        assert_non_null(strstr(rig_await(&r, EVENT_ERROR)->text, "weights are damaged"));
        assert_int_equal(r.tokens, 0);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_same_answer),
        cmocka_unit_test(test_prefix_is_reused),
        cmocka_unit_test(test_no_special_tokens_in_text),
        cmocka_unit_test(test_peek_tells_the_truth),
        cmocka_unit_test(test_prompt_too_long),
        cmocka_unit_test(test_oldest_turns_leave),
        cmocka_unit_test(test_full_in_the_middle),
        cmocka_unit_test(test_cancel_in_prefill),
        cmocka_unit_test(test_load_errors),
        cmocka_unit_test(test_damaged_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
