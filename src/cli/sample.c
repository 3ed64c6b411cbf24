#include "config.h"

#include "cli/sample.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/json.h"
#include "cli/options.h"
#include "engine/sampler.h"

enum { INPUT_MAX = 256 << 20, VOCAB_MAX = 1 << 24, DRAWS_MAX = 100000000 };

struct sample {
    double *exact; /* [n_vocab] logits as they were given */
    float *logits; /* [n_vocab] the same, as the sampler takes them */
    int32_t n_vocab;
    int32_t *history;
    size_t n_history;
    uint8_t *exempt; /* [n_vocab] */
    struct knobs knobs;
    uint32_t seed;
    int32_t draws;
};

/* ---- the request ---------------------------------------------------------------------------- */

/* A whole number in [min, max]. */
static bool take_whole(const char *name, const cJSON *value, double min, double max, double *out,
                       struct error *err)
{
    if (!cJSON_IsNumber(value) || value->valuedouble != floor(value->valuedouble))
        return error_set(err, "%s: not a whole number", name);
    if (value->valuedouble < min || value->valuedouble > max)
        return error_set(err, "%s: %.10g is out of range (%.10g - %.10g)", name, value->valuedouble,
                         min, max);
    *out = value->valuedouble;
    return true;
}

static bool take_logits(struct sample *s, const cJSON *value, struct error *err)
{
    const int n = cJSON_GetArraySize(value);
    const cJSON *item;

    if (!cJSON_IsArray(value))
        return error_set(err, "logits: %s", value == NULL ? "missing" : "not an array of numbers");
    if (n == 0 || n > VOCAB_MAX)
        return error_set(err, "logits: %d of them; it takes 1 - %d", n, VOCAB_MAX);
    s->exact = mem_array((size_t)n, sizeof *s->exact);
    s->logits = mem_array((size_t)n, sizeof *s->logits);
    s->exempt = mem_array((size_t)n, sizeof *s->exempt);
    cJSON_ArrayForEach(item, value)
    {
        if (!cJSON_IsNumber(item))
            return error_set(err, "logits[%d]: not a number", s->n_vocab);
        if (!(fabs(item->valuedouble) <= FLT_MAX))
            return error_set(err, "logits[%d]: not a finite number", s->n_vocab);
        s->exact[s->n_vocab] = item->valuedouble;
        s->logits[s->n_vocab++] = (float)item->valuedouble;
    }
    return true;
}

/* An array of token ids, each handed to `put`. */
static bool take_ids(struct sample *s, const char *name, const cJSON *value,
                     void (*put)(struct sample *s, int32_t id), struct error *err)
{
    const cJSON *item;
    char place[64];
    int i = 0;

    if (!cJSON_IsArray(value))
        return error_set(err, "%s: not an array of token ids", name);
    cJSON_ArrayForEach(item, value)
    {
        double id = 0;
        snprintf(place, sizeof place, "%s[%d]", name, i++);
        if (!take_whole(place, item, 0, s->n_vocab - 1, &id, err))
            return false;
        put(s, (int32_t)id);
    }
    return true;
}

static void put_history(struct sample *s, int32_t id)
{
    s->history[s->n_history++] = id;
}

static void put_exempt(struct sample *s, int32_t id)
{
    s->exempt[id] = 1;
}

static bool read_logits(struct sample *s, const cJSON *value, struct error *err)
{
    (void)s; /* taken before all others: ids are checked against them */
    (void)value;
    (void)err;
    return true;
}

static bool read_history(struct sample *s, const cJSON *value, struct error *err)
{
    s->history = mem_array((size_t)cJSON_GetArraySize(value), sizeof *s->history);
    return take_ids(s, "history", value, put_history, err);
}

static bool read_exempt(struct sample *s, const cJSON *value, struct error *err)
{
    return take_ids(s, "exempt", value, put_exempt, err);
}

static bool read_seed(struct sample *s, const cJSON *value, struct error *err)
{
    double seed = 0;

    if (!take_whole("seed", value, -1, UINT32_MAX, &seed, err))
        return false;
    if (seed >= 0)
        s->seed = (uint32_t)seed;
    return true;
}

static bool read_draws(struct sample *s, const cJSON *value, struct error *err)
{
    double draws = 0;

    if (!take_whole("draws", value, 0, DRAWS_MAX, &draws, err))
        return false;
    s->draws = (int32_t)draws;
    return true;
}

