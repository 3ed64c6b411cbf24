#include "config.h"

#include "cli/bench_impl.h"

#include <stdio.h>
#include <string.h>

#include "cli/json.h"

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

static double share_of(const struct bench_rate *rate)
{
    return rate->median / rate->limit;
}

static const char *limited_by(const struct bench_rate *rate)
{
    return rate->by_memory ? "memory" : "arithmetic";
}

/* ---- for programs ---------------------------------------------------------------------------- */

/* The first of each kind by its own key, as there is one of each unless more are asked for; null
 * where it was left out. */
static void add_first(cJSON *to, const char *key, const struct bench_rate *rate, size_t n,
                      bool has_depth)
{
    if (n == 0) {
        cJSON_AddNullToObject(to, key);
        return;
    }
    cJSON *o = cJSON_AddObjectToObject(to, key);
    cJSON_AddNumberToObject(o, "n", rate->n);
    if (has_depth)
        cJSON_AddNumberToObject(o, "depth", rate->depth);
    cJSON_AddNumberToObject(o, "tps", rate->median);
}

static void add_lanes(cJSON *to, const struct bench_options *o, const struct bench_report *r)
{
    if (r->n_lanes == 0) {
        cJSON_AddNullToObject(to, "lanes");
        return;
    }
    cJSON *lanes = cJSON_AddObjectToObject(to, "lanes");
    cJSON_AddNumberToObject(lanes, "n", o->lanes);
    cJSON_AddNumberToObject(lanes, "tps_total", r->lanes.median);
    cJSON_AddStringToObject(lanes, "limited_by", limited_by(&r->lanes));
}

static void add_all(cJSON *to, const char *key, const struct bench_rate *rates, size_t n)
{
    cJSON *list = cJSON_AddArrayToObject(to, key);

    for (size_t i = 0; i < n; i++) {
        const struct bench_rate *rate = &rates[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "n", rate->n);
        cJSON_AddNumberToObject(o, "depth", rate->depth);
        cJSON_AddNumberToObject(o, "tps", rate->median);
        cJSON_AddNumberToObject(o, "spread", rate->spread);
        cJSON_AddNumberToObject(o, "limit_tps", rate->limit);
        cJSON_AddNumberToObject(o, "share", share_of(rate));
        cJSON_AddStringToObject(o, "limited_by", limited_by(rate));
        cJSON_AddItemToArray(list, o);
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

/* Limits, shares of them, and spreads: of the first of each kind, by its name. */
static void add_limits(cJSON *to, const struct bench_report *r)
{
    const struct {
        const char *key, *limit;
        const struct bench_rate *rate;
        size_t n;
    } kinds[] = {{"prefill", "prefill_tps", r->prefill, r->n_prefill},
                 {"decode", "decode_tps", r->decode, r->n_decode},
                 {"lanes", "lanes_tps", &r->lanes, r->n_lanes}};
    cJSON *limits = cJSON_AddObjectToObject(to, "limits");
    cJSON *share = cJSON_AddObjectToObject(to, "share");
    cJSON *spread = cJSON_AddObjectToObject(to, "spread");

    cJSON_AddNumberToObject(limits, "stream_gbps", r->machine.bytes / 1e9);
    cJSON_AddNumberToObject(limits, "int8_gmacs", r->machine.codes / 1e9);
    cJSON_AddNumberToObject(limits, "f32_gmacs", r->machine.floats / 1e9);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].n == 0)
            continue;
        cJSON_AddNumberToObject(limits, kinds[i].limit, kinds[i].rate->limit);
        cJSON_AddNumberToObject(share, kinds[i].key, share_of(kinds[i].rate));
        cJSON_AddNumberToObject(spread, kinds[i].key, kinds[i].rate->spread);
    }
}

static void add_sampling(cJSON *to, const struct model_info *info, const struct bench_report *r)
{
    cJSON *sampling = cJSON_AddObjectToObject(to, "sampling");

    cJSON_AddNumberToObject(sampling, "vocab", info->n_vocab);
    cJSON_AddNumberToObject(sampling, "default_ms", r->sample_ms);
    cJSON_AddNumberToObject(sampling, "top_k_0_ms", r->sample_all_ms);
    cJSON_AddNumberToObject(sampling, "worst_ms", r->sample_worst_ms);
}

void bench_say_json(const struct bench_options *o, const struct model *m,
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
    add_first(all, "prefill", r->prefill, r->n_prefill, false);
    add_first(all, "decode", r->decode, r->n_decode, true);
    add_lanes(all, o, r);
    add_uncached(all, o, r);
    add_limits(all, r);
    add_all(all, "prefills", r->prefill, r->n_prefill);
    add_all(all, "decodes", r->decode, r->n_decode);
    add_sampling(all, info, r);
    cJSON_AddNumberToObject(all, "rss_mb", r->peak_rss_mb);
    cJSON_AddNumberToObject(all, "weights_mb", r->weights_mb);
    cJSON_AddBoolToObject(all, "repacked", model_is_repacked(m));
    cJSON_AddNumberToObject(all, "kv_mb", r->kv_mb);
    cJSON_AddNumberToObject(all, "kv_bytes_per_token", (double)r->kv_bytes_per_token);
    json_print_line(all);
}

/* ---- for people ------------------------------------------------------------------------------ */

