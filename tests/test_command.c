/* Commands: the table, and what each of them does. */
#include "app_fixture.h"

#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"

#define CODE "{\"text\":\"Look:\\n```c\\nint x;\\n``` and ```\"}\n"
#define RAIN "{\"text\":\"Rain falls today.\"}\n"

static struct fixture f;

/* ---- the table ------------------------------------------------------------------------------- */

static void test_nearest(void **state)
{
    struct nearest near;
    (void)state;

    assert_int_equal(nearest_distance("", ""), 0);
    assert_int_equal(nearest_distance("", "abc"), 3);
    assert_int_equal(nearest_distance("temprature", "temperature"), 1);
    assert_int_equal(nearest_distance("hlep", "help"), 1); /* a swap is one */
    assert_int_equal(nearest_distance("kitten", "sitting"), 3);
    assert_int_equal(nearest_distance("Poetry", "poetry"), 0);
    nearest_init(&near, "xy");
    nearest_offer(&near, "quit");
    assert_null(near.best); /* too far to be meant */
    nearest_init(&near, "rety");
    nearest_offer(&near, "theme");
    nearest_offer(&near, "retry");
    nearest_offer(&near, "reset");
    assert_string_equal(near.best, "retry");
}

static void test_table(void **state)
{
    static const char *const wanted[] = {"help",    "keys", "quit",   "new",   "clear", "retry",
                                         "undo",    "edit", "system", "set",   "show",  "preset",
                                         "save",    "load", "model",  "theme", "mouse", "stats",
                                         "context", "copy", "export"};
    static const char *const aliases[][2] = {
        {"?", "help"}, {"exit", "quit"}, {"bye", "quit"}, {"regen", "retry"}};
    (void)state;

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct command *c = command_find(wanted[i]);
        if (c == NULL)
            fail_msg("no /%s", wanted[i]);
        assert_string_equal(c->name, wanted[i]);
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        assert_string_equal(command_find(aliases[i][0])->name, aliases[i][1]);
    assert_null(command_find(""));
    assert_null(command_find("regen regenerate"));
    assert_null(command_find("hel"));
    for (size_t i = 0; i < n_commands; i++) { /* no name is taken twice */
        for (size_t j = 0; j < n_commands; j++) {
            if (i != j)
                assert_ptr_equal(command_find(commands[j].name), &commands[j]);
        }
    }
}

static void test_help(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/help");
    assert_string_equal(f.page_title, "Help");
    for (size_t i = 0; i < n_commands; i++) {
        assert_non_null(strstr(f.page, commands[i].name));
        assert_non_null(strstr(f.page, commands[i].help));
    }
    app_enter(f.app, "/? retry");
    expect_message(&f, "/retry [same]: answer again");
    expect_message(&f, "regen");
    app_enter(f.app, "/keys");
    assert_non_null(strstr(f.page, "^X Space"));
    app_enter(f.app, "/rety");
    expect_message(&f, "no command /rety; did you mean /retry?");
    app_enter(f.app, "/xyzzyxyzzy");
    expect_message(&f, "/help lists them");
    app_enter(f.app, "/");
    expect_message(&f, "no command /");
    assert_false(f.app->quit);
    app_enter(f.app, "/bye");
    assert_true(f.app->quit);
    fixture_stop(&f);
}

static void expect_words(const char *line, const char *want)
{
    const char *word = strrchr(line, ' ') != NULL ? strrchr(line, ' ') + 1 : line;
    char **words = command_complete(f.app, line, (size_t)(word - line), word);
    struct str all = STR_INIT;

    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        str_add_format(&all, "%s%s", i > 0 ? " " : "", words[i]);
        free(words[i]);
    }
    free(words);
    assert_string_equal(str_text(&all), want);
    str_done(&all);
}

static void test_completion(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    expect_words("/he", "/help");
    expect_words("/s", "/system /set /show /save /stats");
    expect_words("/set te", "temperature");
    expect_words("/set pa", "pace pause");
    expect_words("/set on_full ", "drop stop");
    expect_words("/set prefill_while_typing ", "auto on off");
    expect_words("/mouse ", "on off");
    expect_words("/help re", "retry");
    expect_words("/save c", "chat");
    expect_words("/preset poe", "poetry");
    expect_words("/theme da", "dark");
    expect_words("hello wor", "");
    expect_words("/nothing x", "");
    expect_words("/set temperature 0", "");
    assert_true(command_completes_file("/load x", 6));
    assert_true(command_completes_file("/export x", 8));
    assert_true(command_completes_file("/save chat x", 11));
    assert_false(command_completes_file("/save preset x", 13));
    assert_false(command_completes_file("/theme x", 7));
    assert_false(command_completes_file("load x", 5));
    fixture_stop(&f);
}

