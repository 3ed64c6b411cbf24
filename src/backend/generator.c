#include "config.h"

#include "backend/generator.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backend/events.h"
#include "backend/knobstate.h"
#include "backend/views.h"
#include "base/clock.h"
#include "base/mem.h"
#include "sync/board.h"
#include "sync/slot.h"

static const int64_t second = 1000000000;
static const int64_t view_interval = 100000000; /* at full pace: ten views a second */
static const double slow_pace = 12.5;           /* at most this: a view with every token */

/* What the request slot hands over. */
struct job {
    struct request request;
    uint32_t steps; /* single steps asked for before it: they are not for this answer */
};

struct generator {
    struct backend backend; /* first: a generator is one */
    struct source *source;
    pthread_t thread;

    /* between the threads */
    struct slot *requests;
    struct board *board;
    struct event_queue events;
    atomic_bool cancel, closing;
    atomic_bool ready, failed; /* set once, after what they speak of */
    atomic_uint full_mtps;     /* tokens in 1,000 s, without pace */

    /* the UI thread's */
    uint32_t pending; /* request that is not over yet, 0: none */
    uint32_t published_steps;

    /* the generation thread's */
    struct sampler *sampler;
    struct control control; /* the newest snapshot */
    struct knob_state knobs;
    uint32_t steps;         /* single steps already made */
    int64_t last_turn;      /* when the last draw was due */
    struct request request; /* under way, or the last one (id and seed stay) */
    struct token_list answer;
    int32_t n;    /* answer token that the logits in hand are for */
    bool in_hand; /* there are any */
    bool drawn;   /* ... and it was drawn from them */
    bool viewed;  /* ... and a view told so */
    int64_t last_view;

    struct timing {
        int64_t held; /* ns spent in pauses and pace since the answer began */
        int64_t start, prefilled, first_token; /* all without what was held by then */
        int64_t free_since;                    /* the last draw was let through ... */
        bool held_last;                        /* ... after a wait */
        int32_t prefill_tokens, drawn;
    } timing;
};

/* ---- for sources ---------------------------------------------------------------------------- */

const struct token_list *generator_answer(const struct generator *g)
{
    return &g->answer;
}

const atomic_bool *generator_cancel_flag(const struct generator *g)
{
    return &g->cancel;
}

bool generator_is_cancelled(const struct generator *g)
{
    return atomic_load(&g->cancel);
}

void generator_wait(struct generator *g)
{
    board_wait(g->board, -1);
}

bool generator_emit(struct generator *g, struct event *e)
{
    e->request = g->request.id;
    return events_put(&g->events, e);
}

/* An event that must not be lost, whatever is cancelled. A close alone ends the wait. */
static void emit_surely(struct generator *g, struct event *e)
{
    do {
        ring_resume(
            g->events.ring); /* before the look at `closing`: its interruption comes after it */
        if (atomic_load(&g->closing))
            return;
    } while (!events_put(&g->events, e));
}

static void emit_error(struct generator *g, uint32_t request, const struct error *err)
{
    struct event e = {EVENT_ERROR, .request = request, .text = err->text, .len = strlen(err->text)};

    emit_surely(g, &e);
}

bool generator_emit_start(struct generator *g, int32_t prompt_tokens, int32_t reused_tokens,
                          int32_t ctx_size)
{
    struct event e = {EVENT_START, .u.start = {.seed = g->request.seed,
                                               .prompt_tokens = prompt_tokens,
                                               .reused_tokens = reused_tokens,
                                               .ctx_size = ctx_size}};

    g->timing.prefill_tokens = prompt_tokens - reused_tokens;
    return generator_emit(g, &e);
}

void generator_emit_progress(struct generator *g, size_t done, size_t total)
{
    struct event e = {EVENT_PROGRESS,
                      .u.progress = {.done = (int32_t)done, .total = (int32_t)total}};

    generator_emit(g, &e);
}

/* ---- one draw ------------------------------------------------------------------------------- */

static bool read_board(struct generator *g)
{
    bool fresh = board_read(g->board, &g->control);

    if (fresh)
        knob_state_see(&g->knobs, &g->control.knobs);
    return fresh;
}

