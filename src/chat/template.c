#include "config.h"

#include "chat/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the families -------------------------------------------------------------------------- */

/* In the table these stand for the vocabulary's begin and end tokens. */
#define BOS "\1"
#define EOS "\2"

enum { MARKS_MAX = 4 };

struct wrap { /* what stands before and behind a message */
    const char *before, *after;
};

struct chat_template {
    const char *name;
    const char *marks[MARKS_MAX]; /* found in the file's template, in this order */
    const char *without;          /* and this is not; NULL: whatever */
    struct wrap turns[ROLE_COUNT];
    bool system_in_user; /* the system prompt, with its wrap, opens the user's next turn */
    bool trims;          /* messages lose white space at their ends */
    struct wrap drawn;   /* round the tokens of an answer: what opens one, what closes it */
};

/* The first that fits is it: the special ones of a kin come before the general. */
static const struct chat_template templates[] = {
    {
        .name = "chatml",
        .marks = {"<|im_start|>", "<|im_end|>"},
        .without = "<|im_sep|>", /* Phi-4 is another family */
        .turns = {{"<|im_start|>system\n", "<|im_end|>\n"},
                  {"<|im_start|>user\n", "<|im_end|>\n"},
                  {"<|im_start|>assistant\n", "<|im_end|>\n"}},
        .drawn = {"<|im_start|>assistant\n", "<|im_end|>\n"},
    },
    {
        .name = "llama3",
        .marks = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
        .turns = {{"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
                  {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
                  {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"}},
        .trims = true,
        .drawn = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
    },
    {
        .name = "gemma",
        .marks = {"<start_of_turn>", "<end_of_turn>"},
        .turns = {{"", "\n\n"},
                  {"<start_of_turn>user\n", "<end_of_turn>\n"},
                  {"<start_of_turn>model\n", "<end_of_turn>\n"}},
        .system_in_user = true,
        .trims = true,
        .drawn = {"<start_of_turn>model\n", "<end_of_turn>\n"},
    },
    {
        .name = "phi3",
        .marks = {"<|end|>", "<|assistant|>"},
        .without = "'|>' + message['content'] + '<|end|>'", /* Phi-4-mini has no line ends */
        .turns = {{"<|system|>\n", "<|end|>\n"},
                  {"<|user|>\n", "<|end|>\n"},
                  {"<|assistant|>\n", "<|end|>\n"}},
        .drawn = {"<|assistant|>\n", "<|end|>\n"},
    },
    {
        .name = "zephyr",
        .marks = {"<|user|>", "eos_token", "<|system|>", "<|assistant|>"},
        .turns = {{"<|system|>\n", EOS "\n"},
                  {"<|user|>\n", EOS "\n"},
                  {"<|assistant|>\n", EOS "\n"}},
        .drawn = {"<|assistant|>\n", EOS "\n"},
    },
    {
        .name = "mistral-v7", /* SentencePiece */
        .marks = {"[SYSTEM_PROMPT] ", "[INST] "},
        .turns = {{"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"}, {"[INST] ", "[/INST]"}, {" ", EOS}},
        .drawn = {"", EOS},
    },
    {
        .name = "mistral-v7-tekken",
        .marks = {"[SYSTEM_PROMPT]"},
        .turns = {{"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, {"[INST]", "[/INST]"}, {"", EOS}},
        .drawn = {"", EOS},
    },
    {
        .name = "llama2", /* every exchange is a sequence of its own */
        .marks = {"<<SYS>>", "bos_token + '[INST] '"},
        .turns = {{"<<SYS>>\n", "\n<</SYS>>\n\n"}, {BOS "[INST] ", " [/INST]"}, {" ", " " EOS}},
        .system_in_user = true,
        .trims = true,
        .drawn = {"", " " EOS},
    },
    {
        .name = "llama2-one-bos",
        .marks = {"<<SYS>>", "[INST] "},
        .turns = {{"<<SYS>>\n", "\n<</SYS>>\n\n"}, {"[INST] ", " [/INST]"}, {" ", " " EOS}},
        .system_in_user = true,
        .trims = true,
        .drawn = {"", " " EOS},
    },
    {
        .name = "mistral-v1",
        .marks = {"' [INST] '"},
        .turns = {{"", "\n\n"}, {" [INST] ", " [/INST]"}, {" ", EOS}},
        .system_in_user = true,
        .drawn = {"", EOS},
    },
    {
        .name = "mistral-v3-tekken",
        .marks = {"[AVAILABLE_TOOLS]", "\"[INST]\""},
        .turns = {{"", "\n\n"}, {"[INST]", "[/INST]"}, {"", EOS}},
        .system_in_user = true,
        .drawn = {"", EOS},
    },
    {
        .name = "mistral-v3",
        .marks = {"[AVAILABLE_TOOLS]", "[INST] "},
        .turns = {{"", "\n\n"}, {"[INST] ", "[/INST]"}, {" ", EOS}},
        .system_in_user = true,
        .drawn = {"", EOS},
    },
    {
        .name = "mistral", /* before its versions had numbers */
        .marks = {"'[INST] '", "' [/INST]'"},
        .turns = {{"", "\n\n"}, {"[INST] ", " [/INST]"}, {"", EOS}},
        .system_in_user = true,
        .drawn = {"", EOS},
    },
    {
        .name = "plain", /* for models that only go on with a text; recognised from nothing */
        .turns = {{"", "\n\n"}, {"", "\n"}, {"", "\n"}},
        .drawn = {"", "\n"},
    },
};

enum { TEMPLATES = sizeof templates / sizeof templates[0] };

const struct chat_template *template_find(const char *name)
{
    for (size_t i = 0; i < TEMPLATES; i++) {
        if (strcmp(templates[i].name, name) == 0)
            return &templates[i];
    }
    return NULL;
}

const char *template_name(const struct chat_template *t)
{
    return t->name;
}

/* ---- recognising --------------------------------------------------------------------------- */

static bool has_marks(const struct chat_template *t, const char *jinja)
{
    if (t->marks[0] == NULL || (t->without != NULL && strstr(jinja, t->without) != NULL))
        return false;
    for (size_t i = 0; i < MARKS_MAX && t->marks[i] != NULL; i++) {
        jinja = strstr(jinja, t->marks[i]);
        if (jinja == NULL)
            return false;
        jinja += strlen(t->marks[i]);
    }
    return true;
}

static const struct chat_template *recognise(const char *jinja)
{
    for (size_t i = 0; jinja != NULL && i < TEMPLATES; i++) {
        if (has_marks(&templates[i], jinja))
            return &templates[i];
    }
    return NULL;
}

/* Whether `jinja` goes on with `text`, a line end of which may be written as \n. Returns what
 * follows. */
static const char *skip_text(const char *jinja, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n' && jinja[0] == '\\' && jinja[1] == 'n')
            jinja += 2;
        else if (*text == *jinja)
            jinja++;
        else
            return NULL;
    }
    return jinja;
}

/* Reads a literal up to `end`. `quote` is the character that its string began with; 0: it stands
 * outside of expressions. False when it is not one literal up to there, or does not fit. */
static bool read_literal(const char *jinja, const char *end, char quote, char *out, size_t size)
{
    static const char escaped[] = "n\nt\t'\'\"\"\\\\";
    size_t n = 0;

    for (; skip_text(jinja, end) == NULL; jinja++) {
        char c = *jinja;
        bool code = quote != 0 ? c == quote : c == '{' && (jinja[1] == '{' || jinja[1] == '%');
        if (c == '\0' || code || n + 1 >= size)
            return false;
        if (quote != 0 && c == '\\') {
            c = *++jinja;
            for (size_t i = 0; escaped[i] != '\0'; i += 2) {
                if (escaped[i] == *jinja)
                    c = escaped[i + 1];
            }
            if (c == '\0')
                return false;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return n > 0;
}

/* The system prompt that the file's template adds when a conversation has none: a literal system
 * turn. */
static void find_default_system(const struct chat_template *t, const char *jinja, char *out,
                                size_t size)
{
    const struct wrap *wrap = &t->turns[ROLE_SYSTEM];
    char start[64], end[64]; /* without line ends, which are written in two ways */

    if (t->system_in_user)
        return;
    snprintf(start, sizeof start, "%.*s", (int)strcspn(wrap->before, "\n"), wrap->before);
    snprintf(end, sizeof end, "%.*s", (int)strcspn(wrap->after, "\n"), wrap->after);
    for (const char *p = jinja; (p = strstr(p, start)) != NULL; p++) {
        char quote = p > jinja && (p[-1] == '\'' || p[-1] == '"') ? p[-1] : 0;
        const char *text = skip_text(p, wrap->before);
        if (text != NULL && read_literal(text, end, quote, out, size))
            return;
    }
    *out = '\0';
}

/* The text of a token as a C string, or `initial` when there is none or it is no text. */
static void copy_piece(const struct tokenizer *t, int32_t id, const char *initial, char out[64])
{
    size_t len = 0;
    const char *piece = t != NULL && id >= 0 ? tokenizer_piece(t, id, &len) : NULL;

    if (piece == NULL || len == 0 || len >= 64 || memchr(piece, '\0', len) != NULL) {
        strcpy(out, t == NULL ? initial : "");
        return;
    }
    memcpy(out, piece, len);
    out[len] = '\0';
}

struct template_choice template_choose(const char *jinja, const struct tokenizer *t)
{
    struct template_choice choice = {.tmpl = recognise(jinja)};
    bool chatml = t != NULL && tokenizer_find(t, "<|im_start|>") >= 0;

    choice.recognised = choice.tmpl != NULL;
    if (!choice.recognised)
        choice.tmpl = template_find(chatml ? "chatml" : "plain");
    copy_piece(t, t != NULL ? tokenizer_bos(t) : -1, "<s>", choice.bos);
    copy_piece(t, t != NULL ? tokenizer_eos(t) : -1, "</s>", choice.eos);
    if (choice.recognised)
        find_default_system(choice.tmpl, jinja, choice.default_system,
                            sizeof choice.default_system);
    if (!choice.recognised || choice.bos[0] == '\0' ||
        (strstr(jinja, "bos_token") == NULL && strncmp(jinja, choice.bos, strlen(choice.bos)) != 0))
        choice.bos[0] = '\0';
    return choice;
}

/* ---- rendering ----------------------------------------------------------------------------- */

static struct span *add_span(struct rendering *r, enum span_kind kind)
{
    mem_grow(&r->spans, &r->cap, r->n + 1, sizeof *r->spans);
    mem_grow(&r->offsets, &r->cap_offsets, r->n + 1, sizeof *r->offsets);
    r->offsets[r->n] = r->text.len;
    r->spans[r->n] = (struct span){.kind = kind};
    return &r->spans[r->n++];
}

/* Adds the table's text, its placeholders filled. */
static void add_markup(struct rendering *r, const struct template_choice *choice, const char *text)
{
    if (*text == '\0')
        return;
    struct span *span = r->n > 0 ? &r->spans[r->n - 1] : NULL;
    if (span == NULL || span->kind != SPAN_MARKUP)
        span = add_span(r, SPAN_MARKUP);
    for (; *text != '\0'; text++) {
        if (*text == BOS[0])
            str_add_text(&r->text, choice->bos);
        else if (*text == EOS[0])
            str_add_text(&r->text, choice->eos);
        else
            str_add_char(&r->text, *text);
    }
    span->len = r->text.len - r->offsets[r->n - 1];
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Adds what someone wrote, by pointer. */
static void add_text(struct rendering *r, const struct template_choice *choice, const char *text)
{
    size_t len = strlen(text);

    if (choice->tmpl->trims) {
        for (; len > 0 && is_blank(*text); len--)
            text++;
        while (len > 0 && is_blank(text[len - 1]))
            len--;
    }
    if (len == 0)
        return;
    struct span *span = add_span(r, SPAN_TEXT);
    span->text = text;
    span->len = len;
}

static void add_tokens(struct rendering *r, const struct message *m)
{
    if (m->n_tokens == 0)
        return;
    struct span *span = add_span(r, SPAN_TOKENS);
    span->tokens = m->tokens;
    span->n_tokens = m->n_tokens;
}

static void add_wrapped(struct rendering *r, const struct template_choice *choice, enum role role,
                        const char *text)
{
    const struct wrap *wrap = &choice->tmpl->turns[role];

    add_markup(r, choice, wrap->before);
    add_text(r, choice, text);
    add_markup(r, choice, wrap->after);
}

/* A user's turn; `system` (NULL: none) goes in front of what the user says. `open`: more may be
 * said. */
static void add_user(struct rendering *r, const struct template_choice *choice, const char *system,
                     const char *text, bool open)
{
    const struct wrap *wrap = &choice->tmpl->turns[ROLE_USER];

    add_markup(r, choice, wrap->before);
    if (system != NULL && *system != '\0')
        add_wrapped(r, choice, ROLE_SYSTEM, system);
    add_text(r, choice, text);
    if (!open)
        add_markup(r, choice, wrap->after);
}

static void add_answer(struct rendering *r, const struct template_choice *choice,
                       const struct message *m)
{
    if (m->tokens == NULL) {
        add_wrapped(r, choice, ROLE_ASSISTANT, m->text);
        return;
    }
    add_markup(r, choice, choice->tmpl->drawn.before);
    add_tokens(r, m);
    add_markup(r, choice, choice->tmpl->drawn.after);
}

/* All messages; `draft`: the last one is still being written. */
static void add_messages(struct rendering *out, const struct template_choice *choice,
                         const struct message_list *messages, bool draft)
{
    const char *system = NULL; /* waits for the user's next turn */

    *out = (struct rendering){.text = STR_INIT};
    if (choice->bos[0] != '\0' && choice->tmpl->turns[ROLE_USER].before[0] != BOS[0])
        add_markup(out, choice, BOS);
    if (choice->default_system[0] != '\0' &&
        (messages->n == 0 || messages->items[0].role != ROLE_SYSTEM)) {
        add_markup(out, choice, choice->tmpl->turns[ROLE_SYSTEM].before);
        add_markup(out, choice, choice->default_system);
        add_markup(out, choice, choice->tmpl->turns[ROLE_SYSTEM].after);
    }
    for (size_t i = 0; i < messages->n; i++) {
        const struct message *m = &messages->items[i];
        if (m->role == ROLE_SYSTEM && choice->tmpl->system_in_user) {
            system = m->text;
        } else if (m->role == ROLE_USER) {
            add_user(out, choice, system, m->text, draft && i + 1 == messages->n);
            system = NULL;
        } else if (m->role == ROLE_ASSISTANT) {
            add_answer(out, choice, m);
        } else {
            add_wrapped(out, choice, m->role, m->text);
        }
    }
    if (system != NULL) /* nobody has said anything yet */
        add_user(out, choice, system, "", false);
}

/* The text of the markup does not move any more. */
static void point_at_markup(struct rendering *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->spans[i].kind == SPAN_MARKUP)
            r->spans[i].text = r->text.data + r->offsets[i];
    }
}

void template_render(const struct template_choice *choice, const struct message_list *messages,
                     bool open_answer, struct rendering *out)
{
    add_messages(out, choice, messages, false);
    if (open_answer)
        add_markup(out, choice, choice->tmpl->drawn.before);
    point_at_markup(out);
}

void template_render_draft(const struct template_choice *choice,
                           const struct message_list *messages, struct rendering *out)
{
    add_messages(out, choice, messages, true);
    point_at_markup(out);
}

void rendering_done(struct rendering *r)
{
    str_done(&r->text);
    free(r->spans);
    free(r->offsets);
    *r = (struct rendering){.text = STR_INIT};
}
