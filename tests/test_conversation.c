/* The tree of turns, answers, and the messages that come of it. */
#include "test.h"

#include "chat/conversation.h"

static struct turn *answer(struct conversation *c, struct turn *parent, const int32_t *ids,
                           const char *const *texts)
{
    struct turn *t = conversation_add(c, parent, ROLE_ASSISTANT, "");

    for (size_t i = 0; texts[i] != NULL; i++) {
        struct answer_token token = {.id = ids[i], .rank = 0};
        turn_add_token(t, &token, texts[i], strlen(texts[i]));
    }
    return t;
}

static const int32_t ids_a[] = {10, 11, 12};
static const char *const texts_a[] = {"Hi", " the", "re", NULL};
static const int32_t ids_b[] = {10, 11, 20, 21};
static const char *const texts_b[] = {"Hi", " the", " you", "!", NULL};

static void test_path(void **state)
{
    struct conversation *c = conversation_new();
    size_t n;
    (void)state;

    assert_null(conversation_leaf(c));
    assert_int_equal(conversation_depth(c), 0);
    struct turn *u = conversation_add(c, NULL, ROLE_USER, "Hello");
    struct turn *a = answer(c, u, ids_a, texts_a);
    struct turn *u2 = conversation_add(c, a, ROLE_USER, "More");
    struct turn *a2 = answer(c, u2, ids_b, texts_b);
    assert_ptr_equal(conversation_leaf(c), a2);
    assert_int_equal(conversation_depth(c), 4);
    assert_ptr_equal(conversation_at(c, 2), u2);
    assert_null(conversation_at(c, 4));

    struct turn *b = answer(c, u, ids_b, texts_b); /* a retry: another path */
    assert_ptr_equal(conversation_leaf(c), b);
    assert_int_equal(turn_version(c, b, &n), 1);
    assert_int_equal(n, 2);
    assert_false(conversation_on_path(c, a2));
    turn_choose_version(c, b, 0); /* the earlier one is there, with what followed it */
    assert_ptr_equal(conversation_leaf(c), a2);
    turn_choose_version(c, b, 7); /* there is none: nothing happens */
    assert_ptr_equal(conversation_leaf(c), a2);

    conversation_cut(c, a);
    assert_ptr_equal(conversation_leaf(c), a);
    assert_int_equal(a->n_children, 1); /* kept, but left */
    conversation_cut(c, NULL);
    assert_null(conversation_leaf(c));
    struct turn *v = conversation_add(c, NULL, ROLE_USER, "Hello again");
    assert_ptr_equal(conversation_leaf(c), v);
    assert_int_equal(turn_version(c, v, &n), 1);
    assert_int_equal(v->number, 5);
    conversation_free(c);
}

static void test_tokens(void **state)
{
    struct conversation *c = conversation_new();
    struct turn *a = answer(c, NULL, ids_a, texts_a), *b = answer(c, NULL, ids_b, texts_b);
    size_t len;
    (void)state;

    assert_string_equal(a->text.data, "Hi there");
    assert_memory_equal(turn_token_text(a, 1, &len), " the", 4);
    assert_int_equal(len, 4);
    turn_add_text(a, "\xEF\xBF\xBD", 3); /* left over at the end: the last token's */
    turn_token_text(a, 2, &len);
    assert_int_equal(len, 5);
    turn_token_text(a, 3, &len);
    assert_int_equal(len, 0);

    b->knobs.value[KNOB_TEMPERATURE] = 1.5;
    turn_add_knob(b, 1, KNOB_TOP_K, 50, 10);
    turn_add_knob(b, 3, KNOB_TOP_K, 10, 20);
    struct turn *branch = conversation_add(c, NULL, ROLE_ASSISTANT, "");
    turn_take_tokens(branch, b, 3);
    assert_int_equal(branch->n_tokens, 3);
    assert_int_equal(branch->n_given, 3);
    assert_string_equal(branch->text.data, "Hi the you");
    assert_int_equal(branch->n_moves, 1); /* the one at token 3 was for a token that is not taken */
    assert_near(branch->knobs.value[KNOB_TEMPERATURE], 1.5, 0);
    conversation_free(c);
}

static void test_last_knobs(void **state)
{
    struct conversation *c = conversation_new();
    struct knobs k;
    (void)state;

    struct turn *u = conversation_add(c, NULL, ROLE_USER, "x");
    assert_false(conversation_last_knobs(c, &k));
    struct turn *a = answer(c, u, ids_a, texts_a);
    turn_add_knob(a, 1, KNOB_TEMPERATURE, 0.8, 1.6);
    conversation_add(c, a, ROLE_USER, "y");
    assert_true(conversation_last_knobs(c, &k));
    assert_near(k.value[KNOB_TEMPERATURE], 1.6, 0);
    assert_near(k.value[KNOB_TOP_K], 50, 0);
    conversation_free(c);
}

static void test_messages(void **state)
{
    struct conversation *c = conversation_new();
    struct message_list m;
    (void)state;

    conversation_set_system(c, "Be brief.");
    conversation_set_model(c, "first", 100);
    struct turn *u = conversation_add(c, NULL, ROLE_USER, "Hello");
    struct turn *a = answer(c, u, ids_a, texts_a);
    struct turn *u2 = conversation_add(c, a, ROLE_USER, "More");
    struct turn *empty = conversation_add(c, u2, ROLE_ASSISTANT, ""); /* stopped before a word */
    struct turn *u3 = conversation_add(c, empty, ROLE_USER, "Still there?");

    conversation_messages(c, NULL, &m);
    assert_int_equal(m.n, 5);
    assert_int_equal(m.items[0].role, ROLE_SYSTEM);
    assert_string_equal(m.items[0].text, "Be brief.");
    assert_string_equal(m.items[2].text, "Hi there");
    assert_int_equal(m.items[2].n_tokens, 3);
    assert_memory_equal(m.items[2].tokens, ids_a, sizeof ids_a);
    assert_null(m.items[1].tokens);
    assert_string_equal(m.items[4].text, "Still there?");
    message_list_done(&m);

    conversation_messages(c, u, &m);
    assert_int_equal(m.n, 2);
    message_list_done(&m);

    /* a file may say what it likes: ids that the model does not have are not given to it */
    conversation_set_model(c, "first", 12);
    conversation_messages(c, u3, &m);
    assert_null(m.items[2].tokens);
    assert_string_equal(m.items[2].text, "Hi there");
    message_list_done(&m);

    /* the ids of one model mean nothing to another: its text is what counts */
    conversation_set_model(c, "second", 100);
    conversation_messages(c, u3, &m);
    assert_null(m.items[2].tokens);
    assert_string_equal(m.items[2].text, "Hi there");
    message_list_done(&m);

    conversation_set_system(c, "Be long."); /* an answer keeps what it was made from */
    turn_messages(a, &m);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.items[0].text, "Be brief.");
    message_list_done(&m);
    conversation_set_system(c, NULL);
    conversation_messages(c, u, &m);
    assert_int_equal(m.n, 1);
    message_list_done(&m);
    conversation_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_last_knobs),
        cmocka_unit_test(test_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
