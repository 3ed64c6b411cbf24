#include "config.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/tokenizer_impl.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* ---- the patterns -------------------------------------------------------------------------- */

/* Unicode's White_Space. PCRE2's own \s has U+180E too, which the trainers' engines have not. */
#define SPACE   "\\p{Z}\\t-\\r\\x{85}"
#define LETTERS "\\p{L}"
#define NUMBERS "\\p{N}"

/* White space but the last of it before a word, so that the word keeps one space; else
 * all of it. */
#define SPACES "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

#define GPT2                                                                                       \
    "'s|'t|'re|'ve|'m|'ll|'d| ?" LETTERS "+| ?" NUMBERS "+| ?[^" SPACE LETTERS NUMBERS "]+"        \
    "|" SPACES

/* Llama 3 and Qwen 2 differ in how many digits make a word. */
#define CL100K(digits)                                                                             \
    "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\\r\\n" LETTERS NUMBERS "]?" LETTERS  \
    "+|" NUMBERS digits "| ?[^" SPACE LETTERS NUMBERS "]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|" SPACES

enum { PASSES_MAX = 4 };

/* Every pattern is applied to what the one before has left: its matches and the gaps between them
 * are the next one's texts. Lookahead does not see beyond such a text. */
struct pre_tokenizer {
    const char *names; /* values of tokenizer.ggml.pre, blank-separated */
    const char *patterns[PASSES_MAX];
    bool adds_bos, whole_words;
};

static const struct pre_tokenizer pre_tokenizers[] = {
    {"smollm starcoder refact command-r codeshell exaone minerva-7b",
     {NUMBERS, GPT2},
     false,
     false},
    {"gpt-2 phi-2 mpt olmo jais", {GPT2}, false, false},
    {"llama-bpe llama3 llama-v3", {CL100K("{1,3}")}, true, true},
    {"smaug-bpe dbrx", {CL100K("{1,3}")}, false, false},
    {"qwen2 stablelm2 deepseek-r1-qwen", {CL100K("")}, false, false},
    /* What llama.cpp does for files older than the key, or that say so. */
    {"default", {"[\\p{P}$+<=>^~|]+", GPT2, NUMBERS "+", "[0-9][0-9][0-9]"}, false, false},
};

const struct pre_tokenizer *pre_tokenizer_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof pre_tokenizers[0]; i++) {
        for (const char *p = pre_tokenizers[i].names; *p != '\0';) {
            size_t n = strcspn(p, " ");
            if (n == len && memcmp(p, name, n) == 0)
                return &pre_tokenizers[i];
            p += n + (p[n] == ' ');
        }
    }
    return NULL;
}

bool pre_tokenizer_adds_bos(const struct pre_tokenizer *p)
{
    return p->adds_bos;
}

bool pre_tokenizer_whole_words(const struct pre_tokenizer *p)
{
    return p->whole_words;
}

/* ---- compiled ------------------------------------------------------------------------------ */

struct splitter {
    pcre2_code *passes[PASSES_MAX];
    size_t n_passes;
};

struct splitter *splitter_new(const struct pre_tokenizer *p, struct error *err)
{
    struct splitter *s = mem_zalloc(sizeof *s);
    int code = 0;
    PCRE2_SIZE at = 0;

    while (s->n_passes < PASSES_MAX && p->patterns[s->n_passes] != NULL) {
        pcre2_code *pass =
            pcre2_compile((PCRE2_SPTR)p->patterns[s->n_passes], PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
        if (pass == NULL) {
            error_set(err, "pre-tokenizer: PCRE2 refuses the pattern at %zu (error %d)", (size_t)at,
                      code);
            splitter_free(s);
            return NULL;
        }
        pcre2_jit_compile(pass, PCRE2_JIT_COMPLETE); /* without JIT it is slower, not wrong */
        s->passes[s->n_passes++] = pass;
    }
    return s;
}

void splitter_free(struct splitter *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n_passes; i++)
        pcre2_code_free(s->passes[i]);
    free(s);
}

/* ---- splitting ----------------------------------------------------------------------------- */

struct run { /* one call of splitter_run */
    const struct splitter *splitter;
    pcre2_match_data *match[PASSES_MAX];
    splitter_word *word;
    void *ctx;
};

/* Applies the passes from `pass` on to valid UTF-8. */
static void split(struct run *r, size_t pass, const char *text, size_t len)
{
    size_t done = 0;

    if (len == 0)
        return;
    if (pass == r->splitter->n_passes) {
        r->word(r->ctx, text, len);
        return;
    }
    while (done < len) {
        int found = pcre2_match(r->splitter->passes[pass], (PCRE2_SPTR)text, len, done,
                                PCRE2_NO_UTF_CHECK, r->match[pass], NULL);
        if (found < 0) /* no match, or a limit was met: what is left is one piece */
            break;
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(r->match[pass]);
        size_t start = ends[0], end = ends[1];
        split(r, pass + 1, text + done, start - done);
        split(r, pass + 1, text + start, end - start);
        done = end;
    }
    split(r, pass + 1, text + done, len - done);
}

void splitter_run(const struct splitter *s, const char *text, size_t len, splitter_word *word,
                  void *ctx)
{
    struct run r = {.splitter = s, .word = word, .ctx = ctx};
    size_t start = 0, at = 0;
    bool valid;
    uint32_t c;

    for (size_t i = 0; i < s->n_passes; i++) {
        r.match[i] = pcre2_match_data_create(1, NULL);
        if (r.match[i] == NULL)
            mem_fatal("tokenizer");
    }
    while (at < len) { /* bytes that are no character are words of their own */
        size_t n = utf8_decode(text + at, len - at, &c, &valid);
        if (!valid) {
            split(&r, 0, text + start, at - start);
            word(ctx, text + at, n);
            start = at + n;
        }
        at += n;
    }
    split(&r, 0, text + start, len - start);
    for (size_t i = 0; i < s->n_passes; i++)
        pcre2_match_data_free(r.match[i]);
}
