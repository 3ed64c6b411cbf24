#include "config.h"

#include "chat/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "base/utf8.h"

/* In the order of enum end_reason (backend.h, which chat may not include; tests/test_transcript.c
 * holds the two together). */
const char *const record_end_names[N_RECORD_ENDS] = {"eog", "max_tokens", "stopped", "context_full",
                                                     "error"};

const char *const record_exempt_names[2] = {"punctuation", "none"};

static cJSON *record_new(const char *type)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "type", type);
    return o;
}

static void add_int(cJSON *o, const char *key, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)value);
    cJSON_AddRawToObject(o, key, text);
}

/* Nine digits bring every float back, and of doubles the shortest that does is taken. A number that
 * JSON lacks is left out. */
static void add_number(cJSON *o, const char *key, double value, int digits)
{
    char text[40];

    if (!isfinite(value))
        return;
    snprintf(text, sizeof text, "%.15g", value);
    if (digits < 15 || strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.*g", digits, value);
    cJSON_AddRawToObject(o, key, text);
}

void record_add_text(cJSON *o, const char *key, const char *text, size_t len)
{
    struct str clean = STR_INIT;

    for (size_t i = 0; i < len;) {
        const char *nul = memchr(text + i, '\0', len - i);
        size_t part = nul != NULL ? (size_t)(nul - text) - i : len - i;
        utf8_add_clean(&clean, text + i, part);
        if (nul != NULL)
            str_add_text(&clean, "\xEF\xBF\xBD");
        i += part + (nul != NULL ? 1 : 0);
    }
    cJSON_AddStringToObject(o, key, str_text(&clean));
    str_done(&clean);
}

static void add_text_or_null(cJSON *o, const char *key, const char *text)
{
    if (text != NULL)
        record_add_text(o, key, text, strlen(text));
    else
        cJSON_AddNullToObject(o, key);
}

static void record_add(struct str *out, cJSON *o)
{
    char *line = cJSON_PrintUnformatted(o);

    if (line == NULL)
        mem_fatal("transcript");
    str_add_text(out, line);
    str_add_char(out, '\n');
    cJSON_free(line);
    cJSON_Delete(o);
}

void record_header(struct str *out)
{
    cJSON *o = record_new("header");
    time_t now = time(NULL);
    struct tm tm;
    char text[40];

    add_int(o, "fader", RECORD_FORMAT);
    if (gmtime_r(&now, &tm) != NULL && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        cJSON_AddStringToObject(o, "time", text);
    record_add(out, o);
}

void record_model(struct str *out, const char *model, const char *kernels)
{
    cJSON *o = record_new("model");

    record_add_text(o, "name", model, strlen(model));
    if (kernels != NULL)
        cJSON_AddStringToObject(o, "kernels", kernels);
    record_add(out, o);
}

void record_system(struct str *out, const char *system)
{
    cJSON *o = record_new("system");

    add_text_or_null(o, "text", system);
    record_add(out, o);
}

void record_preset(struct str *out, const char *name)
{
    cJSON *o = record_new("preset");

    add_text_or_null(o, "name", name);
    record_add(out, o);
}

static void add_order(cJSON *o, const struct knobs *k)
{
    cJSON *order = cJSON_AddArrayToObject(o, "order");

    for (int i = 0; i < STAGE_COUNT; i++)
        cJSON_AddItemToArray(order, cJSON_CreateString(stage_name((enum stage)k->order[i])));
}

static void add_exempt(cJSON *o, const struct knobs *k)
{
    if (k->exempt_mode != EXEMPT_LIST) {
        cJSON_AddStringToObject(o, "exempt", record_exempt_names[k->exempt_mode]);
        return;
    }
    cJSON *ids = cJSON_AddArrayToObject(o, "exempt");
    for (int i = 0; i < k->n_exempt; i++)
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(k->exempt[i]));
}

static void add_knobs(cJSON *o, const struct knobs *k)
{
    cJSON *knobs = cJSON_AddObjectToObject(o, "knobs");

    add_order(knobs, k);
    for (int i = 0; i < KNOB_COUNT; i++)
        add_number(knobs, knob_traits[i].name, k->value[i], 17);
    add_exempt(knobs, k);
}

void record_turn(struct str *out, const struct turn *turn)
{
    cJSON *o = record_new("turn");

    add_int(o, "turn", turn->number);
    if (turn->parent != NULL)
        add_int(o, "parent", turn->parent->number);
    else
        cJSON_AddNullToObject(o, "parent");
    cJSON_AddStringToObject(o, "role", role_name(turn->role));
    if (turn->role == ROLE_ASSISTANT) {
        add_int(o, "seed", turn->seed);
        if (turn->earlier != NULL)
            add_int(o, "earlier", turn->earlier->number);
        if (turn->n_given > 0)
            add_int(o, "given", (int64_t)turn->n_given);
        add_knobs(o, &turn->knobs);
    } else {
        record_add_text(o, "text", str_text(&turn->text), turn->text.len);
    }
    record_add(out, o);
}

void record_token(struct str *out, const struct turn *turn, size_t i)
{
    const struct answer_token *token = &turn->tokens[i];
    cJSON *o = record_new("token");
    size_t len;
    const char *text = turn_token_text(turn, i, &len);

    add_int(o, "turn", turn->number);
    add_int(o, "n", (int64_t)i);
    add_int(o, "id", token->id);
    record_add_text(o, "text", text, len);
    add_number(o, "logprob", (double)token->logprob, 9);
    add_number(o, "p", (double)token->p, 9);
    if (token->rank >= 0)
        add_int(o, "rank", token->rank);
    add_number(o, "entropy", (double)token->entropy, 9);
    add_int(o, "version", token->version);
    record_add(out, o);
}

void record_knob(struct str *out, const struct turn *turn, size_t i)
{
    const struct answer_knob *move = &turn->moves[i];
    cJSON *o = record_new("knob");

    add_int(o, "turn", turn->number);
    add_int(o, "n", move->n);
    cJSON_AddStringToObject(o, "name", knob_traits[move->knob].name);
    add_number(o, "from", move->from, 17);
    add_number(o, "value", move->value, 17);
    record_add(out, o);
}

void record_chain(struct str *out, const struct turn *turn, size_t i)
{
    cJSON *o = record_new("chain");

    add_int(o, "turn", turn->number);
    add_int(o, "n", turn->chains[i].n);
    add_order(o, &turn->chains[i].knobs);
    add_exempt(o, &turn->chains[i].knobs);
    record_add(out, o);
}

void record_dropped(struct str *out, const struct turn *turn)
{
    cJSON *o = record_new("dropped");

    add_int(o, "turn", turn->number);
    add_int(o, "messages", turn->dropped_messages);
    add_int(o, "tokens", turn->dropped_tokens);
    record_add(out, o);
}

void record_end(struct str *out, const struct turn *turn)
{
    cJSON *o = record_new("end");

    add_int(o, "turn", turn->number);
    if (turn->end_reason >= 0 && turn->end_reason < N_RECORD_ENDS)
        cJSON_AddStringToObject(o, "reason", record_end_names[turn->end_reason]);
    if (turn->branch_at >= 0)
        add_int(o, "branch_at", turn->branch_at);
    /* the whole text: what an unfinished character left over is in no token's line */
    record_add_text(o, "text", str_text(&turn->text), turn->text.len);
    record_add(out, o);
}

void record_choose(struct str *out, const struct turn *turn)
{
    cJSON *o = record_new("choose");

    add_int(o, "turn", turn->number);
    record_add(out, o);
}

void record_cut(struct str *out, const struct turn *turn)
{
    cJSON *o = record_new("cut");

    if (turn != NULL)
        add_int(o, "after", turn->number);
    else
        cJSON_AddNullToObject(o, "after");
    record_add(out, o);
}
