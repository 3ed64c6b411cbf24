#include "config.h"

#include "engine/tokenizer_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the byte alphabet --------------------------------------------------------------------- */

/* Byte-level vocabularies write a byte that is a visible character of Latin-1 as that character,
 * and the others as U+0100, U+0101... in their order. */
enum { ALPHABET_END = 0x144, MERGES_MAX = 1 << 25 };

struct alphabet {
    int16_t byte[ALPHABET_END]; /* by code point; -1: stands for none */
};

static void alphabet_init(struct alphabet *a)
{
    int next = 256;

    memset(a, 0xFF, sizeof *a);
    for (int b = 0; b < 256; b++) {
        bool visible = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        a->byte[visible ? b : next++] = (int16_t)b;
    }
}

/* Writes the bytes that `text` stands for to `out` (room for `len`), and returns how many, or -1
 * when a character is not of the alphabet. */
static ptrdiff_t alphabet_decode(const struct alphabet *a, const char *text, size_t len, char *out)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    ptrdiff_t n = 0;

    while (p < end) {
        unsigned c = *p++;
        if (c >= 0xC2 && c <= 0xC5 && p < end && (*p & 0xC0) == 0x80)
            c = (c & 0x1F) << 6 | (*p++ & 0x3F);
        else if (c >= 0x80)
            return -1;
        if (c >= ALPHABET_END || a->byte[c] < 0)
            return -1;
        out[n++] = (char)a->byte[c];
    }
    return n;
}

/* ---- the vocabulary ------------------------------------------------------------------------ */

/* Where the text of the tokens comes from: the file's arrays, at the next token. */
struct source {
    struct gguf_array tokens, kinds;
    bool has_kinds;
    struct alphabet alphabet;
};

static bool open_source(struct source *s, const struct gguf *g, int32_t n_vocab, struct error *err)
{
    alphabet_init(&s->alphabet);
    s->kinds.n = 0;
    if (!gguf_read_array(g, "tokenizer.ggml.tokens", true, GGUF_STRING, &s->tokens, err) ||
        !gguf_read_array(g, "tokenizer.ggml.token_type", false, GGUF_I32, &s->kinds, err))
        return false;
    s->has_kinds = gguf_has_key(g, "tokenizer.ggml.token_type");
    if (s->tokens.n != (uint64_t)n_vocab)
        return error_set(err, "%s: %" PRIu64 " tokens, but the embedding has %" PRId32 " rows",
                         gguf_path(g), s->tokens.n, n_vocab);
    if (s->has_kinds && s->kinds.n != s->tokens.n)
        return error_set(err, "%s: %" PRIu64 " token types for %" PRIu64 " tokens", gguf_path(g),
                         s->kinds.n, s->tokens.n);
    if ((uint64_t)(s->tokens.end - s->tokens.at) > UINT32_MAX)
        return error_set(err, "%s: the vocabulary is too large", gguf_path(g));
    return true;
}

/* Texts that end an answer in whatever model has them, whether its file says so or not. */
static bool text_ends_answer(const char *text, size_t len)
{
    static const char *const texts[] = {
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|end|>",
        "<end_of_turn>",
        "</s>",
        "<|return|>",
        "<|call|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<end_of_utterance>",
        /* what comes after a file that is being filled in */
        "<|fim_pad|>",
        "<fim-pad>",
        "<fim_pad>",
        "<|file_sep|>",
        "<|repo_name|>",
        "<reponame>",
        "<fim-repo>",
        "<|fim_repo|>",
    };

    if (len == 0 || strchr("<[_", *text) == NULL) /* they are few among many */
        return false;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strlen(texts[i]) == len && memcmp(texts[i], text, len) == 0)
            return true;
    }
    return false;
}

/* Adds one token's bytes at `at`; returns how many. */
static size_t add_token(struct tokenizer *t, const struct source *s, int32_t id, char *at,
                        struct gguf_string text, int64_t kind)
{
    ptrdiff_t n = -1;

