#include "config.h"

#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_impl.h"
#include "cli/json.h"
#include "cli/options.h"
#include "config/paths.h"

#define AT(field) offsetof(struct bench_options, field)

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "a file, or the name of a model on this computer", option_text,
     AT(model), 0, 0},
    {"n-prompt", 'p', "N", "tokens of the prefill (512; 0: leave it out)", option_int, AT(prefill),
     0, 1 << 20},
    {"n-gen", 'n', "N", "tokens of the decode (64; 0: leave it out)", option_int, AT(decode), 0,
     1 << 20},
    {"depth", 'd', "N", "tokens in the cache before the decode (0)", option_int, AT(depth), 0,
     1 << 20},
    {"lanes", 0, "N", "also decode N answers to one prompt side by side (at most 16)", option_int,
     AT(lanes), 0, BENCH_LANES_MAX},
    {"repetitions", 'r', "N", "how often; the median is reported (3)", option_int, AT(reps), 1,
     BENCH_REPS_MAX},
    {"uncached", 0, NULL, "also answer without a KV cache, token by token", option_flag,
     AT(uncached), 0, 0},
    {"threads", 't', "N", "compute threads (one a core)", option_int, AT(threads), 1, 64},
    {"ctx-size", 'c', "N", "positions in the context (what is needed)", option_int, AT(ctx_size), 1,
     1 << 24},
    {"batch-size", 'b', "N", "prompt tokens a batch (512)", option_int, AT(batch_size), 1, 1 << 16},
    {"cache-type", 0, "TYPE", "the cache's numbers: f16 (default) or q8_0", option_cache_type,
     AT(cache_type), 0, 0},
    {"no-repack", 0, NULL, "run from the file's map: less memory, slower", option_flag,
     AT(no_repack), 0, 0},
    {"json", 0, NULL, "one JSON object", option_flag, AT(json), 0, 0},
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader bench",
    .usage = "[-m MODEL] [options]",
    .about =
        "How fast this computer runs a model: start, prefill, decode, memory. The engine alone:\n"
        "a decode step is a forward pass and its logits, without sampling.",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

/* The processor's name, or "unknown". */
static void cpu_name(char *out, size_t size)
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "r");

    snprintf(out, size, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(out, size, "%s", value);
        break;
    }
    if (f != NULL)
        fclose(f);
}

/* ---- for programs ---------------------------------------------------------------------------- */

/* An object under `key`, or null when the measurement was left out; returns it or NULL. */
static cJSON *add_measurement(cJSON *to, const char *key, bool made)
{
    if (made)
        return cJSON_AddObjectToObject(to, key);
    cJSON_AddNullToObject(to, key);
    return NULL;
}

static void add_rates(cJSON *to, const struct bench_options *o, const struct bench_report *r)
{
    cJSON *prefill = add_measurement(to, "prefill", o->prefill > 0);
    if (prefill != NULL) {
        cJSON_AddNumberToObject(prefill, "n", o->prefill);
        cJSON_AddNumberToObject(prefill, "tps", r->prefill.median);
    }
    cJSON *decode = add_measurement(to, "decode", o->decode > 0);
    if (decode != NULL) {
        cJSON_AddNumberToObject(decode, "n", o->decode);
        cJSON_AddNumberToObject(decode, "depth", o->depth);
        cJSON_AddNumberToObject(decode, "tps", r->decode.median);
    }
    cJSON *lanes = add_measurement(to, "lanes", o->lanes > 0 && o->decode > 0);
    if (lanes != NULL) {
        cJSON_AddNumberToObject(lanes, "n", o->lanes);
        cJSON_AddNumberToObject(lanes, "tps_total", r->lanes.median);
    }
}

static void add_uncached(cJSON *to, const struct bench_options *o, const struct bench_report *r)
{
    if (r->steps == NULL) {
        cJSON_AddNullToObject(to, "uncached");
        return;
    }
    cJSON *list = cJSON_AddArrayToObject(to, "uncached");
    for (int32_t i = 0; i < o->decode; i++) {
        cJSON *step = cJSON_CreateObject();
        cJSON_AddNumberToObject(step, "token", i);
        cJSON_AddNumberToObject(step, "positions", BENCH_CHAPTER_PROMPT + i);
        cJSON_AddNumberToObject(step, "uncached_ms", r->steps[i].uncached_ms);
        cJSON_AddNumberToObject(step, "cached_ms", r->steps[i].cached_ms);
        cJSON_AddItemToArray(list, step);
    }
}

static void add_limits(cJSON *to, const struct bench_options *o, const struct bench_report *r)
{
    cJSON *limits = cJSON_AddObjectToObject(to, "limits"),
          *share = cJSON_AddObjectToObject(to, "share");

    if (r->decode_limit > 0.0) {
        cJSON_AddNumberToObject(limits, "stream_gbps", r->stream_gbps);
        cJSON_AddNumberToObject(limits, "decode_tps", r->decode_limit);
        cJSON_AddNumberToObject(share, "decode", r->decode.median / r->decode_limit);
    }
    cJSON *spread = cJSON_AddObjectToObject(to, "spread");
    if (o->prefill > 0)
        cJSON_AddNumberToObject(spread, "prefill", r->prefill.spread);
    if (o->decode > 0)
        cJSON_AddNumberToObject(spread, "decode", r->decode.spread);
    if (o->lanes > 0 && o->decode > 0)
        cJSON_AddNumberToObject(spread, "lanes", r->lanes.spread);
}

