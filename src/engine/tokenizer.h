/* Inside the engine: how a tokenizer is made from a model file. Its use is in engine.h. */
#ifndef FADER_ENGINE_TOKENIZER_H
#define FADER_ENGINE_TOKENIZER_H

#include "engine/engine.h"
#include "engine/gguf.h"

/* Builds the tokenizer that the file describes; it has n_vocab tokens. NULL with `err`. Copies what
 * it needs: it may outlive the file. */
struct tokenizer *tokenizer_new(const struct gguf *g, int32_t n_vocab, struct error *err);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

#endif
