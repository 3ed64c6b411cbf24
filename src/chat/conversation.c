#include "config.h"

#include "chat/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct conversation *conversation_new(void)
{
    struct conversation *c = mem_zalloc(sizeof *c);

    c->chosen_root = TURN_NONE;
    c->model = -1;
    return c;
}

static void turn_free(struct turn *t)
{
    str_done(&t->text);
    free(t->children);
    free(t->system);
    free(t->tokens);
    free(t->moves);
    free(t->chains);
    free(t);
}

void conversation_free(struct conversation *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_turns; i++)
        turn_free(c->turns[i]);
    for (size_t i = 0; i < c->n_models; i++)
        free(c->models[i]);
    free(c->turns);
    free(c->roots);
    free(c->models);
    free(c->system);
    free(c->preset);
    free(c);
}

void conversation_set_system(struct conversation *c, const char *system)
{
    char *copy = mem_strdup(system);

    free(c->system);
    c->system = copy;
}

void conversation_set_preset(struct conversation *c, const char *name)
{
    char *copy = mem_strdup(name);

    free(c->preset);
    c->preset = copy;
}

void conversation_set_model(struct conversation *c, const char *name, int32_t n_vocab)
{
    c->n_vocab = n_vocab;
    for (size_t i = 0; i < c->n_models; i++) {
        if (strcmp(c->models[i], name) == 0) {
            c->model = (int32_t)i;
            return;
        }
    }
    mem_grow(&c->models, &c->cap_models, c->n_models + 1, sizeof *c->models);
    c->models[c->n_models] = mem_strdup(name);
    c->model = (int32_t)c->n_models++;
}

/* ---- the tree ------------------------------------------------------------------------------- */

/* The versions among which a turn stands: its parent's children, or the roots. */
struct siblings {
    struct turn ***items;
    size_t *n, *cap, *chosen;
};

static struct siblings siblings_below(struct conversation *c, struct turn *parent)
{
    if (parent == NULL)
        return (struct siblings){&c->roots, &c->n_roots, &c->cap_roots, &c->chosen_root};
    return (struct siblings){&parent->children, &parent->n_children, &parent->cap_children,
                             &parent->chosen};
}

struct turn *conversation_add(struct conversation *c, struct turn *parent, enum role role,
                              const char *text)
{
    struct siblings s = siblings_below(c, parent);
    struct turn *t = mem_zalloc(sizeof *t);

    t->number = (int32_t)c->n_turns;
    t->role = role;
    str_add_text(&t->text, text);
    t->parent = parent;
    t->chosen = TURN_NONE;
    t->knobs = knobs_default();
    t->model = c->model;
    t->system = role == ROLE_ASSISTANT ? mem_strdup(c->system) : NULL;
    t->end_reason = -1;
    t->branch_at = -1;

    mem_grow(&c->turns, &c->cap_turns, c->n_turns + 1, sizeof(struct turn *));
    c->turns[c->n_turns++] = t;
    mem_grow(s.items, s.cap, *s.n + 1, sizeof(struct turn *));
    (*s.items)[*s.n] = t;
    *s.chosen = (*s.n)++;
    return t;
}

/* The turn that follows `t` (NULL: the start) on the current path. */
static struct turn *next_on_path(const struct conversation *c, const struct turn *t)
{
    size_t chosen = t == NULL ? c->chosen_root : t->chosen;
    size_t n = t == NULL ? c->n_roots : t->n_children;

    if (chosen >= n)
        return NULL;
    return t == NULL ? c->roots[chosen] : t->children[chosen];
}

struct turn *conversation_leaf(const struct conversation *c)
{
    struct turn *leaf = NULL;

    for (struct turn *t = next_on_path(c, NULL); t != NULL; t = next_on_path(c, t))
        leaf = t;
    return leaf;
}

struct turn *conversation_at(const struct conversation *c, size_t i)
{
    struct turn *t = next_on_path(c, NULL);

    while (t != NULL && i-- > 0)
        t = next_on_path(c, t);
    return t;
}

size_t conversation_depth(const struct conversation *c)
{
    size_t n = 0;

    for (struct turn *t = next_on_path(c, NULL); t != NULL; t = next_on_path(c, t))
        n++;
    return n;
}

bool conversation_on_path(const struct conversation *c, const struct turn *t)
{
    for (struct turn *at = next_on_path(c, NULL); at != NULL; at = next_on_path(c, at)) {
        if (at == t)
            return true;
    }
    return false;
}

size_t turn_version(const struct conversation *c, const struct turn *t, size_t *n_versions)
{
    struct turn *const *items = t->parent == NULL ? c->roots : t->parent->children;
    size_t n = t->parent == NULL ? c->n_roots : t->parent->n_children, i = 0;

    while (i < n && items[i] != t)
        i++;
    if (n_versions != NULL)
        *n_versions = n;
    return i;
}

void turn_choose_version(struct conversation *c, const struct turn *t, size_t version)
{
    struct siblings s = siblings_below(c, t->parent);

    if (version < *s.n)
        *s.chosen = version;
}

void conversation_cut(struct conversation *c, struct turn *t)
{
    *siblings_below(c, t).chosen = TURN_NONE;
}

