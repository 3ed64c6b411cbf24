#include "config.h"

#include "engine/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* ---- hashing ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static uint64_t hash_bytes(uint64_t seed, const char *bytes, size_t len)
{
    uint64_t h = seed ^ len, chunk;

    for (; len >= sizeof chunk; len -= sizeof chunk, bytes += sizeof chunk) {
        memcpy(&chunk, bytes, sizeof chunk);
        h = mix(h ^ chunk);
    }
    chunk = 0;
    memcpy(&chunk, bytes, len);
    return mix(h ^ chunk);
}

/* Slots for `n` entries, at most two thirds full: a power of two. */
static size_t slots_for(size_t n)
{
    size_t slots = 16;

    while (slots < n + n / 2)
        slots *= 2;
    return slots;
}

/* ---- words --------------------------------------------------------------------------------- */

/* The slot that holds these bytes, or the free one where they belong. */
static size_t find_slot(const struct tokenizer *t, const char *bytes, size_t len)
{
    size_t slot = (size_t)hash_bytes(t->seed, bytes, len) & t->words_mask;

    for (; t->words[slot] >= 0; slot = (slot + 1) & t->words_mask) {
        size_t other_len;
        const char *other = token_text(t, t->words[slot], &other_len);
        if (other_len == len && memcmp(other, bytes, len) == 0)
            break;
    }
    return slot;
}

bool bpe_index_words(struct tokenizer *t, struct error *err)
{
    size_t slots = slots_for((size_t)t->n_vocab), len;

    t->words = mem_try_alloc(slots * sizeof *t->words);
    if (t->words == NULL)
        return error_set(err, "no memory for %d tokens", t->n_vocab);
    memset(t->words, 0xFF, slots * sizeof *t->words);
    t->words_mask = slots - 1;
    memset(t->bytes, 0xFF, sizeof t->bytes);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        if (t->kinds[id] != TOKEN_NORMAL)
            continue;
        const char *text = token_text(t, id, &len);
        size_t slot = find_slot(t, text, len);
        if (t->words[slot] >= 0)
            return error_set(err, "tokens %d and %d have the same text", t->words[slot], id);
        t->words[slot] = id;
        if (len == 1)
            t->bytes[(unsigned char)*text] = id;
    }
    return true;
}

int32_t bpe_find_word(const struct tokenizer *t, const char *bytes, size_t len)
{
    if (len == 1)
        return t->bytes[(unsigned char)*bytes];
    return t->words[find_slot(t, bytes, len)];
}

/* ---- merges -------------------------------------------------------------------------------- */

