/* What `tokenize` and `score` share: standard input as tokens, and the text that each
 * token shows. */
#ifndef FADER_CLI_TOKENS_H
#define FADER_CLI_TOKENS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "engine/engine.h"

/* All of standard input, byte for byte; at most 256 MB. */
bool tokens_read_input(struct str *out, struct error *err);

/* Its tokens; BOS in front where the model file asks for it. Special tokens only with `special`. */
void tokens_of_text(const struct tokenizer *t, const struct str *text, bool special,
                    struct token_list *out);

/* The texts of a list of tokens, in which a character that is spread over several tokens is counted
 * to the one that completes it: laid end to end they are the text again. */
struct token_texts {
    const struct tokenizer *tokenizer;
    const struct token_list *tokens;
    struct str text;
    size_t *at; /* [n + 1]: token i has text[at[i] ... at[i + 1]) */
};
void token_texts_init(struct token_texts *x, const struct tokenizer *t,
                      const struct token_list *tokens); /* both borrowed */
void token_texts_done(struct token_texts *x);

/* Adds "text" of token i, and "bytes" where its own bytes are not whole characters. */
void token_texts_add(const struct token_texts *x, size_t i, cJSON *object);

#endif