/* ---- values ---------------------------------------------------------------------------------- */

static double value(enum knob knob)
{
    return f.app->control.knobs.value[knob];
}

static void test_set(void **state)
{
    static const struct {
        const char *line;
        enum knob knob;
        double value;
    } good[] = {
        {"/set temperature 1.25", KNOB_TEMPERATURE, 1.25},
        {"/set temp=0.5", KNOB_TEMPERATURE, 0.5},
        {"/set temp 0", KNOB_TEMPERATURE, 0},
        {"/set temp off", KNOB_TEMPERATURE, 1},
        {"/set temp greedy", KNOB_TEMPERATURE, 0},
        {"/set top_k 2", KNOB_TOP_K, 2},
        {"/set top-k off", KNOB_TOP_K, 0},
        {"/set top_p .85", KNOB_TOP_P, 0.85},
        {"/set min_p 0.05", KNOB_MIN_P, 0.05},
        {"/set repeat_penalty 1.3", KNOB_REPETITION_PENALTY, 1.3},
        {"/set rep_pen off", KNOB_REPETITION_PENALTY, 1},
        {"/set repeat_last_n 64", KNOB_REPEAT_LAST_N, 64},
        {"/set repeat_last_n all", KNOB_REPEAT_LAST_N, -1},
        {"/set top_p preset", KNOB_TOP_P, 0.9},
    };
    static const struct {
        const char *line, *why;
    } bad[] = {
        {"/set temperature warm", "'warm' is not a number"},
        {"/set temperature 0.5x", "is not a number"},
        {"/set temperature nan", "is not a number"},
        {"/set temperature 6", "temperature"},
        {"/set top_k 1.5", "top_k"},
        {"/set top_k 9999", "top_k"},
        {"/set top_p 1.5", "top_p"},
        {"/set tmperature 1", "did you mean temperature?"},
        {"/set volume 11", "/show lists what can be set"},
        {"/set pace -1", "pace: full, or"},
        {"/set pace fast", "pace: full, or"},
        {"/set seed 4294967296", "seed: random, or"},
        {"/set seed 1.5", "seed: random, or"},
        {"/set max_tokens 0", "max_tokens: unlimited, or"},
        {"/set on_full explode", "on_full: drop"},
        {"/set prefill_while_typing never", "prefill_while_typing: auto"},
        {"/set pause maybe", "pause: on or off"},
    };
    (void)state;

    fixture_start(&f, "{\"draw\":[[\"a\",1],[\"b\",1],[\"c\",1]]}\n");
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        app_enter(f.app, good[i].line);
        if (f.app->severity != SAY_INFO)
            fail_msg("%s: %s", good[i].line, f.app->message);
        assert_near(value(good[i].knob), good[i].value, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct control before = f.app->control;
        app_enter(f.app, bad[i].line);
        if (strstr(f.app->message, bad[i].why) == NULL || f.app->severity == SAY_INFO)
            fail_msg("%s: %s", bad[i].line, f.app->message);
        assert_memory_equal(&before.knobs, &f.app->control.knobs, sizeof before.knobs);
        assert_near(before.pace, f.app->control.pace, 0);
    }
    fixture_stop(&f);
}

static void test_set_others(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/set pace 5");
    assert_near(f.app->control.pace, 5, 0);
    app_enter(f.app, "/set pace full");
    assert_near(f.app->control.pace, 0, 0);
    app_enter(f.app, "/set pause on");
    assert_true(f.app->control.paused);
    app_enter(f.app, "/set pause off");
    assert_false(f.app->control.paused);
    app_enter(f.app, "/set seed 4711");
    assert_true(f.app->seed_kept);
    assert_int_equal(f.app->kept_seed, 4711);
    app_enter(f.app, "/set seed random");
    assert_false(f.app->seed_kept);
    app_enter(f.app, "/set n_predict 12");
    assert_int_equal(f.app->max_tokens, 12);
    app_enter(f.app, "/set max_tokens unlimited");
    assert_int_equal(f.app->max_tokens, -1);
    app_enter(f.app, "/set on_full stop");
    assert_int_equal(f.app->on_full, CONTEXT_STOP);
    app_enter(f.app, "/set prefill_while_typing off");
    assert_int_equal(f.app->prefill, PREFILL_OFF);
    app_enter(f.app, "/set prefill auto");
    assert_int_equal(f.app->prefill, PREFILL_AUTO);
    app_enter(f.app, "/set temp");
    expect_message(&f, "temperature 0.80 (built in)");
    app_enter(f.app, "/set temp 1.2");
    expect_message(&f, "temperature 1.20 (slider)");
    fixture_stop(&f);
}

