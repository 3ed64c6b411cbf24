#include "config.h"

#include "backend/generator_impl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- for sources ---------------------------------------------------------------------------- */

bool generator_read_board(struct generator *g)
{
    bool fresh = board_read(g->board, &g->control);

    if (fresh)
        knob_state_see(&g->knobs, &g->control.knobs);
    return fresh;
}

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

const atomic_bool *generator_closing_flag(const struct generator *g)
{
    return &g->closing;
}

const atomic_bool *generator_interrupt_flag(const struct generator *g)
{
    return &g->interrupt;
}

void generator_wait(struct generator *g)
{
    generator_read_board(g); /* news that nobody has read would end every wait at once */
    board_wait(g->board, -1);
}

bool generator_emit(struct generator *g, struct event *e)
{
    e->request = g->request.id;
    return events_put(&g->events, e);
}

void generator_emit_surely(struct generator *g, struct event *e)
{
    do {
        ring_resume(g->events.ring); /* first: the interruption of a close comes after `closing` */
        if (atomic_load(&g->closing))
            return;
    } while (!events_put(&g->events, e));
}

void generator_emit_error(struct generator *g, uint32_t request, const struct error *err)
{
    struct event e = {EVENT_ERROR, .request = request, .text = err->text, .len = strlen(err->text)};

    generator_emit_surely(g, &e);
}

bool generator_emit_start(struct generator *g, int32_t prompt_tokens, int32_t reused_tokens,
                          int32_t ahead_tokens, int32_t ctx_size)
{
    struct event e = {EVENT_START, .u.start = {.seed = g->request.seed,
                                               .prompt_tokens = prompt_tokens,
                                               .reused_tokens = reused_tokens,
                                               .ahead_tokens = ahead_tokens,
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

/* ---- the thread ----------------------------------------------------------------------------- */

/* A request while there is nothing that could answer it. */
static void refuse(struct generator *g, struct request *r, const struct error *err)
{
    generator_emit_error(g, r->id, err);
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
    struct event end = {EVENT_END, .request = job.request.id,
                        .u.end = {.reason = END_STOPPED, .tokens = (int32_t)job.request.n_answer}};
    request_done(&job.request);
    generator_emit_surely(g, &end);
}

static bool open_source(struct generator *g, struct error *err)
{
    struct event e = {.type = EVENT_READY};
    struct backend_status status = {0};

    generator_emit_loading(g, 0);
    if (!g->source->vtable->open(g->source, g, err)) {
        atomic_store(&g->failed, true);
        generator_emit_error(g, 0, err);
        return false;
    }
    g->sampler = sampler_new(g->source->n_vocab);
    g->source->vtable->status(g->source, &status);
    e.text = status.model->label;
    e.len = strlen(e.text);
    atomic_store(&g->ready, true);
    generator_emit_surely(g, &e);
    return true;
}

/* Begins the next answer where one is asked for. `failure`: why the source is not open; NULL: it is.
 */
static bool take_request(struct generator *g, const struct error *failure)
{
    struct job job;

    if (!slot_take(g->requests, &job))
        return false;
    if (failure != NULL) {
        refuse(g, &job.request, failure);
        return true;
    }
    request_done(&g->request);
    g->request = job.request;
    g->steps = job.steps;
    generator_make_answer(g);
    return true;
}

static bool take_draft(struct generator *g)
{
    struct draft draft;

    if (!slot_take(g->drafts, &draft))
        return false;
    g->source->vtable->expect(g->source, &draft);
    draft_done(&draft);
    return true;
}

/* Does the most important thing there is to do; false when there is nothing. */
static bool do_something(struct generator *g, const struct error *failure)
{
    if (take_request(g, failure))
        return true;
    if (generator_read_board(g)) {
        if (failure == NULL)
            generator_show(g, false);
        return true;
    }
    return failure == NULL && (take_draft(g) || g->source->vtable->run_ahead(g->source, g));
}

static void *generate(void *arg)
{
    struct generator *g = arg;
    struct error err = {""};
    const bool open = open_source(g, &err);

    for (;;) {
        /* Whoever sets it has brought something, or the end, before: that is seen from here on. */
        atomic_store(&g->interrupt, false);
        if (atomic_load(&g->closing))
            return NULL;
        if (!do_something(g, open ? NULL : &err))
            board_wait(g->board, -1);
    }
}

/* ---- the UI thread's side ------------------------------------------------------------------- */

/* Ends what is run ahead, or the thread's sleep. */
static void rouse(struct generator *g)
{
    atomic_store(&g->interrupt, true);
    board_interrupt(g->board);
}

static void drop_draft(struct generator *g)
{
    struct draft stale;

    if (slot_take(g->drafts, &stale))
        draft_done(&stale);
}

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
    drop_draft(g); /* what was expected is here */
    rouse(g);
    return true;
}

/* The batch under way is finished: most of the time the new draft begins with it. */
static void expect(struct backend *b, struct draft *d)
{
    struct generator *g = (struct generator *)b;
    struct draft stale;

    if (slot_replace(g->drafts, d, &stale))
        draft_done(&stale);
    *d = (struct draft){0};
    board_interrupt(g->board);
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
    atomic_store(&g->interrupt, true);
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
    drop_draft(g);
    request_done(&g->request);
    g->source->vtable->free(g->source);
    sampler_free(g->sampler);
    token_list_done(&g->answer);
    slot_free(g->requests);
    slot_free(g->drafts);
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
    rouse(g);
    pthread_join(g->thread, NULL);
    generator_free(g);
}

static const struct backend_vtable vtable = {
    .submit = submit,
    .expect = expect,
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
    g->drafts = slot_new(sizeof(struct draft));
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
