/* A conversation: a tree of turns. Retries and edits add a sibling and keep the earlier version;
 * the current path leads from the first turn to the shown leaf. Answers keep every token with what
 * it was drawn from, every movement of a knob, the seed, and the system prompt and model that they
 * were made with: enough to make them again, token by token (cli/replay.c).
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
    uint32_t text_at; /* where its text starts in turn.text; an unfinished character's bytes are
                         counted to the token that completes it */
    float logprob, p; /* raw, natural log; after the chain */
    int32_t rank;     /* -1: unknown (picked by hand) */
    float entropy;    /* bits after the chain; NaN: unknown */
    uint32_t version; /* of the control in force */
};

struct answer_knob {
    int32_t n; /* in force from this answer token on */
    enum knob knob;
    double from, value;
};

struct answer_chain {
    int32_t n;          /* in force from this answer token on */
    struct knobs knobs; /* of these the order and the exemption (knobs_set_chain) */
};

struct turn {
    int32_t number; /* in the order made, from 0: its name in the transcript file */
    enum role role;
    struct str text;        /* whole characters, valid UTF-8 */
    struct turn *parent;    /* NULL: a first turn */
    struct turn **children; /* owned array */
    size_t n_children, cap_children;
    size_t chosen; /* which child is on the current path, or TURN_NONE */
    /* answers only: */
    uint32_t seed;
    int32_t model;        /* of conversation.models: whose ids the tokens are; -1: unknown */
    char *system;         /* the system prompt it was made with, owned; NULL: the template's own */
    struct turn *earlier; /* the version that it was made from (retry, pick), or NULL */
    struct knobs knobs;   /* at the first draw */
    struct answer_token *tokens;
    size_t n_tokens, cap_tokens;
    struct answer_knob *moves;
    size_t n_moves, cap_moves;
    struct answer_chain *chains; /* a preset chosen on the way may change more than values */
    size_t n_chains, cap_chains;
    size_t n_given;     /* tokens taken over from the version that it branched from */
    bool complete;      /* ended by its end token */
    int32_t end_reason; /* enum end_reason of backend.h, or -1 while it grows */
    int32_t branch_at;  /* token where it parts from the earlier version, or -1 */
    int32_t dropped_messages,
        dropped_tokens; /* the oldest ones, that left the context for it; 0: none */
};

/* How a turn may have no chosen child: the path ends at it. */
#define TURN_NONE SIZE_MAX

struct conversation {
    char *system;  /* the system prompt of the next message, or NULL: the template's own */
    char *preset;  /* name of the preset last chosen, or NULL */
    char **models; /* names of the models that answered, owned */
    size_t n_models, cap_models;
    int32_t model;                          /* of `models`: the one in use; -1: none yet */
    int32_t n_vocab;                        /* of that model; 0: unknown */
    struct turn **roots;                    /* versions of the first turn */
    size_t n_roots, cap_roots, chosen_root; /* chosen_root: TURN_NONE = an empty path */
    struct turn **turns;                    /* all, by number; owns them */
    size_t n_turns, cap_turns;
};

struct conversation *conversation_new(void);
void conversation_free(struct conversation *c); /* with all its turns; NULL is fine */

void conversation_set_system(struct conversation *c,
                             const char *system); /* NULL: the template's own */
void conversation_set_preset(struct conversation *c, const char *name); /* may be NULL */

/* Names the model in use, which then is that of new answers. The ids of another model's answers
 * mean nothing to it, nor do ids past its vocabulary (0: unknown): conversation_messages gives the
 * text alone. */
void conversation_set_model(struct conversation *c, const char *name, int32_t n_vocab);

/* Adds a turn below `parent` (NULL: a first one), chooses it, returns it. Answers take over the
 * conversation's system prompt and model. */
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

/* Ends the current path after `t` (NULL: before the first turn): what comes below is kept, but no
 * longer chosen (undo). */
void conversation_cut(struct conversation *c, struct turn *t);

/* Whether `t` is part of the path that is shown. */
bool conversation_on_path(const struct conversation *c, const struct turn *t);

/* The knobs with which the last answer of the current path ended. False when there is no answer. */
bool conversation_last_knobs(const struct conversation *c, struct knobs *out);

/* Grows an answer. `text` is whole characters (may be empty). */
void turn_add_token(struct turn *t, const struct answer_token *token, const char *text, size_t len);
void turn_add_knob(struct turn *t, int32_t n, enum knob knob, double from, double value);
void turn_add_chain(struct turn *t, int32_t n, const struct knobs *knobs);

/* The knobs with which the answer ended, or is now: those of its first draw, with all that was moved
 * since. */
struct knobs turn_last_knobs(const struct turn *t);

/* Adds text that belongs to the last token (what an unfinished character left over at the end). */
void turn_add_text(struct turn *t, const char *text, size_t len);

/* The text that token `i` completed; *len 0 when it only began a character. Points into turn.text.
 */
const char *turn_token_text(const struct turn *t, size_t i, size_t *len);

/* Copies the first `n` tokens of `from`, with the movements of knobs before them (a branch). */
void turn_take_tokens(struct turn *t, const struct turn *from, size_t n);

/* What a request says: the conversation's system prompt, and the messages that lead to `until`,
 * which is included (NULL: the leaf of the current path). Answers without a word are left out.
 * `out` is initialised here; message_list_done frees it. */
void conversation_messages(const struct conversation *c, const struct turn *until,
                           struct message_list *out);

/* The messages that `answer` was made from, with the system prompt that it had. */
void turn_messages(const struct turn *answer, struct message_list *out);

#endif
