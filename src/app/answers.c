/* Answers: asking for one, stopping it, and making it anew in other ways. */
#include "config.h"

#include "app/app_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/command.h"
#include "base/mem.h"

bool app_is_answering(const struct app *app)
{
    return app->request != 0 || app->next != NULL;
}

struct turn *app_last_of(const struct app *app, enum role role)
{
    struct turn *t = conversation_leaf(app->conversation);

    while (t != NULL && t->role != role)
        t = t->parent;
    return t;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void copy_given(struct request *r, const struct turn *answer)
{
    if (answer->n_given == 0)
        return;
    r->n_answer = answer->n_given;
    r->answer = mem_array(r->n_answer, sizeof *r->answer);
    for (size_t i = 0; i < r->n_answer; i++)
        r->answer[i] = answer->tokens[i].id;
}

static void forget_measures(struct app *app)
{
    app->prefill_done = app->prefill_total = 0;
    app->n_token_ns = 0;
    app->tps = 0;
    app->has_view = false;
    app->candidate = 0;
    app->detok = (struct detokenizer){.n_held = 0};
}

static void submit(struct app *app, struct turn *answer)
{
    struct request r = {
        .id = ++app->last_request,
        .kind = REQUEST_CHAT,
        .seed = answer->seed,
        .max_tokens = app->max_tokens,
        .on_full = app->on_full,
    };
    uint32_t id = r.id;
    struct error err;

    conversation_messages(app->conversation, answer->parent, &r.messages);
    copy_given(&r, answer);
    answer->model = app->conversation->model;
    if (answer->n_given == 0)
        answer->knobs = app->control.knobs;
    forget_measures(app);
    app->answer = app->view_turn = answer;
    app->answer_drawn = app->answer_recorded = app->stopping = false;
    app->seed = answer->seed;
    app->request = app->running = app->view_request = id;
    app_changed(app, CHANGE_TRANSCRIPT | CHANGE_DESK | CHANGE_STATUS);
    if (!backend_submit(app->backend, &r, &err)) {
        request_done(&r);
        app->request = app->running = 0;
        app->answer = NULL;
        app_end_turn(app, answer, END_ERROR);
        app_say(app, SAY_ERROR, "%s", err.text);
        return;
    }
    app->state = APP_PREFILL;
    if (app->control.paused)
        app_say(app, SAY_INFO, "paused before the %s word: F5 goes on, F6 draws one",
                answer->n_given == 0 ? "first" : "next");
}

void app_go_on(struct app *app)
{
    struct turn *next = app->next;

    if (app->running != 0 || app->request != 0 || app->state == APP_LOADING)
        return; /* which ids a prompt may hold is known when the model is */
    app->next = NULL;
    if (next != NULL) {
        submit(app, next);
    } else if (app->queued != NULL) {
        char *text = app->queued;
        app->queued = NULL;
        app_send(app, text);
        free(text);
    } else {
        app_input_changed(app); /* what stands before it has */
    }
}

/* Asks for an answer, at once or as soon as the backend has let go of the one before. */
static void ask(struct app *app, struct turn *answer)
{
    app->next = answer;
    app_changed(app, CHANGE_PATH | CHANGE_STATUS);
    app_go_on(app);
}

static uint32_t new_seed(const struct app *app)
{
    return app->seed_kept ? app->kept_seed : sampler_random_seed();
}

void app_send(struct app *app, const char *text)
{
    struct conversation *c = app->conversation;
    struct turn *parent = app->editing != NULL ? app->editing->parent : conversation_leaf(c);
    struct turn *user = conversation_add(c, parent, ROLE_USER, text);
    struct turn *answer = conversation_add(c, user, ROLE_ASSISTANT, "");

    app->editing = NULL;
    answer->seed = new_seed(app);
    if (app->transcript != NULL)
        transcript_turn(app->transcript, user);
    ask(app, answer);
    app_note_language(app, text);
}

static void queue(struct app *app, const char *text)
{
    struct str s = STR_INIT;

    if (app->queued != NULL)
        str_add_format(&s, "%s\n", app->queued);
    str_add_text(&s, text);
    free(app->queued);
    app->queued = str_steal(&s);
    app_say(app, SAY_INFO, "queued; sent when this answer ends");
}

void app_enter(struct app *app, const char *line)
{
    if (line[strspn(line, " \t\r\n")] == '\0')
        return;
    app_clear_message(app);
    if (line[0] == '/' && line[1] != '/') {
        command_run(app, line);
        return;
    }
    const char *text = line[0] == '/' ? line + 1 : line;
    if (app->state == APP_FAILED)
        app_say(app, SAY_ERROR, "there is no model that could answer; /model opens one");
    else if (app_is_answering(app))
        queue(app, text);
    else
        app_send(app, text);
}

/* ---- ending ---------------------------------------------------------------------------------- */

void app_end_turn(struct app *app, struct turn *turn, enum end_reason reason)
{
    struct str left = STR_INIT;

    detokenizer_flush(&app->detok, &left, NULL);
    turn_add_text(turn, str_text(&left), left.len);
    str_done(&left);
    turn->end_reason = (int32_t)reason;
    turn->complete = reason == END_EOG;
    if (turn->earlier != NULL && turn->branch_at < 0 && turn->n_tokens < turn->earlier->n_tokens)
        turn->branch_at = (int32_t)turn->n_tokens;
    app_record_opening(app, turn);
    if (app->transcript != NULL)
        transcript_end(app->transcript, turn);
    if (!app->save_failed)
        app->save_after_ns = 0; /* the end of an answer is worth a write of its own */
    app_changed(app, CHANGE_TRANSCRIPT | CHANGE_STATUS);
}

/* An answer that waits for the backend was never begun. */
void app_drop_next(struct app *app, enum end_reason reason)
{
    struct turn *next = app->next;

    app->next = NULL;
    if (next == NULL)
        return;
    app->answer_recorded = false;
    app->detok = (struct detokenizer){.n_held = 0};
    app_end_turn(app, next, reason);
}

void app_leave_answer(struct app *app)
{
    struct turn *answer = app->answer;

    if (app->request != 0) {
        backend_cancel(app->backend);
        app->request = 0;
        app->answer = NULL;
        app->stopping = false;
        app_end_turn(app, answer, END_STOPPED);
        app->state = APP_IDLE;
    }
    app_drop_next(app, END_STOPPED);
}

void app_stop(struct app *app)
{
    if (!app_is_answering(app))
        return;
    app_drop_next(app, END_STOPPED);
    if (app->request != 0 && !app->stopping) {
        app->stopping = true;
        backend_cancel(app->backend);
    }
    if (app->control.paused)
        app_set_paused(app, false);
}

/* ---- anew ------------------------------------------------------------------------------------ */

void app_path_changed(struct app *app)
{
    if (app->view_turn != NULL && !conversation_on_path(app->conversation, app->view_turn)) {
        app->view_turn = NULL;
        app->has_view = false;
    }
    if (app->editing != NULL && !conversation_on_path(app->conversation, app->editing))
        app->editing = NULL;
    app_input_changed(app);
    app_changed(app, CHANGE_PATH | CHANGE_DESK);
}

void app_retry(struct app *app, bool same_dice)
{
    struct turn *old = conversation_leaf(app->conversation);

    if (old == NULL) {
        app_say(app, SAY_INFO, "nothing to retry yet: ask something first");
        return;
    }
    if (app->state == APP_FAILED) {
        app_say(app, SAY_ERROR, "there is no model that could answer; /model opens one");
        return;
    }
    app_leave_answer(app);
    app->editing = NULL;
    bool answered = old->role == ROLE_ASSISTANT;
    struct turn *answer =
        conversation_add(app->conversation, answered ? old->parent : old, ROLE_ASSISTANT, "");
    answer->earlier = answered ? old : NULL;
    answer->seed = answered && same_dice ? old->seed : sampler_random_seed();
    if (app->seed_kept && !same_dice) {
        app->kept_seed = answer->seed;
        app_say(app, SAY_INFO, "a new seed, %u: kept from now on", answer->seed);
    }
    ask(app, answer);
}

/* The candidate of the view with this id, or NULL. */
static const struct view_candidate *find_candidate(const struct view *v, int32_t id)
{
    for (int32_t i = 0; i < v->n_candidates; i++) {
        if (v->candidates[i].c.id == id)
            return &v->candidates[i];
    }
    return NULL;
}

/* Adds the token that was picked by hand, with what the view knows of it. */
static void add_picked(struct app *app, struct turn *t, const struct view_candidate *picked)
{
    char bytes[256];
    size_t len = backend_piece(app->backend, picked->c.id, bytes, sizeof bytes);
    struct detokenizer d = {.n_held = 0};
    struct str text = STR_INIT;

    /* the bytes of an unfinished character before it are held again */
    for (size_t i = 0; i < t->n_tokens; i++) {
        char piece[256];
        size_t n = backend_piece(app->backend, t->tokens[i].id, piece, sizeof piece);
        str_clear(&text);
        detokenizer_push(&d, piece, n < sizeof piece ? n : sizeof piece, &text, NULL);
    }
    str_clear(&text);
    detokenizer_push(&d, bytes, len < sizeof bytes ? len : sizeof bytes, &text, NULL);
    struct answer_token token = {
        .id = picked->c.id,
        .logprob = (float)log(picked->c.model),
        .p = (float)picked->c.now,
        .rank = -1,
        .entropy = (float)app->view.entropy,
        .version = app->view.version,
    };
    turn_add_token(t, &token, str_text(&text), text.len);
    t->n_given = t->n_tokens;
    str_done(&text);
}

/* The end of the answer was picked: there is nothing left to ask for. */
static void end_by_hand(struct app *app, struct turn *t)
{
    app->answer_recorded = false;
    app->detok = (struct detokenizer){.n_held = 0};
    app_end_turn(app, t, END_EOG);
    app_path_changed(app);
    app_go_on(app);
}

void app_pick(struct app *app, int32_t id)
{
    struct turn *old = app->view_turn;
    const struct view_candidate *found = app->has_view ? find_candidate(&app->view, id) : NULL;

    if (found == NULL || old == NULL || app->view.n > (int32_t)old->n_tokens) {
        app_say(app, SAY_INFO, "there is no such word to choose");
        return;
    }
    size_t n = (size_t)app->view.n;
    if (n < old->n_tokens && old->tokens[n].id == id) {
        app_say(app, SAY_INFO, "that is the word that was drawn");
        return;
    }
    struct view_candidate picked = *found; /* the view goes with the answer that is left */
    app_leave_answer(app);
    struct turn *answer = conversation_add(app->conversation, old->parent, ROLE_ASSISTANT, "");
    answer->earlier = old;
    answer->seed = old->seed;
    answer->branch_at = (int32_t)n;
    turn_take_tokens(answer, old, n);
    if (picked.eog) {
        end_by_hand(app, answer);
        return;
    }
    add_picked(app, answer, &picked);
    ask(app, answer);
}

void app_cancel_edit(struct app *app)
{
    if (app->editing == NULL)
        return;
    app->editing = NULL;
    app_input_changed(app);
    app_say(app, SAY_INFO, "not edited: the next message goes at the end");
}

/* ---- versions -------------------------------------------------------------------------------- */

void app_version_of(struct app *app, struct turn *turn, int direction)
{
    size_t n, at = turn_version(app->conversation, turn, &n);

    if (n < 2) {
        app_say(app, SAY_INFO, "there is one version only; /retry makes another");
        return;
    }
    if ((direction < 0 && at == 0) || (direction > 0 && at + 1 == n)) {
        app_say(app, SAY_INFO, "version %zu of %zu: the %s", at + 1, n,
                direction < 0 ? "first" : "last");
        return;
    }
    at = direction < 0 ? at - 1 : at + 1;
    turn_choose_version(app->conversation, turn, at);
    struct turn *shown =
        turn->parent == NULL ? app->conversation->roots[at] : turn->parent->children[at];
    if (app->transcript != NULL)
        transcript_choose(app->transcript, shown);
    app_say(app, SAY_INFO, "version %zu of %zu", at + 1, n);
    app_path_changed(app);
}

void app_version(struct app *app, int direction)
{
    struct conversation *c = app->conversation;
    struct turn *t = conversation_leaf(c);
    size_t n = 0;

    while (t != NULL && (turn_version(c, t, &n), n < 2))
        t = t->parent;
    if (t != NULL)
        app_version_of(app, t, direction);
    else if (c->n_roots > 0 && conversation_leaf(c) == NULL)
        app_version_of(app, c->roots[0],
                       direction); /* everything was taken back: the first is there */
    else
        app_say(app, SAY_INFO, "there is one version only; /retry makes another");
}
