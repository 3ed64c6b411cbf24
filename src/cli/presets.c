#include "config.h"

#include "cli/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/str.h"
#include "cli/json.h"
#include "cli/options.h"
#include "config/preset.h"

struct presets_options {
    bool json, help;
};

#define AT(field) offsetof(struct presets_options, field)

static const struct option_spec specs[] = {
    {"json", 0, NULL, "JSON, one object a line", option_flag, AT(json), 0, 0},
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader presets",
    .usage = "[list | show NAME | check FILE... | import FILE] [--json]",
    .about =
        "list: the presets that there are. show: one of them, as YAML. check: whether a file is a\n"
        "preset, and what is odd about it. import: another program's file (text-generation-webui,\n"
        "SillyTavern, KoboldAI, an Ollama Modelfile, generation_config.json, llama.cpp flags) as "
        "a\n"
        "preset of fader on standard output; FILE may be - for standard input.",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
    .operands = true,
};

static void say_warnings(const struct preset_warnings *w)
{
    for (size_t i = 0; i < w->n; i++)
        fprintf(stderr, "fader: warning: %s\n", w->items[i]);
}

/* ---- a preset as JSON ----------------------------------------------------------------------- */

static void add_strings(cJSON *object, const char *key, char *const *items, size_t n)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);

    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(items[i]));
}

static void add_text(cJSON *object, const char *key, const char *text)
{
    if (text != NULL)
        cJSON_AddStringToObject(object, key, text);
}

static void add_exempt(cJSON *object, const struct knobs *k)
{
    if (k->exempt_mode != EXEMPT_LIST) {
        add_text(object, "penalty_exempt", k->exempt_mode == EXEMPT_NONE ? "none" : "punctuation");
        return;
    }
    cJSON *list = cJSON_AddArrayToObject(object, "penalty_exempt");
    for (int i = 0; i < k->n_exempt; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(k->exempt[i]));
}

/* Every knob, also those that the file left to the built-in value. repeat_last_n counts as on the
 * command line: -1 everything, 0 off. */
static cJSON *preset_json(const struct preset *p)
{
    cJSON *object = cJSON_CreateObject(), *order;
    size_t n_tries = 0;

    add_text(object, "name", p->name);
    add_text(object, "path", p->path);
    add_text(object, "description", p->description);
    for (int i = 0; i < KNOB_COUNT; i++)
        cJSON_AddNumberToObject(object, knob_traits[i].name, p->knobs.value[i]);
    add_exempt(object, &p->knobs);
    order = cJSON_AddArrayToObject(object, "order");
    for (int i = 0; i < STAGE_COUNT; i++)
        cJSON_AddItemToArray(order, cJSON_CreateString(stage_name((enum stage)p->knobs.order[i])));
    cJSON_AddNumberToObject(object, "seed", (double)p->seed);
    if (p->max_tokens != 0)
        cJSON_AddNumberToObject(object, "max_tokens", p->max_tokens);
    add_text(object, "system", p->system);
    while (p->tries != NULL && p->tries[n_tries] != NULL)
        n_tries++;
    if (n_tries > 0)
        add_strings(object, "try", p->tries, n_tries);
    return object;
}

/* ---- list ----------------------------------------------------------------------------------- */

static void print_entry_json(const struct preset_entry *e)
{
    cJSON *object = cJSON_CreateObject();

    add_text(object, "name", e->name);
    add_text(object, "path", e->path);
    add_text(object, "description", e->description);
    add_text(object, "problem", e->problem);
    cJSON_AddBoolToObject(object, "user", e->user);
    json_print_line(object);
}

static int list_presets(bool json)
{
    struct preset_list list;
    size_t width = 0;

    preset_list_all(&list);
    for (size_t i = 0; i < list.n; i++)
        width = strlen(list.items[i].name) > width ? strlen(list.items[i].name) : width;
    for (size_t i = 0; i < list.n; i++) {
        const struct preset_entry *e = &list.items[i];
        if (json)
            print_entry_json(e);
        else if (e->problem != NULL)
            printf("%-*s  does not load: %s\n", (int)width, e->name, e->problem);
        else
            printf("%-*s  %s%s\n", (int)width, e->name, e->user ? "(yours) " : "",
                   e->description != NULL ? e->description : "");
    }
    preset_list_done(&list);
    return EXIT_SUCCESS;
}