/* ---- answers -------------------------------------------------------------------------------- */

void turn_add_token(struct turn *t, const struct answer_token *token, const char *text, size_t len)
{
    mem_grow(&t->tokens, &t->cap_tokens, t->n_tokens + 1, sizeof *t->tokens);
    struct answer_token *new = &t->tokens[t->n_tokens++];
    *new = *token;
    new->text_at = (uint32_t)t->text.len;
    str_add(&t->text, text, len);
}

void turn_add_knob(struct turn *t, int32_t n, enum knob knob, double from, double value)
{
    mem_grow(&t->moves, &t->cap_moves, t->n_moves + 1, sizeof *t->moves);
    t->moves[t->n_moves++] = (struct answer_knob){n, knob, from, value};
}

void turn_add_chain(struct turn *t, int32_t n, const struct knobs *knobs)
{
    mem_grow(&t->chains, &t->cap_chains, t->n_chains + 1, sizeof *t->chains);
    t->chains[t->n_chains++] = (struct answer_chain){n, *knobs};
}

struct knobs turn_last_knobs(const struct turn *t)
{
    struct knobs k = t->knobs;

    for (size_t i = 0; i < t->n_moves; i++)
        k.value[t->moves[i].knob] = t->moves[i].value;
    if (t->n_chains > 0)
        knobs_set_chain(&k, &t->chains[t->n_chains - 1].knobs);
    return k;
}

void turn_add_text(struct turn *t, const char *text, size_t len)
{
    str_add(&t->text, text, len);
}

const char *turn_token_text(const struct turn *t, size_t i, size_t *len)
{
    if (i >= t->n_tokens) {
        *len = 0;
        return "";
    }
    size_t start = t->tokens[i].text_at;
    size_t end = i + 1 < t->n_tokens ? t->tokens[i + 1].text_at : t->text.len;
    *len = end - start;
    return str_text(&t->text) + start;
}

void turn_take_tokens(struct turn *t, const struct turn *from, size_t n)
{
    if (n > from->n_tokens)
        n = from->n_tokens;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *text = turn_token_text(from, i, &len);
        turn_add_token(t, &from->tokens[i], text, len);
    }
    for (size_t i = 0; i < from->n_moves && from->moves[i].n < (int32_t)n; i++) {
        const struct answer_knob *m = &from->moves[i];
        turn_add_knob(t, m->n, m->knob, m->from, m->value);
    }
    for (size_t i = 0; i < from->n_chains && from->chains[i].n < (int32_t)n; i++)
        turn_add_chain(t, from->chains[i].n, &from->chains[i].knobs);
    t->knobs = from->knobs;
    t->n_given = n;
}

bool conversation_last_knobs(const struct conversation *c, struct knobs *out)
{
    const struct turn *last = NULL;

    for (struct turn *t = next_on_path(c, NULL); t != NULL; t = next_on_path(c, t)) {
        if (t->role == ROLE_ASSISTANT)
            last = t;
    }
    if (last == NULL)
        return false;
    *out = turn_last_knobs(last);
    return true;
}

/* ---- messages ------------------------------------------------------------------------------- */

static bool ids_are_known(const struct turn *t, int32_t n_vocab)
{
    for (size_t i = 0; n_vocab > 0 && i < t->n_tokens; i++) {
        if (t->tokens[i].id < 0 || t->tokens[i].id >= n_vocab)
            return false;
    }
    return true;
}

static void add_message(struct message_list *out, const struct turn *t, int32_t model,
                        int32_t n_vocab)
{
    int32_t *ids = NULL;

    if (t->role == ROLE_ASSISTANT && t->n_tokens == 0 && t->text.len == 0)
        return;
    if (t->n_tokens > 0 && t->model == model && ids_are_known(t, n_vocab)) {
        ids = mem_array(t->n_tokens, sizeof *ids);
        for (size_t i = 0; i < t->n_tokens; i++)
            ids[i] = t->tokens[i].id;
    }
    message_list_add(out, t->role, str_text(&t->text), ids, ids != NULL ? t->n_tokens : 0);
    free(ids);
}

/* The messages from the first turn down to `until`. */
static void add_path(struct message_list *out, const struct turn *until, int32_t model,
                     int32_t n_vocab)
{
    const struct turn **path = NULL;
    size_t n = 0, cap = 0;

    for (const struct turn *t = until; t != NULL; t = t->parent) {
        mem_grow(&path, &cap, n + 1, sizeof *path);
        path[n++] = t;
    }
    while (n > 0)
        add_message(out, path[--n], model, n_vocab);
    free(path);
}

void conversation_messages(const struct conversation *c, const struct turn *until,
                           struct message_list *out)
{
    *out = (struct message_list){NULL, 0, 0};
    if (c->system != NULL)
        message_list_add(out, ROLE_SYSTEM, c->system, NULL, 0);
    add_path(out, until != NULL ? until : conversation_leaf(c), c->model, c->n_vocab);
}

void turn_messages(const struct turn *answer, struct message_list *out)
{
    *out = (struct message_list){NULL, 0, 0};
    if (answer->system != NULL)
        message_list_add(out, ROLE_SYSTEM, answer->system, NULL, 0);
    add_path(out, answer->parent, answer->model, 0);
}
