#include "config.h"

#include "app/command_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "config/paths.h"
#include "config/theme.h"

const struct command commands[] = {
    {"help", "?", "[COMMAND]", "what there is to type", COMPLETE_COMMAND, command_help},
    {"keys", "", "", "what there is to press", COMPLETE_NONE, command_keys},
    {"new", "", "", "begin a new conversation; this one stays saved", COMPLETE_NONE, command_new},
    {"clear", "", "", "empty the context, in the same conversation", COMPLETE_NONE, command_clear},
    {"retry", "regen regenerate", "[same]", "answer again with a new seed, or with the same dice",
     COMPLETE_NONE, command_retry},
    {"undo", "", "", "take back your last message and its answer", COMPLETE_NONE, command_undo},
    {"edit", "", "", "change your last message; the earlier version is kept", COMPLETE_NONE,
     command_edit},
    {"system", "", "[TEXT|none|reset]", "show or set the system prompt", COMPLETE_NONE,
     command_system},
    {"set", "", "[NAME [VALUE]]", "set a knob, or another value that /show lists", COMPLETE_KNOB,
     command_set},
    {"show", "", "", "every value, and where it came from", COMPLETE_NONE, command_show},
    {"preset", "presets", "[NAME]", "choose a preset", COMPLETE_PRESET, command_preset},
    {"save", "", "[preset NAME | chat FILE]", "save the knobs or the conversation", COMPLETE_NONE,
     command_save},
    {"load", "", "[FILE|PRESET]", "open a conversation, a preset, or another program's settings",
     COMPLETE_FILE, command_load},
    {"model", "models", "[NAME]", "show or change the model", COMPLETE_MODEL, command_model},
    {"theme", "themes", "[NAME]", "show or change the theme", COMPLETE_THEME, command_theme},
    {"mouse", "", "on|off", "let the terminal have its mouse back", COMPLETE_ON_OFF, command_mouse},
    {"stats", "", "", "what the last answer took", COMPLETE_NONE, command_stats},
    {"context", "", "", "what the context holds and costs: the KV ledger", COMPLETE_NONE,
     command_context},
    {"copy", "", "[code|N]", "copy the last answer, its code, or the Nth answer from the end",
     COMPLETE_NONE, command_copy},
    {"export", "", "FILE", "write the conversation as .md, .txt or .json", COMPLETE_FILE,
     command_export},
    {"quit", "exit bye q", "", "leave", COMPLETE_NONE, command_quit},
};
const size_t n_commands = sizeof commands / sizeof commands[0];

/* ---- words ----------------------------------------------------------------------------------- */

static const char blanks[] = " \t\r\n";

char *command_word(const char *args, const char **rest)
{
    size_t len = strcspn(args, blanks);

    *rest = args + len + strspn(args + len, blanks);
    return mem_strndup(args, len);
}

/* A copy without blanks at either end. */
static char *trim(const char *text)
{
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len > 0 && strchr(blanks, text[len - 1]) != NULL)
        len--;
    return mem_strndup(text, len);
}

/* Calls `each` for every blank-separated alias until it returns true. */
static bool has_alias(const struct command *c, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = c->aliases; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, name, n) == 0)
            return true;
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < n_commands; i++) {
        if (strcmp(commands[i].name, name) == 0 || (*name != '\0' && has_alias(&commands[i], name)))
            return &commands[i];
    }
    return NULL;
}

void command_run(struct app *app, const char *line)
{
    const char *rest;
    char *name = command_word(line + 1, &rest);
    const struct command *c = command_find(name);

    if (c != NULL) {
        char *args = trim(rest);
        c->run(app, args);
        free(args);
    } else {
        struct nearest near;
        nearest_init(&near, name);
        for (size_t i = 0; i < n_commands; i++)
            nearest_offer(&near, commands[i].name);
        if (near.best != NULL)
            app_say(app, SAY_WARNING, "no command /%s; did you mean /%s?", name, near.best);
        else
            app_say(app, SAY_WARNING,
                    "no command /%s; /help lists them, and // sends a line that begins with /",
                    name);
    }
    free(name);
}

/* ---- shared ---------------------------------------------------------------------------------- */

void command_page(struct app *app, const char *title, const struct str *text)
{
    if (app->ops != NULL && app->ops->show_page != NULL) {
        app->ops->show_page(app->ops_ctx, title, str_text(text));
        return;
    }
    size_t len = strcspn(str_text(text), "\n");
    app_say(app, SAY_INFO, "%s: %.*s", title, (int)len, str_text(text));
}

char command_ask(struct app *app, const char *question, const char *keys)
{
    char answer = '\0';

    if (app->ops == NULL || app->ops->confirm_choice == NULL ||
        !app->ops->confirm_choice(app->ops_ctx, question, keys, &answer))
        return '\0';
    return answer;
}

int command_on_off(const char *word)
{
    static const char *const words[] = {"off", "on", "no", "yes", "false", "true", "0", "1"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0)
            return (int)(i % 2);
    }
    return -1;
}