/* ---- show, import --------------------------------------------------------------------------- */

/* Prints what was loaded, or says why it was not. Takes `p`; NULL: `err` says why. */
static int print_preset(struct preset *p, struct preset_warnings *warnings, const struct error *err,
                        bool json)
{
    struct str text = STR_INIT;

    if (p == NULL) {
        preset_warnings_done(warnings);
        return cli_fail(err);
    }
    if (json) {
        cJSON *object = preset_json(p);
        if (warnings->n > 0)
            add_strings(object, "warnings", warnings->items, warnings->n);
        json_print_line(object);
    } else {
        say_warnings(warnings);
        preset_format(p, &text);
        fputs(str_text(&text), stdout);
    }
    str_done(&text);
    preset_warnings_done(warnings);
    preset_free(p);
    return EXIT_SUCCESS;
}

static int show_preset(const char *name, bool json)
{
    struct preset_warnings warnings = {NULL, 0, 0};
    struct error err;

    return print_preset(preset_load(name, &warnings, &err), &warnings, &err, json);
}

static int import_preset(const char *path, bool json)
{
    struct preset_warnings warnings = {NULL, 0, 0};
    struct error err;

    return print_preset(preset_import(path, &warnings, &err), &warnings, &err, json);
}

/* ---- check ---------------------------------------------------------------------------------- */

static bool check_preset(const char *path, bool json)
{
    struct preset_warnings warnings = {NULL, 0, 0};
    struct error err = {""};
    struct preset *p = preset_load_file(path, &warnings, &err);

    if (json) {
        cJSON *object = cJSON_CreateObject();
        add_text(object, "file", path);
        cJSON_AddBoolToObject(object, "ok", p != NULL);
        if (p == NULL)
            add_text(object, "error", err.text);
        add_strings(object, "warnings", warnings.items, warnings.n);
        json_print_line(object);
    } else {
        say_warnings(&warnings);
        if (p == NULL)
            cli_fail(&err);
        else
            printf("%s: a preset, %s\n", path, warnings.n > 0 ? "with warnings" : "without fault");
    }
    preset_warnings_done(&warnings);
    preset_free(p);
    return p != NULL;
}

static int check_presets(int n, char **paths, bool json)
{
    bool ok = true;

    for (int i = 0; i < n; i++)
        ok &= check_preset(paths[i], json);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the command ---------------------------------------------------------------------------- */

static int run(const char *action, int n, char **operands, bool json)
{
    static const char *const actions[] = {"list", "show", "check", "import"};
    struct nearest near;
    struct error err;

    if (strcmp(action, "list") == 0 && n == 0)
        return list_presets(json);
    if (strcmp(action, "show") == 0 && n == 1)
        return show_preset(operands[0], json);
    if (strcmp(action, "check") == 0 && n > 0)
        return check_presets(n, operands, json);
    if (strcmp(action, "import") == 0 && n == 1)
        return import_preset(operands[0], json);
    nearest_init(&near, action);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        nearest_offer(&near, actions[i]);
    if (near.best == NULL)
        error_set(&err, "presets: \"%s\" is none of list, show, check, import", action);
    else if (strcmp(near.best, action) != 0)
        error_set(&err, "presets: \"%s\": did you mean %s?", action, near.best);
    else if (strcmp(action, "list") == 0)
        error_set(&err, "presets list: takes no name");
    else
        error_set(&err, "presets %s: takes %s", action,
                  strcmp(action, "show") == 0    ? "the name of one preset"
                  : strcmp(action, "check") == 0 ? "one file or more"
                                                 : "one file");
    return cli_fail_usage(&err, &table);
}

int cmd_presets(int argc, char **argv)
{
    struct presets_options o = {false, false};
    int status, first = options_open(&table, argc, argv, &o, &o.help, &status);

    if (first < 0)
        return status;
    if (first == argc)
        return list_presets(o.json);
    return run(argv[first], argc - first - 1, argv + first + 1, o.json);
}
