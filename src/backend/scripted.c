#include "config.h"

#include "backend/backend.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/generator.h"
#include "backend/script.h"
#include "base/mem.h"
#include "chat/template.h"

/* A model made of a script: for tests. Everything but the logits is real: sampler, knobs, pace,
 * pause, ring, board, thread.
 *
 * The file holds JSON objects, one a line; empty lines and lines that begin with # are skipped. A
 * line may have several of these keys:
 *
 *   {"model":{"name":"Toy","ctx":2048,"loading":[0.3,0.7],"error":"why it does not load"}}
 *                                     all of them optional
 *   {"answer":{}}                     here begins another answer
 *   {"answer":{"for":"poem"}}         the same, for prompts whose last message holds "poem"
 *   {"draw":[["Rain",3.0],[" falls",2.5],[{"hex":"e4bd"},1],[null,0]]}
 *                                     one draw: pieces and their logits; null is the end token,
 *                                     hex is for bytes that are no text (a part of a character);
 *                                     any other token has -inf
 *   {"text":"Rain falls today."}      draws without a choice, one a word
 *   {"repeat":0}                      after the last draw comes draw 0 of this answer again, and
 *                                     so on for ever
 *
 * and, in front of the draw that follows:
 *
 *   {"progress":[64,512]}             EVENT_PROGRESS
 *   {"dropped":[2,100]}               EVENT_DROPPED: messages, tokens
 *   {"hang":true}                     nothing comes until the answer is cancelled
 *   {"full":true}                     the context is full
 *   {"error":"why"}                   the answer fails
 *
 * A request takes the next answer that asks for no prompt (after the last the first again), or the
 * first whose prompt it is. Draw n of the answer is made from draw line n, whatever was drawn
 * before; after the last comes the end token. The vocabulary is the pieces, numbered as they come,
 * after the end token 0. The prompt counts its words as tokens, and those that the last draft had,
 * whole, as run ahead; the penalty sees the answer alone. */

struct scripted {
    struct source source;
    struct script *script;
    struct model_info info;
    struct template_choice chat_template;
    uint8_t *punctuation;
    float *logits;
    bool has_logits;
    size_t context; /* tokens of the answer that the logits follow */
    size_t acted;   /* draws of the answer whose actions were done */
    const struct generator *generator;
    const struct script_answer *answer;
    size_t next; /* the answer that the next request takes */
    int32_t prompt_tokens;
    struct str expected; /* the messages of the last draft */
    atomic_int n_ahead;  /* its whole words */
};

static struct scripted *scripted_of(const struct source *s)
{
    return (struct scripted *)(uintptr_t)s;
}

static bool is_punctuation(const struct script_piece *p)
{
    for (size_t i = 0; i < p->len; i++) {
        unsigned char c = (unsigned char)p->bytes[i];
        if (c < 0x80 && !ispunct(c) && !isspace(c))
            return false;
    }
    return true;
}

static bool scripted_open(struct source *source, struct generator *g, struct error *err)
{
    struct scripted *s = scripted_of(source);

    s->generator = g;
    for (size_t i = 0; i < s->script->n_loading; i++)
        generator_emit_loading(g, s->script->loading[i]);
    return s->script->error == NULL || error_set(err, "%s", s->script->error);
}

/* ---- choosing an answer --------------------------------------------------------------------- */

static const char *last_text(const struct request *r)
{
    if (r->kind == REQUEST_RAW)
        return r->text != NULL ? r->text : "";
    return r->messages.n > 0 ? r->messages.items[r->messages.n - 1].text : "";
}

static const struct script_answer *choose_answer(struct scripted *s, const struct request *r)
{
    const struct script *script = s->script;

    for (size_t i = 0; i < script->n; i++) {
        if (script->answers[i].wanted != NULL &&
            strstr(last_text(r), script->answers[i].wanted) != NULL)
            return &script->answers[i];
    }
    for (size_t i = 0; i < script->n; i++) {
        const struct script_answer *a = &script->answers[(s->next + i) % script->n];
        if (a->wanted == NULL) {
            s->next = (s->next + i + 1) % script->n;
            return a;
        }
    }
    return NULL;
}

static int32_t count_words(const char *text)
{
    int32_t n = 0;

    while (*(text += strspn(text, " \n")) != '\0') {
        text += strcspn(text, " \n");
        n++;
    }
    return n;
}

static int32_t count_prompt(const struct request *r)
{
    int32_t n = 0;

    if (r->kind == REQUEST_RAW)
        return count_words(last_text(r));
    for (size_t i = 0; i < r->messages.n; i++)
        n += count_words(r->messages.items[i].text);
    return n;
}

/* ---- running ahead --------------------------------------------------------------------------- */

static void join_messages(const struct message_list *list, struct str *out)
{
    str_clear(out);
    for (size_t i = 0; i < list->n; i++)
        str_add_format(out, "%s%s", i > 0 ? "\n" : "", list->items[i].text);
}

