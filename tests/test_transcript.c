/* Transcript files: the way there and back, torn lines, hostile ones, a full disk; and export. */
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "backend/backend.h"
#include "base/file.h"
#include "base/mem.h"
#include "chat/transcript.h"
#include "folder.h"

static char *path_of(const char *name)
{
    return file_join(folder, name);
}

static void write_file(const char *path, const char *text)
{
    struct error err;

    assert_true(file_write_atomic(path, text, strlen(text), 0600, &err));
}

static char *read_file(const char *path)
{
    struct str s = STR_INIT;
    struct error err;

    if (!file_read(path, 1 << 24, &s, &err))
        fail_msg("%s", err.text);
    return str_steal(&s);
}

static void add_token(struct turn *t, int32_t id, const char *text, float logprob, float entropy)
{
    struct answer_token token = {
        .id = id, .logprob = logprob, .p = 0.25f, .rank = id % 3, .entropy = entropy, .version = 7};

    turn_add_token(t, &token, text, strlen(text));
}

/* Two versions of an answer, the second a branch with a movement, an end left over, and an edit. */
static struct conversation *sample(void)
{
    struct conversation *c = conversation_new();

    conversation_set_model(c, "SmolLM2", 0);
    conversation_set_system(c, "Say \"rain\"\n\tand \x01 stop.");
    conversation_set_preset(c, "poetry");
    struct turn *u = conversation_add(c, NULL, ROLE_USER, "Two lines about 雨 \\ rain");
    struct turn *a = conversation_add(c, u, ROLE_ASSISTANT, "");
    a->seed = 4294967295u;
    add_token(a, 1, "Rain", -0.123456789f, 1.5f);
    add_token(a, 2, " fälls", -3.5f, NAN);
    a->end_reason = END_EOG;
    a->complete = true;
    struct turn *b = conversation_add(c, u, ROLE_ASSISTANT, "");
    b->seed = 4711;
    b->earlier = a;
    turn_take_tokens(b, a, 1);
    b->knobs.value[KNOB_TEMPERATURE] = 0.1 + 0.2;
    b->knobs.exempt_mode = EXEMPT_LIST;
    b->knobs.n_exempt = 2;
    b->knobs.exempt[0] = 3;
    b->knobs.exempt[1] = 14;
    turn_add_knob(b, 1, KNOB_TOP_K, 50, 0);
    struct knobs chain = b->knobs;
    chain.order[0] = STAGE_TOP_K;
    chain.order[STAGE_TOP_K] = STAGE_PENALTY;
    chain.exempt_mode = EXEMPT_NONE;
    turn_add_chain(b, 1, &chain);
    add_token(b, 5, " taps", -1, 2);
    turn_add_text(b, "\xEF\xBF\xBD", 3);
    b->branch_at = 1;
    b->dropped_messages = 2;
    b->dropped_tokens = 311;
    b->end_reason = END_STOPPED;
    conversation_set_system(c, NULL);
    struct turn *v = conversation_add(c, NULL, ROLE_USER, "Three lines");
    turn_choose_version(c, v, 0);
    return c;
}

