/* The generation thread: the draw loop that every backend shares. What runs the tokens is a source
 * (local.c: the engine; scripted.c: a script); what decides when and with which knobs a token is
 * drawn, and tells the UI about it, is here.
 *
 * For every token: the newest snapshot of the board is taken, the movements fixed in advance are
 * laid over it, pace and pause hold the draw back, the chain runs, and the events go out (knob,
 * token, view); only then is the token run, so that it is on the screen while the next logits are
 * computed. With those in hand the loop waits again: in a pause the candidates of the next word can
 * be shown. No token is ever drawn ahead.
 *
 * Between answers, and only then, it runs what of the next prompt is certain already, a small batch
 * at a time; before each it looks for anything else to do, and what comes meanwhile interrupts it.
 *
 * The thread sleeps in two places only, and uses no CPU there: in board_wait (idle, paused, paced;
 * roused by a publication, a request, a draft, a cancel, the end) and in ring_write (the UI does
 * not drain). */
#ifndef FADER_BACKEND_GENERATOR_H
#define FADER_BACKEND_GENERATOR_H

#include <stdatomic.h>

#include "backend/backend.h"

struct generator;
struct source;

/* All but `status`, `piece` and `free` are called on the generation thread. */
struct source_vtable {
    /* Gets ready to answer; sets n_vocab, ctx_size, punctuation. False with `err`: it never will
     * be. */
    bool (*open)(struct source *s, struct generator *g, struct error *err);

    /* Puts the request's prompt and the answer so far (generator_answer) into the context and runs
     * them; sends EVENT_DROPPED, _START, _PROGRESS. EVAL_OK: logits of the next token are in hand.
     */
    enum eval_result (*begin)(struct source *s, struct generator *g, const struct request *r,
                              struct error *err);

    /* Runs one more token of the answer. EVAL_FULL: there is no position left, nothing ran. */
    enum eval_result (*advance)(struct source *s, struct generator *g, int32_t id,
                                struct error *err);

    /* After EVAL_FULL: makes room as the request allows, and runs the answer so far again.
     * EVAL_FULL: there is nothing that could leave. */
    enum eval_result (*make_room)(struct source *s, struct generator *g, const struct request *r,
                                  struct error *err);

    /* Notes what is probably asked next, in place of what was noted; runs nothing. */
    void (*expect)(struct source *s, const struct draft *d);

    /* Runs a little of that, with the logits in hand as they are, until the interrupt flag is set.
     * False: there is nothing to run, or no way to. */
    bool (*run_ahead)(struct source *s, struct generator *g);

    const float *(*logits)(const struct source *s);               /* [n_vocab] in hand, or NULL */
    const int32_t *(*context)(const struct source *s, size_t *n); /* tokens run so far */
    int32_t (*ctx_used)(const struct source *s);                  /* positions */
    uint64_t (*kv_used)(const struct source *s);                  /* bytes */
    bool (*is_eog)(const struct source *s, int32_t id);

    /* Any thread, once open has succeeded; borrowed for the source's life. */
    const char *(*piece)(const struct source *s, int32_t id, size_t *len);
    void (*status)(const struct source *s, struct backend_status *out);
    void (*free)(struct source *s);
};

struct source {
    const struct source_vtable *vtable;
    int32_t n_vocab, ctx_size;
    const uint8_t *punctuation; /* [n_vocab] or NULL */
};

/* Starts the thread, which opens `source` (taken, also on failure). */
struct backend *generator_new(struct source *source, const struct control *initial,
                              struct error *err);

/* For sources, on the generation thread. */
const struct token_list *generator_answer(const struct generator *g);
const atomic_bool *generator_cancel_flag(const struct generator *g);
bool generator_is_cancelled(const struct generator *g);
const atomic_bool *generator_closing_flag(const struct generator *g);
const atomic_bool *generator_interrupt_flag(const struct generator *g); /* of run_ahead */
void generator_wait(struct generator *g);                  /* until something changes: look again */
bool generator_emit(struct generator *g, struct event *e); /* false: cancelled while it waited */
bool generator_emit_start(struct generator *g, int32_t prompt_tokens, int32_t reused_tokens,
                          int32_t ahead_tokens, int32_t ctx_size);
void generator_emit_loading(struct generator *g, double share);
void generator_emit_progress(struct generator *g, size_t done, size_t total);

#endif
