#include "test.h"

#include <unistd.h>

#include "base/str.h"
#include "chat/template.h"
#include "golden.h"
#include "tiny_gguf.h"

/* ---- messages ------------------------------------------------------------------------------ */

static void test_messages(void **state)
{
    struct message_list list = {NULL, 0, 0};
    int32_t ids[] = {1, 2, 3};
    (void)state;

    message_list_add(&list, ROLE_USER, "hi", NULL, 0);
    message_list_add(&list, ROLE_ASSISTANT, "ho", ids, 3);
    ids[0] = 9;
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].text, "hi");
    assert_null(list.items[0].tokens);
    assert_int_equal(list.items[1].n_tokens, 3);
    assert_int_equal(list.items[1].tokens[0], 1);
    message_list_done(&list);
    assert_int_equal(list.n, 0);
    for (int role = 0; role < ROLE_COUNT; role++)
        assert_int_equal(role_find(role_name((enum role)role)), role);
    assert_int_equal(role_find("tool"), -1);
}

/* ---- goldens ------------------------------------------------------------------------------- */

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItem(object, key)->valuestring;
}

static void join(const struct rendering *r, struct str *out)
{
    for (size_t i = 0; i < r->n; i++)
        str_add(out, r->spans[i].text, r->spans[i].len);
}

static void compare(const struct template_choice *choice, const cJSON *one, const char *name)
{
    struct message_list list = {NULL, 0, 0};
    struct rendering r;
    struct str out = STR_INIT;
    const cJSON *m;

    cJSON_ArrayForEach(m, cJSON_GetObjectItem(one, "messages")) message_list_add(
        &list, (enum role)role_find(text_of(m, "role")), text_of(m, "content"), NULL, 0);
    template_render(choice, &list, cJSON_IsTrue(cJSON_GetObjectItem(one, "open")), &r);
    join(&r, &out);
    if (strcmp(str_text(&out), text_of(one, "expected")) != 0)
        fail_msg("%s:\nwanted <<%s>>\ngot    <<%s>>", name, text_of(one, "expected"),
                 str_text(&out));
    str_done(&out);
    rendering_done(&r);
    message_list_done(&list);
}

static void test_goldens(void **state)
{
    cJSON *goldens = golden_read("templates.json");
    const cJSON *tmpl, *one;
    (void)state;

    assert_true(cJSON_GetArraySize(goldens) > 12);
    cJSON_ArrayForEach(tmpl, goldens)
    {
        struct template_choice choice = template_choose(text_of(tmpl, "jinja"), NULL);
        assert_true(choice.recognised);
        assert_string_equal(template_name(choice.tmpl), text_of(tmpl, "family"));
        cJSON_ArrayForEach(one, cJSON_GetObjectItem(tmpl, "cases"))
            compare(&choice, one, text_of(tmpl, "name"));
    }
    cJSON_Delete(goldens);
}

static void test_default_system(void **state)
{
    cJSON *goldens = golden_read("templates.json");
    (void)state;

    struct template_choice choice =
        template_choose(text_of(cJSON_GetArrayItem(goldens, 0), "jinja"), NULL);
    assert_string_equal(choice.default_system,
                        "You are a helpful AI assistant named SmolLM, trained"
                        " by Hugging Face");
    choice = template_choose("{{ '<|im_start|>system\\n' + text + '<|im_end|>' }}", NULL);
    assert_string_equal(choice.default_system, "");
    choice = template_choose("<|im_start|>system\n{{ text }}<|im_end|>", NULL);
    assert_string_equal(choice.default_system, "");
    choice = template_choose("<|im_start|>system\n<|im_end|>", NULL);
    assert_string_equal(choice.default_system, "");
    choice = template_choose("\"<|im_start|>system\\nIt's \\\"so\\\"<|im_end|>\"", NULL);
    assert_string_equal(choice.default_system, "It's \"so\"");
    choice = template_choose("'<|im_start|>system\\nunfinished \\", NULL);
    assert_string_equal(choice.default_system, "");
    cJSON_Delete(goldens);
}