static void expect_page(const char *part)
{
    if (f.page == NULL || strstr(f.page, part) == NULL)
        fail_msg("the page lacks \"%s\":\n%s", part, f.page != NULL ? f.page : "(none)");
}

static bool is_system_ahead(const struct app *app)
{
    struct backend_status now;

    backend_status(app->backend, &now);
    return now.ahead == 2;
}

static void test_show(void **state)
{
    (void)state;
    fixture_start(&f, "{\"model\":{\"name\":\"Toy\"}}\n" RAIN);
    app_enter(f.app, "/set temp 1.5");
    app_enter(f.app, "/set pace 20");
    app_enter(f.app, "/system Be brief.");
    app_enter(f.app, "/set"); /* alone it shows */
    assert_string_equal(f.page_title, "Values");
    expect_page("temperature          1.50           slider (default: 0.80)");
    expect_page("top_p                0.90           built in\n");
    expect_page("order                penalty, temperature, top_k, top_p, min_p");
    expect_page("pace                 20/s           slider");
    expect_page("seed                 random");
    expect_page("prefill_while_typing auto           built in\n");
    expect_page("preset               default*");
    expect_page("Be brief. (slider)");
    expect_page("Toy");
    expect_page(".jsonl");
    fixture_wait(&f, is_system_ahead);
    app_enter(f.app, "/context");
    expect_page("run ahead       2 positions of the next prompt");
    fixture_ask(&f, "x");
    app_enter(f.app, "/stats");
    expect_page(
        "prompt        3 tokens, 2 of them reused from the cache (2 run ahead, while you typed)");
    expect_page("answer        3 tokens, ended by: eog");
    expect_page(
        "in all        1 answer to prompts of 3 tokens; 2 of them reused, 2 of these run ahead");
    app_enter(f.app, "/context");
    expect_page("in use");
    fixture_stop(&f);
}

static void test_stats_without_an_answer(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/stats");
    expect_message(&f, "no answer has ended yet");
    assert_null(f.page);
    fixture_stop(&f);
}

/* The ledger in figures: the chapter's own model (sampling-spec 2). */
static void test_context_page(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    f.app->status.ledger = (struct ledger){.layers = 12,
                                           .heads = 8,
                                           .kv_heads = 2,
                                           .head_dim = 64,
                                           .ctx = 1024,
                                           .bytes_per_element = 2,
                                           .bytes_per_token = 6144,
                                           .total_bytes = 6291456,
                                           .mha_total_bytes = 25165824};
    f.app->ctx_used = 100;
    f.app->kv_used = 614400;
    app_enter(f.app, "/context");
    expect_page("100 of 1,024 positions (9.8 %)");
    expect_page("6,144 B = 2 (K, V) x 12 x 2 x 64 x 2 B");
    expect_page("614.40 kB");
    expect_page("6.29 MB");
    expect_page("25.17 MB");
    expect_page("75 %");
    fixture_stop(&f);
}

static void test_system(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/system");
    expect_message(&f, "none");
    app_enter(f.app, "/system  You are brief. ");
    assert_string_equal(f.app->conversation->system, "You are brief.");
    fixture_ask(&f, "x");
    assert_string_equal(fixture_turn(&f, 1)->system, "You are brief.");
    app_enter(f.app, "/system none");
    assert_string_equal(f.app->conversation->system, ""); /* not even the model's own */
    app_enter(f.app, "/system reset");
    assert_null(f.app->conversation->system);
    fixture_stop(&f);
}

/* ---- copies, files --------------------------------------------------------------------------- */

static void test_copy(void **state)
{
    (void)state;
    fixture_start(&f, "{\"answer\":{}}\n" CODE "{\"answer\":{}}\n" RAIN);
    app_enter(f.app, "/copy");
    expect_message(&f, "there is no such answer");
    fixture_ask(&f, "x");
    app_enter(f.app, "/copy code");
    assert_string_equal(f.copied, "int x;\n");
    expect_message(&f, "sent to the terminal's clipboard (it does not confirm)");
    fixture_ask(&f, "y");
    app_enter(f.app, "/copy");
    assert_string_equal(f.copied, "Rain falls today.");
    app_enter(f.app, "/copy 2");
    assert_non_null(strstr(f.copied, "Look:"));
    app_enter(f.app, "/copy 3");
    expect_message(&f, "there is no such answer");
    app_enter(f.app, "/copy code");
    expect_message(&f, "no code");
    app_enter(f.app, "/copy -1");
    expect_message(&f, "/copy takes nothing");
    f.refuses = true;
    app_enter(f.app, "/copy");
    expect_message(&f, "too long for the terminal");
    fixture_stop(&f);
}