/* With a comma between thousands: "4,096". */
static const char *grouped(int64_t value, char out[32])
{
    char digits[24];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)value), used = 0;

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

static void say_rate(const char *what, const struct bench_rate *rate)
{
    printf("  %-22s %9.1f %6.1f %% %9.1f %5.0f %% of %s\n", what, rate->median,
           100.0 * rate->spread, rate->limit, 100.0 * share_of(rate), limited_by(rate));
}

static void say_rates(const struct bench_options *o, const struct bench_report *r)
{
    char what[64], number[32];

    if (r->n_prefill + r->n_decode + r->n_lanes == 0)
        return;
    printf("\n  %-22s %9s %8s %9s %7s\n", "", "tokens/s", "spread", "limit", "share");
    for (size_t i = 0; i < r->n_prefill; i++) {
        snprintf(what, sizeof what, "prefill of %s", grouped(r->prefill[i].n, number));
        say_rate(what, &r->prefill[i]);
    }
    for (size_t i = 0; i < r->n_decode; i++) {
        if (r->decode[i].depth == 0)
            snprintf(what, sizeof what, "decode, empty cache");
        else
            snprintf(what, sizeof what, "decode after %s", grouped(r->decode[i].depth, number));
        say_rate(what, &r->decode[i]);
    }
    if (r->n_lanes > 0) {
        snprintf(what, sizeof what, "%d lanes, all together", (int)o->lanes);
        say_rate(what, &r->lanes);
    }
}

static void say_rest(const struct model_info *info, const struct bench_report *r)
{
    char what[64], number[32];
    double rest = r->peak_rss_mb - r->weights_mb - r->kv_mb;

    printf("\n  %-22s %9.1f ms\n", "open and load", r->load_ms);
    printf("  %-22s %9.1f ms     after a prompt of %d tokens\n", "start to first token", r->ttft_ms,
           BENCH_TTFT_PROMPT);
    snprintf(what, sizeof what, "sampling from %s", grouped(info->n_vocab, number));
    printf("  %-22s %9.3f ms     top-k 0: %.3f, at worst %.3f\n", what, r->sample_ms,
           r->sample_all_ms, r->sample_worst_ms);
    printf("  %-22s %9.1f MB     weights %.1f, KV cache %.1f", "most memory held", r->peak_rss_mb,
           r->weights_mb, r->kv_mb);
    if (rest >= 0) /* of a file's map not all has to be held */
        printf(", rest %.1f", rest);
    printf("\n  %-22s %9s bytes\n", "KV cache of a token",
           grouped((int64_t)r->kv_bytes_per_token, number));
}

static void say_machine(const struct machine *machine)
{
    printf("\n  %-22s %9.1f GB/s   reading the weights, between the runs\n", "memory",
           machine->bytes / 1e9);
    printf("  %-22s %9.1f G/s    multiply-adds, from registers\n", "int8 arithmetic",
           machine->codes / 1e9);
    printf("  %-22s %9.1f G/s\n", "f32 arithmetic", machine->floats / 1e9);
}

/* Some of the steps, the last among them, and the sums. */
static void say_uncached(const struct bench_options *o, const struct bench_report *r)
{
    double cached = 0.0, uncached = 0.0;
    int64_t positions = 0;
    int32_t every = o->decode > 8 ? o->decode / 8 : 1;
    char number[32];

    printf("\n  without a KV cache (prompt of %d tokens, answer of %d):\n\n", BENCH_CHAPTER_PROMPT,
           (int)o->decode);
    printf("  %-10s %10s %15s %15s\n", "token", "positions", "uncached", "cached");
    for (int32_t i = 0; i < o->decode; i++) {
        const struct bench_step *step = &r->steps[i];
        cached += step->cached_ms;
        uncached += step->uncached_ms;
        positions += BENCH_CHAPTER_PROMPT + i;
        if (i % every == 0 || i + 1 == o->decode)
            printf("  %-10d %10d %12.2f ms %12.2f ms\n", (int)i, BENCH_CHAPTER_PROMPT + (int)i,
                   step->uncached_ms, step->cached_ms);
    }
    printf("  %-10s %10s %12.0f ms %12.0f ms: %.1f times\n", "all", grouped(positions, number),
           uncached, cached, uncached / cached);
    printf("  with the cache it takes %d positions\n", BENCH_CHAPTER_PROMPT + (int)o->decode - 1);
}

void bench_say_table(const struct bench_options *o, const struct model *m,
                     const struct bench_report *r)
{
    const struct model_info *info = model_get_info(m);
    char cpu[256];
    int threads = model_threads(m);

    cpu_name(cpu, sizeof cpu);
    printf("%.60s %s\n", info->label, info->type);
    printf("%.40s, %d thread%s, %s kernels, %s cache, %s%d\n", cpu, threads,
           threads == 1 ? "" : "s", engine_kernels(), o->cache_type == CACHE_F16 ? "f16" : "q8_0",
           o->reps == 1 ? "runs: " : "medians of ", (int)o->reps);
    if (model_notice(m) != NULL)
        printf("%s\n", model_notice(m));
    say_rates(o, r);
    say_rest(info, r);
    say_machine(&r->machine);
    if (r->steps != NULL)
        say_uncached(o, r);
}
