#include "config.h"

#include "config/preset_read.h"

#include <stdint.h>
#include <string.h>

#include "base/nearest.h"
#include "config/preset_reader.h"

/* What a program does where its file is silent (conventions, and the programs' own documentation).
 * Values in the order of enum knob: penalty, temperature, top-k, top-p, min-p, window. */
struct dialect_trait {
    enum dialect dialect;
    const char *name;
    double value[KNOB_COUNT];
    uint8_t order[STAGE_COUNT];
};
static const struct dialect_trait dialect_traits[] = {
    {DIALECT_WEBUI,
     "text-generation-webui",
     {1, 1, 0, 1, 0, 1024},
     {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P}},
    {DIALECT_TAVERN,
     "SillyTavern",
     {1, 1, 0, 1, 0, -1},
     {STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE}},
    {DIALECT_OLLAMA,
     "Ollama",
     {1, 0.8, 40, 0.9, 0, 64},
     {STAGE_PENALTY, STAGE_TOP_K, STAGE_TEMPERATURE, STAGE_TOP_P, STAGE_MIN_P}},
    {DIALECT_HF,
     "Hugging Face",
     {1, 1, 50, 1, 0, -1},
     {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P}},
    {DIALECT_LLAMA,
     "llama.cpp",
     {1, 0.8, 40, 0.95, 0.05, 64},
     {STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE}},
};

static const struct dialect_trait *find_dialect(enum dialect d)
{
    for (size_t i = 0; i < sizeof dialect_traits / sizeof *dialect_traits; i++)
        if (dialect_traits[i].dialect == d)
            return &dialect_traits[i];
    return NULL;
}

const char *dialect_name(enum dialect d)
{
    const struct dialect_trait *t = find_dialect(d);

    return t != NULL ? t->name : "fader";
}

/* ---- the table of keys ---------------------------------------------------------------------- */

enum {
    YAMLS = DIALECT_FADER | DIALECT_WEBUI,
    NOT_OURS = DIALECT_WEBUI | DIALECT_TAVERN | DIALECT_OLLAMA | DIALECT_HF | DIALECT_LLAMA,
    ALL = DIALECT_FADER | NOT_OURS
};

struct key {
    const char *name;
    int dialects;
    preset_take *take;
    int arg;
};
static const struct key keys[] = {
    {"name", DIALECT_FADER, preset_take_name, 0},
    {"description", DIALECT_FADER, preset_take_description, 0},
    {"system", DIALECT_FADER | DIALECT_OLLAMA | DIALECT_LLAMA, preset_take_system, 0},
    {"system_prompt", DIALECT_LLAMA, preset_take_system, 0},
    {"temperature", ALL, preset_take_knob, KNOB_TEMPERATURE},
    {"temp", DIALECT_TAVERN | DIALECT_LLAMA, preset_take_knob, KNOB_TEMPERATURE},
    {"top_k", ALL, preset_take_knob, KNOB_TOP_K},
    {"top_p", ALL, preset_take_knob, KNOB_TOP_P},
    {"min_p", ALL, preset_take_knob, KNOB_MIN_P},
    {"repetition_penalty", YAMLS | DIALECT_TAVERN | DIALECT_HF, preset_take_knob,
     KNOB_REPETITION_PENALTY},
    {"rep_pen", DIALECT_TAVERN, preset_take_knob, KNOB_REPETITION_PENALTY},
    {"repeat_penalty", DIALECT_OLLAMA | DIALECT_LLAMA, preset_take_knob, KNOB_REPETITION_PENALTY},
    {"repetition_penalty_range", YAMLS | DIALECT_TAVERN, preset_take_range, KNOB_REPEAT_LAST_N},
    {"rep_pen_range", DIALECT_TAVERN, preset_take_range, KNOB_REPEAT_LAST_N},
    {"repeat_last_n", DIALECT_FADER | DIALECT_OLLAMA | DIALECT_LLAMA, preset_take_knob,
     KNOB_REPEAT_LAST_N},
    {"penalty_exempt", DIALECT_FADER, preset_take_exempt, 0},
    {"order", DIALECT_FADER, preset_take_order, 0},
    {"samplers", DIALECT_TAVERN | DIALECT_LLAMA, preset_take_order, 0},
    {"sampler_priority", YAMLS | DIALECT_TAVERN, preset_take_order, 0},
    {"sampler_order", DIALECT_TAVERN, preset_take_kobold_order, 0},
    {"temperature_last", YAMLS | DIALECT_TAVERN, preset_take_temperature_last, 0},
    {"do_sample", DIALECT_HF | DIALECT_TAVERN | YAMLS, preset_take_do_sample, 0},
    {"seed", ALL, preset_take_seed, 0},
    {"max_tokens", DIALECT_FADER, preset_take_max_tokens, 0},
    {"max_new_tokens", DIALECT_HF | DIALECT_WEBUI, preset_take_max_tokens, 0},
    {"genamt", DIALECT_TAVERN, preset_take_max_tokens, 0},
    {"num_predict", DIALECT_OLLAMA, preset_take_max_tokens, 0},
    {"predict", DIALECT_LLAMA, preset_take_max_tokens, 0},
    {"try", DIALECT_FADER, preset_take_tries, 0},
};
enum { KEY_COUNT = sizeof keys / sizeof *keys };

