#include "config.h"

#include "config/settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "config/paths.h"
#include "config/preset_read.h"
#include "config/yaml.h"
#include "engine/engine.h"

const char *origin_name(enum origin o)
{
    static const char *const names[ORIGIN_COUNT] = {
        [ORIGIN_BUILT_IN] = "built in",         [ORIGIN_MODEL] = "model file",
        [ORIGIN_SETTINGS] = "settings",         [ORIGIN_PRESET] = "preset",
        [ORIGIN_COMMAND_LINE] = "command line", [ORIGIN_SLIDER] = "slider",
    };
    return names[o];
}

struct reader {
    struct settings *s;
    const char *file;
    struct preset_warnings *warnings;
    struct error *err;
};

struct setting {
    const char *name;
    bool (*read)(struct reader *r, const struct setting *what, const struct node *n);
    size_t at;                /* of the field in struct settings */
    double min, max;          /* of a number */
    const char *const *words; /* of a choice: NULL-terminated, in the order of its values */
};

#define FIELD(r, what, type) ((type *)(void *)((char *)(r)->s + (what)->at))

static bool read_text(struct reader *r, const struct setting *what, const struct node *n)
{
    char shown[48];

    if (n->kind == NODE_NULL)
        return true;
    if (n->kind != NODE_SCALAR)
        return node_error(r->err, r->file, n, "%s: %s is not a text", n->key,
                          node_describe(n, shown));
    char **field = FIELD(r, what, char *);
    free(*field);
    *field = mem_strdup(n->text);
    return true;
}

static bool read_whole(struct reader *r, const struct setting *what, const struct node *n)
{
    char shown[48];
    double value;

    if (!node_number(n, &value) || value != trunc(value) || value < what->min || value > what->max)
        return node_error(r->err, r->file, n, "%s: %s is not a whole number from %.0f to %.0f",
                          n->key, node_describe(n, shown), what->min, what->max);
    *FIELD(r, what, int32_t) = (int32_t)value;
    return true;
}

static bool read_truth(struct reader *r, const struct setting *what, const struct node *n)
{
    char shown[48];

    if (!node_truth(n, FIELD(r, what, bool)))
        return node_error(r->err, r->file, n, "%s: %s is neither on nor off", n->key,
                          node_describe(n, shown));
    return true;
}

/* Finds the word; on refusal the message lists them all. */
static bool read_word(struct reader *r, const struct setting *what, const struct node *n,
                      int *value)
{
    struct str list = STR_INIT;
    char shown[48];

    for (int i = 0; what->words[i] != NULL; i++) {
        if (n->kind == NODE_SCALAR && strcmp(n->text, what->words[i]) == 0) {
            *value = i;
            str_done(&list);
            return true;
        }
        str_add_format(&list, "%s%s", i > 0 ? ", " : "", what->words[i]);
    }
    node_error(r->err, r->file, n, "%s: %s is none of %s", n->key, node_describe(n, shown),
               str_text(&list));
    str_done(&list);
    return false;
}

static bool read_choice(struct reader *r, const struct setting *what, const struct node *n)
{
    return read_word(r, what, n, FIELD(r, what, int));
}

static bool read_glyphs(struct reader *r, const struct setting *what, const struct node *n)
{
    int value;

    if (!read_word(r, what, n, &value))
        return false;
    r->s->glyphs = (enum glyph_set)value;
    return true;
}

static bool read_on_full(struct reader *r, const struct setting *what, const struct node *n)
{
    int value;

    if (!read_word(r, what, n, &value))
        return false;
    r->s->drop_oldest = value == 0;
    return true;
}

/* "full", or tokens a second. */
static bool read_pace(struct reader *r, const struct setting *what, const struct node *n)
{
    char shown[48];
    double value = 0;

    if ((n->kind != NODE_SCALAR || strcmp(n->text, "full") != 0) &&
        (!node_number(n, &value) || value < what->min || value > what->max))
        return node_error(r->err, r->file, n,
                          "%s: %s is neither full nor a number of tokens a second from %g to %g",
                          n->key, node_describe(n, shown), what->min, what->max);
    r->s->pace = value;
    return true;
}

static const char *const cache_words[] = {"f16", "q8_0", NULL};
static const char *const glyph_words[] = {"auto", "unicode", "cp437", "ascii", NULL};
static const char *const full_words[] = {"drop", "stop", NULL};
const char *const prefill_words[] = {"auto", "on", "off", NULL};
static const char *const panel_words[] = {"desk", "strip", "bare", NULL};

