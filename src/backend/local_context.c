/* What of a conversation stands in the context. Where it does not fit and the request allows it,
 * the oldest turns are left out, pair by pair, until a quarter of the context is free: so that the
 * next turns fit and find their prefix in the cache, and need not be prefilled anew each time. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "backend/local_impl.h"
#include "base/mem.h"

/* ---- messages -------------------------------------------------------------------------------- */

/* The messages that are always kept in front: a system prompt. */
static size_t count_system(const struct request *r)
{
    return r->messages.n > 0 && r->messages.items[0].role == ROLE_SYSTEM ? 1 : 0;
}

/* How many messages are left out when one more turn goes, the user's and what answered it. The last
 * one of the user's stays: 0 when there is nothing that could go. */
static size_t drop_one_more(const struct request *r, size_t dropped)
{
    const size_t first = count_system(r) + dropped;

    for (size_t i = first + 1; r->kind == REQUEST_CHAT && i < r->messages.n; i++) {
        if (r->messages.items[i].role == ROLE_USER)
            return i - count_system(r);
    }
    return 0;
}

bool local_can_drop_more(const struct local *l, const struct request *r)
{
    return drop_one_more(r, l->dropped) != 0;
}

/* Whether a request can leave out exactly that many. */
static bool can_drop(const struct request *r, size_t dropped)
{
    size_t at = 0;

    while (at < dropped) {
        at = drop_one_more(r, at);
        if (at == 0)
            return false;
    }
    return at == dropped;
}

/* The messages but for the `dropped` oldest; borrows their texts and tokens. The caller frees
 * `items`. */
static struct message_list keep_messages(const struct request *r, size_t dropped)
{
    const size_t system = count_system(r), n = r->messages.n - dropped;
    struct message *kept = mem_array(n, sizeof *kept);

    memcpy(kept, r->messages.items, system * sizeof *kept);
    memcpy(kept + system, r->messages.items + system + dropped, (n - system) * sizeof *kept);
    return (struct message_list){kept, n, n};
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void encode_chat(const struct local *l, const struct request *r, size_t dropped, bool draft,
                        struct token_list *out)
{
    const struct message_list kept = keep_messages(r, dropped);
    struct rendering rendering;

    if (draft)
        template_render_draft(&l->chat_template, &kept, &rendering);
    else
        template_render(&l->chat_template, &kept, true, &rendering);
    tokenizer_encode(l->tokenizer, rendering.spans, rendering.n,
                     draft ? TOKENIZE_BOS | TOKENIZE_OPEN : TOKENIZE_BOS, out);
    rendering_done(&rendering);
    free(kept.items);
}

/* The prompt without the `dropped` oldest messages, and the answer so far. */
static void encode(const struct local *l, const struct request *r, const struct token_list *answer,
                   size_t dropped, struct token_list *out)
{
    const struct span raw = {.kind = SPAN_TEXT, .text = r->text, .len = r->text_len};

    out->n = 0;
    if (r->kind == REQUEST_CHAT)
        encode_chat(l, r, dropped, false, out);
    else
        tokenizer_encode(l->tokenizer, &raw, 1, TOKENIZE_BOS, out);
    for (size_t i = 0; i < answer->n; i++)
        token_list_add(out, answer->ids[i]);
}

/* ---- what fits ------------------------------------------------------------------------------- */

bool local_leaves_room(const struct local *l, const struct token_list *tokens, int32_t room)
{
    return tokens->n + (size_t)room <= (size_t)l->source.ctx_size;
}

/* Leaves out turns until a quarter of the context is free, or nothing more can go. */
static size_t drop_turns(const struct local *l, const struct request *r,
                         const struct token_list *answer, size_t dropped, struct token_list *tokens,
                         struct left_out *more)
{
    const size_t messages = dropped, before = tokens->n;
    size_t next;

    while (!local_leaves_room(l, tokens, l->source.ctx_size / 4) &&
           (next = drop_one_more(r, dropped)) != 0) {
        dropped = next;
        encode(l, r, answer, dropped, tokens);
    }
    more->messages += dropped - messages;
    more->tokens += before - tokens->n;
    return dropped;
}

size_t local_compose(const struct local *l, const struct request *r,
                     const struct token_list *answer, struct token_list *tokens,
                     struct left_out *more)
{
    const bool may_drop = r->on_full == CONTEXT_DROP_OLDEST;
    const int32_t margin = may_drop ? l->source.ctx_size / 16 + 1 : 0;
    size_t dropped = 0;

    encode(l, r, answer, 0, tokens);
    if (local_leaves_room(l, tokens, margin) || !may_drop)
        return 0;
    if (l->dropped > 0 && can_drop(r, l->dropped)) { /* what left for the last one stays out */
        dropped = l->dropped;
        encode(l, r, answer, dropped, tokens);
    }
    if (local_leaves_room(l, tokens, margin))
        return dropped;
    return drop_turns(l, r, answer, dropped, tokens, more);
}

size_t local_recompose(const struct local *l, const struct request *r,
                       const struct token_list *answer, struct token_list *tokens,
                       struct left_out *more)
{
    encode(l, r, answer, l->dropped, tokens);
    return drop_turns(l, r, answer, l->dropped, tokens, more);
}

void local_compose_draft(const struct local *l, const struct draft *d, struct token_list *tokens)
{
    const struct request whole = {/* as if it were sent like this; borrows the messages */
                                  .kind = REQUEST_CHAT,
                                  .messages = d->messages,
                                  .on_full = d->on_full};
    const struct token_list no_answer = {NULL, 0, 0};
    struct left_out ignored = {0};
    const size_t dropped = local_compose(l, &whole, &no_answer, tokens, &ignored);
    const bool fits = local_leaves_room(l, tokens, 0);

    tokens->n = 0;
    if (fits)
        encode_chat(l, &whole, dropped, true, tokens);
}