static const struct key *find_key(const char *name, enum dialect dialect)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if ((keys[i].dialects & (int)dialect) != 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static void warn_unknown(struct preset_reader *r, const struct node *n)
{
    struct nearest near;

    if (r->dialect != DIALECT_FADER) {
        str_add_format(&r->ignored, "%s%s", r->ignored.len > 0 ? ", " : "", n->key);
        return;
    }
    nearest_init(&near, n->key);
    for (size_t i = 0; i < KEY_COUNT; i++)
        if ((keys[i].dialects & DIALECT_FADER) != 0)
            nearest_offer(&near, keys[i].name);
    if (near.best != NULL)
        PRESET_WARN(r, n, "unknown key \"%s\" ignored: did you mean %s?", n->key, near.best);
    else
        PRESET_WARN(r, n, "unknown key \"%s\" ignored", n->key);
}

/* What the file leaves out is as the program that wrote it would have it. */
static void fill_defaults(struct preset *p, enum dialect dialect)
{
    const struct dialect_trait *t = find_dialect(dialect);

    if (t == NULL)
        return;
    memcpy(p->knobs.value, t->value, sizeof t->value);
    memcpy(p->knobs.order, t->order, sizeof t->order);
    for (int i = 0; i < KNOB_COUNT; i++)
        p->has[i] = true;
    p->knobs.exempt_mode = EXEMPT_NONE;
    p->has_exempt = p->has_order = true;
}

static void finish(struct preset_reader *r)
{
    static const enum knob stage_knob[STAGE_COUNT] = {
        [STAGE_PENALTY] = KNOB_REPETITION_PENALTY,
        [STAGE_TEMPERATURE] = KNOB_TEMPERATURE,
        [STAGE_TOP_K] = KNOB_TOP_K,
        [STAGE_TOP_P] = KNOB_TOP_P,
        [STAGE_MIN_P] = KNOB_MIN_P,
    };
    struct preset *p = r->p;

    for (int i = 0; i < STAGE_COUNT; i++)
        if (r->left_out[i])
            p->knobs.value[stage_knob[i]] = knob_traits[stage_knob[i]].neutral;
    if (r->temperature_last)
        preset_put_temperature_last(p);
    if (r->greedy) {
        p->knobs.value[KNOB_TEMPERATURE] = 0;
        p->has[KNOB_TEMPERATURE] = true;
    }
    if (r->ignored.len > 0) {
        struct error text;
        error_set(&text, "%s: not used by fader: %s", r->file, r->ignored.data);
        preset_warnings_add(r->warnings, text.text);
    }
}

bool preset_read_tree(struct preset *p, const struct node *root, enum dialect dialect,
                      const char *file, struct preset_warnings *warnings, struct error *err)
{
    struct preset_reader r = {
        .p = p, .dialect = dialect, .file = file, .warnings = warnings, .err = err};
    char shown[48];
    bool ok = true;

    if (root->kind != NODE_MAP)
        return node_error(err, file, root, "%s where keys and values should be",
                          node_describe(root, shown));
    fill_defaults(p, dialect);
    for (const struct node *n = root->first; ok && n != NULL; n = n->next) {
        const struct key *key = find_key(n->key, dialect);
        if (key != NULL)
            ok = key->take(&r, n, key->arg);
        else if (!preset_pass_stranger(&r, n))
            warn_unknown(&r, n);
    }
    if (ok)
        finish(&r);
    str_done(&r.ignored);
    return ok;
}

bool preset_tree_is_ours(const struct node *root)
{
    for (const struct node *n = root->first; root->kind == NODE_MAP && n != NULL; n = n->next) {
        const struct key *key = find_key(n->key, DIALECT_FADER);
        if (key != NULL && key->dialects == DIALECT_FADER)
            return true;
    }
    return false;
}

bool preset_key_is_knob(const char *name)
{
    const struct key *key = find_key(name, DIALECT_FADER);

    return key != NULL && (key->take == preset_take_knob || key->take == preset_take_range);
}

bool preset_tree_sets_anything(const struct node *root, enum dialect dialect)
{
    for (const struct node *n = root->first; n != NULL; n = n->next)
        if (find_key(n->key, dialect) != NULL)
            return true;
    return false;
}
