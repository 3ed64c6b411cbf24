#include "config.h"

#include "cli/replay.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/mem.h"
#include "base/str.h"
#include "chat/transcript.h"
#include "cli/options.h"
#include "cli/start.h"
#include "config/paths.h"
#include "sync/wake.h"

struct replay_options {
    const char *model, *backend;
    int32_t threads, ctx_size;
    int cache_type;
    bool no_repack, help;
};

#define AT(field) offsetof(struct replay_options, field)

static const struct option_spec specs[] = {
    {"model", 'm', "MODEL", "in place of the one that the file names", option_text, AT(model), 0,
     0},
    {"threads", 't', "N", "compute threads (0: one per core)", option_int, AT(threads), 0, 256},
    {"ctx-size", 'c', "N", "positions in the context (0: the model's, up to 8,192)", option_int,
     AT(ctx_size), 0, 1 << 30},
    {"cache-type", 0, "TYPE", "the KV cache's numbers: f16 or q8_0", option_cache_type,
     AT(cache_type), 0, 0},
    {"no-repack", 0, NULL, "run from the file's map: less memory, slower", option_flag,
     AT(no_repack), 0, 0},
    {"backend", 0, "KIND:FILE", NULL, option_text, AT(backend), 0, 0}, /* for tests */
    {"help", 'h', NULL, "this list", option_flag, AT(help), 0, 0},
};

static const struct option_table table = {
    .command = "fader replay",
    .usage = "[-m MODEL] FILE",
    .about =
        "Makes the answers of a saved conversation again, with the seeds, knobs and movements\n"
        "that they were drawn with. Exit status 1 when a text differs.",
    .specs = specs,
    .n = sizeof specs / sizeof specs[0],
    .operands = true,
};

/* Sleeps until the backend has something to say. */
static void next_event(struct backend *b, struct event *e)
{
    while (!backend_next_event(b, e)) {
        struct pollfd fd = {.fd = b->wake_fd, .events = POLLIN};
        wake_arm(b->wake);
        bool any = backend_next_event(b, e);
        if (!any)
            poll(&fd, 1, -1);
        wake_disarm(b->wake);
        if (any)
            return;
    }
}

/* The request that made `answer`: its messages, seed, the tokens it began with, its movements. */
static void fill_request(const struct turn *answer, uint32_t id, struct request *r)
{
    memset(r, 0, sizeof *r);
    r->id = id;
    r->kind = REQUEST_CHAT;
    r->seed = answer->seed;
    r->on_full = CONTEXT_DROP_OLDEST;
    /* One more than were drawn, where the model itself ended: so that it can end here too. */
    r->max_tokens = (int32_t)answer->n_tokens + (answer->complete ? 1 : 0);
    turn_messages(answer, &r->messages);
    r->n_answer = answer->n_given;
    r->answer = mem_array(r->n_answer, sizeof *r->answer);
    for (size_t i = 0; i < r->n_answer; i++)
        r->answer[i] = answer->tokens[i].id;
    r->n_moves = answer->n_moves;
    r->moves = mem_array(r->n_moves, sizeof *r->moves);
    for (size_t i = 0; i < r->n_moves; i++)
        r->moves[i] =
            (struct move){answer->moves[i].n, answer->moves[i].knob, answer->moves[i].value};
    r->n_chains = answer->n_chains;
    r->chains = mem_array(r->n_chains, sizeof *r->chains);
    for (size_t i = 0; i < r->n_chains; i++)
        r->chains[i] = (struct chain_move){answer->chains[i].n, answer->chains[i].knobs};
}

