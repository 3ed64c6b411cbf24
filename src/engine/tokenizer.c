#include "config.h"

#include "engine/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/sampler.h"

/* ---- punctuation --------------------------------------------------------------------------- */

static bool is_punctuation(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
        return true;
    default:
        return false;
    }
}

/* A text without a letter, a digit or a mark: punctuation, symbols, separators, control characters,
 * and pieces of characters, which are no letters yet. */
static bool text_is_punctuation(const char *text, size_t len)
{
    bool valid;
    uint32_t c;

    for (size_t i = 0; i < len;) {
        i += utf8_decode(text + i, len - i, &c, &valid);
        if (valid && !is_punctuation(c))
            return false;
    }
    return true;
}

static void mark_punctuation(struct tokenizer *t)
{
    size_t len;

    t->punctuation = mem_alloc((size_t)t->n_vocab);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        const char *text = token_text(t, id, &len);
        t->punctuation[id] = tokenizer_is_control(t, id) || text_is_punctuation(text, len);
    }
}

/* U+FFFD as the vocabulary writes it; less where it lacks bytes of that too. */
static void encode_replacement(struct tokenizer *t)
{
    static const char sign[] = "\xEF\xBF\xBD";
    struct bpe_scratch *scratch = bpe_scratch_new();

    bpe_encode_word(t, scratch, sign, sizeof sign - 1, &t->replacement);
    bpe_scratch_free(scratch);
}

/* ---- making one ---------------------------------------------------------------------------- */

static const struct pre_tokenizer *read_pre(struct tokenizer *t, const struct gguf *g,
                                            struct error *err)
{
    struct gguf_string name = {"default", 7};

    if (!gguf_read_string(g, "tokenizer.ggml.pre", false, &name, err))
        return NULL;
    const struct pre_tokenizer *pre = pre_tokenizer_find(name.text, name.len);
    if (pre == NULL) {
        error_set(err, "%s: pre-tokenizer '%.*s' is not supported yet", gguf_path(g),
                  name.len < 64 ? (int)name.len : 64, name.text);
        return NULL;
    }
    t->add_bos = pre_tokenizer_adds_bos(pre);
    t->whole_words = pre_tokenizer_whole_words(pre);
    return gguf_read_bool(g, "tokenizer.ggml.add_bos_token", false, &t->add_bos, err) ? pre : NULL;
}

static bool check_kind(const struct gguf *g, struct error *err)
{
    static const struct {
        const char *name, *what;
    } others[] = {
        {"llama", "SentencePiece"}, {"bert", "WordPiece"}, {"t5", "Unigram"},
        {"rwkv", "RWKV"},           {"plamo2", "PLaMo 2"}, {"gemma4", "Gemma 4"},
    };
    struct gguf_string kind = {NULL, 0};

    if (!gguf_read_string(g, "tokenizer.ggml.model", false, &kind, err))
        return false;
    if (kind.text == NULL)
        return error_set(err, "%s: the file has no tokenizer", gguf_path(g));
    if (kind.len == 4 && memcmp(kind.text, "gpt2", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strlen(others[i].name) == kind.len && memcmp(others[i].name, kind.text, kind.len) == 0)
            return error_set(err, "%s: tokenizer '%s' (%s) is not supported yet", gguf_path(g),
                             others[i].name, others[i].what);
    }
    return error_set(err, "%s: tokenizer '%.*s' is not supported yet", gguf_path(g),
                     kind.len < 64 ? (int)kind.len : 64, kind.text);
}

struct tokenizer *tokenizer_new(const struct gguf *g, int32_t n_vocab, struct error *err)
{
    struct tokenizer *t = mem_zalloc(sizeof *t);
    const struct pre_tokenizer *pre;

    t->n_vocab = n_vocab;
    t->seed = sampler_random_seed();
    if (check_kind(g, err) && (pre = read_pre(t, g, err)) != NULL &&
        vocabulary_read_tokens(t, g, err) && vocabulary_read_special_ids(t, g, err) &&
        vocabulary_index_specials(t, g, err) && vocabulary_read_merges(t, g, err) &&
        (t->splitter = splitter_new(pre, err)) != NULL && gguf_check_whole(g, err)) {
        mark_punctuation(t);
        encode_replacement(t);
        return t;
    }
    tokenizer_free(t);
    return NULL;
}

void tokenizer_free(struct tokenizer *t)
{
    if (t == NULL)
        return;
    splitter_free(t->splitter);
    free(t->text);
    free(t->starts);
    free(t->kinds);
    free(t->eog);
    free(t->punctuation);
    free(t->words);
    free(t->merges);
    free(t->specials);
    token_list_done(&t->replacement);
    free(t);
}

/* ---- looking ------------------------------------------------------------------------------- */

static bool is_id(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_vocab;
}

const char *tokenizer_piece(const struct tokenizer *t, int32_t id, size_t *len)
{
    if (!is_id(t, id)) {
        *len = 0;
        return "";
    }
    return token_text(t, id, len);
}

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id)
{
    return is_id(t, id) && t->eog[id] != 0;
}

bool tokenizer_is_control(const struct tokenizer *t, int32_t id)
{
    return is_id(t, id) && (t->kinds[id] == TOKEN_CONTROL || t->kinds[id] == TOKEN_UNKNOWN);
}

const uint8_t *tokenizer_punctuation(const struct tokenizer *t)
{
    return t->punctuation;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

int32_t tokenizer_find(const struct tokenizer *t, const char *text)
{
    size_t len = strlen(text), other_len;

    for (size_t i = 0; i < t->n_specials; i++) {
        const char *other = token_text(t, t->specials[i], &other_len);
        if (other_len == len && memcmp(other, text, len) == 0)
            return t->specials[i];
    }
    return len > 0 ? bpe_find_word(t, text, len) : -1;
}
