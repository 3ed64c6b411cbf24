/* A conversation: a tree of turns. Retries and edits add a sibling and keep the earlier version;
 * the current path leads from the first turn to the shown leaf. Answers keep every token with what it
 * was drawn from, and every movement of a knob.
 *
 * Owned by the UI thread. Pointers to turns stay valid until conversation_free: turns are never
 * removed, only left. */
#ifndef FADER_CHAT_CONVERSATION_H
#define FADER_CHAT_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "chat/message.h"
#include "engine/sampler.h"

struct answer_token {
    int32_t id;
    uint32_t text_at;        /* where its text starts in turn.text; an unfinished character's bytes are
                                counted to the token that completes it */
    float logprob, p;        /* raw, natural log; after the chain */
    int32_t rank;
    float entropy;           /* bits after the chain; NaN: unknown */
    uint32_t version;        /* of the control in force */
};

struct answer_knob {
    int32_t n;               /* in force from this answer token on */
    enum knob knob;
    double from, value;
};

struct turn {
    int32_t number;          /* in the order made, from 0: its name in the transcript file */
    enum role role;
    struct str text;         /* whole characters, valid UTF-8 */
    struct turn *parent;     /* NULL: a first turn */
    struct turn **children;  /* owned array */
    size_t n_children, cap_children;
    size_t chosen;           /* which child is on the current path */
    /* answers only: */
    uint32_t seed;
    struct knobs knobs;      /* at the first draw */
    struct answer_token *tokens;
    size_t n_tokens, cap_tokens;
    struct answer_knob *moves;
    size_t n_moves, cap_moves;
    size_t n_given;          /* tokens taken over from the version that it branched from */
    bool complete;           /* ended by its end token */
    int32_t end_reason;      /* enum end_reason of backend.h, or -1 while it grows */
    int32_t branch_at;       /* token where it parts from the earlier version, or -1 */
};

struct conversation {
    char *system;            /* the system prompt, or NULL: the template's own */
    struct turn **roots;     /* versions of the first turn */
    size_t n_roots, cap_roots, chosen_root;
    struct turn **turns;     /* all, by number; owns them */
    size_t n_turns, cap_turns;
};

struct conversation *conversation_new(void);
void conversation_free(struct conversation *c);

/* Adds a turn below `parent` (NULL: a first one), chooses it, returns it. */
struct turn *conversation_add(struct conversation *c, struct turn *parent, enum role role,
                              const char *text);

/* The last turn of the current path, or NULL. */
struct turn *conversation_leaf(const struct conversation *c);

/* The current path: turn number `i`, or NULL past its end. */
struct turn *conversation_at(const struct conversation *c, size_t i);
size_t conversation_depth(const struct conversation *c);

/* Versions of a turn: its siblings and itself. */
size_t turn_version(const struct conversation *c, const struct turn *t, size_t *n_versions);
void turn_choose_version(struct conversation *c, const struct turn *t, size_t version);

/* Leaves the current path at `t`: what comes below is kept, but no longer chosen (undo). */
void conversation_cut(struct conversation *c, struct turn *t);

/* Grows an answer. `text` is whole characters (may be empty). */
void turn_add_token(struct turn *t, const struct answer_token *token, const char *text, size_t len);
void turn_add_knob(struct turn *t, int32_t n, enum knob knob, double from, double value);

/* The first token at which two answers differ, or the shorter length. */
size_t turn_common_tokens(const struct turn *a, const struct turn *b);

/* The messages of the current path up to and including `until` (NULL: all), for a request. */
void conversation_messages(const struct conversation *c, const struct turn *until,
                           struct message_list *out);

#endif
