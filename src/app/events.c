/* What the backend says, laid over the conversation. */
#include "config.h"

#include "app/app_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "chat/template.h"

enum { CONTEXT_WARN_PERCENT = 85 };

static bool is_ours(const struct app *app, const struct event *e)
{
    return app->request != 0 && e->request == app->request;
}

/* ---- the model ------------------------------------------------------------------------------- */

static void on_loading(struct app *app, const struct event *e)
{
    app->load_share = e->u.loading.share;
    app_changed(app, CHANGE_STATUS);
}

static void on_ready(struct app *app, const struct event *e)
{
    (void)e;
    app->load_share = 1;
    app->state = APP_IDLE;
    free(app->previous_model);
    app->previous_model = NULL;
    const struct template_choice *t = app->status.chat_template;
    bool error_stands = app->message[0] != '\0' && app->severity == SAY_ERROR;
    if (t != NULL && !t->recognised && !error_stands)
        app_say(app, SAY_WARNING, "this model's chat template is not known; %s is used instead",
                template_name(t->tmpl));
    else if (app->status.ctx_size > app->status.model->ctx_train && !error_stands)
        app_say(app, SAY_WARNING, "a context of %d: this model was made for %d positions",
                (int)app->status.ctx_size, (int)app->status.model->ctx_train);
    else if (app->status.notice != NULL && !error_stands)
        app_say(app, SAY_WARNING, "%s", app->status.notice);
    app_publish(app);
    app_go_on(app);
}

/* What was not answered goes back to where it was typed: `prompt` (NULL: none), and what was queued. */
static void give_back(struct app *app, const char *prompt)
{
    struct str text = STR_INIT;

    if (app->ops == NULL || app->ops->set_input == NULL || (prompt == NULL && app->queued == NULL))
        return;
    if (prompt != NULL)
        str_add_text(&text, prompt);
    if (app->queued != NULL)
        str_add_format(&text, "%s%s", prompt != NULL ? "\n" : "", app->queued);
    free(app->queued);
    app->queued = NULL;
    app->ops->set_input(app->ops_ctx, str_text(&text));
    str_done(&text);
}

/* An answer that failed. A prompt that never got a word (one that is too long, say) is given back too: sent
 * again it takes the place of the one that failed. */
static void give_back_unanswered(struct app *app, const struct turn *answer)
{
    struct turn *user = answer->parent;
    bool unanswered = answer->n_tokens == 0 && user != NULL && user->role == ROLE_USER;

    if (unanswered)
        app->editing = user;
    give_back(app, unanswered ? str_text(&user->text) : NULL);
}

/* The model could not be opened: back to the one before, where there is one. */
static void on_failed(struct app *app, const char *why)
{
    char *previous = app->previous_model;
    char said[sizeof app->message];
    struct error err;

    app->state = APP_FAILED;
    app_say(app, SAY_ERROR, "%s", why);
    app->previous_model = NULL;
    if (previous == NULL) {
        app_drop_next(app, END_ERROR);
        give_back(app, NULL);
        return;
    }
    snprintf(said, sizeof said, "%s", why);
    if (app_switch_model(app, previous, &err))
        app_say(app, SAY_ERROR, "%.180s; back to %.60s", said, previous);
    free(app->previous_model);
    app->previous_model = NULL;
    free(previous);
}

/* ---- an answer ------------------------------------------------------------------------------- */

static void use_context(struct app *app, int32_t positions)
{
    int64_t size = app->status.ctx_size;

    app->ctx_used = positions;
    app->kv_used = (uint64_t)positions * app->status.ledger.bytes_per_token;
    if (app->context_warned || size <= 0 ||
        (int64_t)app->ctx_used * 100 < size * CONTEXT_WARN_PERCENT)
        return;
    app->context_warned = true;
    if (app->on_full == CONTEXT_DROP_OLDEST)
        app_say(app, SAY_WARNING,
                "the context is %d %% full: the oldest turns will leave it "
                "(/set on_full stop: the answer ends instead)",
                (int)((int64_t)app->ctx_used * 100 / size));
    else
        app_say(app, SAY_WARNING,
                "the context is %d %% full: then the answer ends "
                "(/set on_full drop: the oldest turns leave instead; /new begins anew)",
                (int)((int64_t)app->ctx_used * 100 / size));
}