static void enter_with(const char *command, const char *path)
{
    char line[256];

    snprintf(line, sizeof line, "%s %s", command, path);
    app_enter(f.app, line);
}

static void test_export(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    char *md = file_join(f.folder, "out.md");
    enter_with("/export", md);
    expect_message(&f, "nothing to export yet");
    fixture_ask(&f, "Hello");
    enter_with("/export", md);
    expect_message(&f, md);
    char *text = fixture_read(md);
    assert_non_null(strstr(text, "## You\n\nHello"));
    enter_with("/export", md); /* nobody can be asked here: it stays */
    expect_message(&f, "left as it is");
    f.answer = 'r';
    enter_with("/export", md);
    expect_message(&f, "exported");
    app_enter(f.app, "/export x.pdf");
    expect_message(&f, ".md, .txt or .json");
    app_enter(f.app, "/export /dev/null/x.txt");
    expect_message(&f, "not exported");
    app_enter(f.app, "/export ~/home.json");
    char *json = file_join(f.folder, "home.json");
    assert_int_equal(access(json, R_OK), 0);
    free(json);
    free(text);
    free(md);
    fixture_stop(&f);
}

static void test_save_and_load_a_chat(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    char *path = file_join(f.folder, "chat.jsonl");
    enter_with("/save chat", path);
    expect_message(&f, "nothing to save yet");
    app_enter(f.app, "/set temp 1.3");
    fixture_ask(&f, "Hello");
    enter_with("/save chat", path);
    expect_message(&f, "/load opens it");
    app_enter(f.app, "/new");
    app_enter(f.app, "/set temp 0.2");
    assert_int_equal(conversation_depth(f.app->conversation), 0);
    enter_with("/load", path);
    expect_message(&f, "2 turns");
    assert_string_equal(fixture_text(&f, 1), "Rain falls today.");
    assert_near(value(KNOB_TEMPERATURE), 1.3, 0); /* as it was last played with */
    enter_with("/load", path);
    expect_message(&f, "that is this conversation");
    fixture_ask(&f, "On");
    assert_int_equal(conversation_depth(f.app->conversation), 4);
    app_enter(f.app, "/load"); /* the one that was begun here, by what was said first */
    expect_page(".jsonl  Hello\n");
    char name[64];
    snprintf(name, sizeof name, "%.26s", strstr(f.page, "20"));
    enter_with("/load", name); /* by its name alone */
    assert_string_equal(fixture_text(&f, 0), "Hello");
    assert_int_equal(conversation_depth(f.app->conversation), 2);
    app_enter(f.app, "/load nothing.jsonl");
    assert_int_equal(f.app->severity, SAY_ERROR);
    assert_int_equal(conversation_depth(f.app->conversation), 2); /* what is open stays open */
    free(path);
    fixture_stop(&f);
}

static void test_save_asks(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/save");
    assert_non_null(strstr(f.question, "preset"));
    expect_message(&f, "/save preset NAME");
    f.answer = 'p';
    app_enter(f.app, "/save");
    assert_string_equal(f.input, "/save preset ");
    f.answer = 'c';
    app_enter(f.app, "/save");
    assert_string_equal(f.input, "/save chat ");
    app_enter(f.app, "/save rain");
    expect_message(&f, "save what?");
    fixture_stop(&f);
}