static const struct key {
    const char *name;
    bool (*read)(struct sample *s, const cJSON *value, struct error *err);
} keys[] = {
    {"logits", read_logits}, {"history", read_history}, {"exempt", read_exempt},
    {"seed", read_seed},     {"draws", read_draws},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static int find_knob(const char *name)
{
    int k = 0;

    while (k < KNOB_COUNT && strcmp(knob_traits[k].name, name) != 0)
        k++;
    return k < KNOB_COUNT ? k : -1;
}

static bool read_knob(struct sample *s, enum knob knob, const cJSON *value, struct error *err)
{
    if (!cJSON_IsNumber(value))
        return error_set(err, "%s: not a number", knob_traits[knob].name);
    s->knobs.value[knob] = value->valuedouble;
    return knob_check(knob, value->valuedouble, 0, err); /* top-k is clamped to the vocabulary */
}

static bool refuse_key(const char *name, struct error *err)
{
    struct nearest nearest;

    nearest_init(&nearest, name);
    for (size_t i = 0; i < N_KEYS; i++)
        nearest_offer(&nearest, keys[i].name);
    for (int k = 0; k < KNOB_COUNT; k++)
        nearest_offer(&nearest, knob_traits[k].name);
    if (nearest.best != NULL)
        return error_set(err, "%s: unknown key; did you mean %s?", name, nearest.best);
    return error_set(err, "%s: unknown key", name);
}

static bool read_key(struct sample *s, const cJSON *item, struct error *err)
{
    const int knob = find_knob(item->string);

    if (knob >= 0)
        return read_knob(s, (enum knob)knob, item, err);
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].name, item->string) == 0)
            return keys[i].read(s, item, err);
    }
    return refuse_key(item->string, err);
}

static bool is_twice(const cJSON *request, const cJSON *item)
{
    return cJSON_GetObjectItemCaseSensitive(request, item->string) != item;
}

static bool read_request(struct sample *s, const cJSON *request, struct error *err)
{
    const cJSON *item;

    if (!cJSON_IsObject(request))
        return error_set(err, "standard input: not a JSON object");
    if (!take_logits(s, cJSON_GetObjectItemCaseSensitive(request, "logits"), err))
        return false;
    cJSON_ArrayForEach(item, request)
    {
        if (is_twice(request, item))
            return error_set(err, "%s: given twice", item->string);
        if (!read_key(s, item, err))
            return false;
    }
    return true;
}

