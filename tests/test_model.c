#include "test.h"

#include <unistd.h>

#include "base/str.h"
#include "blocks.h"
#include "engine/model.h"
#include "engine/sampler.h"
#include "folder.h"
#include "tiny_gguf.h"

/* ---- the real model ------------------------------------------------------------------------ */

static void test_smollm2(void **state)
{
    const char *path = test_model();
    struct error err;
    (void)state;

    if (path == NULL)
        skip();
    struct model *m = model_open(path, &err);
    assert_non_null(m);
    const struct model_info *i = model_get_info(m);
    assert_string_equal(i->path, path);
    assert_string_equal(i->label, "SmolLM2-135M-Instruct");
    assert_string_equal(i->arch, "llama");
    assert_string_equal(i->type, "Q4_1");
    assert_string_equal(i->tokenizer, "gpt2");
    assert_string_equal(i->languages, "en");
    assert_non_null(strstr(i->chat_template, "named SmolLM"));
    assert_int_equal(i->n_layer, 30);
    assert_int_equal(i->n_embd, 576);
    assert_int_equal(i->n_head, 9);
    assert_int_equal(i->n_kv_head, 3);
    assert_int_equal(i->head_dim, 64);
    assert_int_equal(i->n_ff, 1536);
    assert_int_equal(i->n_vocab, 49152);
    assert_int_equal(i->ctx_train, 8192);
    assert_int_equal(i->n_params, 134515008);
    assert_int_equal(i->weight_bytes, 96576768);
    for (int k = 0; k < KNOB_COUNT; k++)
        assert_false(i->has_sampling[k]);
    assert_true(m->hparams.rope_base == 100000 && m->hparams.rope_scale == 1);
    assert_true(m->hparams.norm_eps == 1e-5f);
    assert_int_equal(m->hparams.rope_dim, 64);
    assert_ptr_equal(m->output, m->token_embd);
    assert_null(m->rope_freqs);
    assert_null(m->layers[29].attn_q_bias);
    assert_int_equal(m->layers[29].ffn_down->dims[0], 1536);
    struct ledger l = model_ledger(m, 8192, CACHE_F16);
    assert_int_equal(l.bytes_per_token, 23040);
    model_close(m);
}

/* ---- the ledger ---------------------------------------------------------------------------- */

static void test_ledger(void **state)
{
    (void)state;
    struct ledger l = ledger_compute(12, 8, 2, 64, 1024, CACHE_F16); /* the chapter's own model */
    assert_int_equal(l.bytes_per_token, 6144);
    assert_int_equal(l.total_bytes, 6291456);
    assert_int_equal(l.mha_total_bytes, 25165824);
    assert_true(l.bytes_per_element == 2);
    l = ledger_compute(12, 8, 8, 64, 1024, CACHE_F16);
    assert_int_equal(l.bytes_per_token, 24576);
    l = ledger_compute(12, 8, 2, 64, 1024, CACHE_Q8_0);
    assert_true(l.bytes_per_element == 34.0 / 32);
    assert_int_equal(l.bytes_per_token, 6144 / 2 * 34 / 32);
    l = ledger_compute(1 << 12, 1 << 14, 1 << 14, 1 << 12, 1 << 20, CACHE_F16); /* no overflow */
    assert_true(l.total_bytes == 4ull << (12 + 14 + 12 + 20));
}

/* ---- tiny ones ----------------------------------------------------------------------------- */

/* Opens a tiny model under `name`; `err` says why not. */
static struct model *open_tiny(const char *name, const struct tiny_gguf_options *o,
                               struct error *err)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_true(tiny_gguf_write(path, o));
    struct model *m = model_open(path, err);
    unlink(path);
    return m;
}

static void more_metadata(struct tiny_writer *w)
{
    const char *languages[] = {"en", "zh"};

    tiny_add_texts(w, "general.languages", languages, 2);
    tiny_add_f32(w, "general.sampling.temp", 0.6f);
    tiny_add_u32(w, "general.sampling.top_k", 20);
    tiny_add_text(w, "llama.rope.scaling.type", "linear");
    tiny_add_f32(w, "llama.rope.scaling.factor", 4);
}

static void test_tiny(void **state)
{
    struct error err;
    (void)state;

    for (size_t k = 0; k < N_WEIGHT_TYPES; k++) {
        struct tiny_gguf_options o = {.type = weight_types[k],
                                      .untied = true,
                                      .biases = true,
                                      .rope_freqs = true,
                                      .n_extra_tokens = 3,
                                      .more = more_metadata};
        struct model *m = open_tiny("tiny.gguf", &o, &err);
        if (m == NULL)
            fail_msg("%s", err.text);
        assert_string_equal(m->info.type, quant_find(weight_types[k])->name);
        assert_string_equal(m->info.languages, "en,zh");
        assert_null(m->info.chat_template);
        assert_true(m->info.has_sampling[KNOB_TEMPERATURE] && m->info.has_sampling[KNOB_TOP_K]);
        assert_false(m->info.has_sampling[KNOB_TOP_P]);
        assert_true(m->info.sampling[KNOB_TOP_K] == 20);
        assert_true(m->info.sampling[KNOB_TEMPERATURE] == 0.6); /* not 0.60000002 */
        assert_true(m->hparams.rope_scale == 0.25f);
        assert_ptr_not_equal(m->output, m->token_embd);
        assert_int_equal(m->rope_freqs->dims[0], m->info.n_embd / 8);
        assert_int_equal(m->layers[1].ffn_gate_bias->dims[0], m->info.n_ff);
        assert_non_null(model_tokenizer(m, &err));
        model_close(m);
    }
    model_close(NULL);
}