char *command_path(const char *typed)
{
    const char *home = getenv("HOME");

    if (strncmp(typed, "~/", 2) == 0 && home != NULL)
        return file_join(home, typed + 2);
    return mem_strdup(typed);
}

/* ---- completion ------------------------------------------------------------------------------ */

struct words {
    char **items;
    size_t n, cap;
    const char *begin; /* what they must begin with */
};

static void offer(struct words *w, const char *text)
{
    if (strncmp(text, w->begin, strlen(w->begin)) != 0)
        return;
    mem_grow(&w->items, &w->cap, w->n + 2, sizeof *w->items);
    w->items[w->n++] = mem_strdup(text);
    w->items[w->n] = NULL;
}

static void offer_commands(struct words *w, const char *prefix)
{
    char name[64];

    for (size_t i = 0; i < n_commands; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, commands[i].name);
        offer(w, name);
    }
}

static void offer_knobs(struct words *w)
{
    for (int i = 0; i < KNOB_COUNT; i++)
        offer(w, knob_traits[i].name);
    for (size_t i = 0; command_set_names[i] != NULL; i++)
        offer(w, command_set_names[i]);
}

static void offer_presets(struct words *w)
{
    struct preset_list list = {NULL, 0, 0};

    preset_list_all(&list);
    for (size_t i = 0; i < list.n; i++)
        offer(w, list.items[i].name);
    preset_list_done(&list);
}

static void offer_transcripts(struct words *w)
{
    char *folder = app_transcripts_folder();
    struct transcript_list list;

    transcript_list_find(folder, 20, &list);
    for (size_t i = 0; i < list.n; i++)
        offer(w, strrchr(list.items[i].path, '/') + 1);
    transcript_list_done(&list);
    free(folder);
}

static void offer_themes(struct words *w)
{
    char **names = theme_names();

    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        offer(w, names[i]);
    paths_list_free(names);
}

static void offer_models(struct words *w)
{
    struct model_file_list list = {NULL, 0, 0};

    models_find(&list);
    for (size_t i = 0; i < list.n; i++)
        offer(w, list.items[i].name);
    model_file_list_done(&list);
}

static void offer_first_argument(const struct command *c, struct words *w)
{
    switch (c->completion) {
    case COMPLETE_KNOB:
        offer_knobs(w);
        break;
    case COMPLETE_PRESET:
        offer_presets(w);
        break;
    case COMPLETE_THEME:
        offer_themes(w);
        break;
    case COMPLETE_MODEL:
        offer_models(w);
        break;
    case COMPLETE_COMMAND:
        offer_commands(w, "");
        break;
    case COMPLETE_ON_OFF:
        offer(w, "on");
        offer(w, "off");
        break;
    case COMPLETE_FILE:
        if (c->run == command_load) {
            offer_presets(w);
            offer_transcripts(w);
        }
        break;
    case COMPLETE_NONE:
        break;
    }
}

/* What stands where the table does not reach: words that are part of the syntax,
 * second arguments. */
static const struct {
    const char *before; /* the line up to the word */
    const char *words[4];
} fixed_words[] = {
    {"/save ", {"preset", "chat", NULL}},
    {"/retry ", {"same", NULL}},
    {"/copy ", {"code", NULL}},
    {"/set on_full ", {"drop", "stop", NULL}},
    {"/set prefill_while_typing ", {"auto", "on", "off", NULL}},
    {"/set pause ", {"on", "off", NULL}},
    {"/set seed ", {"random", NULL}},
    {"/set pace ", {"full", NULL}},
    {"/system ", {"none", "reset", NULL}},
    {"/set max_tokens ", {"unlimited", NULL}},
};

char **command_complete(struct app *app, const char *line, size_t start, const char *word)
{
    struct words w = {NULL, 0, 0, word};

    (void)app;
    if (line[0] != '/')
        return NULL;
    if (start == 0 || start == 1) {
        offer_commands(&w, start == 0 ? "/" : "");
        return w.items;
    }
    for (size_t i = 0; i < sizeof fixed_words / sizeof fixed_words[0]; i++) {
        const char *before = fixed_words[i].before;
        if (strlen(before) != start || strncmp(line, before, start) != 0)
            continue;
        for (const char *const *at = fixed_words[i].words; *at != NULL; at++)
            offer(&w, *at);
    }
    const char *rest;
    char *name = command_word(line + 1, &rest);
    const struct command *c = command_find(name);
    if (c != NULL && (size_t)(rest - line) == start)
        offer_first_argument(c, &w);
    free(name);
    return w.items;
}

bool command_completes_file(const char *line, size_t start)
{
    const char *rest;

    if (line[0] != '/' || start < 2)
        return false;
    char *name = command_word(line + 1, &rest);
    const struct command *c = command_find(name);
    bool file = c != NULL && c->completion == COMPLETE_FILE && (size_t)(rest - line) == start;
    if (c != NULL && c->run == command_save)
        file = strncmp(rest, "chat ", 5) == 0 && (size_t)(rest - line) + 5 == start;
    free(name);
    return file;
}