/* Reads standard input as one JSON object. */
static cJSON *parse_input(struct error *err)
{
    struct str text = STR_INIT;
    const char *end = NULL;
    cJSON *request = NULL;

    if (file_read("-", INPUT_MAX, &text, err)) {
        str_add_char(&text, '\0'); /* cJSON wants to see the end */
        request = cJSON_ParseWithLengthOpts(text.data, text.len, &end, 1);
        if (request == NULL)
            error_set(err, "standard input: not valid JSON at byte %zu",
                      end != NULL ? (size_t)(end - text.data) + 1 : 1);
    }
    str_done(&text);
    return request;
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* Adds `"name": name` with the survivors and their logits side by side. */
static void add_stage(cJSON *stages, const char *name, const struct sample *s, const double *logits,
                      const uint8_t *kept)
{
    cJSON *stage = cJSON_CreateObject();

    cJSON_AddStringToObject(stage, "name", name);
    cJSON *ids = cJSON_AddArrayToObject(stage, "kept");
    cJSON *values = cJSON_AddArrayToObject(stage, "logits");
    for (int32_t i = 0; i < s->n_vocab; i++) {
        if (!kept[i])
            continue;
        cJSON_AddItemToArray(ids, cJSON_CreateNumber(i));
        cJSON_AddItemToArray(values, cJSON_CreateNumber(logits[i]));
    }
    cJSON_AddItemToArray(stages, stage);
}

/* Softmax over what is left, 0 elsewhere. */
static void add_probs(cJSON *answer, const struct sample *s, const double *logits,
                      const uint8_t *kept)
{
    cJSON *probs = cJSON_AddArrayToObject(answer, "probs");
    double top = -INFINITY, sum = 0;

    for (int32_t i = 0; i < s->n_vocab; i++)
        top = kept[i] && logits[i] > top ? logits[i] : top;
    for (int32_t i = 0; i < s->n_vocab; i++)
        sum += kept[i] ? exp(logits[i] - top) : 0;
    for (int32_t i = 0; i < s->n_vocab; i++)
        cJSON_AddItemToArray(probs, cJSON_CreateNumber(kept[i] ? exp(logits[i] - top) / sum : 0));
}

static void add_counts(cJSON *answer, const struct sample *s, struct sampler *sampler)
{
    int32_t *counts = mem_array((size_t)s->n_vocab, sizeof *counts);
    cJSON *array = cJSON_AddArrayToObject(answer, "counts");

    for (int32_t n = 0; n < s->draws; n++)
        counts[sampler_pick_id(sampler, sampler_uniform(s->seed, (uint64_t)n))]++;
    for (int32_t i = 0; i < s->n_vocab; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(counts[i]));
    free(counts);
}

/* The last stage that ran leaves its logits and survivors in the two arrays. */
static void add_stages(cJSON *answer, const struct sample *s, struct sampler *sampler,
                       double *logits, uint8_t *kept)
{
    cJSON *stages = cJSON_AddArrayToObject(answer, "stages");

    for (int i = 0; i < STAGE_COUNT; i++) {
        const enum stage stage = sampler_stages(sampler)[i].stage;
        const bool greedy = stage == STAGE_TEMPERATURE && sampler_is_greedy(sampler);

        memcpy(logits, s->exact, (size_t)s->n_vocab * sizeof *logits);
        sampler_trace(sampler, i, logits, kept);
        add_stage(stages, greedy ? "greedy" : stage_name(stage), s, logits, kept);
        if (greedy)
            break; /* nothing runs after it */
    }
}

static void print_answer(const struct sample *s)
{
    struct sampler *sampler = sampler_new(s->n_vocab);
    const struct sampler_input in = {.logits = s->logits,
                                     .context = s->history,
                                     .n_context = s->n_history,
                                     .punctuation = s->exempt,
                                     .knobs = &s->knobs};
    double *logits = mem_array((size_t)s->n_vocab, sizeof *logits);
    uint8_t *kept = mem_array((size_t)s->n_vocab, sizeof *kept);
    cJSON *answer = cJSON_CreateObject();

    sampler_run(sampler, &in);
    add_stages(answer, s, sampler, logits, kept);
    add_probs(answer, s, logits, kept);
    add_counts(answer, s, sampler);
    json_print_line(answer);
    free(logits);
    free(kept);
    sampler_free(sampler);
}

/* ---- the command ---------------------------------------------------------------------------- */

struct sample_options {
    bool help;
};

static const struct option_spec specs[] = {
    {"help", 'h', NULL, "this list", option_flag, offsetof(struct sample_options, help), 0, 0},
};

static const struct option_table table = {
    .command = "fader sample",
    .usage = "< request.json",
    .about =
        "One sampling step on the logits of a JSON request on standard input, stage by stage:\n"
        "  "
        "{\"logits\":[..],\"history\":[..],\"temperature\":0.8,\"top_k\":50,\"top_p\":0.9,\"min_"
        "p\":0,\n"
        "   "
        "\"repetition_penalty\":1.1,\"repeat_last_n\":-1,\"exempt\":[..],\"seed\":1,\"draws\":1000}"
        "\n"
        "Only logits is needed; the knobs shown are the defaults, exempt is a list of ids. The\n"
        "answer: "
        "{\"stages\":[{\"name\":..,\"kept\":[ids],\"logits\":[..]}],\"probs\":[..],\"counts\":[..]"
        "}",
    .specs = specs,
    .n = sizeof specs / sizeof *specs,
};

int cmd_sample(int argc, char **argv)
{
    struct sample s = {.knobs = knobs_default(), .seed = sampler_random_seed()};
    struct sample_options options = {false};
    struct error err = {""};
    int status;

    if (options_open(&table, argc, argv, &options, &options.help, &status) < 0)
        return status;
    cJSON *request = parse_input(&err);
    bool ok = request != NULL && read_request(&s, request, &err);
    if (ok)
        print_answer(&s);
    else
        error_prefix(&err, "sample");
    cJSON_Delete(request);
    free(s.exact);
    free(s.logits);
    free(s.exempt);
    free(s.history);
    return ok ? EXIT_SUCCESS : cli_fail(&err);
}
