/* Transcript lines, read: everything in them is checked, as they may have been made by anyone. */
#include "config.h"

#include "chat/records.h"

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

/* A whole number of the object in [min, max]; `*out` keeps what it was when the key is absent and
 * not needed. */
static bool get_int(const cJSON *o, const char *key, bool needed, double min, double max,
                    int64_t *out, struct error *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

    if (item == NULL && !needed)
        return true;
    if (item == NULL || !cJSON_IsNumber(item))
        return error_set(err, "no number \"%s\"", key);
    double v = item->valuedouble;
    if (!(v >= min && v <= max) || v != floor(v))
        return error_set(err, "\"%s\" is out of range", key);
    *out = (int64_t)v;
    return true;
}

static double get_number(const cJSON *o, const char *key, double absent)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

static const char *get_text(const cJSON *o, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
}

static bool get_turn(const struct conversation *c, const cJSON *o, const char *key,
                     struct turn **out, struct error *err)
{
    int64_t number = -1;

    if (!get_int(o, key, true, 0, (double)c->n_turns - 1, &number, err))
        return false;
    *out = c->turns[number];
    return true;
}

static bool get_answer(const struct conversation *c, const cJSON *o, struct turn **out,
                       struct error *err)
{
    if (!get_turn(c, o, "turn", out, err))
        return false;
    if ((*out)->role != ROLE_ASSISTANT)
        return error_set(err, "turn %d is not an answer", (*out)->number);
    return true;
}

