/* The UI thread here is this loop: it sleeps in poll(2) on the backend's wake pipe, drains what
 * there is, and writes. A slow reader of standard output holds the loop, the ring fills, and the
 * generator waits: nothing is buffered without bound.
 *
 * What the model writes is text. Into a pipe or file its bytes go unchanged; on a terminal they
 * are completed to whole characters and control characters are shown, never sent. */
#include "config.h"

#include "cli/oneshot.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "chat/template.h"
#include "cli/json.h"
#include "cli/plain_text.h"
#include "cli/progress.h"
#include "cli/start.h"
#include "sync/wake.h"

enum { PROMPT_MAX = 64 * 1024 * 1024, PREDICT_DEFAULT = 128 };

struct oneshot {
    struct start start;
    struct str prompt;
    struct backend *backend;
    struct detokenizer detok;
    struct progress progress; /* while the model loads */
    int64_t began;
    struct str text, raw; /* scratch of one token */
    bool events, to_terminal;
    bool submitted, over, warned;
    bool cancelled;
    int32_t ctx_size;
    int status;
    int write_errno; /* why standard output failed, or 0 */
};

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t caught; /* the signal that asks for the end, or 0 */
static struct wake *caught_wake;

static void on_signal(int number)
{
    int saved = errno;

    caught = number;
    wake_signal(caught_wake);
    errno = saved;
}

/* The first Ctrl-C ends the answer in good order; a second one ends the program. SIGINT counts for
 * a background job of a script too, which inherits it ignored; SIGHUP stays ignored under nohup. */
