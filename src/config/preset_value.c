/* The values of a preset's keys: knobs, texts, counts. */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "config/preset_reader.h"

/* ---- knobs ---------------------------------------------------------------------------------- */

static bool is_word(const struct node *n, const char *word)
{
    return n->kind == NODE_SCALAR && !n->quoted && strcmp(n->text, word) == 0;
}

static bool set_knob(struct preset_reader *r, const struct node *n, enum knob knob, double value)
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
        PRESET_WARN(r, n, "%s and %s contradict each other: %s is used", twin->key, n->key, n->key);
    }
    r->p->knobs.value[knob] = value;
    r->p->has[knob] = true;
    r->set_by[knob] = n;
    return true;
}

bool preset_take_knob(struct preset_reader *r, const struct node *n, int arg)
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
        value = 0; /* elsewhere -1 is off, too */
    return set_knob(r, n, (enum knob)arg, value);
}

/* A range of 0 is everything here, where fader's own -1 is; fader's 0 is off. */
bool preset_take_range(struct preset_reader *r, const struct node *n, int arg)
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

/* A text that a terminal may be shown: no control characters (C0, DEL, C1) but tab and newline,
 * those only where told. */
static bool check_text(struct preset_reader *r, const struct node *n, bool lines)
{
    char shown[48];

    if (n->kind != NODE_SCALAR)
        return node_error(r->err, r->file, n, "%s: %s is not a text",
                          n->key != NULL ? n->key : "try", node_describe(n, shown));
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

bool preset_take_name(struct preset_reader *r, const struct node *n, int arg)
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

bool preset_take_description(struct preset_reader *r, const struct node *n, int arg)
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

bool preset_take_system(struct preset_reader *r, const struct node *n, int arg)
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

static bool read_whole(struct preset_reader *r, const struct node *n, double min, double max,
                       double *out)
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

bool preset_take_seed(struct preset_reader *r, const struct node *n, int arg)
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

bool preset_take_max_tokens(struct preset_reader *r, const struct node *n, int arg)
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

static bool read_exempt_list(struct preset_reader *r, const struct node *list)
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

bool preset_take_exempt(struct preset_reader *r, const struct node *n, int arg)
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

bool preset_take_tries(struct preset_reader *r, const struct node *n, int arg)
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
bool preset_take_do_sample(struct preset_reader *r, const struct node *n, int arg)
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
