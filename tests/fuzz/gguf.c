/* Model files: opened, tokenized with, rendered for, dequantised, loaded in both ways and run. Whatever the
 * bytes are, weights that were repacked and weights in place give the same logits. */
#include "config.h"

#include "fuzz/fuzz.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "blocks.h"
#include "chat/template.h"
#include "engine/model.h"
#include "tiny_gguf.h"

enum { N_TOKENS = 5, ROW_MAX = 1 << 14 };

const uint64_t fuzz_test_runs = 10000;

/* ---- honest files -------------------------------------------------------------------------- */

static const char *const templates[] = {
    NULL,
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] +"
    " '<|im_end|>' + '\n'}}{% endfor %}",
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content }}<|eot_id|>{% endfor %}",
    "[INST] {{ messages[0]['content'] }} [/INST]{{ eos_token }}",
};

static void add_more(struct tiny_writer *w)
{
    tiny_add_f32(w, "general.sampling.temp", 0.5f);
    tiny_add_u32(w, "general.sampling.top_k", 40);
    tiny_add_text(w, "llama.rope.scaling.type", "linear");
    tiny_add_f32(w, "llama.rope.scaling.factor", 2);
}

/* Every type with what else there may be in a file; the last ones are of types again, with less. */
bool fuzz_seed(size_t i, struct str *out)
{
    if (i >= 2 * N_WEIGHT_TYPES)
        return false;
    uint32_t type = weight_types[i % N_WEIGHT_TYPES];
    int width = quant_find(type)->block_elements == 256 ? 256 : 32;
    struct tiny_gguf_options o = {
        .type = type,
        .n_layer = 1,
        .n_embd = width,
        .n_ff = width,
        .n_head = 2,
        .n_kv_head = 1,
        .seed = (uint32_t)i,
        .words = "the rain",
        .chat_template = templates[i % (sizeof templates / sizeof *templates)],
    };
    if (i < N_WEIGHT_TYPES) {
        o.embd_q8_0 = i % 2 == 0;
        o.untied = i % 3 == 0;
        o.biases = i % 4 < 2;
        o.rope_freqs = i % 5 == 0;
        o.more = i % 3 == 1 ? add_more : NULL;
        o.pre = i % 2 == 0 ? "smollm" : "qwen2";
    }
    tiny_gguf_build(&o, out);
    return true;
}

/* ---- what is done with one ----------------------------------------------------------------- */

/* Of any file, a model's or not, the first and the last row of each tensor. They lie in the file, and
 * no two share bytes. */
static void read_tensors(const char *path, size_t file_bytes)
{
    static float row[ROW_MAX];
    struct error err = {""};
    struct gguf *g = gguf_open(path, &err);
    uint64_t bytes = 0;

    if (g == NULL) {
        fuzz_check_error(&err);
        return;
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const struct quant_traits *traits = quant_find(t->type);
        FUZZ_CHECK(t->n_dims <= GGUF_MAX_DIMS && gguf_find_tensor(g, t->name) == t);
        bytes += t->bytes;
        FUZZ_CHECK(bytes <= file_bytes);
        if (traits == NULL || !quant_supported(traits) || t->dims[0] > ROW_MAX)
            continue;
        size_t row_bytes = quant_row_bytes(traits, (size_t)t->dims[0]);
        traits->dequantize_row(t->data, row, (size_t)t->dims[0]);
        traits->dequantize_row((const char *)t->data + t->bytes - row_bytes, row,
                               (size_t)t->dims[0]);
    }
    gguf_close(g);
}