static int find_name(const char *name, const char *const *names, int n)
{
    for (int i = 0; name != NULL && i < n; i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static int find_knob(const char *name)
{
    for (int i = 0; name != NULL && i < KNOB_COUNT; i++) {
        if (strcmp(name, knob_traits[i].name) == 0)
            return i;
    }
    return -1;
}

static bool read_order(const cJSON *order, struct knobs *k, struct error *err)
{
    uint8_t stages[STAGE_COUNT];
    bool seen[STAGE_COUNT] = {false};
    int n = 0;
    const cJSON *item;

    cJSON_ArrayForEach(item, order)
    {
        int stage = -1;
        for (int i = 0; i < STAGE_COUNT && cJSON_IsString(item); i++) {
            if (strcmp(item->valuestring, stage_name((enum stage)i)) == 0)
                stage = i;
        }
        if (stage < 0 || seen[stage])
            return error_set(err, "\"order\" is not an order of the stages");
        seen[stage] = true;
        stages[n++] = (uint8_t)stage;
    }
    if (n != STAGE_COUNT)
        return error_set(err, "\"order\" is not an order of the stages");
    memcpy(k->order, stages, sizeof stages);
    return true;
}

static bool read_exempt(const cJSON *exempt, struct knobs *k, struct error *err)
{
    const cJSON *item;

    if (cJSON_IsString(exempt)) {
        int mode = find_name(exempt->valuestring, record_exempt_names, 2);
        if (mode < 0)
            return error_set(err, "\"exempt\" is not known");
        k->exempt_mode = (uint8_t)mode;
        return true;
    }
    k->exempt_mode = EXEMPT_LIST;
    k->n_exempt = 0;
    cJSON_ArrayForEach(item, exempt)
    {
        if (!cJSON_IsNumber(item) || k->n_exempt == EXEMPT_LIST_MAX)
            return error_set(err, "\"exempt\" is not a list of at most %d ids", EXEMPT_LIST_MAX);
        k->exempt[k->n_exempt++] = item->valueint;
    }
    return true;
}

/* The order and the exemption; what is not said stays. */
static bool read_rules(const cJSON *o, struct knobs *k, struct error *err)
{
    const cJSON *order = cJSON_GetObjectItemCaseSensitive(o, "order");
    const cJSON *exempt = cJSON_GetObjectItemCaseSensitive(o, "exempt");

    return (order == NULL || read_order(order, k, err)) &&
           (exempt == NULL || read_exempt(exempt, k, err));
}

static bool read_knobs(const cJSON *o, struct knobs *k, struct error *err)
{
    *k = knobs_default();
    for (int i = 0; i < KNOB_COUNT; i++) {
        k->value[i] = get_number(o, knob_traits[i].name, k->value[i]);
        if (!knob_check((enum knob)i, k->value[i], 0, err))
            return false;
    }
    return read_rules(o, k, err);
}

static bool read_header(struct conversation *c, const cJSON *o, struct error *err)
{
    int64_t version = 0;

    (void)c;
    if (!get_int(o, "fader", true, 1, 1e9, &version, err))
        return false;
    if (version > RECORD_FORMAT)
        return error_set(err, "made by a newer fader (format %lld)", (long long)version);
    return true;
}

static bool read_model(struct conversation *c, const cJSON *o, struct error *err)
{
    const char *name = get_text(o, "name");

    if (name == NULL)
        return error_set(err, "no text \"name\"");
    conversation_set_model(c, name, 0);
    return true;
}

static bool read_system(struct conversation *c, const cJSON *o, struct error *err)
{
    (void)err;
    conversation_set_system(c, get_text(o, "text"));
    return true;
}

static bool read_preset(struct conversation *c, const cJSON *o, struct error *err)
{
    (void)err;
    conversation_set_preset(c, get_text(o, "name"));
    return true;
}

static bool read_answer_opening(struct conversation *c, const cJSON *o, struct turn *t,
                                struct error *err)
{
    int64_t seed = 0, earlier = -1, given = 0;

    if (!get_int(o, "seed", true, 0, UINT32_MAX, &seed, err) ||
        !get_int(o, "earlier", false, 0, (double)t->number - 1, &earlier, err) ||
        !get_int(o, "given", false, 0, INT32_MAX, &given, err) ||
        !read_knobs(cJSON_GetObjectItemCaseSensitive(o, "knobs"), &t->knobs, err))
        return false;
    t->seed = (uint32_t)seed;
    t->earlier = earlier >= 0 ? c->turns[earlier] : NULL;
    t->n_given = (size_t)given;
    return true;
}

static bool read_turn(struct conversation *c, const cJSON *o, struct error *err)
{
    const char *name = get_text(o, "role"), *text = get_text(o, "text");
    int role = name != NULL ? role_find(name) : -1;
    struct turn *parent = NULL;
    int64_t number = 0;

    if (!get_int(o, "turn", true, 0, INT32_MAX, &number, err))
        return false;
    if ((size_t)number != c->n_turns)
        return error_set(err, "turn %lld where %zu was expected", (long long)number, c->n_turns);
    if (role != ROLE_USER && role != ROLE_ASSISTANT)
        return error_set(err, "no known \"role\"");
    if (role == ROLE_USER && text == NULL)
        return error_set(err, "no text \"text\"");
    if (!cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(o, "parent")) &&
        !get_turn(c, o, "parent", &parent, err))
        return false;
    struct turn *t = conversation_add(c, parent, (enum role)role, role == ROLE_USER ? text : "");
    return role == ROLE_USER || read_answer_opening(c, o, t, err);
}

static bool read_token(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *t;
    const char *text = get_text(o, "text");
    int64_t n = -1, id = -1, rank = -1, version = 0;

    if (!get_answer(c, o, &t, err) || !get_int(o, "n", true, 0, INT32_MAX, &n, err) ||
        !get_int(o, "id", true, 0, INT32_MAX, &id, err) ||
        !get_int(o, "rank", false, 0, INT32_MAX, &rank, err) ||
        !get_int(o, "version", false, 0, UINT32_MAX, &version, err))
        return false;
    if ((size_t)n != t->n_tokens)
        return error_set(err, "token %lld where %zu was expected", (long long)n, t->n_tokens);
    struct answer_token token = {
        .id = (int32_t)id,
        .logprob = (float)get_number(o, "logprob", NAN),
        .p = (float)get_number(o, "p", NAN),
        .rank = (int32_t)rank,
        .entropy = (float)get_number(o, "entropy", NAN),
        .version = (uint32_t)version,
    };
    turn_add_token(t, &token, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    return true;
}

static bool read_knob(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *t;
    int knob = find_knob(get_text(o, "name"));
    int64_t n = 0;

    if (!get_answer(c, o, &t, err) || !get_int(o, "n", true, 0, INT32_MAX, &n, err))
        return false;
    if (knob < 0)
        return error_set(err, "no known knob \"name\"");
    double from = get_number(o, "from", knob_traits[knob].initial);
    double value = get_number(o, "value", NAN);
    if (!knob_check((enum knob)knob, value, 0, err))
        return false;
    if (t->n_moves > 0 && t->moves[t->n_moves - 1].n > n)
        return error_set(err, "a movement at token %lld after one at %d", (long long)n,
                         t->moves[t->n_moves - 1].n);
    turn_add_knob(t, (int32_t)n, (enum knob)knob, from, value);
    return true;
}

static bool read_chain(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *t;
    int64_t n = 0;

    if (!get_answer(c, o, &t, err) || !get_int(o, "n", true, 0, INT32_MAX, &n, err))
        return false;
    struct knobs k = turn_last_knobs(t);
    if (!read_rules(o, &k, err))
        return false;
    if (t->n_chains > 0 && t->chains[t->n_chains - 1].n > n)
        return error_set(err, "a chain at token %lld after one at %d", (long long)n,
                         t->chains[t->n_chains - 1].n);
    turn_add_chain(t, (int32_t)n, &k);
    return true;
}

static bool read_dropped(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *t;
    int64_t messages = 0, tokens = 0;

    if (!get_answer(c, o, &t, err) || !get_int(o, "messages", true, 0, INT32_MAX, &messages, err) ||
        !get_int(o, "tokens", true, 0, INT32_MAX, &tokens, err))
        return false;
    t->dropped_messages = (int32_t)messages;
    t->dropped_tokens = (int32_t)tokens;
    return true;
}

static bool read_end(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *t;
    const char *text = get_text(o, "text");
    int reason = find_name(get_text(o, "reason"), record_end_names, N_RECORD_ENDS);
    int64_t branch = -1;

    if (!get_answer(c, o, &t, err) || !get_int(o, "branch_at", false, 0, INT32_MAX, &branch, err))
        return false;
    if (reason < 0)
        return error_set(err, "no known \"reason\"");
    t->end_reason = reason;
    t->complete = reason == 0;
    t->branch_at = (int32_t)branch;
    size_t len = text != NULL ? strlen(text) : 0;
    if (len > t->text.len && memcmp(text, str_text(&t->text), t->text.len) == 0)
        turn_add_text(t, text + t->text.len, len - t->text.len);
    return true;
}

static bool read_choose(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *t;

    if (!get_turn(c, o, "turn", &t, err))
        return false;
    turn_choose_version(c, t, turn_version(c, t, NULL));
    return true;
}

static bool read_cut(struct conversation *c, const cJSON *o, struct error *err)
{
    struct turn *after = NULL;

    if (!cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(o, "after")) &&
        !get_turn(c, o, "after", &after, err))
        return false;
    conversation_cut(c, after);
    return true;
}

static const struct {
    const char *type;
    bool (*read)(struct conversation *c, const cJSON *o, struct error *err);
} readers[] = {
    {"header", read_header}, {"model", read_model},   {"system", read_system},
    {"preset", read_preset}, {"turn", read_turn},     {"token", read_token},
    {"knob", read_knob},     {"chain", read_chain},   {"dropped", read_dropped},
    {"end", read_end},       {"choose", read_choose}, {"cut", read_cut},
};

bool record_is_whole(const char *line, size_t len)
{
    cJSON *o = cJSON_ParseWithLength(line, len);
    bool whole = cJSON_IsObject(o) && get_text(o, "type") != NULL;

    cJSON_Delete(o);
    return whole;
}

static bool read_object(struct conversation *c, const cJSON *o, bool first, struct error *err)
{
    const char *type = get_text(o, "type");

    if (!cJSON_IsObject(o) || type == NULL)
        return error_set(err, first ? "not a fader transcript" : "not a record");
    if (first && strcmp(type, "header") != 0)
        return error_set(err, "not a fader transcript: no header");
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (strcmp(type, readers[i].type) == 0)
            return readers[i].read(c, o, err);
    }
    return true; /* of a later format: passed over */
}

bool record_read(struct conversation *c, const char *line, size_t len, bool first,
                 struct error *err)
{
    cJSON *o = cJSON_ParseWithLength(line, len);
    bool ok = read_object(c, o, first, err);

    cJSON_Delete(o);
    return ok;
}