static void expect_same_turn(const struct turn *a, const struct turn *b)
{
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->role, b->role);
    assert_string_equal(str_text(&a->text), str_text(&b->text));
    assert_int_equal(a->chosen, b->chosen);
    assert_int_equal(a->parent == NULL ? -1 : a->parent->number,
                     b->parent == NULL ? -1 : b->parent->number);
    assert_int_equal(a->n_children, b->n_children);
    if (a->role != ROLE_ASSISTANT)
        return;
    assert_int_equal(a->seed, b->seed);
    assert_int_equal(a->model, b->model);
    assert_int_equal(a->end_reason, b->end_reason);
    assert_int_equal(a->complete, b->complete);
    assert_int_equal(a->branch_at, b->branch_at);
    assert_int_equal(a->n_given, b->n_given);
    assert_int_equal(a->dropped_messages, b->dropped_messages);
    assert_int_equal(a->dropped_tokens, b->dropped_tokens);
    assert_int_equal(a->earlier == NULL ? -1 : a->earlier->number,
                     b->earlier == NULL ? -1 : b->earlier->number);
    assert_int_equal(a->system == NULL, b->system == NULL);
    if (a->system != NULL)
        assert_string_equal(a->system, b->system);
    for (int i = 0; i < KNOB_COUNT; i++)
        assert_near(a->knobs.value[i], b->knobs.value[i], 0); /* every bit */
    assert_int_equal(a->knobs.exempt_mode, b->knobs.exempt_mode);
    assert_int_equal(a->knobs.n_exempt, b->knobs.n_exempt);
    assert_memory_equal(a->knobs.order, b->knobs.order, sizeof a->knobs.order);
    assert_int_equal(a->n_moves, b->n_moves);
    for (size_t i = 0; i < a->n_moves; i++) {
        assert_int_equal(a->moves[i].n, b->moves[i].n);
        assert_int_equal(a->moves[i].knob, b->moves[i].knob);
        assert_near(a->moves[i].value, b->moves[i].value, 0);
    }
    assert_int_equal(a->n_chains, b->n_chains);
    for (size_t i = 0; i < a->n_chains; i++) {
        assert_int_equal(a->chains[i].n, b->chains[i].n);
        assert_true(knobs_same_chain(&a->chains[i].knobs, &b->chains[i].knobs));
    }
    assert_int_equal(a->n_tokens, b->n_tokens);
    for (size_t i = 0; i < a->n_tokens; i++) {
        const struct answer_token *x = &a->tokens[i], *y = &b->tokens[i];
        assert_int_equal(x->id, y->id);
        assert_int_equal(x->text_at, y->text_at);
        assert_int_equal(x->rank, y->rank);
        assert_int_equal(x->version, y->version);
        assert_memory_equal(&x->logprob, &y->logprob, sizeof x->logprob);
        assert_true(x->entropy == y->entropy || (isnan(x->entropy) && isnan(y->entropy)));
    }
}

static void expect_same(const struct conversation *a, const struct conversation *b)
{
    assert_int_equal(a->n_turns, b->n_turns);
    assert_int_equal(a->chosen_root, b->chosen_root);
    for (size_t i = 0; i < a->n_turns; i++)
        expect_same_turn(a->turns[i], b->turns[i]);
}

static void test_there_and_back(void **state)
{
    struct conversation *c = sample();
    char *path = path_of("whole.jsonl");
    struct str text = STR_INIT, warning = STR_INIT;
    struct error err;
    (void)state;

    transcript_format(c, "avx2", &text);
    write_file(path, text.data);
    struct conversation *d = transcript_load(path, &warning, &err);
    if (d == NULL)
        fail_msg("%s", err.text);
    assert_int_equal(warning.len, 0);
    expect_same(c, d);
    assert_null(d->system);
    assert_string_equal(d->preset, "poetry");
    assert_string_equal(d->models[0], "SmolLM2");
    conversation_free(d);
    conversation_free(c);
    str_done(&text);
    str_done(&warning);
    unlink(path);
    free(path);
}

/* As the application does it: record by record, in several flushes. */
static char *write_growing(struct conversation *c)
{
    struct error err;
    struct transcript *t = transcript_new(folder, NULL, &err);
    struct turn *u = c->turns[0], *a = c->turns[1], *b = c->turns[2], *v = c->turns[3];

    assert_non_null(t);
    assert_int_equal(access(transcript_path(t), F_OK), -1); /* an empty chat leaves no file */
    transcript_turn(t, u);
    assert_true(transcript_flush(t, &err));
    transcript_model(t, "SmolLM2", "avx2");
    transcript_model(t, "SmolLM2", "avx2"); /* said once */
    transcript_system(t, a->system);
    transcript_turn(t, a);
    transcript_token(t, a, 0);
    assert_true(transcript_is_waiting(t));
    assert_true(transcript_flush(t, &err));
    assert_false(transcript_is_waiting(t));
    transcript_token(t, a, 1);
    transcript_end(t, a);
    transcript_system(t, b->system);
    transcript_turn(t, b); /* with the token that it was given */
    transcript_dropped(t, b);
    transcript_knob(t, b, 0);
    transcript_chain(t, b, 0);
    transcript_token(t, b, 1);
    transcript_end(t, b);
    transcript_turn(t, v);
    transcript_choose(t, u);
    char *path = mem_strdup(transcript_path(t));
    transcript_free(t); /* writes the rest */
    return path;
}

static void test_growing(void **state)
{
    struct conversation *c = sample();
    struct str warning = STR_INIT;
    struct error err;
    struct stat st;
    (void)state;

    char *path = write_growing(c);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *text = read_file(path);
    char *model = strstr(text, "\"type\":\"model\"");
    assert_non_null(model);
    assert_null(strstr(model + 1, "\"type\":\"model\""));
    struct conversation *d = transcript_load(path, &warning, &err);
    if (d == NULL)
        fail_msg("%s", err.text);
    expect_same(c, d);
    char *newest = transcript_newest(folder);
    assert_non_null(newest);
    free(newest);
    unlink(path);
    free(text);
    free(path);
    conversation_free(c);
    conversation_free(d);
    str_done(&warning);
}

