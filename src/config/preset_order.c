/* The order of the stages, in the words and numbers of the programs that have one. */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/preset_reader.h"

static const uint8_t default_order[STAGE_COUNT] = {STAGE_PENALTY, STAGE_TEMPERATURE, STAGE_TOP_K,
                                                   STAGE_TOP_P, STAGE_MIN_P};

/* The samplers that fader lacks stand in other programs' orders, and may: their own keys say
 * whether they are used. */
static const struct {
    const char *name;
    int stage; /* -1: known, not fader's */
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
static const int kobold_stages[] = {STAGE_TOP_K,       -1,           STAGE_TOP_P, -1, -1,
                                    STAGE_TEMPERATURE, STAGE_PENALTY};

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

static bool add_stage(struct preset_reader *r, const struct node *key, const struct node *n,
                      const char *word, int stage, struct stage_order *o)
{
    if (stage == -2 && r->dialect == DIALECT_FADER)
        return node_error(r->err, r->file, n,
                          "%s: \"%s\" is none of penalty, temperature, top_k, top_p, min_p",
                          key->key, word);
    if (stage == -2)
        PRESET_WARN(r, key, "%s: fader has no sampler \"%s\"", key->key, word);
    if (stage < 0)
        return true;
    if (order_index(o, stage) >= 0)
        PRESET_WARN(r, key, "%s: \"%s\" stands there twice: the first counts", key->key, word);
    else
        order_insert(o, o->n, stage);
    return true;
}

static bool use_order(struct preset_reader *r, const struct node *key, struct stage_order *o)
{
    if (order_index(o, STAGE_PENALTY) > 0)
        PRESET_WARN(r, key, "%s: the repetition penalty comes first in fader", key->key);
    if (r->dialect == DIALECT_LLAMA)
        for (int stage = 0; stage < STAGE_COUNT; stage++)
            r->left_out[stage] = order_index(o, stage) < 0;
    order_complete(o);
    if (r->ordered_by != NULL && memcmp(r->p->knobs.order, o->stage, sizeof o->stage) != 0)
        PRESET_WARN(r, key, "%s and %s differ: %s is used", r->ordered_by->key, key->key,
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
bool preset_take_order(struct preset_reader *r, const struct node *n, int arg)
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

bool preset_take_kobold_order(struct preset_reader *r, const struct node *n, int arg)
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
            return node_error(r->err, r->file, c, "%s: %s is not a whole number from 0 to 6",
                              n->key, node_describe(c, shown));
        ok = add_stage(r, n, c, c->text, kobold_stages[(int)value], &o);
    }
    return ok && use_order(r, n, &o);
}

bool preset_take_temperature_last(struct preset_reader *r, const struct node *n, int arg)
{
    char shown[48];
    (void)arg;

    if (n->kind == NODE_NULL || node_truth(n, &r->temperature_last))
        return true;
    return node_error(r->err, r->file, n, "%s: %s is neither true nor false", n->key,
                      node_describe(n, shown));
}

void preset_put_temperature_last(struct preset *p)
{
    struct stage_order o = {.n = STAGE_COUNT};

    memcpy(o.stage, p->knobs.order, sizeof o.stage);
    order_remove(&o, order_index(&o, STAGE_TEMPERATURE));
    order_insert(&o, o.n, STAGE_TEMPERATURE);
    memcpy(p->knobs.order, o.stage, sizeof o.stage);
    p->has_order = true;
}