#define AT(field) offsetof(struct settings, field)
static const struct setting table[] = {
    {"model", read_text, AT(model), 0, 0, NULL},
    {"preset", read_text, AT(preset), 0, 0, NULL},
    {"theme", read_text, AT(theme), 0, 0, NULL},
    {"system", read_text, AT(system), 0, 0, NULL},
    {"ctx_size", read_whole, AT(ctx_size), 16, 1 << 24, NULL},
    {"threads", read_whole, AT(threads), 1, 512, NULL},
    {"batch_size", read_whole, AT(batch_size), 1, 1 << 16, NULL},
    {"cache_type", read_choice, AT(cache_type), 0, 0, cache_words},
    {"glyphs", read_glyphs, AT(glyphs), 0, 0, glyph_words},
    {"mouse", read_truth, AT(mouse), 0, 0, NULL},
    {"save", read_truth, AT(save), 0, 0, NULL},
    {"on_full", read_on_full, AT(drop_oldest), 0, 0, full_words},
    {"pace", read_pace, AT(pace), 0.1, 1000, NULL},
    {"panel", read_choice, AT(panel), 0, 0, panel_words},
    {"prefill_while_typing", read_choice, AT(prefill), 0, 0, prefill_words},
};
enum { N_SETTINGS = sizeof table / sizeof *table };
_Static_assert(CACHE_F16 == 0 && CACHE_Q8_0 == 1, "cache_words is in the order of enum cache_type");

static const struct setting *find_setting(const char *name)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static void warn_unknown(struct reader *r, const struct node *n)
{
    struct error text;
    struct nearest near;

    nearest_init(&near, n->key);
    for (size_t i = 0; i < N_SETTINGS; i++)
        nearest_offer(&near, table[i].name);
    for (int i = 0; i < KNOB_COUNT; i++)
        nearest_offer(&near, knob_traits[i].name);
    if (near.best != NULL)
        node_key_error(&text, r->file, n, "unknown setting \"%s\" ignored: did you mean %s?",
                       n->key, near.best);
    else
        node_key_error(&text, r->file, n, "unknown setting \"%s\" ignored", n->key);
    preset_warnings_add(r->warnings, text.text);
}

/* Knobs have the keys, the words and the ranges that they have in presets. */
static bool take_knobs(struct reader *r, const struct node *root)
{
    struct node map = {.kind = NODE_MAP};
    struct preset *p = preset_new("settings");
    struct node **tail = &map.first;
    bool ok;

    for (const struct node *n = root->first; n != NULL; n = n->next) {
        if (!preset_key_is_knob(n->key))
            continue;
        *tail = mem_dup(n, sizeof *n);
        (*tail)->next = NULL;
        tail = &(*tail)->next;
    }
    ok = preset_read_tree(p, &map, DIALECT_FADER, r->file, r->warnings, r->err);
    for (int i = 0; ok && i < KNOB_COUNT; i++) {
        r->s->has[i] = p->has[i];
        r->s->knob[i] = p->knobs.value[i];
    }
    for (struct node *n = map.first, *next; n != NULL; n = next) {
        next = n->next;
        free(n);
    }
    preset_free(p);
    return ok;
}

static bool read_tree(struct reader *r, const struct node *root)
{
    char shown[48];
    bool ok =
        root->kind == NODE_MAP || node_error(r->err, r->file, root, "%s where settings should be",
                                             node_describe(root, shown));

    for (const struct node *n = root->first; ok && n != NULL; n = n->next) {
        const struct setting *what = find_setting(n->key);
        if (what != NULL)
            ok = what->read(r, what, n);
        else if (!preset_key_is_knob(n->key))
            warn_unknown(r, n);
    }
    return ok && take_knobs(r, root);
}

bool settings_load(struct settings *s, struct preset_warnings *warnings, struct error *err)
{
    char *path = paths_config("config.yaml");
    bool ok = true;

    *s = (struct settings){.cache_type = -1, .mouse = true, .save = true, .prefill = -1};
    if (access(path, F_OK) == 0 || errno != ENOENT) {
        struct reader r = {.s = s, .file = path, .warnings = warnings, .err = err};
        struct node *root = yaml_load(path, err);
        ok = root != NULL && read_tree(&r, root);
        node_free(root);
    }
    free(path);
    return ok;
}

void settings_done(struct settings *s)
{
    free(s->model);
    free(s->preset);
    free(s->theme);
    free(s->system);
    s->model = s->preset = s->theme = s->system = NULL;
}