static void catch_signals(struct wake *wake)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;

    caught_wake = wake;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        bool ignored = sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (signals[i] != SIGHUP || !ignored)
            sigaction(signals[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an ordinary write error here */
}

static void restore_signals(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    caught_wake = NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void flush_output(struct oneshot *s)
{
    if (s->write_errno == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        s->write_errno = errno;
}

static void print_visible(const char *text, size_t len)
{
    struct str safe = STR_INIT;

    plain_text_add(&safe, text, len);
    fwrite(str_text(&safe), 1, safe.len, stdout);
    str_done(&safe);
}

static void add_knobs(cJSON *o, const struct knobs *knobs)
{
    static const enum knob shown[] = {KNOB_TEMPERATURE, KNOB_TOP_K, KNOB_TOP_P, KNOB_MIN_P,
                                      KNOB_REPETITION_PENALTY};

    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        cJSON_AddNumberToObject(o, knob_traits[shown[i]].name, knobs->value[shown[i]]);
}

static cJSON *event_object(const char *name)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "event", name);
    return o;
}

static void write_start(struct oneshot *s, const struct event *e)
{
    struct backend_status status;

    backend_status(s->backend, &status);
    s->ctx_size = e->u.start.ctx_size;
    if (!s->events)
        return;
    cJSON *o = event_object("start");
    cJSON_AddStringToObject(o, "model", status.model != NULL ? status.model->label : "");
    cJSON_AddNumberToObject(o, "seed", e->u.start.seed);
    cJSON_AddStringToObject(o, "kernels", status.kernels != NULL ? status.kernels : "");
    cJSON_AddNumberToObject(o, "prompt_tokens", e->u.start.prompt_tokens);
    cJSON_AddNumberToObject(o, "reused_tokens", e->u.start.reused_tokens);
    json_print_line(o);
}

static void write_knob(struct oneshot *s, const struct event *e)
{
    if (!s->events)
        return;
    cJSON *o = event_object("knob");
    cJSON_AddNumberToObject(o, "n", e->u.knob.n);
    cJSON_AddStringToObject(o, "name", knob_traits[e->u.knob.knob].name);
    cJSON_AddNumberToObject(o, "value", e->u.knob.value);
    json_print_line(o);
}

/* Said before it happens: the answer will end when the context is full. */
static void warn_of_context(struct oneshot *s, int32_t used)
{
    if (s->warned || s->ctx_size <= 0 || used < s->ctx_size - s->ctx_size / 10)
        return;
    s->warned = true;
    flush_output(s);
    fprintf(stderr,
            "fader: the context is nearly full: %d of %d positions; the answer ends there\n",
            (int)used, (int)s->ctx_size);
}

static void write_token(struct oneshot *s, const struct event *e)
{
    warn_of_context(s, e->u.token.ctx_used);
    if (!s->events && !s->to_terminal) {
        fwrite(e->text, 1, e->len, stdout);
        return;
    }
    str_clear(&s->text);
    str_clear(&s->raw);
    detokenizer_push(&s->detok, e->text, e->len, &s->text, &s->raw);
    if (!s->events) {
        print_visible(str_text(&s->text), s->text.len);
        return;
    }
    cJSON *o = event_object("token");
    cJSON_AddNumberToObject(o, "n", e->u.token.n);
    cJSON_AddNumberToObject(o, "id", e->u.token.draw.id);
    json_add_text(o, "text", str_text(&s->text), s->text.len);
    if (s->raw.len > 0)
        json_add_bytes(o, s->raw.data, s->raw.len);
    cJSON_AddNumberToObject(o, "logprob", e->u.token.draw.logprob);
    cJSON_AddNumberToObject(o, "rank", e->u.token.draw.rank);
    cJSON_AddNumberToObject(o, "p", e->u.token.draw.p);
    add_knobs(o, &e->u.token.knobs);
    json_print_line(o);
}

static void write_end(struct oneshot *s, const struct event *e)
{
    s->over = true;
    str_clear(&s->text);
    str_clear(&s->raw);
    detokenizer_flush(&s->detok, &s->text, &s->raw);
    if (!s->events) {
        print_visible(str_text(&s->text), s->text.len);
        putchar('\n');
        return;
    }
    cJSON *o = event_object("end");
    cJSON_AddStringToObject(o, "reason", end_reason_name(e->u.end.reason));
    cJSON_AddNumberToObject(o, "tokens", e->u.end.tokens);
    json_add_text(o, "text", str_text(&s->text), s->text.len);
    if (s->raw.len > 0)
        json_add_bytes(o, s->raw.data, s->raw.len);
    cJSON_AddNumberToObject(o, "prefill_tps", e->u.end.prefill_tps);
    cJSON_AddNumberToObject(o, "decode_tps", e->u.end.decode_tps);
    cJSON_AddNumberToObject(o, "ttft_ms", e->u.end.ttft_ms);
    json_print_line(o);
}

/* ---- the request ----------------------------------------------------------------------------- */

static int32_t answer_limit(const struct start *s)
{
    if (s->options->predict != PREDICT_UNSET)
        return s->options->predict;
    return s->preset->max_tokens > 0 ? s->preset->max_tokens : PREDICT_DEFAULT;
}

static void fill_request(const struct oneshot *s, struct request *r)
{
    const struct options *o = s->start.options;

    memset(r, 0, sizeof *r);
    r->id = 1;
    if (o->raw) {
        r->kind = REQUEST_RAW;
        r->text = mem_strndup(str_text(&s->prompt), s->prompt.len);
        r->text_len = s->prompt.len;
    } else {
        r->kind = REQUEST_CHAT;
        if (s->start.system != NULL)
            message_list_add(&r->messages, ROLE_SYSTEM, s->start.system, NULL, 0);
        message_list_add(&r->messages, ROLE_USER, str_text(&s->prompt), NULL, 0);
    }
    r->seed = s->start.seed >= 0 ? (uint32_t)s->start.seed : sampler_random_seed();
    r->max_tokens = answer_limit(&s->start);
    r->on_full = CONTEXT_STOP;
    if (o->moves.n > 0) {
        r->moves = mem_dup(o->moves.items, o->moves.n * sizeof *r->moves);
        r->n_moves = o->moves.n;
    }
}

static void fail(struct oneshot *s, const struct error *err)
{
    flush_output(s);
    s->status = start_fail(&s->start, err);
    s->over = true;
}

/* What one should know of the model before its answer. */
static void warn_of_model(const struct oneshot *s, const struct backend_status *status)
{
    const struct template_choice *t = status->chat_template;
    const struct model_info *model = status->model;

    if (!s->start.options->raw && t != NULL && !t->recognised)
        fprintf(stderr, "fader: this model's chat template is not known; %s is used instead\n",
                template_name(t->tmpl));
    if (model != NULL && status->ctx_size > model->ctx_train)
        fprintf(stderr, "fader: a context of %d: this model was made for %d positions\n",
                (int)status->ctx_size, (int)model->ctx_train);
    if (status->notice != NULL)
        fprintf(stderr, "fader: %s\n", status->notice);
}

/* The model is open: its own sampling values and its vocabulary are known now. */
static void submit(struct oneshot *s)
{
    struct backend_status status;
    struct control control = {.version = 1};
    struct request request;
    struct error err;

    s->submitted = true;
    backend_status(s->backend, &status);
    if (!start_lay_knobs(&s->start, status.model, &err)) {
        fail(s, &err);
        return;
    }
    warn_of_model(s, &status);
    control.knobs = s->start.desk.now;
    backend_publish(s->backend, &control);
    fill_request(s, &request);
    if (!backend_submit(s->backend, &request, &err)) {
        request_done(&request);
        fail(s, &err);
    }
}

/* A load of a blink is not worth a word. */
static void say_loading(struct oneshot *s, double share)
{
    if (share > 0 && clock_since_s(s->began) > 0.25)
        progress_say(&s->progress, "loading: %.0f %%", 100 * share);
}

static void handle(struct oneshot *s, const struct event *e)
{
    struct error err;

    if (e->type == EVENT_LOADING)
        say_loading(s, e->u.loading.share);
    else
        progress_end(&s->progress);
    switch (e->type) {
    case EVENT_READY:
        if (!s->submitted)
            submit(s);
        break;
    case EVENT_START:
        write_start(s, e);
        break;
    case EVENT_KNOB:
        write_knob(s, e);
        break;
    case EVENT_TOKEN:
        write_token(s, e);
        break;
    case EVENT_END:
        write_end(s, e);
        break;
    case EVENT_ERROR:
        error_set(&err, "%s", e->text);
        fail(s, &err);
        break;
    case EVENT_LOADING:
    case EVENT_PROGRESS:
    case EVENT_VIEW:
    case EVENT_DROPPED:
        break;
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool drain(struct oneshot *s)
{
    struct event e;
    bool any = false;

    while (!s->over && s->write_errno == 0 && backend_next_event(s->backend, &e)) {
        handle(s, &e);
        any = true;
    }
    if (any)
        flush_output(s);
    return any;
}

/* Obeys a signal. While the model still loads there is no answer to end in order: the end is told
 * here. */
static void obey_signal(struct oneshot *s)
{
    static const struct event stopped = {.type = EVENT_END, .u.end.reason = END_STOPPED};

    if (caught == 0 || s->cancelled)
        return;
    s->cancelled = true;
    s->status = 128 + caught;
    if (s->submitted) {
        backend_cancel(s->backend);
    } else if (s->events) {
        write_end(s, &stopped);
    } else {
        s->over = true;
    }
}

static void sleep_until_woken(struct oneshot *s)
{
    struct pollfd fds[] = {
        {.fd = s->backend->wake_fd, .events = POLLIN},
        {.fd = STDOUT_FILENO, .events = 0}, /* tells when the reader has left */
    };

    wake_arm(s->backend->wake);
    if (!drain(s) && (caught == 0 || s->cancelled) && !s->over && s->write_errno == 0)
        if (poll(fds, 2, -1) > 0 && (fds[1].revents & (POLLERR | POLLNVAL)) != 0)
            s->write_errno = EPIPE;
    wake_disarm(s->backend->wake);
}

static void run(struct oneshot *s)
{
    struct error err;

    while (!s->over && s->write_errno == 0) {
        obey_signal(s);
        if (!s->over && !drain(s))
            sleep_until_woken(s);
    }
    progress_end(&s->progress);
    flush_output(s);
    if (s->write_errno == EPIPE) {
        s->status = EXIT_SUCCESS; /* the reader has what it wanted */
        clearerr(stdout);
    } else if (s->write_errno != 0) {
        error_set_errno(&err, s->write_errno, "standard output");
        s->status = cli_fail(&err);
    }
}

/* -p, then the file; without both, standard input. The last newline of a file is its end, not the
 * prompt's. */
static bool read_prompt(struct oneshot *s, struct error *err)
{
    const struct options *o = s->start.options;
    const char *file = o->file != NULL ? o->file : o->prompt == NULL ? "-" : NULL;

    if (o->prompt != NULL)
        str_add_text(&s->prompt, o->prompt);
    if (file != NULL) {
        size_t before = s->prompt.len;
        if (!file_read(file, PROMPT_MAX, &s->prompt, err))
            return false;
        if (s->prompt.len > before && s->prompt.data[s->prompt.len - 1] == '\n')
            str_truncate(&s->prompt, s->prompt.len - 1);
    }
    if (s->prompt.len == 0)
        return error_set(err, "the prompt is empty%s",
                         o->prompt == NULL && o->file == NULL
                             ? ": nothing on standard input; -p TEXT gives one"
                             : "");
    if (!o->raw && strlen(str_text(&s->prompt)) != s->prompt.len)
        return error_set(err, "the prompt holds a NUL byte: only --raw takes that");
    return true;
}

static bool prepare(struct oneshot *s, const struct options *o, struct error *err)
{
    struct control initial = {.knobs = knobs_default(), .version = 0};

    if (!start_init(&s->start, o, err) || !read_prompt(s, err))
        return false;
    if (o->backend == NULL && !start_find_model(&s->start, err))
        return false;
    s->backend = start_backend(&s->start, &initial, err);
    return s->backend != NULL;
}

int oneshot_run(const struct options *o)
{
    struct oneshot s = {
        .events = o->events,
        .to_terminal = isatty(STDOUT_FILENO) != 0,
        .status = EXIT_SUCCESS,
    };
    struct error err;

    if (prepare(&s, o, &err)) {
        catch_signals(s.backend->wake);
        progress_init(&s.progress);
        s.began = clock_now_ns();
        run(&s);
        restore_signals();
    } else {
        s.status = start_fail(&s.start, &err);
    }
    backend_close(s.backend);
    str_done(&s.prompt);
    str_done(&s.text);
    str_done(&s.raw);
    start_done(&s.start);
    return s.status;
}
