/* Writes GGUF files for tests: a small llama model with random weights and a byte-level vocabulary
 * that can say every byte, or, by the lower functions, any file one wants to feed the reader with.
 */
#ifndef FADER_TESTS_TINY_GGUF_H
#define FADER_TESTS_TINY_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/quant.h"

struct tiny_writer;

struct tiny_gguf_options { /* all zero: the defaults in brackets */
    uint32_t type;         /* of the matrices, enum quant_type [QUANT_F32] */
    bool embd_q8_0;        /* token_embd (and output) are Q8_0 [as `type`] */
    int n_layer;           /* [2] */
    int n_embd;            /* [64] whole blocks of the type, as are the products of the next ones */
    int n_head, n_kv_head; /* [4, 2] */
    int head_dim;          /* [n_embd / n_head] */
    int n_ff;              /* [96; 256] */
    int n_ctx;             /* [256] */
    int n_extra_tokens;    /* more tokens that nothing merges into, called "[0]"... [0] */
    bool untied;           /* with an output matrix of its own */
    bool biases;           /* on every matrix of a layer */
    bool rope_freqs;       /* with frequency divisors */
    uint32_t seed;
    const char *words;         /* sayable as one token each, blanks between [some forty] */
    const char *tokenizer;     /* tokenizer.ggml.model ["gpt2"]; "none": no tokenizer at all */
    const char *pre;           /* tokenizer.ggml.pre ["smollm"] */
    const char *chat_template; /* [none] */
    void (*more)(struct tiny_writer *w); /* adds keys and tensors of the test's own [none] */
};

/* Its special tokens; the bytes follow from TINY_FIRST_BYTE, byte 0 first. */
enum { TINY_ENDOFTEXT, TINY_IM_START, TINY_IM_END, TINY_FIRST_BYTE };

/* False when the file could not be written. The same options give the same bytes. */
bool tiny_gguf_write(const char *path, const struct tiny_gguf_options *options);

/* The same into memory, appended to `out`. */
void tiny_gguf_build(const struct tiny_gguf_options *options, struct str *out);

/* ---- any file ------------------------------------------------------------------------------- */

struct tiny_writer { /* start from TINY_WRITER_INIT */
    uint32_t version, alignment;
    uint64_t n_keys, n_tensors;
    struct str keys, tensors, data;
};
#define TINY_WRITER_INIT                                                                           \
    {                                                                                              \
        3, 32, 0, 0, STR_INIT, STR_INIT, STR_INIT                                                  \
    }

void tiny_add_u32(struct tiny_writer *w, const char *key, uint32_t value);
void tiny_add_f32(struct tiny_writer *w, const char *key, float value);
void tiny_add_bool(struct tiny_writer *w, const char *key, bool value);
void tiny_add_text(struct tiny_writer *w, const char *key, const char *value);
void tiny_add_texts(struct tiny_writer *w, const char *key, const char *const *values, size_t n);
void tiny_add_ints(struct tiny_writer *w, const char *key, const int32_t *values, size_t n);
/* `rows` 0: a vector. The bytes must be what type and shape demand, or what a test wants them to
 * be. */
void tiny_add_tensor(struct tiny_writer *w, const char *name, uint32_t type, uint64_t cols,
                     uint64_t rows, const void *bytes, size_t len);
/* Appends the whole file to `out`, and empties the writer. */
void tiny_finish(struct tiny_writer *w, struct str *out);
bool tiny_save(const char *path, const struct str *bytes);

/* A byte as byte-level vocabularies write it: its UTF-8 text, NUL-terminated. */
void tiny_byte_text(unsigned byte, char out[4]);

#endif
