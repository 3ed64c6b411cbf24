#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/tokenizer.h"
#include "golden.h"
#include "tiny_gguf.h"

/* ---- the model's vocabulary under any pre-tokenizer ---------------------------------------- */

/* Copies an array of strings from one file to another. */
static void copy_texts(struct tiny_writer *w, const struct gguf *from, const char *key)
{
    struct gguf_array list;
    struct gguf_string s;
    struct error err;

    assert_true(gguf_read_array(from, key, true, GGUF_STRING, &list, &err));
    size_t n = (size_t)list.n;
    char **texts = mem_array(n, sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        assert_true(gguf_next_string(&list, &s));
        texts[i] = mem_strndup(s.text, s.len);
    }
    tiny_add_texts(w, key, (const char *const *)texts, n);
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
}

static void copy_ints(struct tiny_writer *w, const struct gguf *from, const char *key)
{
    struct gguf_array list;
    struct error err;
    int64_t value;

    assert_true(gguf_read_array(from, key, true, GGUF_I32, &list, &err));
    size_t n = (size_t)list.n;
    int32_t *values = mem_array(n, sizeof *values);
    for (size_t i = 0; i < n && gguf_next_int(&list, &value); i++)
        values[i] = (int32_t)value;
    tiny_add_ints(w, key, values, n);
    free(values);
}

/* The vocabulary of `model` under another pre-tokenizer. */
static struct tokenizer *with_pre(const char *model, const char *pre)
{
    struct tiny_writer w = TINY_WRITER_INIT;
    struct str bytes = STR_INIT;
    struct error err;
    struct gguf *from = gguf_open(model, &err);

    assert_non_null(from);
    tiny_add_text(&w, "tokenizer.ggml.model", "gpt2");
    tiny_add_text(&w, "tokenizer.ggml.pre", pre);
    tiny_add_u32(&w, "tokenizer.ggml.eos_token_id", 2);
    copy_texts(&w, from, "tokenizer.ggml.tokens");
    copy_texts(&w, from, "tokenizer.ggml.merges");
    copy_ints(&w, from, "tokenizer.ggml.token_type");
    gguf_close(from);
    tiny_finish(&w, &bytes);
    char path[] = "/tmp/fader-tokens-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(tiny_save(path, &bytes));
    str_done(&bytes);
    struct gguf *g = gguf_open(path, &err);
    unlink(path);
    assert_non_null(g);
    struct tokenizer *t = tokenizer_new(g, 49152, &err);
    gguf_close(g);
    if (t == NULL)
        fail_msg("%s", err.text);
    return t;
}

/* ---- goldens ------------------------------------------------------------------------------- */

static void compare_golden(const struct tokenizer *t, const cJSON *one, const char *key,
                           enum span_kind kind)
{
    const cJSON *ids = cJSON_GetObjectItem(one, key);
    const char *text = cJSON_GetObjectItem(one, "text")->valuestring;
    struct span span = {kind, text, strlen(text), NULL, 0};
    struct token_list list = {NULL, 0, 0};

    tokenizer_encode(t, &span, 1, 0, &list);
    bool same = (int)list.n == cJSON_GetArraySize(ids);
    for (size_t i = 0; same && i < list.n; i++)
        same = cJSON_GetArrayItem(ids, (int)i)->valueint == list.ids[i];
    token_list_done(&list);
    if (!same) {
        char *wanted = cJSON_PrintUnformatted(ids);
        print_error("text: %s\nids:  %s\n", text, wanted);
        free(wanted);
        fail_msg("%s differs from llama.cpp", key);
    }
}

static void test_goldens(void **state)
{
    static const char *const pres[] = {"smollm", "gpt-2", "llama-bpe", "qwen2", "default"};
    const char *model = test_model();
    const cJSON *one;
    (void)state;

    if (model == NULL)
        skip();
    cJSON *goldens = golden_read("tokens.json"), *cases = cJSON_GetObjectItem(goldens, "cases");
    assert_true(cJSON_GetArraySize(cases) > 250);
    for (size_t i = 0; i < sizeof pres / sizeof pres[0]; i++) {
        struct tokenizer *t = with_pre(model, pres[i]);
        cJSON_ArrayForEach(one, cases) compare_golden(t, one, pres[i], SPAN_TEXT);
        tokenizer_free(t);
    }
    cJSON_Delete(goldens);
}

static void test_golden_specials(void **state)
{
    const char *model = test_model();
    const cJSON *one, *id;
    int n_special = 0;
    (void)state;

    if (model == NULL)
        skip();
    cJSON *goldens = golden_read("tokens.json");
    struct tokenizer *t = with_pre(model, "smollm");
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(goldens, "cases"))
    {
        bool differs = cJSON_HasObjectItem(one, "special");
        n_special += differs;
        compare_golden(t, one, differs ? "special" : "smollm", SPAN_MARKUP);
    }
    assert_true(n_special >= 5);
    int n_eog = 0;
    for (int32_t i = 0; i < 49152; i++)
        n_eog += tokenizer_is_eog(t, i);
    cJSON_ArrayForEach(id, cJSON_GetObjectItem(goldens, "eog"))
        assert_true(tokenizer_is_eog(t, id->valueint));
    assert_int_equal(n_eog, cJSON_GetArraySize(cJSON_GetObjectItem(goldens, "eog")));
    tokenizer_free(t);
    cJSON_Delete(goldens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_golden_specials),
    };

    return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
