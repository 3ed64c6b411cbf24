#include "config.h"

#include "engine/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void token_list_add(struct token_list *list, int32_t id)
{
    mem_grow(&list->ids, &list->cap, list->n + 1, sizeof *list->ids);
    list->ids[list->n++] = id;
}

void token_list_done(struct token_list *list)
{
    free(list->ids);
    *list = (struct token_list){NULL, 0, 0};
}

/* ---- a stretch of text --------------------------------------------------------------------- */

/* Text and markup between two lists of ids are one stretch: a word may begin in the one and end in
 * the other, as it did when the model was trained. Only where special tokens are looked for
 * differs. */
struct stretch {
    const char *text;
    size_t len;
    const size_t *trusted; /* [len]: how many bytes from here on are the template's own; NULL: */
    bool all_trusted;      /* ... all of them are, or none */
};

/* A text that goes on can still change its last two words: "'r" is two, "'re" is one. */
enum { WORDS_HELD = 2 };

struct job {
    const struct tokenizer *t;
    struct bpe_scratch *scratch;
    struct token_list *out;
    struct word {
        const char *text;
        size_t len;
    } held[WORDS_HELD]; /* the last words, not encoded yet */
    size_t n_held;
};

static void encode_word(struct job *job, const struct word *w)
{
    bpe_encode_word(job->t, job->scratch, w->text, w->len, job->out);
}

static void on_word(void *ctx, const char *word, size_t len)
{
    struct job *job = ctx;

    if (job->n_held == WORDS_HELD) {
        encode_word(job, &job->held[0]);
        job->n_held--;
        memmove(job->held, job->held + 1, job->n_held * sizeof *job->held);
    }
    job->held[job->n_held++] = (struct word){word, len};
}

/* There are no more words before what comes now. */
static void encode_held(struct job *job)
{
    for (size_t i = 0; i < job->n_held; i++)
        encode_word(job, &job->held[i]);
    job->n_held = 0;
}

/* Of the special tokens in [*low, *high), all equal up to byte `depth`, keeps those that have
 * `byte` there. They are sorted: two binary searches. */
static void narrow(const struct tokenizer *t, size_t *low, size_t *high, size_t depth,
                   unsigned char byte)
{
    size_t bounds[2];

    for (int upper = 0; upper < 2; upper++) {
        size_t a = *low, b = *high;
        while (a < b) {
            size_t middle = a + (b - a) / 2, len;
            const char *text = token_text(t, t->specials[middle], &len);
            int value = len > depth ? (unsigned char)text[depth] : -1;
            if (value < byte || (upper != 0 && value == byte))
                a = middle + 1;
            else
                b = middle;
        }
        bounds[upper] = a;
    }
    *low = bounds[0];
    *high = bounds[1];
}

/* The longest special token that stands at `text` and may be taken there: control tokens only
 * within the first `trusted` bytes. -1: none. */
static int32_t find_special(const struct tokenizer *t, const char *text, size_t len, size_t trusted,
                            size_t *found_len)
{
    size_t low = 0, high = t->n_specials, token_len;
    int32_t found = -1;

    for (size_t depth = 0; depth < len; depth++) {
        narrow(t, &low, &high, depth, (unsigned char)text[depth]);
        if (low == high)
            break;
        token_text(t, t->specials[low], &token_len); /* the shortest comes first */
        if (token_len != depth + 1)
            continue;
        if (tokenizer_is_control(t, t->specials[low]) && depth + 1 > trusted)
            continue;
        found = t->specials[low];
        *found_len = token_len;
    }
    return found;
}

static size_t trusted_from(const struct stretch *s, size_t at)
{
    if (s->trusted != NULL)
        return s->trusted[at];
    return s->all_trusted ? s->len - at : 0;
}

static void encode_stretch(struct job *job, const struct stretch *s)
{
    size_t done = 0, found_len = 0;

    for (size_t at = 0; at < s->len;) {
        int32_t id = -1;
        if (job->t->special_first[(unsigned char)s->text[at]])
            id = find_special(job->t, s->text + at, s->len - at, trusted_from(s, at), &found_len);
        if (id < 0) {
            at++;
            continue;
        }
        splitter_run(job->t->splitter, s->text + done, at - done, on_word, job);
        encode_held(job);
        token_list_add(job->out, id);
        at += found_len;
        done = at;
    }
    splitter_run(job->t->splitter, s->text + done, s->len - done, on_word, job);
}

/* ---- spans --------------------------------------------------------------------------------- */

/* For every byte of `len` in these spans: how many from there on are markup. */
static size_t *measure_trust(const struct span *spans, size_t n, size_t len)
{
    size_t *trusted = mem_alloc(len * sizeof *trusted), at = len, run = 0;

    while (n > 0) {
        const struct span *span = &spans[--n];
        for (size_t k = 0; k < span->len; k++)
            trusted[--at] = run = span->kind == SPAN_MARKUP ? run + 1 : 0;
    }
    return trusted;
}

/* Encodes the spans up to the next list of ids; returns how many they were. `open`: the last of all
 * spans may go on. */
static size_t encode_texts(struct job *job, const struct span *spans, size_t n_spans, bool open)
{
    struct stretch s = {.all_trusted = spans[0].kind == SPAN_MARKUP};
    struct str joined = STR_INIT;
    size_t *trusted = NULL, n = 0;
    bool mixed = false;

    for (; n < n_spans && spans[n].kind != SPAN_TOKENS; n++) {
        str_add(&joined, spans[n].text, spans[n].len);
        mixed = mixed || spans[n].kind != spans[0].kind;
    }
    if (mixed)
        trusted = measure_trust(spans, n, joined.len);
    s.text = str_text(&joined);
    s.len = joined.len;
    s.trusted = trusted;
    encode_stretch(job, &s);
    if (!open || n < n_spans)
        encode_held(job);
    job->n_held = 0;
    free(trusted);
    str_done(&joined);
    return n;
}

void tokenizer_encode(const struct tokenizer *t, const struct span *spans, size_t n_spans,
                      unsigned flags, struct token_list *out)
{
    struct job job = {.t = t, .scratch = bpe_scratch_new(), .out = out};
    bool bos = (flags & TOKENIZE_BOS) != 0 && t->add_bos && t->bos >= 0;
    size_t start = out->n;

    if (bos)
        token_list_add(out, t->bos);
    for (size_t i = 0; i < n_spans;) {
        if (spans[i].kind != SPAN_TOKENS) {
            i += encode_texts(&job, spans + i, n_spans - i, (flags & TOKENIZE_OPEN) != 0);
            continue;
        }
        for (size_t k = 0; k < spans[i].n_tokens; k++)
            token_list_add(out, spans[i].tokens[k]);
        i++;
    }
    if (bos && out->n > start + 1 && out->ids[start + 1] == t->bos) { /* the template had its own */
        out->n--;
        memmove(out->ids + start, out->ids + start + 1, (out->n - start) * sizeof *out->ids);
    }
    bpe_scratch_free(job.scratch);
}
