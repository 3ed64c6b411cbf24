#include "config.h"

#include "backend/backend.h"

#include <math.h>
#include <stdlib.h>

#include "backend/local_impl.h"
#include "base/mem.h"

/* The engine as a source of the generation thread: it opens and loads the model there, and owns the
 * session. A request brings the whole conversation every time. What of it is in the cache already
 * is kept (session_reuse), whatever request it came from. */

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
    l->options.load.cancel = generator_closing_flag(g);
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

/* Prefills the tokens, but for those that the cache has. `start`: it is the start of an answer;
 * `ahead` of them were run ahead. */
static enum eval_result prefill(struct local *l, const struct token_list *tokens, bool start,
                                int32_t ahead, struct error *err)
{
    const int32_t reused = session_reuse(l->session, tokens->ids, tokens->n);
    const size_t run = tokens->n - (size_t)reused;
    const struct eval_hooks hooks = {.cancel = generator_cancel_flag(l->generator),
                                     .progress = report_prefill,
                                     .ctx = l->generator};

    if (start && !generator_emit_start(l->generator, (int32_t)tokens->n, reused,
                                       ahead < reused ? ahead : reused, l->source.ctx_size))
        return EVAL_CANCELLED;
    generator_emit_progress(l->generator, 0, run);
    enum eval_result result = session_eval(l->session, tokens->ids + reused, run, &hooks, err);
    return check_logits(l, result, err);
}

/* False: it was cancelled while the UI was being told. */
static bool tell_left_out(struct local *l, const struct left_out *more)
{
    struct event e = {EVENT_DROPPED, .u.dropped = {.messages = (int32_t)more->messages,
                                                   .tokens = (int32_t)more->tokens}};

    return more->messages == 0 || generator_emit(l->generator, &e);
}

static enum eval_result refuse_prompt(struct local *l, const struct request *r, size_t n,
                                      struct error *err)
{
    const bool could_drop = r->on_full != CONTEXT_DROP_OLDEST && local_can_drop_more(l, r);

    error_set(err, "the prompt takes %zu tokens, the context has %d: %s", n, l->source.ctx_size,
              could_drop ? "begin anew (/new), or let the oldest turns leave (/set on_full drop)"
                         : "shorten it, or start with a larger context (-c)");
    return EVAL_FAILED;
}

static enum eval_result local_begin(struct source *source, struct generator *g,
                                    const struct request *r, struct error *err)
{
    struct local *l = local_of(source);
    struct token_list tokens = {0};
    struct left_out more = {0};
    enum eval_result result = EVAL_FAILED;

    l->dropped = local_compose(l, r, generator_answer(g), &tokens, &more);
    if (!tell_left_out(l, &more))
        result = EVAL_CANCELLED;
    else if (tokens.n == 0)
        error_set(err, "the prompt is empty");
    else if (!local_leaves_room(l, &tokens, 0))
        result = refuse_prompt(l, r, tokens.n, err);
    else
        result = prefill(l, &tokens, true, local_take_ahead(l, &tokens), err);
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
    struct left_out more = {0};
    enum eval_result result = EVAL_FULL;

    if (r->on_full == CONTEXT_DROP_OLDEST && local_can_drop_more(l, r)) {
        l->dropped = local_recompose(l, r, generator_answer(g), &tokens, &more);
        if (!tell_left_out(l, &more))
            result = EVAL_CANCELLED;
        else if (local_leaves_room(l, &tokens, 0))
            result = prefill(l, &tokens, false, 0, err);
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
    out->notice = model_notice(l->model);
    out->kernels = engine_kernels();
    out->threads = model_threads(l->model);
    out->ctx_size = l->source.ctx_size;
    out->ledger = model_ledger(l->model, out->ctx_size, l->options.session.cache_type);
    out->ahead = atomic_load(&l->n_ahead);
    out->on_battery = atomic_load(&l->on_battery);
}

static void local_free(struct source *source)
{
    struct local *l = local_of(source);

    session_free(l->ahead);
    session_free(l->session);
    model_close(l->model);
    token_list_done(&l->expected);
    free(l->power_folder);
    free(l->path);
    free(l);
}

static const struct source_vtable local_vtable = {
    .open = local_open,
    .begin = local_begin,
    .advance = local_advance,
    .make_room = local_make_room,
    .expect = local_expect,
    .run_ahead = local_run_ahead,
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
    l->power_folder = mem_strdup(options->power_folder);
    l->source.vtable = &local_vtable;
    return generator_new(&l->source, initial, err);
}