/* How many of the expected words are whole, and stand in `text`, too (NULL: wherever). */
static int32_t count_ahead(const struct scripted *s, const char *text)
{
    const char *expected = str_text(&s->expected);
    size_t same = 0, whole = 0;

    for (; expected[same] != '\0' && (text == NULL || text[same] == expected[same]); same++)
        whole = strchr(" \n", expected[same]) != NULL ? same : whole;
    char *words = mem_strndup(expected, whole);
    int32_t n = count_words(words);
    free(words);
    return n;
}

static void scripted_expect(struct source *source, const struct draft *d)
{
    struct scripted *s = scripted_of(source);

    join_messages(&d->messages, &s->expected);
    atomic_store(&s->n_ahead, count_ahead(s, NULL));
}

static bool scripted_run_ahead(struct source *source, struct generator *g)
{
    (void)source, (void)g;
    return false; /* it was done at once */
}

/* How many words of the prompt were run ahead. Nothing is expected after it. */
static int32_t take_ahead(struct scripted *s, const struct request *r)
{
    struct str prompt = STR_INIT;

    join_messages(&r->messages, &prompt);
    int32_t n = count_ahead(s, str_text(&prompt));
    str_done(&prompt);
    str_clear(&s->expected);
    atomic_store(&s->n_ahead, 0);
    return n;
}

/* ---- running it ----------------------------------------------------------------------------- */

/* The line of draw n, or NULL past the last. */
static const struct script_draw *find_draw(const struct script_answer *a, size_t n)
{
    if (a != NULL && n >= a->n && a->repeat != SCRIPT_NO_REPEAT)
        n = a->repeat + (n - a->repeat) % (a->n - a->repeat);
    return a != NULL && n < a->n ? &a->draws[n] : NULL;
}

static enum eval_result hang(struct generator *g)
{
    while (!generator_is_cancelled(g))
        generator_wait(g);
    return EVAL_CANCELLED;
}

static enum eval_result run_action(struct generator *g, const struct script_action *a,
                                   struct error *err)
{
    struct event dropped = {EVENT_DROPPED, .u.dropped = {.messages = a->a, .tokens = a->b}};

    switch (a->kind) {
    case SCRIPT_PROGRESS:
        generator_emit_progress(g, (size_t)a->a, (size_t)a->b);
        break;
    case SCRIPT_DROPPED:
        generator_emit(g, &dropped);
        break;
    case SCRIPT_FULL:
        return EVAL_FULL;
    case SCRIPT_HANG:
        return hang(g);
    case SCRIPT_ERROR:
        error_set(err, "%s", a->text);
        return EVAL_FAILED;
    }
    return EVAL_OK;
}

/* Lays out the logits of draw n. */
static enum eval_result prepare(struct scripted *s, struct generator *g, struct error *err)
{
    const size_t n = generator_answer(g)->n;
    const struct script_draw *d = find_draw(s->answer, n);
    enum eval_result result = EVAL_OK;

    /* What stands before a draw is done once, not at every repetition. */
    const bool acts = d != NULL && n < s->answer->n && n >= s->acted;
    s->acted = n + 1 > s->acted ? n + 1 : s->acted;
    for (size_t i = 0; acts && i < d->n_actions; i++) {
        if ((result = run_action(g, &d->actions[i], err)) != EVAL_OK)
            return result;
    }
    for (int32_t i = 0; i < s->source.n_vocab; i++)
        s->logits[i] = -INFINITY;
    for (size_t i = 0; d != NULL && i < d->n; i++)
        s->logits[d->candidates[i].id] = d->candidates[i].logit;
    if (d == NULL || d->n == 0)
        s->logits[SCRIPT_END_TOKEN] = 0;
    s->has_logits = true;
    s->context = n;
    return generator_is_cancelled(g) ? EVAL_CANCELLED : EVAL_OK;
}

static int32_t scripted_ctx_used(const struct source *source)
{
    const struct scripted *s = scripted_of(source);

    return s->prompt_tokens + (int32_t)s->context;
}

/* Half of the prompt leaves, as if it had been older turns. EVAL_FULL: it may not, or cannot. */
static enum eval_result drop_half(struct scripted *s, struct generator *g, const struct request *r)
{
    struct event e = {EVENT_DROPPED, .u.dropped = {.messages = 2, .tokens = s->prompt_tokens / 2}};

    if (r->on_full != CONTEXT_DROP_OLDEST || r->messages.n < 3 || e.u.dropped.tokens == 0)
        return EVAL_FULL;
    s->prompt_tokens -= e.u.dropped.tokens;
    return generator_emit(g, &e) ? EVAL_OK : EVAL_CANCELLED;
}