static void test_labels(void **state)
{
    static const struct {
        const char *file, *label;
    } cases[] = {
        {"SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"},
        {"Qwen2.5-0.5B-Instruct-q8_0.gguf", "Qwen2.5-0.5B-Instruct"},
        {"Llama-3.2-1B-IQ4_XS.gguf", "Llama-3.2-1B"},
        {"model-f16.gguf", "model"},
        {"model.BF16.gguf", "model"},
        {"TinyLlama-1.1B-Chat.Q4_K_M.gguf", "TinyLlama-1.1B-Chat"},
        {"no-suffix", "no-suffix"},
        {"my.model.v2.gguf", "my.model.v2"},
        {"Q4_0.gguf", "Q4_0"},
        {"sha256-0123456789abcdef", "Tiny"},
    };
    struct tiny_gguf_options o = {.n_layer = 1};
    struct error err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct model *m = open_tiny(cases[i].file, &o, &err);
        assert_non_null(m);
        assert_string_equal(m->info.label, cases[i].label);
        model_close(m);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* A tiny model in which one thing was changed in place. */
struct change {
    const char *at;      /* a text in the file; what follows its end is changed */
    size_t skip;         /* so many bytes further */
    uint32_t value;      /* to this */
    const char *instead; /* or, if not NULL: the text itself to this one, of one length */
    const char *why;     /* what the error says */
};

/* A key's value follows four bytes of type; a tensor's name is followed by its number of
 * dimensions, two of them, and its type. */
enum { VALUE = 4, DIM0 = 4, DIM1 = 12, TYPE = 20 };

static char *find(struct str *bytes, const char *text)
{
    char *p = memmem(bytes->data, bytes->len, text, strlen(text));

    if (p == NULL)
        fail_msg("no '%s' in the file", text);
    return p;
}

static void assert_refused(const struct change *c, const struct tiny_gguf_options *o)
{
    struct str bytes = STR_INIT;
    struct error err = {""};
    char path[128];

    tiny_gguf_build(o, &bytes);
    if (c->at != NULL) {
        char *p = find(&bytes, c->at);
        if (c->instead != NULL)
            memcpy(p, c->instead, strlen(c->instead));
        else
            memcpy(p + strlen(c->at) + c->skip, &c->value, sizeof c->value);
    }
    snprintf(path, sizeof path, "%s/x.gguf", folder);
    assert_true(tiny_save(path, &bytes));
    struct model *m = model_open(path, &err);
    unlink(path);
    str_done(&bytes);
    if (m != NULL || strstr(err.text, c->why) == NULL || strstr(err.text, "x.gguf: ") == NULL) {
        model_close(m);
        fail_msg("'%s' does not say '%s'", err.text, c->why);
    }
}

static void test_refusals(void **state)
{
    static const struct change changes[] = {
        {"blk.1.attn_q.weight", TYPE, 39, NULL,
         "tensor blk.1.attn_q.weight: type MXFP4 is not supported yet"},
        {"blk.1.attn_q.weight", TYPE, 4, NULL,
         "tensor blk.1.attn_q.weight: no type has the number 4"},
        {"output_norm.weight", 12, QUANT_F16, NULL,
         "tensor output_norm.weight: a vector must be F32"},
        {"blk.1.attn_k.weight", 0, 0, "blk.1.attn_x.weight",
         "tensor blk.1.attn_k.weight is missing"},
        {"token_embd.weight", 0, 0, "token_embq.weight", "tensor token_embd.weight is missing"},
        {"blk.0.ffn_up.weight", DIM1, 64, NULL,
         "tensor blk.0.ffn_up.weight: 64 x 64 where 64 x 96 belongs"},
        {"blk.0.ffn_up.weight", DIM0, 32, NULL,
         "tensor blk.0.ffn_up.weight: 32 x 96 where 64 x 96 belongs"},
        {"llama.block_count", VALUE, 3, NULL, "tensor blk.2.attn_norm.weight is missing"},
        {"llama.block_count", VALUE, 0, NULL, "llama.block_count: 0 is not within 1 - 4096"},
        {"llama.block_count", VALUE, 0xFFFFFFFF, NULL,
         "llama.block_count: 4294967295 is not within"},
        {"llama.embedding_length", VALUE, 65, NULL, "tensor token_embd.weight: 64 x"},
        {"llama.attention.head_count", VALUE, 3, NULL,
         "3 heads are not a multiple of 2 key-value heads"},
        {"llama.attention.head_count", VALUE, 0, NULL, "head_count: 0 is not within"},
        {"llama.attention.head_count_kv", VALUE, 0, NULL, "head_count_kv: 0 is not within"},
        {"llama.attention.key_length", VALUE, 15, NULL, "heads of 15 dimensions"},
        {"llama.attention.value_length", VALUE, 32, NULL, "keys of 16 and values of 32 dimensions"},
        {"llama.rope.dimension_count", VALUE, 18, NULL,
         "18 of a head's 16 dimensions are to be rotated"},
        {"llama.rope.dimension_count", VALUE, 7, NULL,
         "7 of a head's 16 dimensions are to be rotated"},
        {"llama.rope.freq_base", VALUE, 0x7FC00000, NULL,
         "llama.rope.freq_base: nan is not within"},
        {"llama.context_length", VALUE, 0, NULL, "llama.context_length: 0 is not within"},
        {"llama.block_count", 0, 0, "llama.block_xxxxx", "key llama.block_count is missing"},
        {"general.architecture", 0, 0, "general.architectura",
         "key general.architecture is missing"},
    };
    struct tiny_gguf_options o = {.n_layer = 2};
    (void)state;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        assert_refused(&changes[i], &o);
}

/* Rows of 64 elements called blocks of 256, and files that end before the blocks do. */
static void test_refused_blocks(void **state)
{
    static const uint8_t zeros[BLOCK_BYTES_MAX];
    struct tiny_gguf_options o = {.n_layer = 2};
    struct error err;
    char why[80], path[128];
    (void)state;

    snprintf(path, sizeof path, "%s/x.gguf", folder);
    for (size_t i = 0; i < N_WEIGHT_TYPES; i++) {
        const struct quant_traits *t = quant_find(weight_types[i]);
        snprintf(why, sizeof why, "rows of 64 elements are not whole blocks of %s", t->name);
        if (t->block_elements == 256)
            assert_refused(&(struct change){"blk.1.attn_q.weight", TYPE, t->id, NULL, why}, &o);
        for (size_t cut = 0; cut < 2; cut++) {
            struct tiny_writer w = TINY_WRITER_INIT;
            struct str bytes = STR_INIT;
            tiny_add_tensor(&w, "x", t->id, t->block_elements, 0, zeros, t->block_bytes - cut);
            tiny_finish(&w, &bytes);
            assert_true(tiny_save(path, &bytes));
            struct gguf *g = gguf_open(path, &err);
            assert_int_equal(g != NULL, cut == 0);
            if (cut > 0)
                assert_non_null(strstr(err.text, "x.gguf: tensor x: its data goes beyond the end"));
            gguf_close(g);
            str_done(&bytes);
        }
    }
}

static void more_experts(struct tiny_writer *w)
{
    tiny_add_u32(w, "llama.expert_count", 8);
}

static void more_yarn(struct tiny_writer *w)
{
    tiny_add_text(w, "llama.rope.scaling.type", "yarn");
}

static void more_wrong(struct tiny_writer *w)
{
    tiny_add_u32(w, "tokenizer.chat_template", 1);
}

static void more_wrong_sampling(struct tiny_writer *w)
{
    tiny_add_text(w, "general.sampling.temp", "hot");
}

static void test_refused_kinds(void **state)
{
    struct change c = {.why = "mixtures of experts are not supported yet"};
    struct tiny_gguf_options o = {.n_layer = 1, .more = more_experts};
    (void)state;

    assert_refused(&c, &o);
    o.more = more_yarn;
    c.why = "rope scaling 'yarn' is not supported yet";
    assert_refused(&c, &o);
    o.more = more_wrong;
    c.why = "key tokenizer.chat_template: uint32 where a string belongs";
    assert_refused(&c, &o);
    o.more = more_wrong_sampling;
    c.why = "key general.sampling.temp: string where a number belongs";
    assert_refused(&c, &o);
}

static void test_unknown_architecture(void **state)
{
    struct tiny_writer w = TINY_WRITER_INIT;
    struct str bytes = STR_INIT;
    struct error err;
    char path[128];
    (void)state;

    snprintf(path, sizeof path, "%s/x.gguf", folder);
    tiny_add_text(&w, "general.architecture", "qwen3moe");
    tiny_finish(&w, &bytes);
    assert_true(tiny_save(path, &bytes));
    str_done(&bytes);
    assert_null(model_open(path, &err));
    assert_non_null(strstr(err.text, "x.gguf: architecture 'qwen3moe' is not supported yet"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2),       cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_tiny),          cmocka_unit_test(test_labels),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_refused_blocks),
        cmocka_unit_test(test_refused_kinds), cmocka_unit_test(test_unknown_architecture),
    };

    return cmocka_run_group_tests_name("model", tests, folder_make, folder_remove);
}
