#include "config.h"

#include "cli/ledger_cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/options.h"
#include "config/paths.h"
#include "engine/engine.h"

struct ledger_options {
    const char *model;
    int32_t layers, heads, kv_heads, head_dim, ctx; /* 0: not given */
    int kv_type;
    bool json, help;
};

#define AT(field) offsetof(struct ledger_options, field)

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "of this model (without numbers: the default one)", option_text,
     AT(model), 0, 0},
    {"layers", 0, "N", "layers", option_int, AT(layers), 1, 65536},
    {"heads", 0, "N", "query heads", option_int, AT(heads), 1, 65536},
    {"kv-heads", 0, "N", "key and value heads (default: as many as query heads)", option_int,
     AT(kv_heads), 1, 65536},
    {"head-dim", 0, "N", "numbers in one head's key", option_int, AT(head_dim), 1, 65536},
    {"ctx", 'c', "N", "positions in the context", option_int, AT(ctx), 1, 1 << 30},
    {"ctx-size", 0, "N", NULL, option_int, AT(ctx), 1, 1 << 30},
    {"kv-type", 0, "TYPE", "the cache's numbers: f16 (default) or q8_0", option_cache_type,
     AT(kv_type), 0, 0},
    {"cache-type", 0, "TYPE", NULL, option_cache_type, AT(kv_type), 0, 0},
    {"json", 0, NULL, "one JSON object", option_flag, AT(json), 0, 0},
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader ledger",
    .usage = "[-m MODEL | --layers N --heads N --kv-heads N --head-dim N --ctx N]",
    .about =
        "What the KV cache costs: bytes per token = 2 (K and V) x layers x KV heads x head_dim\n"
        "x bytes per number; and what it would be with a KV head for every query head (MHA).",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
};

/* "6,144": grouped by thousands. */
static const char *grouped(uint64_t n, char out[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = out;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

static void print_row(const char *kind, int32_t heads, uint64_t per_token, uint64_t total)
{
    char label[48], a[32], b[32];

    snprintf(label, sizeof label, "%s, %d KV head%s", kind, (int)heads, heads == 1 ? "" : "s");
    printf("%-20s %14s B %20s B = %.2f MB\n", label, grouped(per_token, a), grouped(total, b),
           (double)total / 1e6);
}

static void print_table(const struct ledger *l, const char *of)
{
    const char *kind = l->kv_heads == l->heads ? "MHA" : l->kv_heads == 1 ? "MQA" : "GQA";
    char ctx[32], column[48];

    printf("KV cache of %s: %d layers, %d query heads, head_dim %d, %s bytes a number\n\n", of,
           (int)l->layers, (int)l->heads, (int)l->head_dim,
           l->bytes_per_element == 2.0 ? "2" : "1.0625");
    snprintf(column, sizeof column, "%s positions", grouped((uint64_t)l->ctx, ctx));
    printf("%-20s %16s %22s\n", "", "per token", column);
    print_row(kind, l->kv_heads, l->bytes_per_token, l->total_bytes);
    if (l->kv_heads == l->heads)
        return;
    print_row("MHA", l->heads, l->mha_total_bytes / (uint64_t)l->ctx, l->mha_total_bytes);
    printf("\n%s saves %.0f %% of it.\n", kind,
           100.0 * (1.0 - (double)l->total_bytes / (double)l->mha_total_bytes));
}

static void print_json(const struct ledger *l)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "layers", l->layers);
    cJSON_AddNumberToObject(o, "heads", l->heads);
    cJSON_AddNumberToObject(o, "kv_heads", l->kv_heads);
    cJSON_AddNumberToObject(o, "head_dim", l->head_dim);
    cJSON_AddNumberToObject(o, "ctx", l->ctx);
    cJSON_AddNumberToObject(o, "bytes_per_element", l->bytes_per_element);
    cJSON_AddNumberToObject(o, "bytes_per_token", (double)l->bytes_per_token);
    cJSON_AddNumberToObject(o, "total_bytes", (double)l->total_bytes);
    cJSON_AddNumberToObject(o, "mha_total_bytes", (double)l->mha_total_bytes);
    json_print_line(o);
}

static bool check_numbers(const struct ledger_options *o, struct error *err)
{
    if (o->layers == 0 || o->heads == 0 || o->head_dim == 0 || o->ctx == 0)
        return error_set(err, "ledger: without a model it needs --layers, --heads, --head-dim and "
                              "--ctx");
    if (o->kv_heads != 0 && o->heads % o->kv_heads != 0)
        return error_set(err, "--kv-heads %d: does not divide %d query heads", (int)o->kv_heads,
                         (int)o->heads);
    return true;
}

/* The ledger of a model file: opened only, its weights are not read. */
static int of_model(const struct ledger_options *o)
{
    struct error err;
    struct model *m = models_open(o->model, &err);

    if (m == NULL)
        return cli_fail(&err);
    const struct model_info *info = model_get_info(m);
    int32_t ctx = o->ctx != 0                                 ? o->ctx
                  : info->ctx_train < SESSION_CTX_DEFAULT_MAX ? info->ctx_train
                                                              : SESSION_CTX_DEFAULT_MAX;
    struct ledger l = model_ledger(m, ctx, (enum cache_type)o->kv_type);
    if (o->json)
        print_json(&l);
    else
        print_table(&l, info->label);
    model_close(m);
    return EXIT_SUCCESS;
}

int cmd_ledger(int argc, char **argv)
{
    struct ledger_options o = {.kv_type = CACHE_F16};
    struct error err;
    int status;

    if (options_open(&table, argc, argv, &o, &o.help, &status) < 0)
        return status;
    if (o.layers == 0 && o.heads == 0 && o.kv_heads == 0 && o.head_dim == 0)
        return of_model(&o);
    if (o.model != NULL) {
        error_set(&err, "ledger: a model or numbers, not both");
        return cli_fail_usage(&err, &table);
    }
    if (!check_numbers(&o, &err))
        return cli_fail_usage(&err, &table);
    struct ledger l = ledger_compute(o.layers, o.heads, o.kv_heads != 0 ? o.kv_heads : o.heads,
                                     o.head_dim, o.ctx, (enum cache_type)o.kv_type);
    if (o.json)
        print_json(&l);
    else
        print_table(&l, "these numbers");
    return EXIT_SUCCESS;
}
