/* A preset as YAML: the keys that it has, in the order of fader-presets(5), numbers in their
 * shortest form. */
#include "config.h"

#include <stdlib.h>

#include "base/str.h"
#include "config/preset.h"
#include "config/yaml.h"

static void add_text(struct node *map, const char *key, const char *text)
{
    if (text != NULL)
        node_add_text(map, key, text, true);
}

static void add_word(struct node *map, const char *key, const char *word)
{
    node_add_text(map, key, word, false);
}

static void add_number(struct node *map, const char *key, double value)
{
    char text[32];

    number_format(value, text);
    add_word(map, key, text);
}

/* The window is written as text-generation-webui has it, 0 for everything; only "off" has no word
 * there. */
static void add_knobs(struct node *map, const struct preset *p)
{
    static const enum knob shown[] = {KNOB_TEMPERATURE, KNOB_TOP_K, KNOB_TOP_P, KNOB_MIN_P,
                                      KNOB_REPETITION_PENALTY};
    double range = p->knobs.value[KNOB_REPEAT_LAST_N];

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (p->has[shown[i]])
            add_number(map, knob_traits[shown[i]].name, p->knobs.value[shown[i]]);
    if (!p->has[KNOB_REPEAT_LAST_N])
        return;
    if (range == 0)
        add_word(map, "repetition_penalty_range", "off");
    else
        add_number(map, "repetition_penalty_range", range < 0 ? 0 : range);
}

static void add_exempt(struct node *map, const struct knobs *k)
{
    if (k->exempt_mode != EXEMPT_LIST) {
        add_word(map, "penalty_exempt", k->exempt_mode == EXEMPT_NONE ? "none" : "punctuation");
        return;
    }
    struct node *list = node_add(map, "penalty_exempt", NODE_LIST);
    for (int i = 0; i < k->n_exempt; i++)
        add_number(list, "", k->exempt[i]);
}

/* The names that text-generation-webui uses, so that the file serves there, too. */
static void add_order(struct node *map, const struct knobs *k)
{
    static const char *const words[STAGE_COUNT] = {
        [STAGE_PENALTY] = "repetition_penalty",
        [STAGE_TEMPERATURE] = "temperature",
        [STAGE_TOP_K] = "top_k",
        [STAGE_TOP_P] = "top_p",
        [STAGE_MIN_P] = "min_p",
    };
    struct node *list = node_add(map, "sampler_priority", NODE_LIST);

    for (int i = 0; i < STAGE_COUNT; i++)
        add_word(list, "", words[k->order[i]]);
}

void preset_format(const struct preset *p, struct str *out)
{
    struct node *root = node_new(NODE_MAP);

    add_text(root, "name", p->name);
    add_text(root, "description", p->description);
    add_knobs(root, p);
    if (p->has_exempt)
        add_exempt(root, &p->knobs);
    if (p->has_order)
        add_order(root, &p->knobs);
    if (p->seed >= 0)
        add_number(root, "seed", (double)p->seed);
    if (p->max_tokens != 0)
        add_number(root, "max_tokens", p->max_tokens);
    add_text(root, "system", p->system);
    if (p->tries != NULL && *p->tries != NULL) {
        struct node *list = node_add(root, "try", NODE_LIST);
        for (char **t = p->tries; *t != NULL; t++)
            add_text(list, "", *t);
    }
    yaml_format(root, out);
    node_free(root);
}
