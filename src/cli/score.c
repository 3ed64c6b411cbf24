#include "config.h"

#include "cli/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/tokens.h"
#include "config/paths.h"
#include "engine/engine.h"
#include "engine/sampler.h"

enum { TOP_MAX = 1000 };

struct score_options {
    const char *model;
    int32_t top, threads, batch_size;
    int cache_type;
    bool special, no_repack, json, help;
};

#define AT(field) offsetof(struct score_options, field)

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "a GGUF file, or the name of one found", option_text, AT(model), 0, 0},
    {"top", 0, "N", "the N likeliest tokens at each place", option_int, AT(top), 0, TOP_MAX},
    {"special", 0, NULL, "parse special tokens (<|im_end|>) in the text", option_flag, AT(special),
     0, 0},
    {"json", 0, NULL, "a line for each token: {\"id\",\"text\",\"logprob\",\"rank\",\"top\"}",
     option_flag, AT(json), 0, 0},
    {"threads", 't', "N", "compute threads (0: one per core)", option_int, AT(threads), 0, 256},
    {"batch-size", 'b', "N", "tokens per batch (0: 512)", option_int, AT(batch_size), 0, 65536},
    {"cache-type", 0, "TYPE", "the KV cache's numbers: f16 or q8_0", option_cache_type,
     AT(cache_type), 0, 0},
    {"no-repack", 0, NULL, "run from the file's map: less memory, slower", option_flag,
     AT(no_repack), 0, 0},
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader score",
    .usage = "[-m MODEL] [--top N] [--json] < text",
    .about = "For each token of standard input, byte for byte: the natural logarithm of its\n"
             "probability under the raw softmax, and how many tokens were likelier (its rank).",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

/* One scoring run: the tokens, and the chain without a knob turned, which knows the raw softmax. */
struct scoring {
    const struct score_options *options;
    const struct tokenizer *tokenizer;
    struct token_list tokens;
    struct token_texts texts;
    struct sampler *sampler;
    struct knobs neutral;
    struct sampler_candidate *candidates; /* [options->top] */
    struct sampler_draw *top;             /* [options->top]: the likeliest at the place under way */
    double sum;                           /* of log-probabilities */
};

static void print_json(const struct scoring *s, size_t i, const struct sampler_draw *draw,
                       size_t n_top)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "id", s->tokens.ids[i]);
    token_texts_add(&s->texts, i, o);
    if (draw != NULL) {
        cJSON_AddNumberToObject(o, "logprob", draw->logprob);
        cJSON_AddNumberToObject(o, "rank", draw->rank);
    } else {
        cJSON_AddNullToObject(o, "logprob");
        cJSON_AddNullToObject(o, "rank");
    }
    cJSON *top = cJSON_AddArrayToObject(o, "top");
    for (size_t k = 0; k < n_top; k++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "id", s->top[k].id);
        cJSON_AddNumberToObject(item, "logprob", s->top[k].logprob);
        cJSON_AddItemToArray(top, item);
    }
    json_print_line(o);
}

/* A token's bytes for a person: one line, quoted as JSON would. */
static void print_quoted(const char *text, size_t len)
{
    cJSON *o = cJSON_CreateObject();

    json_add_text(o, "t", text, len);
    char *line = cJSON_PrintUnformatted(o);
    fwrite(line + 5, 1, strlen(line) - 6, stdout); /* between {"t": and } */
    cJSON_free(line);
    cJSON_Delete(o);
}

static void print_piece(const struct scoring *s, int32_t id)
{
    struct str text = STR_INIT;
    size_t len;
    const char *piece = tokenizer_piece(s->tokenizer, id, &len);

    utf8_add_clean(&text, piece, len);
    print_quoted(str_text(&text), text.len);
    str_done(&text);
}

static void print_line(const struct scoring *s, size_t i, const struct sampler_draw *draw,
                       size_t n_top)
{
    if (draw != NULL)
        printf("%8d %10.4f %6d  ", (int)s->tokens.ids[i], draw->logprob, (int)draw->rank);
    else
        printf("%8d %10s %6s  ", (int)s->tokens.ids[i], "-", "-");
    print_piece(s, s->tokens.ids[i]);
    for (size_t k = 0; k < n_top; k++) {
        printf("%s", k == 0 ? "  | " : " ");
        print_piece(s, s->top[k].id);
        printf(" %.4f", s->top[k].logprob);
    }
    putchar('\n');
}

