#include "config.h"

#include "backend/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/generator.h"
#include "base/mem.h"
#include "chat/template.h"

/* The engine as a source of the generation thread: it opens and loads the model there, owns the
 * session, and decides what of a conversation stands in the context.
 *
 * A request brings the whole conversation every time. What of it is in the cache already is kept
 * (session_reuse), whatever request it came from. Where it does not fit and the request allows it,
 * the oldest turns are left out, pair by pair, until a quarter of the context is free: so that the
 * next turns fit and find their prefix in the cache, and need not be prefilled anew each time. */

struct local {
    struct source source;
    struct local_options options;
    char *path; /* owned: options.model_path */
    struct model *model;
    const struct tokenizer *tokenizer;
    struct session *session;
    struct template_choice chat_template;
    struct generator *generator;
    size_t dropped; /* messages that the last request left out */
};

static struct local *local_of(const struct source *s)
{
    return (struct local *)(uintptr_t)s;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void report_loading(void *ctx, double share)
{
    generator_emit_loading(ctx, share);
}

static bool local_open(struct source *source, struct generator *g, struct error *err)
{
    struct local *l = local_of(source);

    l->generator = g;
    l->model = model_open(l->path, err);
    if (l->model == NULL)
        return false;
    l->tokenizer = model_tokenizer(l->model, err);
    if (l->tokenizer == NULL)
        return false;
    l->options.load.progress = report_loading;
    l->options.load.progress_ctx = g;
    if (!model_load(l->model, &l->options.load, err))
        return false;
    l->session = session_new(l->model, &l->options.session, err);
    if (l->session == NULL)
        return false;
    const struct model_info *info = model_get_info(l->model);
    l->chat_template = template_choose(info->chat_template, l->tokenizer);
    l->source.n_vocab = info->n_vocab;
    l->source.ctx_size = session_ctx_size(l->session);
    l->source.punctuation = tokenizer_punctuation(l->tokenizer);
    return true;
}

/* ---- what stands in the context ------------------------------------------------------------- */

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

static void encode_chat(const struct local *l, const struct request *r, size_t dropped,
                        struct token_list *out)
{
    const size_t system = count_system(r), n = r->messages.n - dropped;
    struct message *kept = mem_array(n, sizeof *kept); /* borrows their texts and tokens */
    const struct message_list list = {kept, n, n};
    struct rendering rendering;

    memcpy(kept, r->messages.items, system * sizeof *kept);
    memcpy(kept + system, r->messages.items + system + dropped, (n - system) * sizeof *kept);
    template_render(&l->chat_template, &list, true, &rendering);
    tokenizer_encode(l->tokenizer, rendering.spans, rendering.n, TOKENIZE_BOS, out);
    rendering_done(&rendering);
    free(kept);
}

/* The prompt without the `dropped` oldest messages, and the answer so far. */
static void encode(const struct local *l, const struct request *r, size_t dropped,
                   struct token_list *out)
{
    const struct token_list *answer = generator_answer(l->generator);
    const struct span raw = {.kind = SPAN_TEXT, .text = r->text, .len = r->text_len};

    out->n = 0;
    if (r->kind == REQUEST_CHAT)
        encode_chat(l, r, dropped, out);
    else
        tokenizer_encode(l->tokenizer, &raw, 1, TOKENIZE_BOS, out);
    for (size_t i = 0; i < answer->n; i++)
        token_list_add(out, answer->ids[i]);
}

static bool leaves_room(const struct local *l, const struct token_list *tokens, int32_t room)
{
    return tokens->n + (size_t)room <= (size_t)l->source.ctx_size;
}

/* Leaves out turns until a quarter of the context is free, or nothing more can go.
 * Says what went. */
static bool drop_turns(struct local *l, const struct request *r, struct token_list *tokens)
{
    const size_t before = l->dropped, tokens_before = tokens->n;
    const int32_t reserve = l->source.ctx_size / 4;
    struct event e = {.type = EVENT_DROPPED};
    size_t more;

    while (!leaves_room(l, tokens, reserve) && (more = drop_one_more(r, l->dropped)) != 0) {
        l->dropped = more;
        encode(l, r, more, tokens);
    }
    if (l->dropped == before)
        return true;
    e.u.dropped.messages = (int32_t)(l->dropped - before);
    e.u.dropped.tokens = (int32_t)(tokens_before - tokens->n);
    return generator_emit(l->generator, &e);
}

/* Chooses what stands in the context. False: it was cancelled while the UI was being told. */
static bool compose(struct local *l, const struct request *r, struct token_list *tokens)
{
    const bool may_drop = r->on_full == CONTEXT_DROP_OLDEST;
    const int32_t margin = may_drop ? l->source.ctx_size / 16 + 1 : 0;
    const size_t last = l->dropped;

    l->dropped = 0;
    encode(l, r, 0, tokens);
    if (leaves_room(l, tokens, margin) || !may_drop)
        return true;
    if (last > 0 && can_drop(r, last)) { /* what left for the last request stays out */
        l->dropped = last;
        encode(l, r, last, tokens);
    }
    return leaves_room(l, tokens, margin) || drop_turns(l, r, tokens);
}

/* ---- running it ----------------------------------------------------------------------------- */

static void report_prefill(void *ctx, size_t done, size_t total)
{
    generator_emit_progress(ctx, done, total);
}

/* A damaged weight spoils every number that is made of it: the logits are no numbers then, or,
 * where activations are quantised on the way, all the same. There is nothing to draw from. */
static enum eval_result check_logits(const struct local *l, enum eval_result result,
                                     struct error *err)
{
    const float *logits = session_logits(l->session);
    int32_t i = 0;

