#include "config.h"

#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"

/* ---- numbers --------------------------------------------------------------------------------- */

bool options_parse_number(const char *text, double *out)
{
    char *end;

    /* strtod would also take blanks, hexadecimal, "nan" and "inf". */
    if (*text == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

bool options_parse_whole(const char *text, double min, double max, int64_t *out)
{
    char *end;

    if (*text == '\0' || text[strspn(text, "0123456789+-")] != '\0')
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' || errno != 0 || (double)value < min || (double)value > max)
        return false;
    *out = value;
    return true;
}

/* ---- taking values --------------------------------------------------------------------------- */

bool option_flag(const struct option_spec *spec, const char *value, void *field, struct error *err)
{
    (void)spec, (void)value, (void)err;
    *(bool *)field = true;
    return true;
}

bool option_text(const struct option_spec *spec, const char *value, void *field, struct error *err)
{
    (void)spec, (void)err;
    *(const char **)field = value;
    return true;
}

bool option_optional(const struct option_spec *spec, const char *value, void *field,
                     struct error *err)
{
    return option_text(spec, value != NULL ? value : "", field, err);
}

bool option_int64(const struct option_spec *spec, const char *value, void *field, struct error *err)
{
    if (options_parse_whole(value, spec->min, spec->max, field))
        return true;
    return error_set(err, "--%s: '%s' is not a whole number from %.0f to %.0f", spec->name, value,
                     spec->min, spec->max);
}

bool option_int(const struct option_spec *spec, const char *value, void *field, struct error *err)
{
    int64_t wide = 0;

    if (!option_int64(spec, value, &wide, err))
        return false;
    *(int32_t *)field = (int32_t)wide; /* within the row's min and max */
    return true;
}

bool option_cache_type(const struct option_spec *spec, const char *value, void *field,
                       struct error *err)
{
    if (strcmp(value, "f16") == 0)
        *(int *)field = CACHE_F16;
    else if (strcmp(value, "q8_0") == 0)
        *(int *)field = CACHE_Q8_0;
    else
        return error_set(err, "--%s: '%s' is not a cache type: f16 or q8_0", spec->name, value);
    return true;
}

bool option_knob(const struct option_spec *spec, const char *value, void *field, struct error *err)
{
    struct knob_layer *layer = field;
    enum knob knob = (enum knob)(int)spec->min;
    double number;

    if (!options_parse_number(value, &number))
        return error_set(err, "--%s: '%s' is not a number", spec->name, value);
    if (!knob_check(knob, number, 0, err))
        return error_prefix(err, "--%s", spec->name);
    layer->has[knob] = true;
    layer->value[knob] = number;
    return true;
}

/* Keeps the list sorted by n; of two moves of one knob at one n the later one counts, and stands
 * later. */
static void move_list_add(struct move_list *list, struct move move)
{
    size_t at = list->n;

    mem_grow(&list->items, &list->cap, list->n + 1, sizeof *list->items);
    while (at > 0 && list->items[at - 1].n > move.n)
        at--;
    memmove(list->items + at + 1, list->items + at, (list->n - at) * sizeof *list->items);
    list->items[at] = move;
    list->n++;
}

bool option_moves(const struct option_spec *spec, const char *value, void *field, struct error *err)
{
    const char *colon = strchr(value, ':'), *equals = strchr(value, '=');
    struct move move = {0};
    char name[64], number[32];
    int64_t n;

    if (colon == NULL || equals == NULL || equals < colon ||
        (size_t)(colon - value) >= sizeof number || (size_t)(equals - colon) > sizeof name)
        return error_set(err, "--%s: '%s' is not N:KNOB=VALUE", spec->name, value);
    memcpy(number, value, (size_t)(colon - value));
    number[colon - value] = '\0';
    memcpy(name, colon + 1, (size_t)(equals - colon - 1));
    name[equals - colon - 1] = '\0';

    if (!options_parse_whole(number, 0, INT32_MAX, &n))
        return error_set(err, "--%s %s: '%s' is not the number of an answer token (0, 1, ...)",
                         spec->name, value, number);
    int knob = knob_find(name);
    if (knob < 0)
        return error_set(err, "--%s %s: '%s' is not a knob", spec->name, value, name);
    if (!options_parse_number(equals + 1, &move.value))
        return error_set(err, "--%s %s: '%s' is not a number", spec->name, value, equals + 1);
    if (!knob_check((enum knob)knob, move.value, 0, err))
        return error_prefix(err, "--%s %s", spec->name, value);
    move.n = (int32_t)n;
    move.knob = (enum knob)knob;
    move_list_add(field, move);
    return true;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static const struct option_spec *find_spec(const struct option_table *table, const char *name,
                                           int letter)
{
    for (size_t i = 0; i < table->n; i++)
        if (name != NULL ? strcmp(table->specs[i].name, name) == 0
                         : table->specs[i].letter == letter)
            return &table->specs[i];
    return NULL;
}

static bool needs_argument(const struct option_spec *spec)
{
    return spec != NULL && spec->argument != NULL && spec->argument[0] != '[';
}

/* Whether the word after argv[i] is the value of argv[i]. */
static bool takes_next_word(const struct option_table *table, const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return false;
    if (word[1] == '-')
        return needs_argument(find_spec(table, word + 2, 0));
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct option_spec *spec = find_spec(table, NULL, *letter);
        if (needs_argument(spec))
            return letter[1] == '\0';
    }
    return false;
}

/* llama.cpp's -sys is more than one letter behind one dash: getopt would read "-s ys". */
static void rewrite_sys(const struct option_table *table, int argc, char **argv)
{
    static char long_form[] = "--system-prompt";

    if (find_spec(table, long_form + 2, 0) == NULL)
        return;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-sys") == 0)
            argv[i] = long_form;
        if (takes_next_word(table, argv[i]))
            i++;
    }
}

static int has_arg(const struct option_spec *spec)
{
    return needs_argument(spec)     ? required_argument
           : spec->argument != NULL ? optional_argument
                                    : no_argument;
}

/* getopt's two descriptions of the table. The long options' values are indices from 256 on. */
static struct option *describe(const struct option_table *table, struct str *letters)
{
    struct option *longs = mem_array(table->n + 1, sizeof *longs);

    str_add_char(letters, ':');
    for (size_t i = 0; i < table->n; i++) {
        const struct option_spec *spec = &table->specs[i];
        longs[i] = (struct option){spec->name, has_arg(spec), NULL, 256 + (int)i};
        if (spec->letter != 0) {
            str_add_char(letters, (char)spec->letter);
            if (needs_argument(spec))
                str_add_char(letters, ':');
        }
    }
    return longs;
}

/* "--tmep": no such option, but one that is near. */
static bool refuse_unknown(const struct option_table *table, const char *word, struct error *err)
{
    struct nearest nearest;
    char name[NEAREST_MAX_LEN + 1];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    nearest_init(&nearest, name);
    for (size_t i = 0; i < table->n; i++)
        if (table->specs[i].help != NULL)
            nearest_offer(&nearest, table->specs[i].name);
    if (nearest.best != NULL)
        return error_set(err, "--%s: no such option; did you mean --%s?", name, nearest.best);
    return error_set(err, "--%s: no such option", name);
}

static bool refuse(const struct option_table *table, int got, char **argv, struct error *err)
{
    const char *word = argv[optind - 1];

    if (got == ':' && optopt >= 256)
        return error_set(err, "%s: needs a value", word);
    if (got == ':')
        return error_set(err, "-%c: needs a value", optopt);
    if (optopt >= 256)
        return error_set(err, "%s: takes no value", word);
    if (optopt != 0)
        return error_set(err, "-%c: no such option", optopt);
    return refuse_unknown(table, word, err);
}

int options_parse(const struct option_table *table, int argc, char **argv, void *out,
                  struct error *err)
{
    struct str letters = STR_INIT;
    struct option *longs = describe(table, &letters);
    int got, result = -1;

    rewrite_sys(table, argc, argv);
    opterr = 0;
    optind = 0; /* glibc and musl: start anew, permutation included */
    while ((got = getopt_long(argc, argv, letters.data, longs, NULL)) != -1) {
        if (got == ':' || got == '?') {
            refuse(table, got, argv, err);
            goto done;
        }
        const struct option_spec *spec =
            got >= 256 ? &table->specs[got - 256] : find_spec(table, NULL, got);
        if (!spec->take(spec, optarg, (char *)out + spec->at, err))
            goto done;
    }
    result = optind;
    if (optind < argc && !table->operands) {
        error_set(err, "%s: not expected here (text of several words needs quotes)", argv[optind]);
        result = -1;
    }
done:
    free(longs);
    str_done(&letters);
    return result;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void describe_spec(const struct option_spec *spec, struct str *out)
{
    if (spec->letter != 0)
        str_add_format(out, "-%c, ", spec->letter);
    else
        str_add_text(out, "    ");
    str_add_format(out, "--%s", spec->name);
    if (spec->argument != NULL)
        str_add_format(out, "%s%s", spec->argument[0] == '[' ? "" : " ", spec->argument);
}

void options_print_list(const struct option_table *table, FILE *to)
{
    struct str left = STR_INIT;

    fprintf(to, "\noptions:\n");
    for (size_t i = 0; i < table->n; i++) {
        if (table->specs[i].help == NULL)
            continue;
        str_clear(&left);
        describe_spec(&table->specs[i], &left);
        fprintf(to, "  %-28s %s\n", left.data, table->specs[i].help);
    }
    str_done(&left);
}

void options_print_help(const struct option_table *table, FILE *to)
{
    fprintf(to, "usage: %s %s\n", table->command, table->usage);
    if (table->about != NULL)
        fprintf(to, "%s\n", table->about);
    options_print_list(table, to);
}

int options_open(const struct option_table *table, int argc, char **argv, void *out,
                 const bool *help, int *status)
{
    struct error err;
    int first = options_parse(table, argc, argv, out, &err);

    if (first < 0) {
        *status = cli_fail_usage(&err, table);
        return -1;
    }
    if (*help) {
        options_print_help(table, stdout);
        *status = EXIT_SUCCESS;
        return -1;
    }
    return first;
}

int cli_fail(const struct error *err)
{
    fprintf(stderr, "fader: %s\n", err->text);
    return EXIT_FAILURE;
}

int cli_fail_usage(const struct error *err, const struct option_table *table)
{
    fprintf(stderr, "fader: %s\n", err->text);
    if (table != NULL)
        fprintf(stderr, "'%s --help' lists the options.\n", table->command);
    return EXIT_USAGE;
}

/* ---- the program's own table ----------------------------------------------------------------- */

#define AT(field) offsetof(struct options, field)
#define KNOB(name, argument, help, knob)                                                           \
    {                                                                                              \
        name, 0, argument, help, option_knob, AT(knobs), knob, 0                                   \
    }

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "a GGUF file, or the name of one found (fader models)", option_text,
     AT(model), 0, 0},
    {"prompt", 'p', "TEXT", "one answer to TEXT on standard output, no chat", option_text,
     AT(prompt), 0, 0},
    {"file", 'f', "FILE", "append FILE to the prompt ('-': standard input)", option_text, AT(file),
     0, 0},
    {"system-prompt", 0, "TEXT", "the system prompt; also -sys TEXT", option_text, AT(system), 0,
     0},
    {"predict", 'n', "N", "at most N tokens (-1: no limit; 128 with -p)", option_int, AT(predict),
     -1, INT32_MAX},
    {"n-predict", 0, "N", NULL, option_int, AT(predict), -1, INT32_MAX},
    {"ctx-size", 'c', "N", "positions in the context (0: the model's, up to 8,192)", option_int,
     AT(ctx_size), 0, 1 << 30},
    {"threads", 't', "N", "compute threads (0: one per core)", option_int, AT(threads), 0, 256},
    {"batch-size", 'b', "N", "prompt tokens per batch (0: 512)", option_int, AT(batch_size), 0,
     65536},
    {"seed", 's', "N", "seed of the draws (-1: random)", option_int64, AT(seed), -1, UINT32_MAX},
    KNOB("temp", "T", "temperature, 0 (greedy) to 5", KNOB_TEMPERATURE),
    KNOB("temperature", "T", NULL, KNOB_TEMPERATURE),
    KNOB("top-k", "N", "keep the N likeliest tokens (0: off)", KNOB_TOP_K),
    KNOB("top-p", "P", "keep the nucleus of probability P, 0 to 1 (1: off)", KNOB_TOP_P),
    KNOB("min-p", "P", "drop what is below P times the likeliest, 0 to 1 (0: off)", KNOB_MIN_P),
    KNOB("repeat-penalty", "R", "repetition penalty, 0.5 to 3 (1: off)", KNOB_REPETITION_PENALTY),
    KNOB("repeat-last-n", "N", "tokens it looks back on (-1: all, 0: off)", KNOB_REPEAT_LAST_N),
    {"at", 0, "N:KNOB=VALUE", "move a knob at answer token N (repeatable)", option_moves, AT(moves),
     0, 0},
    {"preset", 0, "NAME", "start from a preset (fader presets list)", option_text, AT(preset), 0,
     0},
    {"theme", 0, "NAME", "the colours of the chat", option_text, AT(theme), 0, 0},
    {"cache-type", 0, "TYPE", "the KV cache's numbers: f16 or q8_0", option_cache_type,
     AT(cache_type), 0, 0},
    {"no-repack", 0, NULL, "run from the file's map: less memory, slower", option_flag,
     AT(no_repack), 0, 0},
    {"raw", 0, NULL, "with -p: no chat template", option_flag, AT(raw), 0, 0},
    {"events", 0, NULL, "with -p: one JSON object a line for all that happens", option_flag,
     AT(events), 0, 0},
    {"continue", 0, "[=FILE]", "reopen the last conversation, or FILE", option_optional, AT(reopen),
     0, 0},
    {"no-save", 0, NULL, "keep no transcript of the chat", option_flag, AT(no_save), 0, 0},
    {"plain", 0, NULL, "a line-by-line chat, no screen", option_flag, AT(plain), 0, 0},
    {"backend", 0, "KIND:FILE", NULL, option_text, AT(backend), 0, 0}, /* for tests */
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
    {"version", 0, NULL, "the version", option_flag, AT(version), 0, 0},
};

const struct option_table fader_options = {
    .command = "fader",
    .usage = "[options]",
    .about = NULL,
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

void options_init(struct options *o)
{
    memset(o, 0, sizeof *o);
    o->predict = PREDICT_UNSET;
    o->seed = SEED_UNSET;
    o->cache_type = -1;
}

void options_done(struct options *o)
{
    free(o->moves.items);
    memset(o, 0, sizeof *o);
}
