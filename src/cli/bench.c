#include "config.h"

#include "cli/bench.h"

#include <stdlib.h>
#include <string.h>

#include "cli/bench_impl.h"
#include "cli/options.h"
#include "config/paths.h"

#define AT(field) offsetof(struct bench_options, field)

/* One length, or some with commas between them; given again, it adds to the list. */
static bool take_lengths(const struct option_spec *spec, const char *value, void *field,
                         struct error *err)
{
    struct bench_lengths *list = field;

    for (const char *at = value, *end; at != NULL; at = *end == ',' ? end + 1 : NULL) {
        char number[16];
        int64_t n;
        end = at + strcspn(at, ",");
        size_t len = (size_t)(end - at);
        if (len >= sizeof number)
            len = sizeof number - 1; /* too long to be in the range, then too */
        memcpy(number, at, len);
        number[len] = '\0';
        if (!options_parse_whole(number, spec->min, spec->max, &n))
            return error_set(err, "--%s: '%s' is not a list of whole numbers from %.0f to %.0f",
                             spec->name, value, spec->min, spec->max);
        if (list->n == BENCH_LENGTHS_MAX)
            return error_set(err, "--%s: more than %d numbers", spec->name, BENCH_LENGTHS_MAX);
        list->at[list->n++] = (int32_t)n;
    }
    return true;
}

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "a file, or the name of a model on this computer", option_text,
     AT(model), 0, 0},
    {"n-prompt", 'p', "N,...", "tokens of the prefill (512; 0: leave it out)", take_lengths,
     AT(prefill), 0, 1 << 20},
    {"n-gen", 'n', "N", "tokens of the decode (64; 0: leave it out)", option_int, AT(decode), 0,
     1 << 20},
    {"depth", 'd', "N,...", "tokens in the cache before the decode (0)", take_lengths, AT(depth), 0,
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
        "How fast this computer runs a model (start, prefill, decode, memory), and what share "
        "that\n"
        "is of what its memory and its cores would allow. The engine alone: a decode step is a\n"
        "forward pass and its logits, without sampling.",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

int cmd_bench(int argc, char **argv)
{
    struct bench_options o = {.decode = 64, .reps = 3, .cache_type = CACHE_F16};
    struct bench_report report = {0};
    struct model *m = NULL;
    struct error err;
    int status;

    if (options_open(&table, argc, argv, &o, &o.help, &status) < 0)
        return status;
    if (o.prefill.n == 0)
        o.prefill = (struct bench_lengths){{512}, 1};
    if (o.depth.n == 0)
        o.depth.n = 1;
    char *path = models_resolve(o.model, &err);
    bool ok = path != NULL && bench_measure(&o, path, &m, &report, &err);
    if (ok)
        (o.json ? bench_say_json : bench_say_table)(&o, m, &report);
    free(path);
    free(report.steps);
    model_close(m);
    return ok ? EXIT_SUCCESS : cli_fail(&err);
}