static void run_sampler(struct generator *g, const struct knobs *knobs, bool want_stats)
{
    const struct source_vtable *v = g->source->vtable;
    struct sampler_input in = {.logits = v->logits(g->source),
                               .punctuation = g->source->punctuation,
                               .knobs = knobs,
                               .want_stats = want_stats};

    in.context = v->context(g->source, &in.n_context);
    sampler_run(g->sampler, &in);
}

static bool emit_view(struct generator *g, bool drawn)
{
    struct event e = {.type = EVENT_VIEW};

    view_build(&e.u.view, g->sampler, g->source, sampler_uniform(g->request.seed, (uint64_t)g->n),
               g->control.candidates);
    e.u.view.n = g->n;
    e.u.view.version = g->control.version;
    e.u.view.drawn = drawn;
    g->viewed = true;
    g->last_view = clock_now_ns();
    return generator_emit(g, &e);
}

/* The chain on the logits in hand. */
static void show(struct generator *g, bool drawn)
{
    const struct knobs knobs = knob_state_effective(&g->knobs, &g->control.knobs);

    if (g->control.candidates <= 0 || !g->in_hand)
        return;
    run_sampler(g, &knobs, true);
    emit_view(g, drawn);
}

static bool step_asked_for(struct generator *g)
{
    if ((int32_t)(g->control.steps - g->steps) <= 0)
        return false;
    g->steps++;
    return true;
}

/* How long pace still holds the next draw back, in ns; when not at all, the draw has its turn. */
static int64_t pace_delay(struct generator *g)
{
    const int64_t now = clock_now_ns();

    if (!(g->control.pace > 0)) {
        g->last_turn = now;
        return 0;
    }
    int64_t interval = (int64_t)((double)second / fmax(g->control.pace, 1e-3));
    int64_t due = g->last_turn + interval;
    if (now < due)
        return due - now;
    /* A little late: keep the beat. Very late (a pause, a slow model): begin a new one. */
    g->last_turn = now - due < interval ? due : now;
    return 0;
}

/* Sleeps until a draw may be made, with the newest snapshot read just before. False: cancelled. */
static bool wait_for_turn(struct generator *g)
{
    bool shown = false;

    g->timing.held_last = false;
    for (;;) {
        bool fresh = read_board(g);
        int64_t delay = -1;

        if (generator_is_cancelled(g))
            return false;
        if (g->control.paused) {
            if (step_asked_for(g)) {
                g->last_turn = clock_now_ns();
                return true;
            }
            if (!shown || fresh)
                show(g, false);
            shown = true;
        } else {
            g->steps = g->control.steps;
            delay = pace_delay(g);
            if (delay == 0)
                return true;
        }
        g->timing.held_last = true;
        board_wait(g->board, delay);
    }
}

static bool view_is_due(const struct generator *g)
{
    if (g->control.candidates <= 0)
        return false;
    return g->control.paused || (g->control.pace > 0 && g->control.pace <= slow_pace) ||
           clock_now_ns() - g->last_view >= view_interval;
}

static bool emit_knobs(struct generator *g, const struct knobs *now)
{
    for (int k = 0; k < KNOB_COUNT; k++) {
        double from = g->knobs.in_force.value[k];
        if (from == now->value[k])
            continue;
        struct event e = {EVENT_KNOB, .u.knob = {.n = g->n,
                                                 .knob = (enum knob)k,
                                                 .from = from,
                                                 .value = now->value[k],
                                                 .version = g->control.version}};
        g->knobs.in_force.value[k] = now->value[k];
        if (!generator_emit(g, &e))
            return false;
    }
    g->knobs.in_force = *now;
    return true;
}

static bool emit_token(struct generator *g, const struct sampler_draw *draw, int64_t time_ns)
{
    struct event e = {EVENT_TOKEN,
                      .u.token = {.n = g->n,
                                  .draw = *draw,
                                  .version = g->control.version,
                                  .knobs = g->knobs.in_force,
                                  .time_ns = time_ns,
                                  .entropy = sampler_stages(g->sampler)[STAGE_COUNT - 1].entropy,
                                  .ctx_used = g->source->vtable->ctx_used(g->source) + 1}};

    if (e.u.token.ctx_used > g->source->ctx_size) /* the last one that fits is not run any more */
        e.u.token.ctx_used = g->source->ctx_size;
    e.text = g->source->vtable->piece(g->source, draw->id, &e.len);
    return generator_emit(g, &e);
}