static void test_torn_and_continued(void **state)
{
    struct conversation *c = sample();
    struct str warning = STR_INIT;
    struct error err;
    char *path = write_growing(c), *text = read_file(path);
    (void)state;

    /* the crash came in the middle of the end of the second answer */
    char *end = strstr(strstr(text, "\"reason\":\"eog\"") + 1, "\"reason\"");
    *end = '\0';
    write_file(path, text);
    struct conversation *d = transcript_load(path, &warning, &err);
    assert_non_null(d);
    assert_non_null(strstr(warning.data, "cut off"));
    assert_int_equal(d->n_turns, 3);
    assert_int_equal(d->turns[2]->n_tokens, 2);
    assert_int_equal(d->turns[2]->end_reason, END_STOPPED);

    /* going on: the torn line goes, what follows is sound */
    struct transcript *t = transcript_new(NULL, path, &err);
    assert_non_null(t);
    assert_null(transcript_new(NULL, path, &err)); /* one writer at a time */
    assert_non_null(strstr(err.text, "another fader"));
    struct turn *more = conversation_add(d, d->turns[2], ROLE_USER, "Go on");
    transcript_turn(t, more);
    transcript_free(t);
    conversation_free(d);
    str_clear(&warning);
    d = transcript_load(path, &warning, &err);
    assert_non_null(d);
    assert_int_equal(warning.len, 0);
    assert_int_equal(d->n_turns, 4);
    assert_string_equal(d->turns[3]->text.data, "Go on");

    /* a last line that lacks only its newline is whole */
    char *again = read_file(path);
    again[strlen(again) - 1] = '\0';
    write_file(path, again);
    t = transcript_new(NULL, path, &err);
    transcript_cut(t, NULL);
    transcript_free(t);
    conversation_free(d);
    d = transcript_load(path, &warning, &err);
    assert_non_null(d);
    assert_int_equal(d->n_turns, 4);
    assert_null(conversation_leaf(d));

    unlink(path);
    free(again);
    free(text);
    free(path);
    conversation_free(c);
    conversation_free(d);
    str_done(&warning);
}

/* Whatever stands in a file: an error that names the line, never more. */
static void test_hostile(void **state)
{
    static const char head[] = "{\"type\":\"header\",\"fader\":1}\n";
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "empty"},
        {"hello\n", ":1: not a fader transcript"},
        {"{\"type\":\"turn\"}\n", ":1: not a fader transcript"},
        {"{\"type\":\"header\",\"fader\":2}\n", "newer fader"},
        {"{H}[1,2]\n{}\n", ":2: not a record"},
        {"{H}{\"type\":\"turn\",\"turn\":7,\"parent\":null,\"role\":\"user\",\"text\":\"x\"}\n",
         "turn 7 where 0"},
        {"{H}{\"type\":\"turn\",\"turn\":0,\"parent\":0,\"role\":\"user\",\"text\":\"x\"}\n",
         "\"parent\" is out of range"},
        {"{H}{\"type\":\"turn\",\"turn\":0,\"parent\":null,\"role\":\"king\",\"text\":\"x\"}\n",
         "\"role\""},
        {"{H}{\"type\":\"turn\",\"turn\":0,\"parent\":null,\"role\":\"user\"}\n", "\"text\""},
        {"{H}{\"type\":\"token\",\"turn\":0,\"n\":0,\"id\":1}\n", "\"turn\" is out of range"},
        {"{H}{A}{\"type\":\"token\",\"turn\":0,\"n\":1,\"id\":1}\n", "token 1 where 0"},
        {"{H}{A}{\"type\":\"token\",\"turn\":0,\"n\":0,\"id\":-1}\n", "\"id\" is out of range"},
        {"{H}{A}{\"type\":\"token\",\"turn\":0,\"n\":0,\"id\":1e300}\n", "\"id\" is out of range"},
        {"{H}{A}{\"type\":\"knob\",\"turn\":0,\"n\":0,\"name\":\"volume\",\"value\":1}\n", "knob"},
        {"{H}{A}{\"type\":\"knob\",\"turn\":0,\"n\":0,\"name\":\"temperature\",\"value\":-1}\n",
         "temperature"},
        {"{H}{A}{\"type\":\"chain\",\"turn\":0,\"n\":0,\"exempt\":\"me\"}\n", "\"exempt\""},
        {"{H}{A}{\"type\":\"end\",\"turn\":0,\"reason\":\"bored\"}\n", "\"reason\""},
        {"{H}{\"type\":\"turn\",\"turn\":0,\"parent\":null,\"role\":\"assistant\",\"seed\":1,"
         "\"knobs\":{\"order\":[\"top_k\",\"top_k\"]}}\n",
         "order"},
        {"{H}{\"type\":\"turn\",\"turn\":0,\"parent\":null,\"role\":\"assistant\",\"seed\":-4}\n",
         "\"seed\""},
        {"{H}{\"type\":\"choose\",\"turn\":3}\n", "\"turn\""},
        {"{H}{\"type\":\"choose\",\"turn\":3}", "\"turn\""}, /* the last, but whole: not torn */
    };
    char *path = path_of("hostile.jsonl");
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str text = STR_INIT, warning = STR_INIT;
        struct error err = {""};
        const char *body = cases[i].text;
        if (strncmp(body, "{H}", 3) == 0) {
            str_add_text(&text, head);
            body += 3;
        }
        if (strncmp(body, "{A}", 3) == 0) {
            str_add_text(&text, "{\"type\":\"turn\",\"turn\":0,\"parent\":null,"
                                "\"role\":\"assistant\",\"seed\":1}\n");
            body += 3;
        }
        str_add_text(&text, body);
        write_file(path, str_text(&text));
        struct conversation *c = transcript_load(path, &warning, &err);
        if (c != NULL)
            fail_msg("case %zu was read", i);
        if (strstr(err.text, cases[i].why) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        str_done(&text);
        str_done(&warning);
    }
    unlink(path);
    free(path);
}