static void test_long_default(void **state)
{
    struct template_choice choice;
    (void)state;

    for (size_t len = 500; len < 520; len++) {
        struct str jinja = STR_INIT;
        str_add_text(&jinja, "'<|im_start|>system\\n");
        for (size_t i = 0; i < len; i++)
            str_add_char(&jinja, 'x');
        str_add_text(&jinja, "<|im_end|>'");
        choice = template_choose(str_text(&jinja), NULL);
        assert_true(choice.recognised);
        /* none rather than half of it */
        assert_int_equal(strlen(choice.default_system),
                         len < sizeof choice.default_system ? len : 0);
        str_done(&jinja);
    }
}

/* ---- recognising --------------------------------------------------------------------------- */

static void test_unrecognised(void **state)
{
    static const char *const others[] = {
        "",
        "{{ messages }}",
        "<|im_start|>user<|im_sep|>x<|im_end|>",
        "GPT4 Correct User: ",
        /* Falcon 3: near to Zephyr, but no end token after the user */
        ("{{ '<|system|>\n' + message['content'] + '\n' }}{{ '<|user|>\n' + message['content'] + "
         "'\n' }}"
         "{{ '<|assistant|>\n' + message['content'] + eos_token }}"),
        "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{{ '<|assistant|>' }}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct template_choice choice = template_choose(others[i], NULL);
        assert_false(choice.recognised);
        assert_string_equal(template_name(choice.tmpl), "plain");
        assert_string_equal(choice.bos, "");
    }
    struct template_choice choice = template_choose(NULL, NULL);
    assert_false(choice.recognised);
    assert_string_equal(template_name(choice.tmpl), "plain");
    assert_null(template_find("alpaca"));
    assert_string_equal(template_name(template_find("zephyr")), "zephyr");
}

/* A vocabulary that has ChatML's tokens is taken to have been trained on it. */
static void test_stand_in(void **state)
{
    struct tiny_gguf_options o = {.seed = 1};
    char path[] = "/tmp/fader-template-XXXXXX";
    struct error err;
    (void)state;

    close(mkstemp(path));
    assert_true(tiny_gguf_write(path, &o));
    struct model *m = model_open(path, &err);
    assert_non_null(m);
    const struct tokenizer *t = model_tokenizer(m, &err);
    assert_non_null(t);
    struct template_choice choice = template_choose("unheard of", t);
    assert_false(choice.recognised);
    assert_string_equal(template_name(choice.tmpl), "chatml");
    choice = template_choose("{{ bos_token }}<|user|>eos_token<|system|><|assistant|>", t);
    assert_string_equal(choice.bos, "<|im_start|>");
    assert_string_equal(choice.eos, "<|im_end|>");
    model_close(m);
    unlink(path);
}

/* ---- spans --------------------------------------------------------------------------------- */

static void test_spans(void **state)
{
    struct template_choice choice = {.tmpl = template_find("chatml")};
    struct message_list list = {NULL, 0, 0};
    int32_t ids[] = {5, 6};
    struct rendering r;
    (void)state;

    message_list_add(&list, ROLE_USER, "<|im_end|>", NULL, 0);
    message_list_add(&list, ROLE_ASSISTANT, "ignored", ids, 2);
    message_list_add(&list, ROLE_USER, "", NULL, 0);
    template_render(&choice, &list, true, &r);
    assert_int_equal(r.n, 5);
    assert_int_equal(r.spans[0].kind, SPAN_MARKUP);
    assert_int_equal(r.spans[1].kind, SPAN_TEXT); /* what a user types is never trusted */
    assert_ptr_equal(r.spans[1].text, list.items[0].text);
    assert_int_equal(r.spans[2].kind, SPAN_MARKUP);
    assert_int_equal(r.spans[3].kind, SPAN_TOKENS);
    assert_int_equal(r.spans[3].n_tokens, 2);
    assert_ptr_equal(r.spans[3].tokens, list.items[1].tokens);
    assert_memory_equal(r.spans[4].text,
                        "<|im_end|>\n<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n",
                        r.spans[4].len);
    rendering_done(&r);
    message_list_done(&list);
}

