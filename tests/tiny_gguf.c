#include "config.h"

#include "tiny_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "blocks.h"
#include "engine/gguf.h"

/* ---- any file ------------------------------------------------------------------------------ */

static void add_u32(struct str *s, uint32_t value)
{
    str_add(s, (const char *)&value, sizeof value);
}

static void add_u64(struct str *s, uint64_t value)
{
    str_add(s, (const char *)&value, sizeof value);
}

static void add_string(struct str *s, const char *text)
{
    add_u64(s, strlen(text));
    str_add_text(s, text);
}

static struct str *add_key(struct tiny_writer *w, const char *key, enum gguf_type type)
{
    w->n_keys++;
    add_string(&w->keys, key);
    add_u32(&w->keys, type);
    return &w->keys;
}

void tiny_add_u32(struct tiny_writer *w, const char *key, uint32_t value)
{
    add_u32(add_key(w, key, GGUF_U32), value);
}

void tiny_add_f32(struct tiny_writer *w, const char *key, float value)
{
    str_add(add_key(w, key, GGUF_F32), (const char *)&value, sizeof value);
}

void tiny_add_bool(struct tiny_writer *w, const char *key, bool value)
{
    str_add_char(add_key(w, key, GGUF_BOOL), value ? 1 : 0);
}

void tiny_add_text(struct tiny_writer *w, const char *key, const char *value)
{
    add_string(add_key(w, key, GGUF_STRING), value);
}

void tiny_add_texts(struct tiny_writer *w, const char *key, const char *const *values, size_t n)
{
    struct str *s = add_key(w, key, GGUF_ARRAY);

    add_u32(s, GGUF_STRING);
    add_u64(s, n);
    for (size_t i = 0; i < n; i++)
        add_string(s, values[i]);
}

void tiny_add_ints(struct tiny_writer *w, const char *key, const int32_t *values, size_t n)
{
    struct str *s = add_key(w, key, GGUF_ARRAY);

    add_u32(s, GGUF_I32);
    add_u64(s, n);
    str_add(s, (const char *)values, n * sizeof *values);
}

static void pad(struct str *s, size_t alignment)
{
    while (s->len % alignment != 0)
        str_add_char(s, '\0');
}

void tiny_add_tensor(struct tiny_writer *w, const char *name, uint32_t type, uint64_t cols,
                     uint64_t rows, const void *bytes, size_t len)
{
    w->n_tensors++;
    pad(&w->data, w->alignment);
    add_string(&w->tensors, name);
    add_u32(&w->tensors, rows > 0 ? 2 : 1);
    add_u64(&w->tensors, cols);
    if (rows > 0)
        add_u64(&w->tensors, rows);
    add_u32(&w->tensors, type);
    add_u64(&w->tensors, w->data.len);
    str_add(&w->data, bytes, len);
}

void tiny_finish(struct tiny_writer *w, struct str *out)
{
    struct str file = STR_INIT;

    str_add_text(&file, "GGUF");
    add_u32(&file, w->version);
    add_u64(&file, w->n_tensors);
    add_u64(&file, w->n_keys);
    str_add(&file, str_text(&w->keys), w->keys.len);
    str_add(&file, str_text(&w->tensors), w->tensors.len);
    pad(&file, w->alignment);
    str_add(&file, str_text(&w->data), w->data.len);
    str_add(out, file.data, file.len);
    str_done(&file);
    str_done(&w->keys);
    str_done(&w->tensors);
    str_done(&w->data);
    *w = (struct tiny_writer)TINY_WRITER_INIT;
}

bool tiny_save(const char *path, const struct str *bytes)
{
    FILE *f = fopen(path, "wb");

    if (f == NULL)
        return false;
    bool ok = fwrite(str_text(bytes), 1, bytes->len, f) == bytes->len;
    return fclose(f) == 0 && ok;
}

/* ---- random weights ------------------------------------------------------------------------ */