/* Every prefix of a file is read, or refused; types that are not known are passed over. */
static void test_every_prefix(void **state)
{
    struct conversation *c = sample();
    char *path = path_of("prefix.jsonl");
    struct str text = STR_INIT, warning = STR_INIT;
    struct error err;
    size_t read = 0;
    (void)state;

    transcript_format(c, NULL, &text);
    str_add_text(&text, "{\"type\":\"from the future\",\"x\":[1]}\n");
    for (size_t n = text.len; n > 0; n -= n > 7 ? 7 : n) {
        str_truncate(&text, n);
        write_file(path, text.data);
        struct conversation *d = transcript_load(path, &warning, &err);
        read += d != NULL ? 1 : 0;
        conversation_free(d);
        str_clear(&warning);
    }
    assert_true(read > text.cap / 7 / 2); /* all but those that end within the header */
    unlink(path);
    free(path);
    conversation_free(c);
    str_done(&text);
    str_done(&warning);
}

static void limit_file_size(rlim_t size)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk fills in the middle of a line, and has room again later: nothing is lost, nothing
 * doubled. */
static void test_full_disk(void **state)
{
    struct conversation *c = sample();
    struct str warning = STR_INIT;
    struct error err;
    struct transcript *t = transcript_new(folder, NULL, &err);
    struct turn *a = c->turns[1];
    (void)state;

    signal(SIGXFSZ, SIG_IGN);
    transcript_turn(t, c->turns[0]);
    transcript_model(t, "SmolLM2", NULL);
    transcript_system(t, a->system);
    limit_file_size(100);
    assert_false(transcript_flush(t, &err));
    assert_non_null(strstr(err.text, transcript_path(t)));
    transcript_turn(t, a);
    transcript_token(t, a, 0);
    assert_false(transcript_flush(t, &err));
    transcript_token(t, a, 1);
    limit_file_size(RLIM_INFINITY);
    assert_true(transcript_flush(t, &err));
    transcript_end(t, a);
    assert_true(transcript_flush(t, &err));
    struct conversation *d = transcript_load(transcript_path(t), &warning, &err);
    if (d == NULL)
        fail_msg("%s", err.text);
    expect_same_turn(c->turns[1], d->turns[1]);
    unlink(transcript_path(t));
    transcript_free(t);
    conversation_free(c);
    conversation_free(d);
    str_done(&warning);
}

