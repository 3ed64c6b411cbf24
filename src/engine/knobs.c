#include "config.h"

#include "engine/sampler.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A window alone does nothing: its neutral value is the one that leaves the penalty its whole
 * reach. */
const struct knob_trait knob_traits[KNOB_COUNT] = {
    [KNOB_REPETITION_PENALTY] = {"repetition_penalty", "repeat", "repeat-penalty", 0.5, 3, 1, 1.1,
                                 false, 2},
    [KNOB_TEMPERATURE] = {"temperature", "temp", "temp", 0, 5, 1, 0.8, false, 2},
    [KNOB_TOP_K] = {"top_k", "top-k", "top-k", 0, INT32_MAX, 0, 50, true, 0},
    [KNOB_TOP_P] = {"top_p", "top-p", "top-p", 0, 1, 1, 0.9, false, 2},
    [KNOB_MIN_P] = {"min_p", "min-p", "min-p", 0, 1, 0, 0, false, 3},
    [KNOB_REPEAT_LAST_N] = {"repeat_last_n", "last-n", "repeat-last-n", -1, INT32_MAX, -1, -1, true,
                            0},
};

static const struct {
    const char *name;
    enum knob knob;
} aliases[] = {
    {"repeat_penalty", KNOB_REPETITION_PENALTY},
    {"penalty", KNOB_REPETITION_PENALTY},
    {"rep_pen", KNOB_REPETITION_PENALTY},
    {"penalty_repeat", KNOB_REPETITION_PENALTY},
    {"topk", KNOB_TOP_K},
    {"topp", KNOB_TOP_P},
    {"minp", KNOB_MIN_P},
    {"repetition_penalty_range", KNOB_REPEAT_LAST_N},
    {"rep_pen_range", KNOB_REPEAT_LAST_N},
    {"penalty_last_n", KNOB_REPEAT_LAST_N},
    {"last_n", KNOB_REPEAT_LAST_N},
};

struct knobs knobs_default(void)
{
    struct knobs k = {.exempt_mode = EXEMPT_PUNCTUATION};

    for (int i = 0; i < KNOB_COUNT; i++)
        k.value[i] = knob_traits[i].initial;
    for (int i = 0; i < STAGE_COUNT; i++)
        k.order[i] = (uint8_t)i;
    return k;
}

void knobs_set_chain(struct knobs *k, const struct knobs *from)
{
    memcpy(k->order, from->order, sizeof k->order);
    k->exempt_mode = from->exempt_mode;
    k->n_exempt = from->n_exempt;
    memcpy(k->exempt, from->exempt, sizeof k->exempt);
}

bool knobs_same_chain(const struct knobs *a, const struct knobs *b)
{
    if (memcmp(a->order, b->order, sizeof a->order) != 0 || a->exempt_mode != b->exempt_mode)
        return false;
    return a->exempt_mode != EXEMPT_LIST ||
           (a->n_exempt == b->n_exempt &&
            memcmp(a->exempt, b->exempt, a->n_exempt * sizeof a->exempt[0]) == 0);
}

/* Upper case and lower case, "-" and "_" are the same. */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        int x = *a == '-' ? '_' : tolower((unsigned char)*a);
        int y = *b == '-' ? '_' : tolower((unsigned char)*b);
        if (x != y)
            return false;
        if (x == '\0')
            return true;
    }
}

int knob_find(const char *name)
{
    for (int i = 0; i < KNOB_COUNT; i++) {
        const struct knob_trait *t = &knob_traits[i];
        if (same_name(name, t->name) || same_name(name, t->label) || same_name(name, t->option))
            return i;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (same_name(name, aliases[i].name))
            return (int)aliases[i].knob;
    }
    return -1;
}

bool knob_check(enum knob knob, double value, int32_t n_vocab, struct error *err)
{
    const struct knob_trait *t = &knob_traits[knob];
    double max = knob == KNOB_TOP_K && n_vocab > 0 ? n_vocab : t->max;

    if (!(value >= t->min && value <= max)) {
        if (max >= INT32_MAX)
            return error_set(err, "%s: %.10g is out of range (%.10g or more)", t->name, value,
                             t->min);
        return error_set(err, "%s: %.10g is out of range (%.10g - %.10g)", t->name, value, t->min,
                         max);
    }
    if (t->whole && value != floor(value))
        return error_set(err, "%s: %.10g is not a whole number", t->name, value);
    return true;
}

void knob_format(enum knob knob, double value, char out[32])
{
    (void)knob;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value && strchr(out, 'e') == NULL)
            return;
    }
    snprintf(out, 32, "%.17g", value);
}

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_PENALTY] = "penalty", [STAGE_TEMPERATURE] = "temperature",
        [STAGE_TOP_K] = "top_k",     [STAGE_TOP_P] = "top_p",
        [STAGE_MIN_P] = "min_p",
    };
    return names[stage];
}