    t->kinds[id] = kind >= TOKEN_NORMAL && kind <= TOKEN_BYTE ? (uint8_t)kind : TOKEN_NORMAL;
    /* Some files say that their <|im_end|> is an ordinary word; "</s>" may well be one. */
    bool may_end =
        t->kinds[id] != TOKEN_NORMAL || (text.len > 2 && memcmp(text.text, "<|", 2) == 0);
    t->eog[id] = may_end && text_ends_answer(text.text, text.len);
    if (t->eog[id])
        t->kinds[id] = TOKEN_CONTROL;
    if (!token_is_special(t, id))
        n = alphabet_decode(&s->alphabet, text.text, text.len, at);
    if (n >= 0)
        return (size_t)n;
    if (t->kinds[id] == TOKEN_NORMAL)
        t->kinds[id] = TOKEN_UNUSED; /* no text can be made of it */
    memcpy(at, text.text, text.len);
    return text.len;
}

bool vocabulary_read_tokens(struct tokenizer *t, const struct gguf *g, struct error *err)
{
    struct source s;
    struct gguf_string text;
    int64_t kind;
    size_t used = 0;

    if (!open_source(&s, g, t->n_vocab, err))
        return false;
    size_t n = (size_t)t->n_vocab, room = (size_t)(s.tokens.end - s.tokens.at);
    t->text = mem_try_alloc(room);
    if (t->text == NULL)
        return error_set(err, "%s: no memory for the vocabulary", gguf_path(g));
    t->starts = mem_alloc((n + 1) * sizeof *t->starts);
    t->kinds = mem_alloc(n);
    t->eog = mem_alloc(n);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        kind = TOKEN_NORMAL;
        t->starts[id] = (uint32_t)used;
        if (!gguf_next_string(&s.tokens, &text) ||
            (s.has_kinds && !gguf_next_int(&s.kinds, &kind)) || text.len > room - used)
            return error_set(err, "%s: the vocabulary changed while it was read", gguf_path(g));
        used += add_token(t, &s, id, t->text + used, text, kind);
    }
    t->starts[n] = (uint32_t)used;
    return bpe_index_words(t, err) || error_prefix(err, "%s", gguf_path(g));
}

/* ---- special tokens ------------------------------------------------------------------------ */

struct special {
    const char *text;
    size_t len;
    int32_t id;
};

static int compare_specials(const void *a, const void *b)
{
    const struct special *p = a, *q = b;
    int order = memcmp(p->text, q->text, p->len < q->len ? p->len : q->len);

    return order != 0 ? order : (p->len > q->len) - (p->len < q->len);
}

/* Longer ones than any model has would make searching slow. */
static bool is_searched_for(const struct tokenizer *t, int32_t id)
{
    enum { SPECIAL_LEN_MAX = 256 };
    size_t len = t->starts[id + 1] - t->starts[id];

    return token_is_special(t, id) && len > 0 && len <= SPECIAL_LEN_MAX;
}

bool vocabulary_index_specials(struct tokenizer *t, const struct gguf *g, struct error *err)
{
    struct special *list;
    size_t n = 0;
    bool ok = true;

    for (int32_t id = 0; id < t->n_vocab; id++)
        n += is_searched_for(t, id);
    list = mem_array(n, sizeof *list);
    n = 0;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        if (!is_searched_for(t, id))
            continue;
        list[n].id = id;
        list[n].text = token_text(t, id, &list[n].len);
        t->special_first[(unsigned char)*list[n++].text] = true;
    }
    qsort(list, n, sizeof *list, compare_specials);
    t->specials = mem_array(n, sizeof *t->specials);
    t->n_specials = n;
    for (size_t i = 0; i < n && ok; i++) {
        t->specials[i] = list[i].id;
        if (i > 0 && compare_specials(&list[i - 1], &list[i]) == 0)
            ok = error_set(err, "%s: tokens %d and %d have the same text", gguf_path(g),
                           list[i - 1].id, list[i].id);
    }
    free(list);
    return ok;
}