struct maker {
    const struct tiny_gguf_options *o;
    struct tiny_writer w;
    uint64_t random;
    size_t n_embd, n_head, n_kv_head, head_dim, n_ff, n_layer, n_vocab;
};

static uint32_t next_random(struct maker *m)
{
    uint64_t z = m->random += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)(z >> 32);
}

/* About normal, standard deviation 1. */
static float next_normal(struct maker *m)
{
    float sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (float)(next_random(m) >> 8) * 0x1p-24f;
    return sum - 6;
}

/* One block with values of about `scale` standard deviation: random bytes, but for its halves. */
static void add_block(struct maker *m, uint32_t type, float scale, struct str *out)
{
    const struct block_parts *p = block_parts_find(type);
    size_t bytes = quant_find(type)->block_bytes;
    float d = scale * (1 + 0.2f * next_normal(m)) / p->spread;
    uint8_t block[BLOCK_BYTES_MAX];

    for (size_t i = 0; i < bytes; i++)
        block[i] = (uint8_t)next_random(m);
    block_set_half(block + p->d_at, d);
    if (p->m_at > 0)
        block_set_half(block + p->m_at, d * p->centre);
    str_add(out, (const char *)block, bytes);
}

static void add_value(uint32_t type, float value, struct str *out)
{
    uint16_t half = type == QUANT_F16 ? quant_f32_to_f16(value) : quant_f32_to_bf16(value);

    if (type == QUANT_F32)
        str_add(out, (const char *)&value, sizeof value);
    else
        str_add(out, (const char *)&half, sizeof half);
}

static void add_matrix(struct maker *m, const char *name, uint32_t type, size_t rows, size_t cols)
{
    struct str bytes = STR_INIT;
    const struct quant_traits *traits = quant_find(type);
    float scale = 1 / sqrtf((float)cols);

    if (traits == NULL || cols % traits->block_elements != 0) {
        fprintf(stderr, "tiny_gguf: %s has rows of %zu\n", name, cols);
        abort();
    }
    for (size_t i = 0; i < rows * cols / traits->block_elements; i++) {
        if (traits->block_elements > 1)
            add_block(m, type, scale, &bytes);
        else
            add_value(type, scale * next_normal(m), &bytes);
    }
    tiny_add_tensor(&m->w, name, type, cols, rows, bytes.data, bytes.len);
    str_done(&bytes);
}

static void add_vector(struct maker *m, const char *name, size_t n, float mean)
{
    struct str bytes = STR_INIT;

    for (size_t i = 0; i < n; i++)
        add_value(QUANT_F32, mean + 0.1f * next_normal(m), &bytes);
    tiny_add_tensor(&m->w, name, QUANT_F32, n, 0, bytes.data, bytes.len);
    str_done(&bytes);
}

static void add_layer(struct maker *m, size_t layer)
{
    size_t q = m->n_head * m->head_dim, kv = m->n_kv_head * m->head_dim;
    const struct {
        const char *name;
        size_t rows, cols;
    } matrices[] = {
        {"attn_q", q, m->n_embd},         {"attn_k", kv, m->n_embd},
        {"attn_v", kv, m->n_embd},        {"attn_output", m->n_embd, q},
        {"ffn_gate", m->n_ff, m->n_embd}, {"ffn_up", m->n_ff, m->n_embd},
        {"ffn_down", m->n_embd, m->n_ff},
    };
    char name[64];

    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
        snprintf(name, sizeof name, "blk.%zu.%s.weight", layer, matrices[i].name);
        add_matrix(m, name, m->o->type, matrices[i].rows, matrices[i].cols);
        snprintf(name, sizeof name, "blk.%zu.%s.bias", layer, matrices[i].name);
        if (m->o->biases)
            add_vector(m, name, matrices[i].rows, 0);
    }
    snprintf(name, sizeof name, "blk.%zu.attn_norm.weight", layer);
    add_vector(m, name, m->n_embd, 1);
    snprintf(name, sizeof name, "blk.%zu.ffn_norm.weight", layer);
    add_vector(m, name, m->n_embd, 1);
}

