#include "config.h"

#include <math.h>

#include "backend/generator_impl.h"
#include "backend/views.h"
#include "base/clock.h"

static const int64_t second = 1000000000;
static const int64_t view_interval = 100000000; /* at full pace: ten views a second */
static const double slow_pace = 12.5;           /* at most this: a view with every token */

/* ---- one draw ------------------------------------------------------------------------------- */

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
void generator_show(struct generator *g, bool drawn)
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
        bool fresh = generator_read_board(g);
        int64_t delay = -1;

        if (generator_is_cancelled(g))
            return false;
        if (g->control.paused) {
            if (step_asked_for(g)) {
                g->last_turn = clock_now_ns();
                return true;
            }
            if (!shown || fresh)
                generator_show(g, false);
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

/* What decode makes without pace: from draws that no wait stood before, as long as
 * there are any. */
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

static void emit_end(struct generator *g, enum end_reason reason)
{
    const struct timing *t = &g->timing;
    const int64_t decoding = busy_now(g) - t->first_token;
    struct event e = {EVENT_END, .request = g->request.id,
                      .u.end = {.reason = reason, .tokens = (int32_t)g->answer.n}};

    if (t->prefilled > t->start && t->prefill_tokens > 0)
        e.u.end.prefill_tps =
            (double)t->prefill_tokens * (double)second / (double)(t->prefilled - t->start);
    if (t->drawn > 0)
        e.u.end.ttft_ms = (double)(t->first_token - t->start) * 1e-6;
    if (t->drawn > 1 && decoding > 0)
        e.u.end.decode_tps = (double)(t->drawn - 1) * (double)second / (double)decoding;
    if (!g->viewed) /* the last word stays on the desk, whatever the rate of views was */
        generator_show(g, g->drawn);
    e.u.end.ctx_used = g->source->vtable->ctx_used(g->source);
    e.u.end.kv_used = g->source->vtable->kv_used(g->source);
    generator_emit_surely(g, &e);
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
        emit_end(g, END_STOPPED);
        return false;
    case EVAL_FULL:
        emit_end(g, END_CONTEXT_FULL);
        return false;
    case EVAL_FAILED:
        break;
    }
    generator_emit_error(g, g->request.id, err);
    return false;
}

/* A stop came while the last word ran, so that neither the logits it was drawn from nor those after
 * it are in hand, and the desk shows an older draw. The end is said at once; then the word is run
 * again, for the candidates of the next one. `cancel` is cleared first: what sets it from here on
 * is a close, or the next answer's. */
static void stop_in_mid_word(struct generator *g, int32_t id)
{
    struct error ignored;

    atomic_store(&g->cancel, false);
    emit_end(g, END_STOPPED);
    if (g->control.candidates <= 0 || atomic_load(&g->closing))
        return;
    g->in_hand = g->source->vtable->advance(g->source, g, id, &ignored) == EVAL_OK;
    g->n = (int32_t)g->answer.n;
    generator_read_board(g);
    generator_show(g, false);
}

/* Draws until there is a reason to end. */
static void decode(struct generator *g)
{
    const struct source_vtable *v = g->source->vtable;
    enum eval_result result = EVAL_OK;
    struct error err = {""};
    int32_t id;

    do {
        if (is_long_enough(g)) {
            emit_end(g, END_MAX_TOKENS);
            return;
        }
        g->n = (int32_t)g->answer.n;
        g->in_hand = true;
        g->drawn = g->viewed = false;
        generator_read_board(g);
        knob_state_move(&g->knobs, g->n);
        if (!take_turn(g) || !draw_token(g, &id)) {
            emit_end(g, END_STOPPED);
            return;
        }
        if (v->is_eog(g->source, id)) {
            emit_end(g, END_EOG);
            return;
        }
        if (g->timing.drawn++ == 0)
            g->timing.first_token = busy_now(g);
        if (is_long_enough(g))
            continue; /* nobody asks for the logits after it */
        result = v->advance(g->source, g, id, &err);
        g->in_hand = v->logits(g->source) != NULL;
        if (result == EVAL_CANCELLED) {
            stop_in_mid_word(g, id);
            return;
        }
        if (result == EVAL_FULL) {
            result = v->make_room(g->source, g, &g->request, &err);
            g->in_hand = v->logits(g->source) != NULL;
        }
    } while (goes_on(g, result, &err));
}

void generator_make_answer(struct generator *g)
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
    generator_read_board(g);
    knob_state_start(&g->knobs, &g->control.knobs, &g->request);
    decode(g);
    knob_state_end(&g->knobs);
}