static void set_time(const char *path, time_t seconds)
{
    struct timespec times[2] = {{seconds, 0}, {seconds, 0}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_list(void **state)
{
    static const char *const names[] = {"a.jsonl", "b.jsonl",  "c.jsonl",
                                        "d.txt",   ".e.jsonl", "empty.jsonl"};
    static const time_t times[] = {2000, 3000, 1000, 9000, 9000, 9000};
    struct transcript_list list;
    char long_text[2000];
    struct str line = STR_INIT;
    (void)state;

    for (size_t i = 0; i < 6; i++) {
        char *path = path_of(names[i]);
        memset(long_text, 'x', sizeof long_text);
        long_text[sizeof long_text - 1] = '\0';
        str_clear(&line);
        str_add_format(&line,
                       "{\"type\":\"header\",\"fader\":1}\n{\"type\":\"turn\",\"turn\":0,"
                       "\"parent\":null,\"role\":\"user\",\"text\":\"%s\"}\n",
                       i == 0 ? "rain\\nand 雨" : long_text);
        write_file(path, i == 2 ? "nothing of the kind" : i == 5 ? "" : line.data);
        set_time(path, times[i]);
        free(path);
    }
    transcript_list_find(folder, 10, &list);
    assert_int_equal(list.n, 3);
    assert_non_null(strstr(list.items[0].path, "/b.jsonl"));
    assert_int_equal(strlen(list.items[0].first), 200);
    assert_string_equal(list.items[1].first, "rain and 雨");
    assert_string_equal(list.items[2].first, ""); /* whatever it is: no reason to fail */
    transcript_list_done(&list);
    char *newest = transcript_newest(folder);
    assert_non_null(strstr(newest, "/b.jsonl"));
    free(newest);
    for (size_t i = 0; i < 6; i++) {
        char *path = path_of(names[i]);
        unlink(path);
        free(path);
    }
    str_done(&line);
}

static void test_no_folder(void **state)
{
    struct error err;
    struct transcript *t = transcript_new("/dev/null/nowhere", NULL, &err);
    struct conversation *c = sample();
    (void)state;

    assert_non_null(t);
    transcript_turn(t, c->turns[0]);
    assert_false(transcript_flush(t, &err));
    assert_true(transcript_is_waiting(t));
    transcript_free(t);
    conversation_free(c);
    assert_null(transcript_newest("/nowhere/at/all"));
}

/* The file's names of the ends are backend.h's, number by number. */
static void test_end_names(void **state)
{
    (void)state;
    for (int r = END_EOG; r <= END_ERROR; r++) {
        struct conversation *c = conversation_new();
        struct turn *t = conversation_add(c, NULL, ROLE_ASSISTANT, "");
        struct str text = STR_INIT;
        char want[64];
        t->end_reason = r;
        transcript_format(c, NULL, &text);
        snprintf(want, sizeof want, "\"reason\":\"%s\"", end_reason_name((enum end_reason)r));
        assert_non_null(strstr(text.data, want));
        str_done(&text);
        conversation_free(c);
    }
}

static void test_export(void **state)
{
    struct conversation *c = sample();
    struct str text = STR_INIT;
    (void)state;

    conversation_export(c, EXPORT_MARKDOWN, &text);
    assert_non_null(
        strstr(text.data, "## You\n\nTwo lines about 雨 \\ rain\n\n## SmolLM2\n\nRain taps"));
    assert_non_null(strstr(text.data, "seed 4711; from token 1 top_k 0"));
    str_clear(&text);
    conversation_export(c, EXPORT_TEXT, &text);
    assert_non_null(strstr(text.data, "You:\nTwo lines about 雨 \\ rain\n\nSmolLM2:\nRain taps"));
    assert_null(strstr(text.data, "fälls")); /* the shown version only */
    str_clear(&text);
    turn_add_text(c->turns[2], "a\0z", 3); /* a NUL is an answer's as any other byte */
    conversation_export(c, EXPORT_JSON, &text);
    cJSON *o = cJSON_Parse(text.data);
    const cJSON *messages = cJSON_GetObjectItem(o, "messages");
    assert_int_equal(cJSON_GetArraySize(messages), 2);
    const cJSON *answer = cJSON_GetArrayItem(messages, 1);
    assert_string_equal(cJSON_GetObjectItem(answer, "role")->valuestring, "assistant");
    assert_non_null(strstr(cJSON_GetObjectItem(answer, "content")->valuestring, "a\xEF\xBF\xBD"
                                                                                "z"));
    assert_int_equal(cJSON_GetObjectItem(answer, "seed")->valueint, 4711);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "tokens")), 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "moves")), 1);
    cJSON_Delete(o);
    str_done(&text);
    conversation_free(c);
}

/* Fails when something was left behind. */
static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_torn_and_continued),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_end_names),
        cmocka_unit_test(test_export),
    };

    return cmocka_run_group_tests(tests, folder_make, remove_folder);
}