static void add_tensors(struct maker *m)
{
    uint32_t type = m->o->embd_q8_0 ? QUANT_Q8_0 : m->o->type;

    add_matrix(m, "token_embd.weight", type, m->n_vocab, m->n_embd);
    add_vector(m, "output_norm.weight", m->n_embd, 1);
    if (m->o->untied)
        add_matrix(m, "output.weight", type, m->n_vocab, m->n_embd);
    if (m->o->rope_freqs)
        add_vector(m, "rope_freqs.weight", m->head_dim / 2, 2);
    for (size_t i = 0; i < m->n_layer; i++)
        add_layer(m, i);
}

/* ---- the vocabulary ------------------------------------------------------------------------ */

void tiny_byte_text(unsigned byte, char out[4])
{
    unsigned c = byte, n = 0;
    bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);

    for (unsigned b = 0; b < byte && !visible; b++)
        n += !((b > 32 && b < 127) || (b > 160 && b != 173));
    if (!visible)
        c = 256 + n;
    out[utf8_encode(c, out)] = '\0';
}

static const char some_words[] =
    "the and of to in is that it was for on as with he be at by this had not are "
    "but from or have an they which one you were all her she there would their "
    "rain tin roof poem Paris France capital one two three";

struct vocabulary {
    char **tokens, **merges; /* owned */
    int32_t *kinds;
    size_t n, cap, cap_kinds, n_merges, cap_merges;
};

static void add_token(struct vocabulary *v, const char *text, int32_t kind)
{
    mem_grow(&v->tokens, &v->cap, v->n + 1, sizeof *v->tokens);
    mem_grow(&v->kinds, &v->cap_kinds, v->n + 1, sizeof *v->kinds);
    v->kinds[v->n] = kind;
    v->tokens[v->n++] = mem_strdup(text);
}

static bool has_token(const struct vocabulary *v, const char *text)
{
    for (size_t i = 0; i < v->n; i++) {
        if (strcmp(v->tokens[i], text) == 0)
            return true;
    }
    return false;
}

/* Makes "Ġthe" sayable: a merge for each prefix that is new. */
static void add_word(struct vocabulary *v, const char *word, size_t len)
{
    struct str prefix = STR_INIT, merge = STR_INIT;
    char letter[4];

    tiny_byte_text(' ', letter);
    str_add_text(&prefix, letter);
    for (size_t i = 0; i < len; i++) {
        tiny_byte_text((unsigned char)word[i], letter);
        str_clear(&merge);
        str_add_format(&merge, "%s %s", str_text(&prefix), letter);
        str_add_text(&prefix, letter);
        if (has_token(v, str_text(&prefix)))
            continue;
        add_token(v, str_text(&prefix), 1);
        mem_grow(&v->merges, &v->cap_merges, v->n_merges + 1, sizeof *v->merges);
        v->merges[v->n_merges++] = mem_strdup(str_text(&merge));
    }
    str_done(&prefix);
    str_done(&merge);
}

static void build_vocabulary(struct vocabulary *v, const char *words, int n_extra)
{
    char text[16];

    add_token(v, "<|endoftext|>", 3);
    add_token(v, "<|im_start|>", 3);
    add_token(v, "<|im_end|>", 3);
    for (unsigned b = 0; b < 256; b++) {
        tiny_byte_text(b, text);
        add_token(v, text, 1);
    }
    for (const char *p = words; *p != '\0';) {
        size_t len = strcspn(p, " ");
        add_word(v, p, len);
        p += len + (p[len] == ' ');
    }
    for (int i = 0; i < n_extra; i++) {
        snprintf(text, sizeof text, "[%d]", i);
        add_token(v, text, 1);
    }
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
}