/* A token id from the file; one that is no token counts as not given. */
static bool read_id(const struct tokenizer *t, const struct gguf *g, const char *key, int32_t *id,
                    struct error *err)
{
    int64_t found = -1;

    if (!gguf_read_int(g, key, false, INT64_MIN, INT64_MAX, &found, err))
        return false;
    *id = found >= 0 && found < t->n_vocab ? (int32_t)found : -1;
    return true;
}

bool vocabulary_read_special_ids(struct tokenizer *t, const struct gguf *g, struct error *err)
{
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    int32_t id;

    if (!read_id(t, g, "tokenizer.ggml.bos_token_id", &t->bos, err) ||
        !read_id(t, g, ends[0], &t->eos, err))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (!read_id(t, g, ends[i], &id, err))
            return false;
        if (id >= 0)
            t->eog[id] = 1;
    }
    return true;
}

/* ---- merges -------------------------------------------------------------------------------- */

/* The token with these bytes; `guess` first: trainers number tokens in the order of merges. */
static int32_t find_guessing(const struct tokenizer *t, int32_t guess, const char *bytes,
                             size_t len)
{
    size_t guess_len;

    if (guess < t->n_vocab && t->kinds[guess] == TOKEN_NORMAL) {
        const char *text = token_text(t, guess, &guess_len);
        if (guess_len == len && memcmp(text, bytes, len) == 0)
            return guess;
    }
    return bpe_find_word(t, bytes, len);
}

/* "Ġt he": two texts with a space between, which the alphabet has not. One whose parts or sum are
 * no tokens can never lead to a token, and is passed over. */
static bool add_merge(struct tokenizer *t, const struct alphabet *a, struct gguf_string text,
                      uint32_t rank, int32_t *last, char *scratch)
{
    const char *space = text.len > 2 ? memchr(text.text + 1, ' ', text.len - 2) : NULL;

    if (space == NULL)
        return false;
    size_t left_raw = (size_t)(space - text.text), right_raw = text.len - left_raw - 1;
    ptrdiff_t left_len = alphabet_decode(a, text.text, left_raw, scratch);
    if (left_len <= 0)
        return true;
    char *rest = scratch + left_len;
    ptrdiff_t right_len = alphabet_decode(a, space + 1, right_raw, rest);
    if (right_len <= 0)
        return true;
    int32_t left = bpe_find_word(t, scratch, (size_t)left_len);
    int32_t right = bpe_find_word(t, rest, (size_t)right_len);
    int32_t merged = find_guessing(t, *last + 1, scratch, (size_t)(left_len + right_len));
    if (left >= 0 && right >= 0 && merged >= 0)
        bpe_add_merge(t, left, right, rank, merged);
    if (merged >= 0)
        *last = merged;
    return true;
}

bool vocabulary_read_merges(struct tokenizer *t, const struct gguf *g, struct error *err)
{
    struct gguf_array list;
    struct gguf_string text;
    struct alphabet alphabet;
    char *scratch = NULL;
    size_t cap = 0;
    int32_t last = -1;
    bool ok = true;

    if (!gguf_read_array(g, "tokenizer.ggml.merges", true, GGUF_STRING, &list, err))
        return false;
    if (list.n > MERGES_MAX)
        return error_set(err, "%s: %" PRIu64 " merges are more than a vocabulary has", gguf_path(g),
                         list.n);
    if (!bpe_start_merges(t, (size_t)list.n, err))
        return error_prefix(err, "%s", gguf_path(g));
    alphabet_init(&alphabet);
    for (uint32_t rank = 0; ok && gguf_next_string(&list, &text); rank++) {
        mem_grow(&scratch, &cap, text.len, 1);
        if (!add_merge(t, &alphabet, text, rank, &last, scratch))
            ok = error_set(err, "%s: merge %" PRIu32 " is not two texts with a space between",
                           gguf_path(g), rank);
    }
    free(scratch);
    return ok;
}
