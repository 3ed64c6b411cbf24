/* Inside the tokenizer: its data, and its parts.
 *
 *   tokenizer.c         makes one and answers look-ups
 *   tokenizer_vocab.c   reads vocabulary, merges and special ids from the file
 *   tokenizer_encode.c  spans: finds special tokens where they are allowed, hands on the rest
 *   tokenizer_split.c   a text into words, by the patterns of the file's pre-tokenizer (PCRE2)
 *   tokenizer_bpe.c     a word into tokens, by merges
 *
 * Byte-level BPE writes every byte as a visible character ("Ġ" is a space). That alphabet is undone
 * when the file is read: from then on tokens, merges and words are plain bytes, so that any input
 * that the vocabulary has bytes for comes back exactly, valid UTF-8 or not. */
#ifndef FADER_ENGINE_TOKENIZER_IMPL_H
#define FADER_ENGINE_TOKENIZER_IMPL_H

#include "engine/tokenizer.h"

enum token_kind { /* tokenizer.ggml.token_type */
                  TOKEN_NORMAL = 1,
                  TOKEN_UNKNOWN = 2,
                  TOKEN_CONTROL = 3,
                  TOKEN_USER_DEFINED = 4,
                  TOKEN_UNUSED = 5,
                  TOKEN_BYTE = 6
};

struct splitter; /* compiled patterns; NULL in no tokenizer */

struct bpe_merge { /* a slot of the table of merges; `merged` < 0: free */
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank;
    int32_t merged;
};

struct tokenizer {
    int32_t n_vocab;
    char *text;           /* the bytes of all tokens, end to end */
    uint32_t *starts;     /* [n_vocab + 1] into text */
    uint8_t *kinds;       /* [n_vocab] enum token_kind */
    uint8_t *eog;         /* [n_vocab] */
    uint8_t *punctuation; /* [n_vocab] */
    int32_t bos, eos;     /* -1: none */
    bool add_bos;
    bool whole_words; /* a word that is a token is that token, whatever the merges say */

    uint64_t seed;  /* of the hashes: no file can be made to collide */
    int32_t *words; /* id of a normal token by its bytes, open addressing; -1: free */
    size_t words_mask;
    struct bpe_merge *merges; /* open addressing */
    size_t merges_mask;
    int32_t bytes[256];            /* the token of each byte, or -1 */
    struct token_list replacement; /* U+FFFD: for bytes that are no text and have no token */

    int32_t *specials; /* ids of those that are searched for in text, sorted by bytes */
    size_t n_specials;
    bool special_first[256]; /* a special token starts with this byte */

    struct splitter *splitter;
};

static inline const char *token_text(const struct tokenizer *t, int32_t id, size_t *len)
{
    *len = t->starts[id + 1] - t->starts[id];
    return t->text + t->starts[id];
}

static inline bool token_is_special(const struct tokenizer *t, int32_t id)
{
    return t->kinds[id] != TOKEN_NORMAL && t->kinds[id] != TOKEN_UNUSED &&
           t->kinds[id] != TOKEN_BYTE;
}

/* ---- tokenizer_vocab.c ----------------------------------------------------------------------- */

/* Each reads one part of the file, in this order; false with `err`. */
bool vocabulary_read_tokens(struct tokenizer *t, const struct gguf *g, struct error *err);
bool vocabulary_read_special_ids(struct tokenizer *t, const struct gguf *g, struct error *err);
bool vocabulary_index_specials(struct tokenizer *t, const struct gguf *g, struct error *err);
bool vocabulary_read_merges(struct tokenizer *t, const struct gguf *g, struct error *err);

/* ---- tokenizer_bpe.c ------------------------------------------------------------------------- */

/* Enters all normal tokens. False when two have the same text, or memory lacks. */
bool bpe_index_words(struct tokenizer *t, struct error *err);

/* The normal token with these bytes, or -1. */
int32_t bpe_find_word(const struct tokenizer *t, const char *bytes, size_t len);

/* Makes room for `n` merges, then enters them, best first. */
bool bpe_start_merges(struct tokenizer *t, size_t n, struct error *err);
void bpe_add_merge(struct tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t merged);

struct bpe_scratch; /* grows to the longest word */
struct bpe_scratch *bpe_scratch_new(void);
void bpe_scratch_free(struct bpe_scratch *s);

/* Appends the tokens of one word. Time: len * log(len), whatever the word. */
void bpe_encode_word(const struct tokenizer *t, struct bpe_scratch *s, const char *word, size_t len,
                     struct token_list *out);

/* ---- tokenizer_split.c ----------------------------------------------------------------------- */

struct pre_tokenizer; /* static: a row of the table */

/* By tokenizer.ggml.pre; NULL when fader has no patterns of that name. */
const struct pre_tokenizer *pre_tokenizer_find(const char *name, size_t len);
bool pre_tokenizer_adds_bos(const struct pre_tokenizer *p); /* where the file says nothing */
bool pre_tokenizer_whole_words(const struct pre_tokenizer *p);

/* Compiles the pattern. NULL with `err` when PCRE2 refuses. */
struct splitter *splitter_new(const struct pre_tokenizer *p, struct error *err);
void splitter_free(struct splitter *s);

/* Cuts any bytes into words and hands them out in order; together they are the text. */
typedef void splitter_word(void *ctx, const char *word, size_t len);
void splitter_run(const struct splitter *s, const char *text, size_t len, splitter_word *word,
                  void *ctx);

#endif
