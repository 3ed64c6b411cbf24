#include "config.h"

#include "cli/tokenize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/options.h"
#include "cli/tokens.h"
#include "config/paths.h"
#include "engine/engine.h"

struct tokenize_options {
    const char *model;
    bool decode, special, json, help;
};

#define AT(field) offsetof(struct tokenize_options, field)

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "whose tokenizer; a GGUF file or the name of one found", option_text,
     AT(model), 0, 0},
    {"decode", 0, NULL, "token ids on standard input to text", option_flag, AT(decode), 0, 0},
    {"special", 0, NULL, "parse special tokens (<|im_end|>) in the text", option_flag, AT(special),
     0, 0},
    {"json", 0, NULL, "one array: [{\"id\":..,\"text\":..}]", option_flag, AT(json), 0, 0},
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader tokenize",
    .usage = "[-m MODEL] [--special] [--json] < text    (or --decode < ids)",
    .about = "Standard input, byte for byte, to token ids, one a line.",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

static void print_ids(const struct token_list *tokens)
{
    for (size_t i = 0; i < tokens->n; i++)
        printf("%d\n", (int)tokens->ids[i]);
}

static void print_json(const struct tokenizer *t, const struct token_list *tokens)
{
    struct token_texts texts;

    token_texts_init(&texts, t, tokens);
    putchar('[');
    for (size_t i = 0; i < tokens->n; i++) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddNumberToObject(object, "id", tokens->ids[i]);
        token_texts_add(&texts, i, object);
        char *line = cJSON_PrintUnformatted(object);
        printf("%s%s", i > 0 ? "," : "", line);
        cJSON_free(line);
        cJSON_Delete(object);
    }
    puts("]");
    token_texts_done(&texts);
}

/* Ids as `tokenize` or anybody's list prints them: separated by blanks, commas, brackets. */
static bool decode_ids(const struct tokenizer *t, const struct str *in, int32_t n_vocab,
                       struct error *err)
{
    static const char separators[] = " \t\r\n,[]";
    const char *at = str_text(in), *end = at + in->len;

    while (at += strspn(at, separators), at < end) {
        char word[24];
        int64_t id;
        size_t len = strcspn(at, separators), piece_len;
        snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), at);
        if (len == 0 || len >= sizeof word || !options_parse_whole(word, 0, n_vocab - 1, &id))
            return error_set(err, "standard input: '%s' is not a token id from 0 to %d", word,
                             (int)n_vocab - 1);
        const char *piece = tokenizer_piece(t, (int32_t)id, &piece_len);
        fwrite(piece, 1, piece_len, stdout);
        at += len;
    }
    return true;
}

static bool run(const struct tokenize_options *o, struct model *m, struct error *err)
{
    const struct tokenizer *t = model_tokenizer(m, err);
    struct token_list tokens = {0};
    struct str in = STR_INIT;
    bool ok = t != NULL && tokens_read_input(&in, err);

    if (ok && o->decode) {
        ok = decode_ids(t, &in, model_get_info(m)->n_vocab, err);
    } else if (ok) {
        tokens_of_text(t, &in, o->special, &tokens);
        if (o->json)
            print_json(t, &tokens);
        else
            print_ids(&tokens);
    }
    token_list_done(&tokens);
    str_done(&in);
    return ok;
}

int cmd_tokenize(int argc, char **argv)
{
    struct tokenize_options o = {0};
    struct error err;
    int status;

    if (options_open(&table, argc, argv, &o, &o.help, &status) < 0)
        return status;
    struct model *m = models_open(o.model, &err);
    bool ok = m != NULL && run(&o, m, &err);
    model_close(m);
    return ok ? EXIT_SUCCESS : cli_fail(&err);
}