static size_t find_merge_slot(const struct tokenizer *t, uint64_t pair)
{
    size_t slot = (size_t)mix(pair ^ t->seed) & t->merges_mask;

    while (t->merges[slot].merged >= 0 && t->merges[slot].pair != pair)
        slot = (slot + 1) & t->merges_mask;
    return slot;
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

bool bpe_start_merges(struct tokenizer *t, size_t n, struct error *err)
{
    size_t slots = slots_for(n);

    t->merges = mem_try_alloc(slots * sizeof *t->merges);
    if (t->merges == NULL)
        return error_set(err, "no memory for %zu merges", n);
    t->merges_mask = slots - 1;
    for (size_t i = 0; i < slots; i++)
        t->merges[i].merged = -1;
    return true;
}

void bpe_add_merge(struct tokenizer *t, int32_t left, int32_t right, uint32_t rank, int32_t merged)
{
    size_t slot = find_merge_slot(t, pair_of(left, right));

    if (t->merges[slot].merged < 0) /* of two for one pair the better stays */
        t->merges[slot] = (struct bpe_merge){pair_of(left, right), rank, merged};
}

/* ---- one word ------------------------------------------------------------------------------ */

/* A word is a doubly linked list of symbols, one a byte at first. A heap holds every pair of
 * neighbours that can merge, the best rank first, the leftmost first among equals. A pair is out of
 * date when one of its symbols has changed since: it is thrown away when it comes up. */
enum { NO_SYMBOL = UINT32_MAX, WORD_MAX = 1 << 30 };

struct symbol {
    int32_t id;              /* -1: a byte without a token */
    uint32_t previous, next; /* NO_SYMBOL at the ends; `next` is also NO_SYMBOL once merged away */
};

struct candidate {
    uint32_t rank, left; /* left: index of the symbol */
    int32_t left_id, right_id, merged;
};

struct bpe_scratch {
    struct symbol *symbols;
    struct candidate *heap;
    size_t cap_symbols, n_heap, cap_heap;
};

struct bpe_scratch *bpe_scratch_new(void)
{
    return mem_zalloc(sizeof(struct bpe_scratch));
}

void bpe_scratch_free(struct bpe_scratch *s)
{
    if (s == NULL)
        return;
    free(s->symbols);
    free(s->heap);
    free(s);
}

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static void heap_push(struct bpe_scratch *s, struct candidate c)
{
    mem_grow(&s->heap, &s->cap_heap, s->n_heap + 1, sizeof *s->heap);
    size_t at = s->n_heap++;
    while (at > 0 && is_before(&c, &s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = c;
}

static struct candidate heap_pop(struct bpe_scratch *s)
{
    struct candidate top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && is_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!is_before(&s->heap[child], &last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* Offers the pair that starts at symbol `left`, if there is a merge for it. */
static void offer(const struct tokenizer *t, struct bpe_scratch *s, uint32_t left)
{
    if (left == NO_SYMBOL || s->symbols[left].next == NO_SYMBOL)
        return;
    int32_t a = s->symbols[left].id, b = s->symbols[s->symbols[left].next].id;
    if (a < 0 || b < 0)
        return;
    const struct bpe_merge *m = &t->merges[find_merge_slot(t, pair_of(a, b))];
    if (m->merged >= 0)
        heap_push(s, (struct candidate){m->rank, left, a, b, m->merged});
}

static void merge_all(const struct tokenizer *t, struct bpe_scratch *s)
{
    while (s->n_heap > 0) {
        struct candidate c = heap_pop(s);
        struct symbol *left = &s->symbols[c.left];
        if (left->id != c.left_id || left->next == NO_SYMBOL ||
            s->symbols[left->next].id != c.right_id)
            continue;
        struct symbol *right = &s->symbols[left->next];
        left->id = c.merged;
        left->next = right->next;
        if (right->next != NO_SYMBOL)
            s->symbols[right->next].previous = c.left;
        right->id = -1;
        right->next = NO_SYMBOL;
        offer(t, s, left->previous);
        offer(t, s, c.left);
    }
}

/* A byte that the vocabulary has no token for. As part of a character it is left out, like in the
 * programs that such vocabularies come from; what is no text becomes U+FFFD and does not vanish. */
static void add_missing_byte(const struct tokenizer *t, const char *at, size_t len,
                             struct token_list *out)
{
    bool valid;
    uint32_t c;

    utf8_decode(at, len, &c, &valid);
    for (size_t i = 0; !valid && i < t->replacement.n; i++)
        token_list_add(out, t->replacement.ids[i]);
}

void bpe_encode_word(const struct tokenizer *t, struct bpe_scratch *s, const char *word, size_t len,
                     struct token_list *out)
{
    for (; len > WORD_MAX; word += WORD_MAX, len -= WORD_MAX)
        bpe_encode_word(t, s, word, WORD_MAX, out);
    if (len == 0)
        return;
    int32_t whole = len == 1 || t->whole_words ? bpe_find_word(t, word, len) : -1;
    if (whole >= 0) {
        token_list_add(out, whole);
        return;
    }
    uint32_t n = (uint32_t)len;
    mem_grow(&s->symbols, &s->cap_symbols, n, sizeof *s->symbols);
    for (uint32_t i = 0; i < n; i++)
        s->symbols[i] = (struct symbol){t->bytes[(unsigned char)word[i]], i > 0 ? i - 1 : NO_SYMBOL,
                                        i + 1 < n ? i + 1 : NO_SYMBOL};
    s->n_heap = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        offer(t, s, i);
    merge_all(t, s);
    for (uint32_t i = 0; i != NO_SYMBOL; i = s->symbols[i].next) {
        if (s->symbols[i].id >= 0)
            token_list_add(out, s->symbols[i].id);
        else
            add_missing_byte(t, word + i, len - i, out);
    }
}
