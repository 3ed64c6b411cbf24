/* The generator's inside, shared by generator.c (the thread, and what other threads see of it) and
 * answer.c (draws and answers). */
#ifndef FADER_BACKEND_GENERATOR_IMPL_H
#define FADER_BACKEND_GENERATOR_IMPL_H

#include <pthread.h>

#include "backend/events.h"
#include "backend/generator.h"
#include "backend/knobstate.h"
#include "sync/board.h"
#include "sync/slot.h"

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
    struct slot *requests, *drafts;
    struct board *board;
    struct event_queue events;
    atomic_bool cancel, closing;
    atomic_bool interrupt;     /* something more important than running ahead came */
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

/* Reads the newest snapshot into g->control; true when it is newer than the last. */
bool generator_read_board(struct generator *g);

/* An event that must not be lost, whatever is cancelled. A close alone ends the wait. */
void generator_emit_surely(struct generator *g, struct event *e);
void generator_emit_error(struct generator *g, uint32_t request, const struct error *err);

/* answer.c: makes the whole answer to g->request. */
void generator_make_answer(struct generator *g);

/* answer.c: a view of the chain on the logits in hand, where there are any and views are wanted. */
void generator_show(struct generator *g, bool drawn);

#endif
