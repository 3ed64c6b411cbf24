/* The inside of the local backend, shared by local.c (opening, answering), local_context.c (what
 * stands in the context) and local_ahead.c (what is run before it is asked for). */
#ifndef FADER_BACKEND_LOCAL_IMPL_H
#define FADER_BACKEND_LOCAL_IMPL_H

#include "backend/generator.h"
#include "chat/template.h"

struct local {
    struct source source;
    struct local_options options;
    char *path, *power_folder; /* owned: those of the options */
    struct model *model;
    const struct tokenizer *tokenizer;
    struct session *session; /* of the answers; its logits are those in hand */
    struct template_choice chat_template;
    struct generator *generator;
    size_t dropped; /* messages that the last request left out */

    struct session *ahead;      /* run ahead on a fork of `session`, or NULL */
    struct token_list expected; /* how the next prompt begins, as far as it is known */
    atomic_int n_ahead;         /* of these, those in one of the two caches */
    atomic_bool on_battery;     /* so that nothing was expected */
};

static inline struct local *local_of(const struct source *s)
{
    return (struct local *)(uintptr_t)s;
}

/* ---- local_context.c ------------------------------------------------------------------------- */

/* What is left out, besides what the last request left out. */
struct left_out {
    size_t messages, tokens;
};

/* Chooses what of the request stands in the context, with the answer so far behind it: its tokens,
 * and how many of the oldest messages are left out. Adds to `more`. */
size_t local_compose(const struct local *l, const struct request *r,
                     const struct token_list *answer, struct token_list *tokens,
                     struct left_out *more);

/* The same in the middle of an answer that fills the context: with more left out than before. */
size_t local_recompose(const struct local *l, const struct request *r,
                       const struct token_list *answer, struct token_list *tokens,
                       struct left_out *more);

/* The tokens with which the prompt of a draft begins, whatever is still written; none when it would
 * not fit. */
void local_compose_draft(const struct local *l, const struct draft *d, struct token_list *tokens);

bool local_leaves_room(const struct local *l, const struct token_list *tokens, int32_t room);
bool local_can_drop_more(const struct local *l, const struct request *r);

/* ---- local_ahead.c --------------------------------------------------------------------------- */

void local_expect(struct source *source, const struct draft *d);
bool local_run_ahead(struct source *source, struct generator *g);

/* Puts the session that has more of these tokens in the place of `session`: returns how many of
 * them were run ahead. Nothing is expected after it. */
int32_t local_take_ahead(struct local *l, const struct token_list *tokens);

#endif