static void test_presets(void **state)
{
    struct view_ops plain;
    (void)state;

    fixture_start(&f, RAIN);
    app_enter(f.app, "/set temp 1.7");
    app_enter(f.app, "/set seed 42");
    app_enter(f.app, "/system Be wet.");
    app_enter(f.app, "/save preset my rain");
    expect_message(&f, "saved as");
    assert_string_equal(f.app->desk.preset_name, "my rain");
    assert_false(desk_is_changed(&f.app->desk));
    app_enter(f.app, "/preset wild");
    assert_near(value(KNOB_TEMPERATURE), 2, 0);
    assert_null(f.app->conversation->system);
    assert_false(f.app->seed_kept);
    app_enter(f.app, "/preset my rain");
    assert_near(value(KNOB_TEMPERATURE), 1.7, 0);
    assert_string_equal(f.app->conversation->system, "Be wet.");
    assert_int_equal(f.app->kept_seed, 42);
    /* in a conversation that is opened again, too, what a preset says is the preset's */
    fixture_ask(&f, "x");
    char *chat = file_join(f.folder, "rain.jsonl");
    enter_with("/save chat", chat);
    app_enter(f.app, "/preset wild");
    enter_with("/load", chat);
    assert_string_equal(f.app->desk.preset_name, "my rain");
    assert_string_equal(f.app->conversation->system, "Be wet.");
    assert_int_equal(f.app->kept_seed, 42);
    app_enter(f.app, "/preset wild");
    assert_null(f.app->conversation->system);
    app_enter(f.app, "/preset my rain");
    free(chat);

    app_enter(f.app, "/set temp 1.9");
    app_enter(f.app, "/save preset my rain"); /* it exists: asked, and kept */
    assert_int_equal(f.app->severity, SAY_ERROR);
    f.answer = 'r';
    app_enter(f.app, "/save preset my rain");
    expect_message(&f, "saved as");
    app_enter(f.app, "/preset llama.cpp"); /* an order of its own, which a copy keeps */
    struct knobs llama = f.app->control.knobs;
    assert_int_equal(llama.order[STAGE_COUNT - 1], STAGE_TEMPERATURE);
    app_enter(f.app, "/save preset copy");
    app_enter(f.app, "/preset wild");
    app_enter(f.app, "/preset copy");
    assert_memory_equal(f.app->control.knobs.order, llama.order, sizeof llama.order);
    app_enter(f.app, "/preset my rain");
    app_enter(f.app, "/preset poetri");
    assert_int_equal(f.app->severity, SAY_ERROR);
    expect_message(&f, "poetry");
    app_enter(f.app, "/preset");
    assert_int_equal(f.presets_asked, 1);
    plain = *f.app->ops;
    plain.pick_preset = NULL;
    f.app->ops = &plain;
    app_enter(f.app, "/preset");
    expect_page("* my rain");
    expect_page("poetry");
    fixture_stop(&f);
}

static void test_load_settings_of_others(void **state)
{
    (void)state;
    fixture_start(&f, RAIN);
    app_enter(f.app, "/load");
    assert_string_equal(f.page_title, "Conversations");
    expect_page("/load FILE opens one of these");
    char *yaml = fixture_write(&f, "warm.yaml", "temperature: 1.35\ntop_k: 0\n");
    char *modelfile = fixture_write(&f, "Modelfile", "FROM llama3\nPARAMETER temperature 0.35\n");
    enter_with("/load", yaml);
    assert_near(value(KNOB_TEMPERATURE), 1.35, 0);
    assert_string_equal(f.app->desk.preset_name, "warm");
    enter_with("/load", modelfile);
    assert_near(value(KNOB_TEMPERATURE), 0.35, 0);
    app_enter(f.app, "/load wild"); /* no such file: a preset's name */
    assert_near(value(KNOB_TEMPERATURE), 2, 0);
    app_enter(f.app, "/load nothing");
    assert_int_equal(f.app->severity, SAY_ERROR);
    free(yaml);
    free(modelfile);
    fixture_stop(&f);
}

static void test_program(void **state)
{
    struct view_ops none = {.changed = NULL};
    (void)state;

    fixture_start(&f, RAIN);
    app_enter(f.app, "/theme");
    expect_message(&f, "dark (now)");
    app_enter(f.app, "/theme light");
    assert_string_equal(f.theme, "light");
    assert_string_equal(f.app->theme, "light");
    f.refuses = true;
    app_enter(f.app, "/theme mauve");
    expect_message(&f, "no theme mauve");
    assert_string_equal(f.app->theme, "light");
    app_enter(f.app, "/mouse off");
    assert_false(f.mouse);
    app_enter(f.app, "/mouse on");
    assert_true(f.mouse);
    app_enter(f.app, "/mouse");
    expect_message(&f, "the mouse is on");
    app_enter(f.app, "/model other");
    expect_message(&f, "the model cannot be changed here");
    app_enter(f.app, "/model");
    assert_string_equal(f.page_title, "Models");

    f.app->ops = &none; /* a view that can nothing: said, never a crash */
    static const char *const lines[] = {"/theme x", "/mouse on",    "/copy",     "/edit", "/save",
                                        "/preset",  "/help",        "/keys",     "/show", "/model",
                                        "/context", "/export x.md", "/load wild"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        app_enter(f.app, lines[i]);
        assert_true(f.app->message[0] != '\0');
    }
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_others),
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_stats_without_an_answer),
        cmocka_unit_test(test_context_page),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_save_and_load_a_chat),
        cmocka_unit_test(test_save_asks),
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_load_settings_of_others),
        cmocka_unit_test(test_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