static void add_vocabulary(struct maker *m)
{
    const char *kind = m->o->tokenizer != NULL ? m->o->tokenizer : "gpt2";
    struct vocabulary v = {0};

    build_vocabulary(&v, m->o->words != NULL ? m->o->words : some_words, m->o->n_extra_tokens);
    m->n_vocab = v.n;
    if (strcmp(kind, "none") != 0) {
        tiny_add_text(&m->w, "tokenizer.ggml.model", kind);
        tiny_add_text(&m->w, "tokenizer.ggml.pre", m->o->pre != NULL ? m->o->pre : "smollm");
        tiny_add_texts(&m->w, "tokenizer.ggml.tokens", (const char *const *)v.tokens, v.n);
        tiny_add_ints(&m->w, "tokenizer.ggml.token_type", v.kinds, v.n);
        tiny_add_texts(&m->w, "tokenizer.ggml.merges", (const char *const *)v.merges, v.n_merges);
        tiny_add_u32(&m->w, "tokenizer.ggml.bos_token_id", TINY_IM_START);
        tiny_add_u32(&m->w, "tokenizer.ggml.eos_token_id", TINY_IM_END);
        tiny_add_bool(&m->w, "tokenizer.ggml.add_bos_token", false);
    }
    if (m->o->chat_template != NULL)
        tiny_add_text(&m->w, "tokenizer.chat_template", m->o->chat_template);
    free_texts(v.tokens, v.n);
    free_texts(v.merges, v.n_merges);
    free(v.kinds);
}

/* ---- the model ----------------------------------------------------------------------------- */

static size_t or_default(int value, size_t initial)
{
    return value > 0 ? (size_t)value : initial;
}

static void add_shape(struct maker *m)
{
    struct tiny_writer *w = &m->w;

    tiny_add_text(w, "general.architecture", "llama");
    tiny_add_text(w, "general.name", "Tiny");
    tiny_add_u32(w, "llama.block_count", (uint32_t)m->n_layer);
    tiny_add_u32(w, "llama.context_length", (uint32_t)or_default(m->o->n_ctx, 256));
    tiny_add_u32(w, "llama.embedding_length", (uint32_t)m->n_embd);
    tiny_add_u32(w, "llama.feed_forward_length", (uint32_t)m->n_ff);
    tiny_add_u32(w, "llama.attention.head_count", (uint32_t)m->n_head);
    tiny_add_u32(w, "llama.attention.head_count_kv", (uint32_t)m->n_kv_head);
    tiny_add_u32(w, "llama.attention.key_length", (uint32_t)m->head_dim);
    tiny_add_u32(w, "llama.attention.value_length", (uint32_t)m->head_dim);
    tiny_add_u32(w, "llama.rope.dimension_count", (uint32_t)m->head_dim);
    tiny_add_f32(w, "llama.rope.freq_base", 10000);
    tiny_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

void tiny_gguf_build(const struct tiny_gguf_options *options, struct str *out)
{
    struct maker m = {.o = options, .w = TINY_WRITER_INIT, .random = options->seed};
    bool wide = quant_find(options->type)->block_elements == 256;

    m.n_layer = or_default(options->n_layer, 2);
    m.n_embd = or_default(options->n_embd, wide ? 256 : 64);
    m.n_head = or_default(options->n_head, 4);
    m.n_kv_head = or_default(options->n_kv_head, 2);
    m.head_dim = or_default(options->head_dim, m.n_embd / m.n_head);
    m.n_ff = or_default(options->n_ff, wide ? 256 : 96);
    add_shape(&m);
    add_vocabulary(&m);
    add_tensors(&m);
    if (options->more != NULL)
        options->more(&m.w);
    tiny_finish(&m.w, out);
}

bool tiny_gguf_write(const char *path, const struct tiny_gguf_options *options)
{
    struct str bytes = STR_INIT;

    tiny_gguf_build(options, &bytes);
    bool ok = tiny_save(path, &bytes);
    str_done(&bytes);
    return ok;
}