static void print_json(const struct bench_options *o, const struct model *m,
                       const struct bench_report *r)
{
    const struct model_info *info = model_get_info(m);
    cJSON *all = cJSON_CreateObject();
    char cpu[256];

    cpu_name(cpu, sizeof cpu);
    cJSON_AddStringToObject(all, "model", info->label);
    cJSON_AddStringToObject(all, "type", info->type);
    cJSON_AddNumberToObject(all, "threads", model_threads(m));
    cJSON_AddStringToObject(all, "cpu", cpu);
    cJSON_AddStringToObject(all, "kernels", engine_kernels());
    cJSON_AddNumberToObject(all, "load_ms", r->load_ms);
    cJSON_AddNumberToObject(all, "ttft_ms", r->ttft_ms);
    add_rates(all, o, r);
    add_uncached(all, o, r);
    add_limits(all, o, r);
    cJSON_AddNumberToObject(all, "rss_mb", r->peak_rss_mb);
    cJSON_AddNumberToObject(all, "weights_mb", r->weights_mb);
    cJSON_AddNumberToObject(all, "kv_bytes_per_token", (double)r->kv_bytes_per_token);
    json_print_line(all);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_rate(const char *what, const struct bench_rate *rate)
{
    printf("%-28s %9.1f tokens/s   spread %4.1f %%\n", what, rate->median, 100.0 * rate->spread);
}

/* Some of the steps, the last among them, and the sums. */
static void print_uncached(const struct bench_options *o, const struct bench_report *r)
{
    double cached = 0.0, uncached = 0.0;
    int64_t positions = 0;
    int32_t every = o->decode > 8 ? o->decode / 8 : 1;

    printf("\nWithout a KV cache (prompt of %d tokens, answer of %d):\n", BENCH_CHAPTER_PROMPT,
           (int)o->decode);
    printf("  %-10s %10s %14s %14s\n", "token", "positions", "uncached", "cached");
    for (int32_t i = 0; i < o->decode; i++) {
        const struct bench_step *step = &r->steps[i];
        cached += step->cached_ms;
        uncached += step->uncached_ms;
        positions += BENCH_CHAPTER_PROMPT + i;
        if (i % every == 0 || i + 1 == o->decode)
            printf("  %-10d %10d %11.2f ms %11.2f ms\n", (int)i, BENCH_CHAPTER_PROMPT + (int)i,
                   step->uncached_ms, step->cached_ms);
    }
    printf("  %-10s %10lld %11.0f ms %11.0f ms: %.1f times\n", "all", (long long)positions,
           uncached, cached, uncached / cached);
    printf("  With the cache it takes %d positions.\n", BENCH_CHAPTER_PROMPT + (int)o->decode - 1);
}

static void print_text(const struct bench_options *o, const struct model *m,
                       const struct bench_report *r)
{
    const struct model_info *info = model_get_info(m);
    char cpu[256], what[64];

    cpu_name(cpu, sizeof cpu);
    printf("%s %s, %d thread%s, %s kernels, %s\n\n", info->label, info->type, model_threads(m),
           model_threads(m) == 1 ? "" : "s", engine_kernels(), cpu);
    printf("%-28s %9.1f ms\n", "open and load", r->load_ms);
    printf("%-28s %9.1f ms\n", "... until the first token", r->ttft_ms);
    if (o->prefill > 0) {
        snprintf(what, sizeof what, "prefill of %d", (int)o->prefill);
        print_rate(what, &r->prefill);
    }
    if (o->decode > 0) {
        snprintf(what, sizeof what, "decode of %d after %d", (int)o->decode, (int)o->depth);
        print_rate(what, &r->decode);
    }
    if (o->lanes > 0 && o->decode > 0) {
        snprintf(what, sizeof what, "%d lanes, all together", (int)o->lanes);
        print_rate(what, &r->lanes);
    }
    if (r->decode_limit > 0.0)
        printf("%-28s %9.1f tokens/s   (%.1f GB/s); decode is at %.0f %% of it\n",
               "memory would allow", r->decode_limit, r->stream_gbps,
               100.0 * r->decode.median / r->decode_limit);
    printf("%-28s %9.1f MB         weights %.1f MB, KV %llu bytes a token\n", "most memory held",
           r->peak_rss_mb, r->weights_mb, (unsigned long long)r->kv_bytes_per_token);
    if (r->steps != NULL)
        print_uncached(o, r);
}

int cmd_bench(int argc, char **argv)
{
    struct bench_options o = {.prefill = 512, .decode = 64, .reps = 3, .cache_type = CACHE_F16};
    struct bench_report report = {0};
    struct model *m = NULL;
    struct error err;
    int status;

    if (options_open(&table, argc, argv, &o, &o.help, &status) < 0)
        return status;
    char *path = models_resolve(o.model, &err);
    bool ok = path != NULL && bench_measure(&o, path, &m, &report, &err);
    if (ok && o.json)
        print_json(&o, m, &report);
    else if (ok)
        print_text(&o, m, &report);
    free(path);
    free(report.steps);
    model_close(m);
    return ok ? EXIT_SUCCESS : cli_fail(&err);
}
