#include "config.h"

#include "config/preset_read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"
#include "base/utf8.h"

struct reader {
    struct preset *p;
    enum dialect dialect;
    const char *file;
    struct preset_warnings *warnings;
    struct error *err;
    const struct node *set_by[KNOB_COUNT];   /* the key that set it, for contradictions */
    const struct node *ordered_by;
    bool temperature_last;
    bool left_out[STAGE_COUNT];              /* by an order in which that means off (llama.cpp) */
    bool greedy;                             /* do_sample: false */
    struct str ignored;                      /* another program's keys that fader has no use for */
};

static const uint8_t default_order[STAGE_COUNT] = {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K,
                                                   STAGE_TOP_P, STAGE_MIN_P};

/* What a program does where its file is silent (conventions, and the programs' own documentation).
 * Values in the order of enum knob: penalty, temperature, top-k, top-p, min-p, window. */
struct dialect_trait {
    enum dialect dialect;
    const char *name;
    double value[KNOB_COUNT];
    uint8_t order[STAGE_COUNT];
};
static const struct dialect_trait dialect_traits[] = {
    {DIALECT_WEBUI, "text-generation-webui", {1, 1, 0, 1, 0, 1024},
     {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P}},
    {DIALECT_TAVERN, "SillyTavern", {1, 1, 0, 1, 0, -1},
     {STAGE_PENALTY, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P, STAGE_TEMPERATURE}},
    {DIALECT_OLLAMA, "Ollama", {1, 0.8, 40, 0.9, 0, 64},
     {STAGE_PENALTY, STAGE_TOP_K, STAGE_TEMPERATURE, STAGE_TOP_P, STAGE_MIN_P}},
    {DIALECT_HF, "Hugging Face", {1, 1, 50, 1, 0, -1},
     {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K, STAGE_TOP_P, STAGE_MIN_P}},
    {DIALECT_LLAMA, "llama.cpp", {1, 0.8, 40, 0.95, 0.05, 64},
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

/* A warning is an error that does not stop anything: the same text, kept. */
#define WARN(r, where, ...)                                       \
    do {                                                          \
        struct error warn_text_;                                  \
        node_key_error(&warn_text_, (r)->file, where, __VA_ARGS__); \
        preset_warnings_add((r)->warnings, warn_text_.text);      \
    } while (0)

/* ---- knobs ---------------------------------------------------------------------------------- */

static bool is_word(const struct node *n, const char *word)
{
    return n->kind == NODE_SCALAR && !n->quoted && strcmp(n->text, word) == 0;
}

static bool set_knob(struct reader *r, const struct node *n, enum knob knob, double value)
{
    struct error why;
    const struct node *twin = r->set_by[knob];

    if (!knob_check(knob, value, 0, &why))
        return node_error(r->err, r->file, n, "%s", why.text);
    if (twin != NULL && twin->key != NULL && strcmp(twin->key, n->key) != 0 &&
        r->p->knobs.value[knob] != value) {
        if (r->dialect == DIALECT_FADER)
            return node_key_error(r->err, r->file, n, "%s and %s contradict each other", twin->key,
                                  n->key);
        WARN(r, n, "%s and %s contradict each other: %s is used", twin->key, n->key, n->key);
    }
    r->p->knobs.value[knob] = value;
    r->p->has[knob] = true;
    r->set_by[knob] = n;
    return true;
}

static bool read_knob(struct reader *r, const struct node *n, int arg)
{
    const struct knob_trait *trait = &knob_traits[arg];
    char shown[48];
    double value;

    if (n->kind == NODE_NULL && r->dialect != DIALECT_FADER)
        return true;
    if (is_word(n, "off") && arg != KNOB_TEMPERATURE)
        value = arg == KNOB_REPEAT_LAST_N ? 0 : trait->neutral;
    else if (!node_number(n, &value))
        return node_error(r->err, r->file, n, "%s: %s is not a number%s", n->key,
                          node_describe(n, shown), arg == KNOB_TEMPERATURE ? "" : " or off");
    if (arg == KNOB_TOP_K && value < 0 && r->dialect != DIALECT_FADER)
        value = 0;   /* elsewhere -1 is off, too */
    return set_knob(r, n, (enum knob)arg, value);
}

/* A range of 0 is everything here, where fader's own -1 is; fader's 0 is off. */
static bool read_range(struct reader *r, const struct node *n, int arg)
{
    char shown[48];
    double value;

    if (n->kind == NODE_NULL && r->dialect != DIALECT_FADER)
        return true;
    if (is_word(n, "off"))
        return set_knob(r, n, KNOB_REPEAT_LAST_N, 0);
    if (!node_number(n, &value))
        return node_error(r->err, r->file, n, "%s: %s is not a number or off", n->key,
                          node_describe(n, shown));
    return set_knob(r, n, (enum knob)arg, value == 0 ? -1 : value);
}

/* ---- texts and counts ----------------------------------------------------------------------- */

/* A text that a terminal may be shown: no control characters (C0, DEL, C1) but tab and newline, those
 * only where told. */
static bool check_text(struct reader *r, const struct node *n, bool lines)
{
    char shown[48];

    if (n->kind != NODE_SCALAR)
        return node_error(r->err, r->file, n, "%s: %s is not a text", n->key != NULL ? n->key : "try",
                          node_describe(n, shown));
    size_t len = strlen(n->text);
    uint32_t c;
    for (size_t i = 0; i < len;) {
        i += utf8_decode(n->text + i, len - i, &c, NULL);
        if ((c < 0x20 || (c >= 0x7f && c < 0xa0)) && !(lines && (c == '\n' || c == '\t')))
            return node_error(r->err, r->file, n, "%s: holds a control character",
                              n->key != NULL ? n->key : "try");
    }
    return true;
}

static bool read_name(struct reader *r, const struct node *n, int arg)
{
    struct error why;
    (void)arg;

    if (!check_text(r, n, false))
        return false;
    if (!preset_check_name(n->text, &why))
        return node_error(r->err, r->file, n, "%s", why.text);
    free(r->p->name);
    r->p->name = mem_strdup(n->text);
    return true;
}

static bool read_description(struct reader *r, const struct node *n, int arg)
{
    (void)arg;
    if (n->kind == NODE_NULL)
        return true;
    if (!check_text(r, n, false))
        return false;
    free(r->p->description);
    r->p->description = mem_strdup(n->text);
    return true;
}

static bool read_system(struct reader *r, const struct node *n, int arg)
{
    (void)arg;
    if (n->kind == NODE_NULL)
        return true;
    if (!check_text(r, n, true))
        return false;
    free(r->p->system);
    r->p->system = mem_strdup(n->text);
    return true;
}

static bool read_whole(struct reader *r, const struct node *n, double min, double max, double *out)
{
    char shown[48];

    if (!node_number(n, out))
        return node_error(r->err, r->file, n, "%s: %s is not a number", n->key,
                          node_describe(n, shown));
    if (*out != trunc(*out) || *out < min || *out > max)
        return node_error(r->err, r->file, n, "%s: %s is not a whole number from %.0f to %.0f",
                          n->key, n->text, min, max);
    return true;
}

static bool read_seed(struct reader *r, const struct node *n, int arg)
{
    double value;
    (void)arg;

    if (n->kind == NODE_NULL)
        return true;
    if (!read_whole(r, n, -1, UINT32_MAX, &value))
        return false;
    r->p->seed = (int64_t)value;
    return true;
}

static bool read_max_tokens(struct reader *r, const struct node *n, int arg)
{
    double value;
    (void)arg;

    if (n->kind == NODE_NULL)
        return true;
    /* Ollama: -2 fills the context, which is until the end here. */
    if (!read_whole(r, n, r->dialect == DIALECT_FADER ? -1 : -2, INT32_MAX, &value))
        return false;
    r->p->max_tokens = value < 0 ? -1 : (int32_t)value;
    return true;
}

static bool read_exempt_list(struct reader *r, const struct node *list)
{
    struct knobs *k = &r->p->knobs;
    char shown[48];
    double id;

    k->n_exempt = 0;
    for (const struct node *n = list->first; n != NULL; n = n->next) {
        if (!node_number(n, &id) || id != trunc(id) || id < 0 || id > INT32_MAX)
            return node_error(r->err, r->file, n, "%s: %s is not a token id", list->key,
                              node_describe(n, shown));
        if (k->n_exempt == EXEMPT_LIST_MAX)
            return node_error(r->err, r->file, n, "%s: more than %d ids", list->key,
                              EXEMPT_LIST_MAX);
        k->exempt[k->n_exempt++] = (int32_t)id;
    }
    k->exempt_mode = EXEMPT_LIST;
    return true;
}

static bool read_exempt(struct reader *r, const struct node *n, int arg)
{
    char shown[48];
    (void)arg;

    r->p->has_exempt = true;
    if (n->kind == NODE_LIST)
        return read_exempt_list(r, n);
    if (is_word(n, "punctuation"))
        r->p->knobs.exempt_mode = EXEMPT_PUNCTUATION;
    else if (is_word(n, "none"))
        r->p->knobs.exempt_mode = EXEMPT_NONE;
    else
        return node_error(r->err, r->file, n,
                          "%s: %s is neither punctuation, none nor a list of token ids", n->key,
                          node_describe(n, shown));
    return true;
}

static bool read_tries(struct reader *r, const struct node *n, int arg)
{
    char shown[48];
    size_t count = 0;
    (void)arg;

    if (n->kind == NODE_NULL)
        return true;
    if (n->kind != NODE_LIST)
        return node_error(r->err, r->file, n, "%s: %s is not a list of prompts", n->key,
                          node_describe(n, shown));
    for (const struct node *c = n->first; c != NULL; c = c->next, count++)
        if (!check_text(r, c, true))
            return false;
    r->p->tries = mem_array(count + 1, sizeof *r->p->tries);
    count = 0;
    for (const struct node *c = n->first; c != NULL; c = c->next)
        r->p->tries[count++] = mem_strdup(c->text);
    return true;
}

/* Greedy is temperature 0; the temperature beside it is not used. */
static bool read_do_sample(struct reader *r, const struct node *n, int arg)
{
    bool sample = true;
    char shown[48];
    (void)arg;

    if (n->kind != NODE_NULL && !node_truth(n, &sample))
        return node_error(r->err, r->file, n, "%s: %s is neither true nor false", n->key,
                          node_describe(n, shown));
    r->greedy = !sample;
    return true;
}

/* ---- the order of the stages ---------------------------------------------------------------- */

/* The samplers that fader lacks stand in other programs' orders, and may: their own keys say whether
 * they are used. */
static const struct {
    const char *name;
    int stage;               /* -1: known, not fader's */
} stage_words[] = {
    {"penalty", STAGE_PENALTY},
    {"penalties", STAGE_PENALTY},
    {"repetition_penalty", STAGE_PENALTY},
    {"temperature", STAGE_TEMPERATURE},
    {"temp", STAGE_TEMPERATURE},
    {"top_k", STAGE_TOP_K},
    {"top-k", STAGE_TOP_K},
    {"top_p", STAGE_TOP_P},
    {"top-p", STAGE_TOP_P},
    {"min_p", STAGE_MIN_P},
    {"min-p", STAGE_MIN_P},
    {"presence_penalty", -1},
    {"frequency_penalty", -1},
    {"encoder_repetition_penalty", -1},
    {"no_repeat_ngram", -1},
    {"dry", -1},
    {"xtc", -1},
    {"typ_p", -1},
    {"typical_p", -1},
    {"tfs", -1},
    {"tfs_z", -1},
    {"top_a", -1},
    {"top_n_sigma", -1},
    {"top_h", -1},
    {"adaptive_p", -1},
    {"infill", -1},
    {"mirostat", -1},
    {"dynamic_temperature", -1},
    {"quadratic_sampling", -1},
    {"epsilon_cutoff", -1},
    {"eta_cutoff", -1},
};

/* KoboldAI's numbers: top_k, top_a, top_p, tfs, typical, temperature, repetition penalty. */
static const int kobold_stages[] = {STAGE_TOP_K, -1, STAGE_TOP_P, -1, -1, STAGE_TEMPERATURE,
                                    STAGE_PENALTY};

/* A stage, -1 for another program's sampler, -2 for no sampler at all. */
static int find_stage(const char *word)
{
    for (size_t i = 0; i < sizeof stage_words / sizeof *stage_words; i++)
        if (strcmp(word, stage_words[i].name) == 0)
            return stage_words[i].stage;
    return -2;
}

/* The stages that were named, in order, completed to a permutation. */
struct stage_order {
    uint8_t stage[STAGE_COUNT];
    int n;
};

static int order_index(const struct stage_order *o, int stage)
{
    for (int i = 0; i < o->n; i++)
        if (o->stage[i] == stage)
            return i;
    return -1;
}

static void order_insert(struct stage_order *o, int at, int stage)
{
    memmove(o->stage + at + 1, o->stage + at, (size_t)(o->n - at));
    o->stage[at] = (uint8_t)stage;
    o->n++;
}

static void order_remove(struct stage_order *o, int at)
{
    o->n--;
    memmove(o->stage + at, o->stage + at + 1, (size_t)(o->n - at));
}

/* One that was left out goes behind the one that it follows in the default chain. */
static void order_complete(struct stage_order *o)
{
    int at = order_index(o, STAGE_PENALTY);

    if (at >= 0)
        order_remove(o, at);
    order_insert(o, 0, STAGE_PENALTY);
    for (int i = 1; i < STAGE_COUNT; i++)
        if (order_index(o, default_order[i]) < 0)
            order_insert(o, order_index(o, default_order[i - 1]) + 1, default_order[i]);
}

static bool add_stage(struct reader *r, const struct node *key, const struct node *n,
                      const char *word, int stage, struct stage_order *o)
{
    if (stage == -2 && r->dialect == DIALECT_FADER)
        return node_error(r->err, r->file, n,
                          "%s: \"%s\" is none of penalty, temperature, top_k, top_p, min_p",
                          key->key, word);
    if (stage == -2)
        WARN(r, key, "%s: fader has no sampler \"%s\"", key->key, word);
    if (stage < 0)
        return true;
    if (order_index(o, stage) >= 0)
        WARN(r, key, "%s: \"%s\" stands there twice: the first counts", key->key, word);
    else
        order_insert(o, o->n, stage);
    return true;
}

static bool use_order(struct reader *r, const struct node *key, struct stage_order *o)
{
    if (order_index(o, STAGE_PENALTY) > 0)
        WARN(r, key, "%s: the repetition penalty comes first in fader", key->key);
    if (r->dialect == DIALECT_LLAMA)
        for (int stage = 0; stage < STAGE_COUNT; stage++)
            r->left_out[stage] = order_index(o, stage) < 0;
    order_complete(o);
    if (r->ordered_by != NULL && memcmp(r->p->knobs.order, o->stage, sizeof o->stage) != 0)
        WARN(r, key, "%s and %s differ: %s is used", r->ordered_by->key, key->key,
             r->ordered_by->key);
    if (r->ordered_by == NULL) {
        memcpy(r->p->knobs.order, o->stage, sizeof o->stage);
        r->ordered_by = key;
    }
    r->p->has_order = true;
    return true;
}

/* A list of names, or one text with a name a line (text-generation-webui) or between semicolons
 * (llama.cpp). */
static bool read_order(struct reader *r, const struct node *n, int arg)
{
    struct stage_order o = {.n = 0};
    char shown[48];
    bool ok = true;
    (void)arg;

    if (n->kind == NODE_NULL)
        return true;
    if (n->kind == NODE_LIST) {
        for (const struct node *c = n->first; ok && c != NULL; c = c->next)
            ok = c->kind == NODE_SCALAR
                     ? add_stage(r, n, c, c->text, find_stage(c->text), &o)
                     : node_error(r->err, r->file, c, "%s: %s is not the name of a sampler", n->key,
                                  node_describe(c, shown));
    } else if (n->kind == NODE_SCALAR) {
        char *copy = mem_strdup(n->text), *rest = copy, *word;
        while (ok && (word = strsep(&rest, ";\n\t ,")) != NULL)
            if (*word != '\0')
                ok = add_stage(r, n, n, word, find_stage(word), &o);
        free(copy);
    } else {
        ok = node_error(r->err, r->file, n, "%s: a map is not an order", n->key);
    }
    return ok && use_order(r, n, &o);
}

static bool read_kobold_order(struct reader *r, const struct node *n, int arg)
{
    struct stage_order o = {.n = 0};
    char shown[48];
    double value;
    bool ok = true;
    (void)arg;

    if (n->kind == NODE_NULL)
        return true;
    if (n->kind != NODE_LIST)
        return node_error(r->err, r->file, n, "%s: %s is not a list", n->key,
                          node_describe(n, shown));
    for (const struct node *c = n->first; ok && c != NULL; c = c->next) {
        size_t count = sizeof kobold_stages / sizeof *kobold_stages;
        if (!node_number(c, &value) || value != trunc(value) || value < 0 || value >= (double)count)
            return node_error(r->err, r->file, c, "%s: %s is not a whole number from 0 to 6", n->key,
                              node_describe(c, shown));
        ok = add_stage(r, n, c, c->text, kobold_stages[(int)value], &o);
    }
    return ok && use_order(r, n, &o);
}

static bool read_temperature_last(struct reader *r, const struct node *n, int arg)
{
    char shown[48];
    (void)arg;

    if (n->kind == NODE_NULL || node_truth(n, &r->temperature_last))
        return true;
    return node_error(r->err, r->file, n, "%s: %s is neither true nor false", n->key,
                      node_describe(n, shown));
}

/* ---- samplers that fader lacks -------------------------------------------------------------- */

/* Silent at their neutral values, as other programs write them out; NAN: only tunes another one. */
static const struct {
    const char *name;
    double neutral, also;
} strangers[] = {
    {"typical_p", 1, 0},
    {"typical", 1, 0},
    {"typ_p", 1, 0},
    {"tfs", 1, 0},
    {"tfs_z", 1, 0},
    {"top_a", 0, 0},
    {"top_n_sigma", 0, -1},
    {"nsigma", 0, -1},
    {"top_h", 0, 0},
    {"adaptive_target", -1, 0},
    {"adaptive_decay", NAN, NAN},
    {"mirostat", 0, 0},
    {"mirostat_mode", 0, 0},
    {"mirostat_tau", NAN, NAN},
    {"mirostat_eta", NAN, NAN},
    {"dry_multiplier", 0, 0},
    {"dry_base", NAN, NAN},
    {"dry_allowed_length", NAN, NAN},
    {"dry_sequence_breakers", NAN, NAN},
    {"dry_penalty_last_n", NAN, NAN},
    {"xtc_probability", 0, 0},
    {"xtc_threshold", NAN, NAN},
    {"dynamic_temperature", 0, 0},
    {"dynatemp", 0, 0},
    {"dynatemp_low", NAN, NAN},
    {"dynatemp_high", NAN, NAN},
    {"min_temp", NAN, NAN},
    {"max_temp", NAN, NAN},
    {"dynatemp_range", 0, 0},
    {"dynatemp_exponent", NAN, NAN},
    {"smoothing_factor", 0, 0},
    {"smoothing_curve", NAN, NAN},
    {"epsilon_cutoff", 0, 0},
    {"eta_cutoff", 0, 0},
    {"no_repeat_ngram_size", 0, 0},
    {"encoder_repetition_penalty", 1, 0},
    {"encoder_rep_pen", 1, 0},
    {"presence_penalty", 0, 0},
    {"presence_pen", 0, 0},
    {"frequency_penalty", 0, 0},
    {"freq_pen", 0, 0},
    {"rep_pen_slope", 0, 1},
    {"rep_pen_decay", NAN, NAN},
    {"penalty_alpha", 0, 0},
    {"guidance_scale", 1, 0},
    {"num_beams", 1, 0},
    {"num_beam_groups", 1, 0},
    {"diversity_penalty", 0, 0},
    {"length_penalty", 1, 0},
    {"early_stopping", 0, 0},
    {"skew", 0, 0},
    {"min_length", 0, 0},
    {"min_keep", 0, 0},
};

/* True when `n` was a sampler that fader lacks; warned about unless it does nothing there. */
static bool pass_stranger(struct reader *r, const struct node *n)
{
    char shown[48];
    double value;
    bool truth;

    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        if (strcmp(n->key, strangers[i].name) != 0)
            continue;
        if (n->kind == NODE_NULL || isnan(strangers[i].neutral))
            return true;
        if (node_truth(n, &truth))
            value = truth;
        else if (!node_number(n, &value))
            value = NAN;
        if (value != strangers[i].neutral && value != strangers[i].also)
            WARN(r, n, "%s: %s: fader has no such sampler; ignored", n->key,
                 node_describe(n, shown));
        return true;
    }
    return false;
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
    bool (*read)(struct reader *r, const struct node *n, int arg);
    int arg;
};
static const struct key keys[] = {
    {"name", DIALECT_FADER, read_name, 0},
    {"description", DIALECT_FADER, read_description, 0},
    {"system", DIALECT_FADER | DIALECT_OLLAMA | DIALECT_LLAMA, read_system, 0},
    {"system_prompt", DIALECT_LLAMA, read_system, 0},
    {"temperature", ALL, read_knob, KNOB_TEMPERATURE},
    {"temp", DIALECT_TAVERN | DIALECT_LLAMA, read_knob, KNOB_TEMPERATURE},
    {"top_k", ALL, read_knob, KNOB_TOP_K},
    {"top_p", ALL, read_knob, KNOB_TOP_P},
    {"min_p", ALL, read_knob, KNOB_MIN_P},
    {"repetition_penalty", YAMLS | DIALECT_TAVERN | DIALECT_HF, read_knob, KNOB_REPETITION_PENALTY},
    {"rep_pen", DIALECT_TAVERN, read_knob, KNOB_REPETITION_PENALTY},
    {"repeat_penalty", DIALECT_OLLAMA | DIALECT_LLAMA, read_knob, KNOB_REPETITION_PENALTY},
    {"repetition_penalty_range", YAMLS | DIALECT_TAVERN, read_range, KNOB_REPEAT_LAST_N},
    {"rep_pen_range", DIALECT_TAVERN, read_range, KNOB_REPEAT_LAST_N},
    {"repeat_last_n", DIALECT_FADER | DIALECT_OLLAMA | DIALECT_LLAMA, read_knob,
     KNOB_REPEAT_LAST_N},
    {"penalty_exempt", DIALECT_FADER, read_exempt, 0},
    {"order", DIALECT_FADER, read_order, 0},
    {"samplers", DIALECT_TAVERN | DIALECT_LLAMA, read_order, 0},
    {"sampler_priority", YAMLS | DIALECT_TAVERN, read_order, 0},
    {"sampler_order", DIALECT_TAVERN, read_kobold_order, 0},
    {"temperature_last", YAMLS | DIALECT_TAVERN, read_temperature_last, 0},
    {"do_sample", DIALECT_HF | DIALECT_TAVERN | YAMLS, read_do_sample, 0},
    {"seed", ALL, read_seed, 0},
    {"max_tokens", DIALECT_FADER, read_max_tokens, 0},
    {"max_new_tokens", DIALECT_HF | DIALECT_WEBUI, read_max_tokens, 0},
    {"genamt", DIALECT_TAVERN, read_max_tokens, 0},
    {"num_predict", DIALECT_OLLAMA, read_max_tokens, 0},
    {"predict", DIALECT_LLAMA, read_max_tokens, 0},
    {"try", DIALECT_FADER, read_tries, 0},
};
enum { KEY_COUNT = sizeof keys / sizeof *keys };

static const struct key *find_key(const char *name, enum dialect dialect)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if ((keys[i].dialects & (int)dialect) != 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static void warn_unknown(struct reader *r, const struct node *n)
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
        WARN(r, n, "unknown key \"%s\" ignored: did you mean %s?", n->key, near.best);
    else
        WARN(r, n, "unknown key \"%s\" ignored", n->key);
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

static void finish(struct reader *r)
{
    static const enum knob stage_knob[STAGE_COUNT] = {
        [STAGE_PENALTY] = KNOB_REPETITION_PENALTY, [STAGE_TEMPERATURE] = KNOB_TEMPERATURE,
        [STAGE_TOP_K] = KNOB_TOP_K,                [STAGE_TOP_P] = KNOB_TOP_P,
        [STAGE_MIN_P] = KNOB_MIN_P,
    };
    struct preset *p = r->p;

    for (int i = 0; i < STAGE_COUNT; i++)
        if (r->left_out[i])
            p->knobs.value[stage_knob[i]] = knob_traits[stage_knob[i]].neutral;
    if (r->temperature_last) {
        struct stage_order o = {.n = STAGE_COUNT};
        memcpy(o.stage, p->knobs.order, sizeof o.stage);
        order_remove(&o, order_index(&o, STAGE_TEMPERATURE));
        order_insert(&o, o.n, STAGE_TEMPERATURE);
        memcpy(p->knobs.order, o.stage, sizeof o.stage);
        p->has_order = true;
    }
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
    struct reader r = {.p = p, .dialect = dialect, .file = file, .warnings = warnings, .err = err};
    char shown[48];
    bool ok = true;

    if (root->kind != NODE_MAP)
        return node_error(err, file, root, "%s where keys and values should be",
                          node_describe(root, shown));
    fill_defaults(p, dialect);
    for (const struct node *n = root->first; ok && n != NULL; n = n->next) {
        const struct key *key = find_key(n->key, dialect);
        if (key != NULL)
            ok = key->read(&r, n, key->arg);
        else if (!pass_stranger(&r, n))
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

    return key != NULL && (key->read == read_knob || key->read == read_range);
}

bool preset_tree_sets_anything(const struct node *root, enum dialect dialect)
{
    for (const struct node *n = root->first; n != NULL; n = n->next)
        if (find_key(n->key, dialect) != NULL)
            return true;
    return false;
}
