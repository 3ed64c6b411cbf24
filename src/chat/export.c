/* Export: the current path of a conversation for people (Markdown, text) or for programs (JSON). */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "chat/records.h"
#include "chat/transcript.h"

static const char *speaker(const struct conversation *c, const struct turn *t)
{
    if (t->role == ROLE_USER)
        return "You";
    return t->model >= 0 ? c->models[t->model] : "Model";
}

static void add_block(struct str *out, const char *text, size_t len)
{
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    str_add(out, text, len);
    str_add_text(out, "\n");
}

/* What the knobs were, and where they moved: a line under an answer. */
static void add_knobs_line(struct str *out, const struct turn *t)
{
    char value[32];

    for (int i = 0; i < KNOB_COUNT; i++) {
        knob_format((enum knob)i, t->knobs.value[i], value);
        str_add_format(out, "%s%s %s", i > 0 ? ", " : "", knob_traits[i].name, value);
    }
    str_add_format(out, ", seed %u", t->seed);
    for (size_t i = 0; i < t->n_moves; i++) {
        knob_format(t->moves[i].knob, t->moves[i].value, value);
        str_add_format(out, "; from token %d %s %s", t->moves[i].n,
                       knob_traits[t->moves[i].knob].name, value);
    }
}

/* "## You" and a blank line, or "You:". */
static void add_heading(struct str *out, const char *who, bool markdown)
{
    str_add_format(out, markdown ? "## %s\n\n" : "%s:\n", who);
}

static void export_prose(const struct conversation *c, bool markdown, struct str *out)
{
    size_t depth = conversation_depth(c);

    if (c->system != NULL) {
        add_heading(out, "System", markdown);
        add_block(out, c->system, strlen(c->system));
        str_add_char(out, '\n');
    }
    for (size_t i = 0; i < depth; i++) {
        const struct turn *t = conversation_at(c, i);
        if (i > 0)
            str_add_char(out, '\n');
        add_heading(out, speaker(c, t), markdown);
        add_block(out, str_text(&t->text), t->text.len);
        if (markdown && t->role == ROLE_ASSISTANT) {
            str_add_text(out, "\n*");
            add_knobs_line(out, t);
            str_add_text(out, "*\n");
        }
    }
}

static void export_markdown(const struct conversation *c, struct str *out)
{
    export_prose(c, true, out);
}

static void export_text(const struct conversation *c, struct str *out)
{
    export_prose(c, false, out);
}

static void add_knobs(cJSON *o, const struct turn *t)
{
    cJSON *knobs = cJSON_AddObjectToObject(o, "knobs");
    cJSON *moves = cJSON_AddArrayToObject(o, "moves");

    for (int i = 0; i < KNOB_COUNT; i++)
        cJSON_AddNumberToObject(knobs, knob_traits[i].name, t->knobs.value[i]);
    for (size_t i = 0; i < t->n_moves; i++) {
        cJSON *move = cJSON_CreateObject();
        cJSON_AddNumberToObject(move, "n", t->moves[i].n);
        cJSON_AddStringToObject(move, "name", knob_traits[t->moves[i].knob].name);
        cJSON_AddNumberToObject(move, "value", t->moves[i].value);
        cJSON_AddItemToArray(moves, move);
    }
}

static void add_tokens(cJSON *o, const struct turn *t)
{
    cJSON *tokens = cJSON_AddArrayToObject(o, "tokens");
    char number[40];

    for (size_t i = 0; i < t->n_tokens; i++) {
        cJSON *token = cJSON_CreateObject();
        size_t len;
        const char *text = turn_token_text(t, i, &len);
        cJSON_AddNumberToObject(token, "id", t->tokens[i].id);
        record_add_text(token, "text", text, len);
        if (isfinite(t->tokens[i].logprob)) {
            snprintf(number, sizeof number, "%.9g", (double)t->tokens[i].logprob);
            cJSON_AddRawToObject(token, "logprob", number);
        }
        cJSON_AddItemToArray(tokens, token);
    }
}

static void export_json(const struct conversation *c, struct str *out)
{
    cJSON *root = cJSON_CreateObject();

    if (c->system != NULL)
        record_add_text(root, "system", c->system, strlen(c->system));
    cJSON *messages = cJSON_AddArrayToObject(root, "messages");
    size_t depth = conversation_depth(c);
    for (size_t i = 0; i < depth; i++) {
        const struct turn *t = conversation_at(c, i);
        cJSON *message = cJSON_CreateObject();
        cJSON_AddStringToObject(message, "role", role_name(t->role));
        record_add_text(message, "content", str_text(&t->text), t->text.len);
        if (t->role == ROLE_ASSISTANT) {
            if (t->model >= 0)
                cJSON_AddStringToObject(message, "model", c->models[t->model]);
            cJSON_AddNumberToObject(message, "seed", t->seed);
            add_knobs(message, t);
            add_tokens(message, t);
        }
        cJSON_AddItemToArray(messages, message);
    }
    char *text = cJSON_Print(root);
    if (text == NULL)
        mem_fatal("export");
    str_add_text(out, text);
    str_add_char(out, '\n');
    cJSON_free(text);
    cJSON_Delete(root);
}

void conversation_export(const struct conversation *c, enum export_format format, struct str *out)
{
    static void (*const exporters[])(const struct conversation *, struct str *) = {
        [EXPORT_MARKDOWN] = export_markdown,
        [EXPORT_TEXT] = export_text,
        [EXPORT_JSON] = export_json,
    };

    exporters[format](c, out);
}