static void on_start(struct app *app, const struct event *e)
{
    if (!is_ours(app, e))
        return;
    app->seed = app->answer->seed = e->u.start.seed;
    app->detok = (struct detokenizer){.n_held = 0};
    for (size_t i = 0; i < app->answer->n_given; i++) {
        char piece[256];
        struct str ignored = STR_INIT;
        size_t n = backend_piece(app->backend, app->answer->tokens[i].id, piece, sizeof piece);
        detokenizer_push(&app->detok, piece, n < sizeof piece ? n : sizeof piece, &ignored, NULL);
        str_done(&ignored);
    }
    app->stats = (struct app_stats){.prompt_tokens = e->u.start.prompt_tokens,
                                    .reused_tokens = e->u.start.reused_tokens,
                                    .ahead_tokens = e->u.start.ahead_tokens};
    app->totals.answers++;
    app->totals.prompt_tokens += e->u.start.prompt_tokens;
    app->totals.reused_tokens += e->u.start.reused_tokens;
    app->totals.ahead_tokens += e->u.start.ahead_tokens;
    app->state = APP_PREFILL;
    app_record_opening(app, app->answer);
    use_context(app, e->u.start.prompt_tokens);
    app_changed(app, CHANGE_STATUS);
}

static void on_progress(struct app *app, const struct event *e)
{
    if (!is_ours(app, e))
        return;
    app->prefill_done = e->u.progress.done;
    app->prefill_total = e->u.progress.total;
    app_changed(app, CHANGE_STATUS);
}

static void add_move(struct app *app, int32_t n, enum knob knob, double from, double value)
{
    struct turn *t = app->answer;

    turn_add_knob(t, n, knob, from, value);
    if (app->transcript != NULL)
        transcript_knob(app->transcript, t, t->n_moves - 1);
    app_changed(app, CHANGE_TRANSCRIPT);
}

static void on_knob(struct app *app, const struct event *e)
{
    if (is_ours(app, e))
        add_move(app, e->u.knob.n, e->u.knob.knob, e->u.knob.from, e->u.knob.value);
}

/* The first draw may be made with other knobs than the turn says: a fader moved since it was asked
 * for, or since the version that it branched from. */
static void reconcile_knobs(struct app *app, int32_t n, const struct knobs *k)
{
    const struct knobs said = turn_last_knobs(app->answer);

    for (int i = 0; i < KNOB_COUNT; i++) {
        if (said.value[i] != k->value[i])
            add_move(app, n, (enum knob)i, said.value[i], k->value[i]);
    }
}

/* A preset chosen on the way may have put the stages into another order, or exempt others. */
static void note_chain(struct app *app, int32_t n, const struct knobs *k)
{
    struct turn *t = app->answer;
    const struct knobs *said = t->n_chains > 0 ? &t->chains[t->n_chains - 1].knobs : &t->knobs;

    if (knobs_same_chain(said, k))
        return;
    turn_add_chain(t, n, k);
    if (app->transcript != NULL)
        transcript_chain(app->transcript, t, t->n_chains - 1);
}

static void measure_pace(struct app *app, int64_t now_ns)
{
    app->token_ns[app->n_token_ns++ % APP_TPS_TOKENS] = now_ns;
    size_t n = app->n_token_ns < APP_TPS_TOKENS ? app->n_token_ns : APP_TPS_TOKENS;
    int64_t first =
        app->token_ns[app->n_token_ns < APP_TPS_TOKENS ? 0 : app->n_token_ns % APP_TPS_TOKENS];
    if (n > 1 && now_ns > first)
        app->tps = (double)(n - 1) * 1e9 / (double)(now_ns - first);
}

static void note_branch(struct turn *t, size_t i)
{
    const struct turn *from = t->earlier;

    if (from != NULL && t->branch_at < 0 &&
        (i >= from->n_tokens || from->tokens[i].id != t->tokens[i].id))
        t->branch_at = (int32_t)i;
}

static void on_token(struct app *app, const struct event *e)
{
    struct turn *t = app->answer;
    struct str text = STR_INIT;

    if (!is_ours(app, e))
        return;
    if (!app->answer_drawn)
        reconcile_knobs(app, e->u.token.n, &e->u.token.knobs);
    note_chain(app, e->u.token.n, &e->u.token.knobs);
    detokenizer_push(&app->detok, e->text, e->len, &text, NULL);
    struct answer_token token = {
        .id = e->u.token.draw.id,
        .logprob = (float)e->u.token.draw.logprob,
        .p = (float)e->u.token.draw.p,
        .rank = e->u.token.draw.rank,
        .entropy = (float)e->u.token.entropy,
        .version = e->u.token.version,
    };
    turn_add_token(t, &token, str_text(&text), text.len);
    str_done(&text);
    note_branch(t, t->n_tokens - 1);
    if (app->transcript != NULL)
        transcript_token(app->transcript, t, t->n_tokens - 1);
    app->answer_drawn = true;
    app->state = APP_ANSWERING;
    measure_pace(app, e->u.token.time_ns);
    use_context(app, e->u.token.ctx_used);
    app_changed(app, CHANGE_TRANSCRIPT | CHANGE_STATUS);
}