static void use_tokenizer(const struct tokenizer *t, const struct model_info *info)
{
    static const char text[] = "the rain <|im_end|> isn't\n\n \xff 12345 \xe4\xb8\xad[1]";
    const struct span spans[] = {{SPAN_MARKUP, text, sizeof text - 1, NULL, 0},
                                 {SPAN_TEXT, text, sizeof text - 1, NULL, 0}};
    struct token_list ids = {NULL, 0, 0};
    struct detokenizer d = {0};
    struct str said = STR_INIT, raw = STR_INIT;

    tokenizer_encode(t, spans, 2, TOKENIZE_BOS, &ids);
    tokenizer_encode(t, spans, 1, TOKENIZE_OPEN, &ids);
    for (size_t i = 0; i < ids.n; i++)
        FUZZ_CHECK(ids.ids[i] >= 0 && ids.ids[i] < info->n_vocab);
    for (int32_t id = -1; id <= info->n_vocab && id < 1024; id++) {
        size_t len;
        const char *piece = tokenizer_piece(t, id, &len);
        detokenizer_push(&d, piece, len, &said, &raw);
        (void)(tokenizer_is_eog(t, id) + tokenizer_is_control(t, id));
    }
    detokenizer_flush(&d, &said, &raw);
    FUZZ_CHECK(tokenizer_bos(t) < info->n_vocab && tokenizer_eos(t) < info->n_vocab);
    token_list_done(&ids);
    str_done(&said);
    str_done(&raw);
}

static void render(const struct tokenizer *t, const char *jinja)
{
    struct template_choice choice = template_choose(jinja, t);
    struct message_list messages = {NULL, 0, 0};
    struct token_list ids = {NULL, 0, 0};
    struct rendering r;

    message_list_add(&messages, ROLE_USER, "the <|im_end|> rain", NULL, 0);
    template_render(&choice, &messages, true, &r);
    if (t != NULL)
        tokenizer_encode(t, r.spans, r.n, TOKENIZE_BOS, &ids);
    rendering_done(&r);
    token_list_done(&ids);
    message_list_done(&messages);
}

/* The logits after some tokens, owned, of n_vocab; NULL when it does not load or run. */
static float *run(struct model *m, bool no_repack)
{
    const int32_t n_vocab = model_get_info(m)->n_vocab;
    struct model_load_options load = {.threads = 1, .no_repack = no_repack, .room = 1u << 30};
    struct session_options options = {.ctx_size = 64, .batch_size = 4, .cache_type = CACHE_Q8_0};
    struct session *s = NULL;
    struct error err = {""};
    int32_t ids[N_TOKENS];
    float *logits = NULL;

    for (int32_t i = 0; i < N_TOKENS; i++)
        ids[i] = i * 7919 % n_vocab;
    if (!model_load(m, &load, &err) || (s = session_new(m, &options, &err)) == NULL ||
        session_eval(s, ids, N_TOKENS, NULL, &err) != EVAL_OK)
        fuzz_check_error(&err);
    else
        logits = mem_dup(session_logits(s), (size_t)n_vocab * sizeof *logits);
    session_free(s);
    return logits;
}

static float *open_and_run(const char *path, bool no_repack, size_t *n)
{
    struct error err = {""};
    struct model *m = model_open(path, &err);

    if (m == NULL) {
        fuzz_check_error(&err);
        return NULL;
    }
    if (!no_repack) {
        const struct tokenizer *t = model_tokenizer(m, &err);
        render(t, model_get_info(m)->chat_template);
        if (t != NULL)
            use_tokenizer(t, model_get_info(m));
        else
            fuzz_check_error(&err);
    }
    float *logits = run(m, no_repack);
    *n = (size_t)model_get_info(m)->n_vocab;
    model_close(m);
    return logits;
}

/* By bits, but that any NaN is like any other. */
static bool same(float a, float b)
{
    return quant_f32_bits(a) == quant_f32_bits(b) || (isnan(a) && isnan(b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    size_t n = 0;

    read_tensors(path, size);
    float *repacked = open_and_run(path, false, &n), *in_place = NULL;

    if (repacked != NULL) {
        in_place = open_and_run(path, true, &n);
        FUZZ_CHECK(in_place != NULL);
        for (size_t i = 0; i < n; i++)
            FUZZ_CHECK(same(repacked[i], in_place[i]));
    }
    free(repacked);
    free(in_place);
    return 0;
}