/* Draws answer token n and says so. False: cancelled, nothing was drawn. */
static bool draw_token(struct generator *g, int32_t *id)
{
    const struct knobs now = knob_state_effective(&g->knobs, &g->control.knobs);
    const bool view = view_is_due(g);

    run_sampler(g, &now, view);
    struct sampler_draw draw =
        sampler_pick(g->sampler, sampler_uniform(g->request.seed, (uint64_t)g->n));
    const int64_t time_ns = clock_now_ns();
    *id = draw.id;
    g->viewed = false;
    if (!emit_knobs(g, &now))
        return false;
    g->drawn = true;
    if (g->source->vtable->is_eog(g->source, draw.id))
        return true;
    if (!emit_token(g, &draw, time_ns))
        return false;
    token_list_add(&g->answer, draw.id);
    if (view)
        emit_view(g, true);
    return true;
}

/* ---- one answer ----------------------------------------------------------------------------- */

/* What decode makes without pace: from draws that no wait stood before, as long as there are any.
 */
static void measure_full_speed(struct generator *g)
{
    const int64_t now = clock_now_ns(), busy = now - g->timing.free_since;
    unsigned known = atomic_load(&g->full_mtps);

    if (g->timing.free_since > 0 && busy > 0 && (!g->timing.held_last || known == 0)) {
        double tps = fmin((double)second / (double)busy, 1e6);
        double smooth = known == 0 ? tps : known / 1e3 + 0.1 * (tps - known / 1e3);
        atomic_store(&g->full_mtps, (unsigned)(smooth * 1e3));
    }
}

/* The clock of the work: it stands still in pauses and while pace holds the answer back. */
static int64_t busy_now(const struct generator *g)
{
    return clock_now_ns() - g->timing.held;
}

/* Waits for the turn of a draw, and keeps the books of time. */
static bool take_turn(struct generator *g)
{
    struct timing *t = &g->timing;
    const int64_t asked = clock_now_ns();

    measure_full_speed(g);
    bool go = wait_for_turn(g);
    t->free_since = clock_now_ns();
    t->held += t->free_since - asked;
    return go;
}

static void emit_end(struct generator *g, enum end_reason reason, int32_t eog_id)
{
    const struct timing *t = &g->timing;
    const int64_t decoding = busy_now(g) - t->first_token;
    struct event e = {
        EVENT_END, .request = g->request.id,
        .u.end = {.reason = reason, .tokens = (int32_t)g->answer.n, .eog_id = eog_id}};

    if (t->prefilled > t->start && t->prefill_tokens > 0)
        e.u.end.prefill_tps =
            (double)t->prefill_tokens * (double)second / (double)(t->prefilled - t->start);
    if (t->drawn > 0)
        e.u.end.ttft_ms = (double)(t->first_token - t->start) * 1e-6;
    if (t->drawn > 1 && decoding > 0)
        e.u.end.decode_tps = (double)(t->drawn - 1) * (double)second / (double)decoding;
    if (!g->viewed) /* the last word stays on the desk, whatever the rate of views was */
        show(g, g->drawn);
    e.u.end.ctx_used = g->source->vtable->ctx_used(g->source);
    e.u.end.kv_used = g->source->vtable->kv_used(g->source);
    emit_surely(g, &e);
}

static bool is_long_enough(const struct generator *g)
{
    return g->request.max_tokens >= 0 && g->answer.n >= (size_t)g->request.max_tokens;
}

/* What to do when tokens were run: go on, or end for this reason. */
static bool goes_on(struct generator *g, enum eval_result result, const struct error *err)
{
    switch (result) {
    case EVAL_OK:
        return true;
    case EVAL_CANCELLED:
        emit_end(g, END_STOPPED, -1);
        return false;
    case EVAL_FULL:
        emit_end(g, END_CONTEXT_FULL, -1);
        return false;
    case EVAL_FAILED:
        break;
    }
    emit_error(g, g->request.id, err);
    return false;
}