static void on_view(struct app *app, const struct event *e)
{
    /* after the end, too: a fader that moves then shows what the next word would have been */
    if (app->view_turn == NULL || e->request != app->view_request)
        return;
    if (!app->has_view || app->view.n != e->u.view.n)
        app->candidate = 0;
    app->view = e->u.view;
    if (app->candidate >= app->view.n_candidates)
        app->candidate = 0;
    app->has_view = true;
    app_changed(app, CHANGE_DESK);
}

static void on_dropped(struct app *app, const struct event *e)
{
    struct turn *t = app->answer;
    char text[128];

    if (!is_ours(app, e))
        return;
    app_record_opening(app, t); /* this may come before the start does */
    t->dropped_messages += e->u.dropped.messages;
    t->dropped_tokens += e->u.dropped.tokens;
    if (app->transcript != NULL)
        transcript_dropped(app->transcript, t);
    app_dropped_text(t, text, sizeof text);
    app_say(app, SAY_WARNING, "%s", text);
    app_changed(app, CHANGE_TRANSCRIPT);
}

static void say_end(struct app *app, const struct turn *t)
{
    switch ((enum end_reason)t->end_reason) {
    case END_MAX_TOKENS:
        app_say(app, SAY_INFO, "the answer ended at its limit of %d tokens (/set max_tokens)",
                app->max_tokens);
        break;
    case END_CONTEXT_FULL:
        app_say(app, SAY_WARNING,
                "the context is full, so the answer ends here (/new, or /set on_full drop)");
        break;
    case END_STOPPED:
        app_say(app, SAY_INFO, "stopped");
        break;
    case END_EOG:
        if (t->earlier != NULL && t->branch_at < 0)
            app_say(app, SAY_INFO, "the same words as in the version before");
        break;
    case END_ERROR:
        break;
    }
}

static void on_end(struct app *app, const struct event *e)
{
    struct turn *t = app->answer;

    if (e->request == app->running)
        app->running = 0;
    if (is_ours(app, e)) {
        app->request = 0;
        app->answer = NULL;
        app->stopping = false;
        app->state = APP_IDLE;
        use_context(app, e->u.end.ctx_used);
        app->kv_held = e->u.end.kv_used;
        app->stats.valid = true;
        app->stats.reason = e->u.end.reason;
        app->stats.tokens = e->u.end.tokens;
        app->stats.prefill_tps = e->u.end.prefill_tps;
        app->stats.decode_tps = e->u.end.decode_tps;
        app->stats.ttft_ms = e->u.end.ttft_ms;
        app_end_turn(app, t, e->u.end.reason);
        say_end(app, t);
    }
    app_go_on(app);
}

static void on_error(struct app *app, const struct event *e)
{
    struct turn *t = app->answer;
    bool ours = is_ours(app, e);

    if (e->request == app->running)
        app->running = 0;
    if (ours) {
        app->request = 0;
        app->answer = NULL;
        app->stopping = false;
        app->state = APP_IDLE;
        app_end_turn(app, t, END_ERROR);
        give_back_unanswered(app, t);
    }
    if (app->status.failed && e->request == 0)
        on_failed(app, e->text);
    else if (ours || e->request == 0)
        app_say(app, SAY_ERROR, "%s", e->text);
    if (app->state != APP_FAILED)
        app_go_on(app);
}

static void (*const handlers[])(struct app *, const struct event *) = {
    [EVENT_LOADING] = on_loading,   [EVENT_READY] = on_ready,     [EVENT_START] = on_start,
    [EVENT_PROGRESS] = on_progress, [EVENT_KNOB] = on_knob,       [EVENT_TOKEN] = on_token,
    [EVENT_VIEW] = on_view,         [EVENT_DROPPED] = on_dropped, [EVENT_END] = on_end,
    [EVENT_ERROR] = on_error,
};

bool app_drain(struct app *app)
{
    struct event e;
    bool any = false;

    while (backend_next_event(app->backend, &e)) {
        if (!any || e.type == EVENT_READY || e.type == EVENT_ERROR)
            app_refresh_status(app);
        any = true;
        if ((size_t)e.type < sizeof handlers / sizeof handlers[0])
            handlers[e.type](app, &e);
    }
    if (any)
        app_save(app, clock_now_ns());
    return any;
}
