#include "config.h"

#include "cli/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "cli/json.h"
#include "cli/options.h"
#include "config/paths.h"

struct models_options {
    bool json, help;
};

#define AT(field) offsetof(struct models_options, field)

static const struct option_spec specs[] = {
    {"json", 0, NULL, "JSON, one object a line", option_flag, AT(json), 0, 0},
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader models",
    .usage = "[--json]",
    .about =
        "The GGUF files found on this computer: fader's own, those of Hugging Face, llama.cpp,\n"
        "Ollama and LM Studio, and those in the working folder. -m takes such a name, or a part\n"
        "of it that no other has.",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

static const char *format_size(unsigned long long bytes, char out[24])
{
    if (bytes >= 1000000000ull)
        snprintf(out, 24, "%.1f GB", (double)bytes / 1e9);
    else
        snprintf(out, 24, "%.0f MB", (double)bytes / 1e6);
    return out;
}

/* File names are hostile. */
static void print_clean(const char *text, int width)
{
    struct str s = STR_INIT;

    utf8_add_clean(&s, text, strlen(text));
    if (s.len > 0)
        utf8_hide_controls(s.data);
    printf("%-*s", width, str_text(&s));
    str_done(&s);
}

static void print_table(const struct model_file_list *list)
{
    char size[24];
    size_t width = 0;

    for (size_t i = 0; i < list->n; i++)
        width = strlen(list->items[i].name) > width ? strlen(list->items[i].name) : width;
    if (width > 48)
        width = 48;
    for (size_t i = 0; i < list->n; i++) {
        const struct model_file *m = &list->items[i];
        print_clean(m->name, (int)width);
        printf("  %8s  %-12s  ", format_size(m->size, size), m->where);
        print_clean(m->path, 0);
        putchar('\n');
    }
}

static void print_json(const struct model_file_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct model_file *m = &list->items[i];
        cJSON *object = cJSON_CreateObject();
        json_add_text(object, "name", m->name, strlen(m->name));
        cJSON_AddNumberToObject(object, "size", (double)m->size);
        cJSON_AddStringToObject(object, "where", m->where);
        json_add_text(object, "path", m->path, strlen(m->path));
        json_print_line(object);
    }
}

int cmd_models(int argc, char **argv)
{
    struct models_options o = {false, false};
    struct model_file_list list;
    struct str help = STR_INIT;
    int status;

    if (options_open(&table, argc, argv, &o, &o.help, &status) < 0)
        return status;
    models_find(&list);
    if (o.json)
        print_json(&list);
    else if (list.n > 0)
        print_table(&list);
    else {
        models_explain(&help);
        fputs(str_text(&help), stdout);
    }
    model_file_list_done(&list);
    str_done(&help);
    return EXIT_SUCCESS;
}