static enum eval_result scripted_begin(struct source *source, struct generator *g,
                                       const struct request *r, struct error *err)
{
    struct scripted *s = scripted_of(source);

    s->has_logits = false;
    s->answer = choose_answer(s, r);
    s->prompt_tokens = count_prompt(r);
    s->context = generator_answer(g)->n;
    s->acted = 0;
    if (scripted_ctx_used(source) > s->script->ctx_size && drop_half(s, g, r) == EVAL_CANCELLED)
        return EVAL_CANCELLED;
    if (scripted_ctx_used(source) > s->script->ctx_size) {
        error_set(err, "the prompt takes %d tokens, the context has %d: shorten it",
                  scripted_ctx_used(source), s->script->ctx_size);
        return EVAL_FAILED;
    }
    const int32_t had = take_ahead(s, r), all = scripted_ctx_used(source);
    const int32_t ahead = had < all ? had : all;
    if (!generator_emit_start(g, all, ahead, ahead, s->script->ctx_size))
        return EVAL_CANCELLED;
    return prepare(s, g, err);
}

static enum eval_result scripted_advance(struct source *source, struct generator *g, int32_t id,
                                         struct error *err)
{
    struct scripted *s = scripted_of(source);

    (void)id; /* draw lines go by number */
    if (scripted_ctx_used(source) >= s->script->ctx_size)
        return EVAL_FULL;
    return prepare(s, g, err);
}

static enum eval_result scripted_make_room(struct source *source, struct generator *g,
                                           const struct request *r, struct error *err)
{
    struct scripted *s = scripted_of(source);
    enum eval_result result = drop_half(s, g, r);

    return result == EVAL_OK ? prepare(s, g, err) : result;
}

static const float *scripted_logits(const struct source *source)
{
    const struct scripted *s = scripted_of(source);

    return s->has_logits ? s->logits : NULL;
}

static const int32_t *scripted_context(const struct source *source, size_t *n)
{
    const struct scripted *s = scripted_of(source);

    *n = s->context;
    return generator_answer(s->generator)->ids;
}

static uint64_t scripted_kv_used(const struct source *source)
{
    (void)source;
    return 0;
}

static bool scripted_is_eog(const struct source *source, int32_t id)
{
    (void)source;
    return id == SCRIPT_END_TOKEN;
}

static const char *scripted_piece(const struct source *source, int32_t id, size_t *len)
{
    const struct script *script = scripted_of(source)->script;
    const bool known = id >= 0 && (size_t)id < script->n_pieces;

    *len = known ? script->pieces[id].len : 0;
    return known ? script->pieces[id].bytes : "";
}

static void scripted_status(const struct source *source, struct backend_status *out)
{
    const struct scripted *s = scripted_of(source);

    out->model = &s->info;
    out->chat_template = &s->chat_template;
    out->kernels = "script";
    out->threads = 1;
    out->ctx_size = s->script->ctx_size;
    out->ledger.ctx = s->script->ctx_size;
    out->ahead = atomic_load(&s->n_ahead);
}

static void scripted_free(struct source *source)
{
    struct scripted *s = scripted_of(source);

    script_free(s->script);
    str_done(&s->expected);
    free(s->punctuation);
    free(s->logits);
    free(s);
}

static const struct source_vtable scripted_vtable = {
    .open = scripted_open,
    .begin = scripted_begin,
    .advance = scripted_advance,
    .make_room = scripted_make_room,
    .expect = scripted_expect,
    .run_ahead = scripted_run_ahead,
    .logits = scripted_logits,
    .context = scripted_context,
    .ctx_used = scripted_ctx_used,
    .kv_used = scripted_kv_used,
    .is_eog = scripted_is_eog,
    .piece = scripted_piece,
    .status = scripted_status,
    .free = scripted_free,
};

struct backend *scripted_backend_new(const char *script_path, const struct control *initial,
                                     struct error *err)
{
    struct script *script = script_read(script_path, err);

    if (script == NULL)
        return NULL;
    struct scripted *s = mem_zalloc(sizeof *s);
    s->script = script;
    s->punctuation = mem_zalloc(script->n_pieces);
    for (size_t i = 0; i < script->n_pieces; i++)
        s->punctuation[i] = i == SCRIPT_END_TOKEN || is_punctuation(&script->pieces[i]);
    s->logits = mem_array(script->n_pieces, sizeof *s->logits);
    s->source = (struct source){.vtable = &scripted_vtable,
                                .n_vocab = (int32_t)script->n_pieces,
                                .ctx_size = script->ctx_size,
                                .punctuation = s->punctuation};
    s->chat_template = template_choose(NULL, NULL);
    s->chat_template.recognised = true; /* the script's own: there is nothing to warn about */
    s->info = (struct model_info){.path = script->path,
                                  .label = script->name,
                                  .arch = "script",
                                  .type = "none",
                                  .tokenizer = "script",
                                  .languages = "",
                                  .n_vocab = (int32_t)script->n_pieces,
                                  .ctx_train = script->ctx_size};
    return generator_new(&s->source, initial, err);
}