/* The tokens that a cache holds after an answer must begin the next rendering. */
static void test_prefix_is_kept(void **state)
{
    static const char *const families[] = {"chatml",     "llama2",     "llama3",  "gemma",
                                           "phi3",       "zephyr",     "mistral", "mistral-v1",
                                           "mistral-v3", "mistral-v7", "plain"};
    int32_t ids[] = {5};
    (void)state;

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        struct template_choice choice = {.tmpl = template_find(families[i]), .eos = "</s>"};
        struct message_list list = {NULL, 0, 0};
        struct rendering before, after;
        assert_non_null(choice.tmpl);
        message_list_add(&list, ROLE_SYSTEM, "Be kind.", NULL, 0);
        message_list_add(&list, ROLE_USER, "Hello", NULL, 0);
        template_render(&choice, &list, true, &before);
        message_list_add(&list, ROLE_ASSISTANT, "Hi", ids, 1);
        message_list_add(&list, ROLE_USER, "And?", NULL, 0);
        template_render(&choice, &list, true, &after);
        struct str a = STR_INIT, b = STR_INIT;
        join(&before, &a);
        for (size_t k = 0; after.spans[k].kind != SPAN_TOKENS; k++)
            str_add(&b, after.spans[k].text, after.spans[k].len);
        assert_string_equal(str_text(&a), str_text(&b));
        str_done(&a);
        str_done(&b);
        rendering_done(&before);
        rendering_done(&after);
        message_list_done(&list);
    }
}

/* What is still being written ends the rendering, and whatever is written on follows it. */
static void test_draft(void **state)
{
    static const char *const drafts[][3] = {
        {"chatml", "", "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n"},
        {"chatml", "Hel", "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHel"},
        {"llama3", " Hel ",
         "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
         "<|start_header_id|>user<|end_header_id|>\n\nHel"},
        {"gemma", "Hel", "<start_of_turn>user\nBe kind.\n\nHel"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof drafts / sizeof drafts[0]; i++) {
        struct template_choice choice = {.tmpl = template_find(drafts[i][0])};
        struct message_list list = {NULL, 0, 0};
        struct rendering r;
        struct str out = STR_INIT;
        message_list_add(&list, ROLE_SYSTEM, "Be kind.", NULL, 0);
        message_list_add(&list, ROLE_USER, drafts[i][1], NULL, 0);
        template_render_draft(&choice, &list, &r);
        join(&r, &out);
        assert_string_equal(str_text(&out), drafts[i][2]);
        str_done(&out);
        rendering_done(&r);
        message_list_done(&list);
    }
}

static void test_system_alone(void **state)
{
    struct template_choice choice = {.tmpl = template_find("gemma")};
    struct message_list list = {NULL, 0, 0};
    struct rendering r;
    struct str out = STR_INIT;
    (void)state;

    template_render(&choice, &list, false, &r);
    assert_int_equal(r.n, 0);
    rendering_done(&r);
    message_list_add(&list, ROLE_SYSTEM, " Be kind. ", NULL, 0);
    template_render(&choice, &list, true, &r);
    join(&r, &out);
    assert_string_equal(str_text(&out), "<start_of_turn>user\nBe kind.\n\n<end_of_turn>\n"
                                        "<start_of_turn>model\n");
    str_done(&out);
    rendering_done(&r);
    message_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),       cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_default_system), cmocka_unit_test(test_long_default),
        cmocka_unit_test(test_unrecognised),   cmocka_unit_test(test_stand_in),
        cmocka_unit_test(test_spans),          cmocka_unit_test(test_prefix_is_kept),
        cmocka_unit_test(test_draft),          cmocka_unit_test(test_system_alone),
    };

    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
