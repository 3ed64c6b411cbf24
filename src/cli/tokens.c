#include "config.h"

#include "cli/tokens.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/json.h"

enum { INPUT_MAX = 256 * 1024 * 1024 };

bool tokens_read_input(struct str *out, struct error *err)
{
    return file_read("-", INPUT_MAX, out, err);
}

void tokens_of_text(const struct tokenizer *t, const struct str *text, bool special,
                    struct token_list *out)
{
    struct span span = {
        .kind = special ? SPAN_MARKUP : SPAN_TEXT,
        .text = str_text(text),
        .len = text->len,
    };
    tokenizer_encode(t, &span, 1, TOKENIZE_BOS, out);
}

void token_texts_init(struct token_texts *x, const struct tokenizer *t,
                      const struct token_list *tokens)
{
    struct detokenizer detok = {0};

    *x = (struct token_texts){.tokenizer = t, .tokens = tokens};
    x->at = mem_array(tokens->n + 1, sizeof *x->at);
    for (size_t i = 0; i < tokens->n; i++) {
        size_t len;
        const char *piece = tokenizer_piece(t, tokens->ids[i], &len);
        x->at[i] = x->text.len;
        detokenizer_push(&detok, piece, len, &x->text, NULL);
    }
    detokenizer_flush(&detok, &x->text, NULL);
    x->at[tokens->n] = x->text.len;
}

void token_texts_done(struct token_texts *x)
{
    str_done(&x->text);
    free(x->at);
}

void token_texts_add(const struct token_texts *x, size_t i, cJSON *object)
{
    size_t len;
    const char *piece = tokenizer_piece(x->tokenizer, x->tokens->ids[i], &len);

    json_add_text(object, "text", str_text(&x->text) + x->at[i], x->at[i + 1] - x->at[i]);
    if (!utf8_is_valid(piece, len))
        json_add_bytes(object, piece, len);
}