    if (result != EVAL_OK)
        return result;
    while (i < l->source.n_vocab && (!isfinite(logits[i]) || logits[i] == logits[0]))
        i++;
    if (i < l->source.n_vocab)
        return EVAL_OK;
    error_set(err, "%s: this model finds all words equal: its weights are damaged", l->path);
    return EVAL_FAILED;
}

/* Prefills the tokens, but for those that the cache has. */
static enum eval_result prefill(struct local *l, const struct token_list *tokens, bool start,
                                struct error *err)
{
    const int32_t reused = session_reuse(l->session, tokens->ids, tokens->n);
    const size_t run = tokens->n - (size_t)reused;
    const struct eval_hooks hooks = {.cancel = generator_cancel_flag(l->generator),
                                     .progress = report_prefill,
                                     .ctx = l->generator};

    if (start &&
        !generator_emit_start(l->generator, (int32_t)tokens->n, reused, l->source.ctx_size))
        return EVAL_CANCELLED;
    generator_emit_progress(l->generator, 0, run);
    enum eval_result result = session_eval(l->session, tokens->ids + reused, run, &hooks, err);
    return check_logits(l, result, err);
}

static enum eval_result local_begin(struct source *source, struct generator *g,
                                    const struct request *r, struct error *err)
{
    struct local *l = local_of(source);
    struct token_list tokens = {0};
    enum eval_result result = EVAL_CANCELLED;

    (void)g;
    if (!compose(l, r, &tokens))
        goto done;
    result = EVAL_FAILED;
    if (tokens.n == 0) {
        error_set(err, "the prompt is empty");
    } else if (!leaves_room(l, &tokens, 0)) {
        const bool could_drop =
            r->on_full != CONTEXT_DROP_OLDEST && drop_one_more(r, l->dropped) != 0;
        error_set(err, "the prompt takes %zu tokens, the context has %d: %s", tokens.n,
                  l->source.ctx_size,
                  could_drop
                      ? "begin anew (/new), or let the oldest turns leave (/set on_full drop)"
                      : "shorten it, or start with a larger context (-c)");
    } else {
        result = prefill(l, &tokens, true, err);
    }
done:
    token_list_done(&tokens);
    return result;
}

static enum eval_result local_advance(struct source *source, struct generator *g, int32_t id,
                                      struct error *err)
{
    struct local *l = local_of(source);
    const struct eval_hooks hooks = {.cancel = generator_cancel_flag(g)};

    return check_logits(l, session_eval(l->session, &id, 1, &hooks, err), err);
}

static enum eval_result local_make_room(struct source *source, struct generator *g,
                                        const struct request *r, struct error *err)
{
    struct local *l = local_of(source);
    struct token_list tokens = {0};
    enum eval_result result = EVAL_FULL;

    (void)g;
    if (r->on_full == CONTEXT_DROP_OLDEST && drop_one_more(r, l->dropped) != 0) {
        encode(l, r, l->dropped, &tokens);
        if (!drop_turns(l, r, &tokens))
            result = EVAL_CANCELLED;
        else if (leaves_room(l, &tokens, 0))
            result = prefill(l, &tokens, false, err);
    }
    token_list_done(&tokens);
    return result;
}

/* ---- facts ---------------------------------------------------------------------------------- */

static const float *local_logits(const struct source *source)
{
    return session_logits(local_of(source)->session);
}

static const int32_t *local_context(const struct source *source, size_t *n)
{
    const struct session *s = local_of(source)->session;

    *n = (size_t)session_length(s);
    return session_tokens(s);
}

static int32_t local_ctx_used(const struct source *source)
{
    return session_length(local_of(source)->session);
}

static uint64_t local_kv_used(const struct source *source)
{
    return session_kv_used(local_of(source)->session);
}

static bool local_is_eog(const struct source *source, int32_t id)
{
    return tokenizer_is_eog(local_of(source)->tokenizer, id);
}

static const char *local_piece(const struct source *source, int32_t id, size_t *len)
{
    return tokenizer_piece(local_of(source)->tokenizer, id, len);
}

static void local_status(const struct source *source, struct backend_status *out)
{
    const struct local *l = local_of(source);

    out->model = model_get_info(l->model);
    out->chat_template = &l->chat_template;
    out->kernels = engine_kernels();
    out->threads = model_threads(l->model);
    out->ctx_size = l->source.ctx_size;
    out->ledger = model_ledger(l->model, out->ctx_size, l->options.session.cache_type);
}

static void local_free(struct source *source)
{
    struct local *l = local_of(source);

    session_free(l->session);
    model_close(l->model);
    free(l->path);
    free(l);
}

static const struct source_vtable local_vtable = {
    .open = local_open,
    .begin = local_begin,
    .advance = local_advance,
    .make_room = local_make_room,
    .logits = local_logits,
    .context = local_context,
    .ctx_used = local_ctx_used,
    .kv_used = local_kv_used,
    .is_eog = local_is_eog,
    .piece = local_piece,
    .status = local_status,
    .free = local_free,
};

struct backend *local_backend_new(const struct local_options *options,
                                  const struct control *initial, struct error *err)
{
    struct local *l = mem_zalloc(sizeof *l);

    l->options = *options;
    l->path = mem_strdup(options->model_path);
    l->source.vtable = &local_vtable;
    return generator_new(&l->source, initial, err);
}