/* Draws the answer again. *differs_at is the number of the first token that differs, or -1. */
static bool draw_again(struct backend *b, const struct turn *answer, uint32_t id,
                       int32_t *differs_at, struct error *err)
{
    struct control control = {.knobs = answer->knobs, .version = id};
    struct request r;
    struct event e;
    size_t n = answer->n_given;

    *differs_at = -1;
    backend_publish(b, &control);
    fill_request(answer, id, &r);
    if (!backend_submit(b, &r, err)) {
        request_done(&r);
        return false;
    }
    for (;;) {
        next_event(b, &e);
        if (e.type == EVENT_ERROR)
            return error_set(err, "%s", e.text);
        if (e.type == EVENT_TOKEN) {
            bool same = n < answer->n_tokens && answer->tokens[n].id == e.u.token.draw.id;
            if (!same && *differs_at < 0) {
                *differs_at = (int32_t)n;
                backend_cancel(b);
            }
            n++;
        }
        if (e.type == EVENT_END)
            break;
    }
    if (*differs_at < 0 && n != answer->n_tokens)
        *differs_at = (int32_t)n; /* it ended early */
    return true;
}

/* Replays every answer of the current path; *all_same tells whether the texts are what they were.
 */
static bool replay(struct backend *b, const struct conversation *c, bool *all_same,
                   struct error *err)
{
    uint32_t answers = 0;

    *all_same = true;
    for (size_t i = 0; i < conversation_depth(c); i++) {
        const struct turn *t = conversation_at(c, i);
        int32_t differs_at;
        if (t->role != ROLE_ASSISTANT || t->n_tokens == 0)
            continue;
        answers++;
        if (!draw_again(b, t, answers, &differs_at, err))
            return error_prefix(err, "answer %u", (unsigned)answers);
        if (differs_at < 0) {
            printf("answer %u: %zu tokens, the same\n", (unsigned)answers, t->n_tokens);
        } else {
            printf("answer %u: %zu tokens, differs from token %d on\n", (unsigned)answers,
                   t->n_tokens, (int)differs_at);
            *all_same = false;
        }
        fflush(stdout);
    }
    if (answers == 0)
        return error_set(err, "no answer in it");
    return true;
}

/* The model: the one named, else the one that made the last answer. */
static struct backend *open_backend(const struct replay_options *o, const struct conversation *c,
                                    struct error *err)
{
    struct control initial = {.knobs = knobs_default()};

    if (o->backend != NULL)
        return start_scripted(o->backend, &initial, err);
    const char *name = o->model != NULL ? o->model : c->model >= 0 ? c->models[c->model] : NULL;
    char *path = models_resolve(name, err);
    if (path == NULL)
        return NULL;
    struct local_options local = {
        .model_path = path,
        .load = {.threads = o->threads, .no_repack = o->no_repack},
        .session = {.ctx_size = o->ctx_size, .cache_type = (enum cache_type)o->cache_type},
    };
    struct backend *b = local_backend_new(&local, &initial, err);
    free(path);
    return b;
}

static bool run(const struct replay_options *o, const char *path, bool *all_same, struct error *err)
{
    struct str warning = STR_INIT;
    struct conversation *c = transcript_load(path, &warning, err);
    bool ok = false;

    if (warning.len > 0)
        fprintf(stderr, "fader: %s: %s\n", path, warning.data);
    if (c != NULL) {
        struct backend *b = open_backend(o, c, err);
        if (b != NULL) {
            ok = replay(b, c, all_same, err);
            if (!ok)
                error_prefix(err, "%s", path);
        }
        backend_close(b);
    }
    conversation_free(c);
    str_done(&warning);
    return ok;
}

int cmd_replay(int argc, char **argv)
{
    struct replay_options o = {.cache_type = CACHE_F16};
    struct error err;
    bool all_same;
    int status, first = options_open(&table, argc, argv, &o, &o.help, &status);

    if (first < 0)
        return status;
    if (argc - first != 1) {
        error_set(&err, "replay: wants one file");
        return cli_fail_usage(&err, &table);
    }
    if (!run(&o, argv[first], &all_same, &err))
        return cli_fail(&err);
    return all_same ? EXIT_SUCCESS : EXIT_FAILURE;
}