/* Draws until there is a reason to end. */
static void decode(struct generator *g)
{
    const struct source_vtable *v = g->source->vtable;
    enum eval_result result = EVAL_OK;
    struct error err = {""};

    do {
        int32_t id;

        if (is_long_enough(g)) {
            emit_end(g, END_MAX_TOKENS, -1);
            return;
        }
        g->n = (int32_t)g->answer.n;
        g->in_hand = true;
        g->drawn = g->viewed = false;
        read_board(g);
        knob_state_move(&g->knobs, g->n);
        if (!take_turn(g) || !draw_token(g, &id)) {
            emit_end(g, END_STOPPED, -1);
            return;
        }
        if (v->is_eog(g->source, id)) {
            emit_end(g, END_EOG, id);
            return;
        }
        if (g->timing.drawn++ == 0)
            g->timing.first_token = busy_now(g);
        if (is_long_enough(g))
            continue; /* nobody asks for the logits after it */
        result = v->advance(g->source, g, id, &err);
        if (result == EVAL_FULL)
            result = v->make_room(g->source, g, &g->request, &err);
        g->in_hand = v->logits(g->source) != NULL;
    } while (goes_on(g, result, &err));
}

static void answer(struct generator *g)
{
    enum eval_result result = EVAL_CANCELLED;
    struct error err = {""};

    g->timing = (struct timing){.start = clock_now_ns()};
    g->answer.n = 0;
    for (size_t i = 0; i < g->request.n_answer; i++)
        token_list_add(&g->answer, g->request.answer[i]);
    g->in_hand = g->viewed = false;
    g->last_turn = 0;
    g->last_view = 0;
    if (!generator_is_cancelled(g))
        result = g->source->vtable->begin(g->source, g, &g->request, &err);
    g->timing.prefilled = busy_now(g);
    if (!goes_on(g, result, &err))
        return;
    read_board(g);
    knob_state_start(&g->knobs, &g->control.knobs, &g->request);
    decode(g);
    knob_state_end(&g->knobs);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* A request while there is nothing that could answer it. */
static void refuse(struct generator *g, struct request *r, const struct error *err)
{
    emit_error(g, r->id, err);
    request_done(r);
}

/* Requests wait for the model; one that was cancelled meanwhile need not. */
void generator_emit_loading(struct generator *g, double share)
{
    struct event e = {EVENT_LOADING, .u.loading = {.share = share}};
    struct job job;

    events_put(&g->events, &e);
    if (!generator_is_cancelled(g) || !slot_take(g->requests, &job))
        return;
    struct event end = {
        EVENT_END, .request = job.request.id,
        .u.end = {.reason = END_STOPPED, .tokens = (int32_t)job.request.n_answer, .eog_id = -1}};
    request_done(&job.request);
    emit_surely(g, &end);
}

static bool open_source(struct generator *g, struct error *err)
{
    struct event e = {.type = EVENT_READY};
    struct backend_status status = {0};

    generator_emit_loading(g, 0);
    if (!g->source->vtable->open(g->source, g, err)) {
        atomic_store(&g->failed, true);
        emit_error(g, 0, err);
        return false;
    }
    g->sampler = sampler_new(g->source->n_vocab);
    g->source->vtable->status(g->source, &status);
    e.text = status.model->label;
    e.len = strlen(e.text);
    atomic_store(&g->ready, true);
    emit_surely(g, &e);
    return true;
}

static void *generate(void *arg)
{
    struct generator *g = arg;
    struct error err = {""};
    const bool open = open_source(g, &err);

    while (!atomic_load(&g->closing)) {
        struct job job;

        if (slot_take(g->requests, &job)) {
            if (!open) {
                refuse(g, &job.request, &err);
                continue;
            }
            request_done(&g->request);
            g->request = job.request;
            g->steps = job.steps;
            answer(g);
        } else if (read_board(g) && open) {
            show(g, false);
        } else {
            board_wait(g->board, -1);
        }
    }
    return NULL;
}

/* ---- the UI thread's side ------------------------------------------------------------------- */

static bool submit(struct backend *b, struct request *r, struct error *err)
{
    struct generator *g = (struct generator *)b;
    const struct job job = {*r, g->published_steps};

    if (g->pending != 0)
        return error_set(err, "an answer is already under way");
    if (atomic_load(&g->failed))
        return error_set(err, "there is no model to answer");
    /* Nothing is under way, so a cancel that is still set was meant for an answer that is over. */
    atomic_store(&g->cancel, false);
    ring_resume(g->events.ring);
    if (!slot_put(g->requests, &job))
        return error_set(err, "an answer is already under way");
    g->pending = r->id;
    *r = (struct request){0};
    board_interrupt(g->board);
    return true;
}

static void cancel(struct backend *b)
{
    struct generator *g = (struct generator *)b;

    if (g->pending == 0)
        return;
    atomic_store(&g->cancel, true);
    ring_interrupt(g->events.ring);
    board_interrupt(g->board);
}

static void publish(struct backend *b, const struct control *c)
{
    struct generator *g = (struct generator *)b;

    g->published_steps = c->steps;
    board_publish(g->board, c);
}

static bool next_event(struct backend *b, struct event *out)
{
    struct generator *g = (struct generator *)b;

    if (!events_take(&g->events, out))
        return false;
    if ((out->type == EVENT_END || out->type == EVENT_ERROR) && out->request == g->pending)
        g->pending = 0;
    return true;
}

static void status(const struct backend *b, struct backend_status *out)
{
    const struct generator *g = (const struct generator *)b;

    *out =
        (struct backend_status){.ready = atomic_load(&g->ready), .failed = atomic_load(&g->failed)};
    if (out->ready)
        g->source->vtable->status(g->source, out);
    out->full_tps = atomic_load(&g->full_mtps) / 1e3;
}

static size_t piece(const struct backend *b, int32_t id, char *out, size_t size)
{
    const struct generator *g = (const struct generator *)b;
    size_t len;

    if (!atomic_load(&g->ready))
        return 0;
    const char *text = g->source->vtable->piece(g->source, id, &len);
    if (size > 0)
        memcpy(out, text, len < size ? len : size);
    return len;
}

static void generator_free(struct generator *g)
{
    struct job left;

    if (slot_take(g->requests, &left))
        request_done(&left.request);
    request_done(&g->request);
    g->source->vtable->free(g->source);
    sampler_free(g->sampler);
    token_list_done(&g->answer);
    slot_free(g->requests);
    board_free(g->board);
    events_done(&g->events);
    free(g);
}

static void close_backend(struct backend *b)
{
    struct generator *g = (struct generator *)b;

    atomic_store(&g->closing, true);
    atomic_store(&g->cancel, true);
    ring_interrupt(g->events.ring);
    board_interrupt(g->board);
    pthread_join(g->thread, NULL);
    generator_free(g);
}

static const struct backend_vtable vtable = {
    .submit = submit,
    .cancel = cancel,
    .publish = publish,
    .next_event = next_event,
    .status = status,
    .piece = piece,
    .close = close_backend,
};

/* Every signal but those that a fault raises is for the UI thread. */
static int start_thread(struct generator *g)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked, before;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int result = pthread_create(&g->thread, NULL, generate, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

struct backend *generator_new(struct source *source, const struct control *initial,
                              struct error *err)
{
    struct generator *g = mem_zalloc(sizeof *g);

    if (!events_init(&g->events, err)) {
        source->vtable->free(source);
        free(g);
        return NULL;
    }
    g->backend = (struct backend){&vtable, g->events.wake.read_fd, &g->events.wake};
    g->source = source;
    g->requests = slot_new(sizeof(struct job));
    g->board = board_new(sizeof *initial, initial);
    g->control = *initial;
    g->published_steps = initial->steps;
    knob_state_see(&g->knobs, &initial->knobs);
    int result = start_thread(g);
    if (result != 0) {
        error_set_errno(err, result, "cannot start the generation thread");
        generator_free(g);
        return NULL;
    }
    return &g->backend;
}