static void print_token(const struct scoring *s, size_t i, const struct sampler_draw *draw,
                        size_t n_top)
{
    if (s->options->json)
        print_json(s, i, draw, n_top);
    else
        print_line(s, i, draw, n_top);
}

static size_t find_top(struct scoring *s)
{
    if (s->options->top == 0)
        return 0;
    size_t n = sampler_survivors(s->sampler, s->candidates, (size_t)s->options->top);
    for (size_t k = 0; k < n; k++)
        s->top[k] = sampler_look(s->sampler, s->candidates[k].id);
    return n;
}

/* The logits after token `index` say how likely token index + 1 was. */
static void take_logits(void *ctx, size_t index, const float *logits)
{
    struct scoring *s = ctx;

    if (index + 1 >= s->tokens.n)
        return;
    sampler_run(s->sampler, &(struct sampler_input){.logits = logits, .knobs = &s->neutral});
    struct sampler_draw draw = sampler_look(s->sampler, s->tokens.ids[index + 1]);
    s->sum += draw.logprob;
    print_token(s, index + 1, &draw, find_top(s));
}

static struct knobs knobs_neutral(void)
{
    struct knobs knobs = knobs_default();

    for (int k = 0; k < KNOB_COUNT; k++)
        knobs.value[k] = knob_traits[k].neutral;
    return knobs;
}

static bool score(struct scoring *s, struct model *m, struct error *err)
{
    const struct score_options *o = s->options;
    const struct model_info *info = model_get_info(m);
    struct model_load_options load = {.threads = o->threads, .no_repack = o->no_repack};
    struct session_options options = {
        .batch_size = o->batch_size,
        .cache_type = (enum cache_type)o->cache_type,
        .ctx_size = (int32_t)s->tokens.n,
    };

    if (s->tokens.n == 0)
        return true;
    if (s->tokens.n > (size_t)info->ctx_train)
        return error_set(err, "standard input: %zu tokens, but %s was made for %d", s->tokens.n,
                         info->label, (int)info->ctx_train);
    print_token(s, 0, NULL, 0);
    if (s->tokens.n == 1)
        return true;
    if (!model_load(m, &load, err))
        return false;
    struct session *session = session_new(m, &options, err);
    if (session == NULL)
        return false;
    s->sampler = sampler_new(info->n_vocab);
    struct eval_hooks hooks = {.logits = take_logits, .ctx = s};
    enum eval_result result = session_eval(session, s->tokens.ids, s->tokens.n, &hooks, err);
    session_free(session);
    if (result == EVAL_FULL)
        return error_set(err, "standard input: %zu tokens do not fit the context", s->tokens.n);
    return result == EVAL_OK;
}

static void print_summary(const struct scoring *s)
{
    double mean = s->sum / (double)(s->tokens.n - 1);

    printf("%zu tokens, mean log-probability %.4f, perplexity %.3f\n", s->tokens.n - 1, mean,
           exp(-mean));
}

static bool run(const struct score_options *o, struct model *m, struct error *err)
{
    struct scoring s = {.options = o, .neutral = knobs_neutral()};
    struct str in = STR_INIT;

    s.tokenizer = model_tokenizer(m, err);
    bool ok = s.tokenizer != NULL && tokens_read_input(&in, err);
    if (ok) {
        tokens_of_text(s.tokenizer, &in, o->special, &s.tokens);
        token_texts_init(&s.texts, s.tokenizer, &s.tokens);
        s.candidates = mem_array((size_t)o->top + 1, sizeof *s.candidates);
        s.top = mem_array((size_t)o->top + 1, sizeof *s.top);
        ok = score(&s, m, err);
        if (ok && !o->json && s.tokens.n > 1)
            print_summary(&s);
        free(s.candidates);
        free(s.top);
        token_texts_done(&s.texts);
        sampler_free(s.sampler);
    }
    token_list_done(&s.tokens);
    str_done(&in);
    return ok;
}

int cmd_score(int argc, char **argv)
{
    struct score_options o = {.cache_type = CACHE_F16};
    struct error err;
    int status;

    if (options_open(&table, argc, argv, &o, &o.help, &status) < 0)
        return status;
    struct model *m = models_open(o.model, &err);
    bool ok = m != NULL && run(&o, m, &err);
    model_close(m);
    return ok ? EXIT_SUCCESS : cli_fail(&err);
}
