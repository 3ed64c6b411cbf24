/* What the tests of presets share: a folder of their own, presets out of texts, comparing. */
#ifndef FADER_TESTS_PRESET_HELP_H
#define FADER_TESTS_PRESET_HELP_H

#include "test.h"

#include "base/file.h"
#include "base/str.h"
#include "config/preset.h"
#include "config/preset_read.h"
#include "config/yaml.h"
#include "folder.h"

static inline int set_up(void **state)
{
    int rc = folder_make(state);

    setenv("XDG_CONFIG_HOME", folder, 1);
    return rc;
}

static inline struct preset *from_text(const char *text, struct preset_warnings *warnings,
                                       struct error *err)
{
    struct node *root = yaml_parse("p.yaml", text, strlen(text), err);

    if (root == NULL)
        return NULL;
    struct preset *p = preset_new("p");
    if (!preset_read_tree(p, root, DIALECT_FADER, "p.yaml", warnings, err)) {
        preset_free(p);
        p = NULL;
    }
    node_free(root);
    return p;
}

static inline void assert_refused(const char *text, const char *why)
{
    struct error err = {""};
    struct preset *p = from_text(text, NULL, &err);

    if (p != NULL || strcmp(err.text, why) != 0)
        fail_msg("%s\n gave: %s\n want: %s", text, p != NULL ? "a preset" : err.text, why);
}

static inline void assert_order(const struct preset *p, int a, int b, int c, int d, int e)
{
    const int want[STAGE_COUNT] = {a, b, c, d, e};

    for (int i = 0; i < STAGE_COUNT; i++)
        assert_int_equal(p->knobs.order[i], want[i]);
}

static inline void assert_knob(const struct preset *p, enum knob knob, double value)
{
    if (p->knobs.value[knob] != value)
        fail_msg("%s is %g, should be %g", knob_traits[knob].name, p->knobs.value[knob], value);
}

static inline void assert_same_text(const char *a, const char *b)
{
    if ((a == NULL) != (b == NULL))
        fail_msg("\"%s\" came back as \"%s\"", a != NULL ? a : "(none)", b != NULL ? b : "(none)");
    if (a != NULL)
        assert_string_equal(a, b);
}

static inline void assert_same(const struct preset *a, const struct preset *b)
{
    assert_same_text(a->name, b->name);
    assert_same_text(a->description, b->description);
    assert_same_text(a->system, b->system);
    for (int i = 0; i < KNOB_COUNT; i++) {
        assert_int_equal(a->has[i], b->has[i]);
        assert_memory_equal(&a->knobs.value[i], &b->knobs.value[i], sizeof a->knobs.value[i]);
    }
    assert_memory_equal(a->knobs.order, b->knobs.order, sizeof a->knobs.order);
    assert_int_equal(a->knobs.exempt_mode, b->knobs.exempt_mode);
    assert_int_equal(a->knobs.n_exempt, b->knobs.n_exempt);
    assert_memory_equal(a->knobs.exempt, b->knobs.exempt, a->knobs.n_exempt * sizeof(int32_t));
    assert_int_equal(a->has_order, b->has_order);
    assert_int_equal(a->has_exempt, b->has_exempt);
    assert_int_equal(a->seed, b->seed);
    assert_int_equal(a->max_tokens, b->max_tokens);
    assert_int_equal(a->tries == NULL, b->tries == NULL);
    for (size_t i = 0; a->tries != NULL; i++) {
        assert_same_text(a->tries[i], b->tries[i]);
        if (a->tries[i] == NULL)
            break;
    }
}

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

#endif
