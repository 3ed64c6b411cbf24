/* Transcripts: what can be read can be written, exported, and read again as the same conversation. */
#include "config.h"

#include "fuzz/fuzz.h"

#include <string.h>

#include "backend/backend.h"
#include "chat/transcript.h"

const uint64_t fuzz_test_runs = 10000;

/* ---- honest conversations ------------------------------------------------------------------ */

static void add_token(struct turn *t, int32_t id, const char *text)
{
    struct answer_token token = {
        .id = id, .logprob = -0.5f, .p = 0.25f, .rank = 1, .entropy = 1.5f};

    turn_add_token(t, &token, text, strlen(text));
}

/* Two versions of an answer, the second a branch with moves, and an edited question. */
static struct conversation *branched(void)
{
    struct conversation *c = conversation_new();

    conversation_set_model(c, "SmolLM2", 0);
    conversation_set_system(c, "Say \"rain\"\n\tand stop.");
    conversation_set_preset(c, "poetry");
    struct turn *question = conversation_add(c, NULL, ROLE_USER, "Two lines about \xe9\x9b\xa8");
    struct turn *first = conversation_add(c, question, ROLE_ASSISTANT, "");
    add_token(first, 1, "Rain");
    add_token(first, 2, " f\xc3\xa4lls");
    first->end_reason = END_EOG;
    first->complete = true;
    struct turn *second = conversation_add(c, question, ROLE_ASSISTANT, "");
    second->earlier = first;
    turn_take_tokens(second, first, 1);
    turn_add_knob(second, 1, KNOB_TOP_K, 50, 0);
    struct knobs chain = second->knobs;
    chain.order[0] = STAGE_TOP_K;
    chain.order[STAGE_TOP_K] = STAGE_PENALTY;
    chain.exempt_mode = EXEMPT_NONE;
    turn_add_chain(second, 1, &chain);
    add_token(second, 5, " taps");
    second->branch_at = 1;
    second->dropped_messages = 2;
    second->dropped_tokens = 311;
    second->end_reason = END_STOPPED;
    conversation_add(c, NULL, ROLE_USER, "Three lines");
    return c;
}

/* A chat of some turns, cut back. */
static struct conversation *plain(void)
{
    struct conversation *c = conversation_new();
    struct turn *t = NULL;

    for (int i = 0; i < 6; i++) {
        t = conversation_add(c, t, i % 2 == 0 ? ROLE_USER : ROLE_ASSISTANT,
                             i % 2 == 0 ? "Go on" : "");
        if (i % 2 == 1) {
            add_token(t, i, "and on");
            t->end_reason = END_MAX_TOKENS;
        }
    }
    conversation_cut(c, t->parent->parent);
    return c;
}

/* The lines of a conversation, but for the first, which says the time. */
static void format(const struct conversation *c, struct str *out)
{
    str_clear(out);
    transcript_format(c, "avx2", out);
    str_erase(out, 0, strcspn(str_text(out), "\n") + 1);
}

bool fuzz_seed(size_t i, struct str *out)
{
    static struct conversation *(*const makers[])(void) = {branched, plain};
    static const char header[] =
        "{\"type\":\"header\",\"fader\":1,\"time\":\"2026-11-30T20:15:00Z\"}\n";
    struct str lines = STR_INIT;

    if (i >= sizeof makers / sizeof *makers)
        return false;
    struct conversation *c = makers[i]();
    format(c, &lines);
    str_add_text(out, header);
    str_add(out, str_text(&lines), lines.len);
    str_done(&lines);
    conversation_free(c);
    return true;
}

/* ---- what is done with one ----------------------------------------------------------------- */

static void use(const struct conversation *c)
{
    struct message_list messages;
    struct str text = STR_INIT;
    struct knobs knobs;

    for (size_t i = 0; i < c->n_turns; i++) {
        const struct turn *t = c->turns[i];
        size_t len = 0;
        for (size_t k = 0; k < t->n_tokens; k++) {
            const char *piece = turn_token_text(t, k, &len);
            FUZZ_CHECK(len == 0 ||
                       (piece >= t->text.data && piece + len <= t->text.data + t->text.len));
        }
        if (t->role == ROLE_ASSISTANT) {
            turn_messages(t, &messages);
            message_list_done(&messages);
        }
    }
    conversation_messages(c, NULL, &messages);
    message_list_done(&messages);
    conversation_last_knobs(c, &knobs);
    conversation_export(c, EXPORT_MARKDOWN, &text);
    conversation_export(c, EXPORT_TEXT, &text);
    conversation_export(c, EXPORT_JSON, &text);
    str_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str warning = STR_INIT, once = STR_INIT, twice = STR_INIT;
    struct error err = {""};
    struct conversation *c = transcript_load(fuzz_file(0, data, size), &warning, &err);

    if (c == NULL) {
        fuzz_check_error(&err);
    } else {
        use(c);
        transcript_format(c, "avx2", &once);
        struct conversation *again =
            transcript_load(fuzz_file(1, once.data, once.len), &warning, &err);
        if (again == NULL)
            fprintf(stderr, "%s\n%s", err.text, str_text(&once));
        FUZZ_CHECK(again != NULL);
        format(c, &once);
        format(again, &twice);
        if (strcmp(str_text(&once), str_text(&twice)) != 0)
            fprintf(stderr, "---- once\n%s---- twice\n%s", str_text(&once), str_text(&twice));
        FUZZ_CHECK(strcmp(str_text(&once), str_text(&twice)) == 0);
        conversation_free(again);
    }
    conversation_free(c);
    str_done(&warning);
    str_done(&once);
    str_done(&twice);
    return 0;
}
