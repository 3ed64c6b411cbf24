/* Transcript files.
 *
 * One JSON object a line, in the order in which things happened; a conversation is what the lines
 * leave when they are laid one over the other. Turns are named by their number, counted from 0.
 *
 *   {"type":"header","fader":1,"time":"2026-11-30T20:15:00Z"}
 *       the first line
 *   {"type":"model","name":"SmolLM2-135M-Instruct","kernels":"avx2"}
 *       whose ids the next answers hold
 *   {"type":"system","text":"..."|null}
 *       the system prompt of the next answers; null: the template's own
 *   {"type":"preset","name":"poetry"}
 *       chosen
 *   {"type":"turn","turn":0,"parent":null,"role":"user","text":"..."}
 *   {"type":"turn","turn":1,"parent":0,"role":"assistant","seed":7,"knobs":{...}}
 *       an answer opens; with "earlier": the version that it was made from, "given": how many
 *       tokens it took over from it
 *   {"type":"dropped","turn":1,"messages":2,"tokens":311}
 *       left the context for this answer
 *   {"type":"knob","turn":1,"n":20,"name":"temperature","from":0.8,"value":1.6}
 *       in force from token n on
 *   {"type":"chain","turn":1,"n":20,"order":["penalty",...],"exempt":"none"}
 *       a preset with other rules, likewise
 *   {"type":"token","turn":1,"n":0,"id":504,"text":"The","logprob":-0.5,"p":0.6,"rank":0,
 *    "entropy":1.2,"version":3}
 *       "text" holds whole characters
 *   {"type":"end","turn":1,"reason":"eog","text":"..."}
 *       with "branch_at" where it parts
 *   {"type":"choose","turn":5}
 *       this version is shown from now on
 *   {"type":"cut","after":3|null}
 *       the path ends after this turn
 *
 * Keys and types that are not known are passed over. Nothing is ever changed in a file, only
 * appended; a continued file may say "model", "system" or "preset" again. */
#include "config.h"

#include "chat/transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "chat/records.h"

static const size_t transcript_max = (size_t)1 << 30; /* bytes of a file that is read */

struct transcript {
    char *path;
    int fd;             /* -1: not made yet */
    bool begun;         /* the header is written or waiting */
    struct str waiting; /* whole lines, but for the first: a part of it may be on disk already */
    /* what the file said last, so that nothing is said twice; `said_*` false: not known */
    char *model, *system, *preset;
    bool said_system, said_preset;
};

/* ---- opening -------------------------------------------------------------------------------- */

static char *new_path(const char *folder)
{
    char name[64];
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    size_t n = strftime(name, sizeof name, "%Y%m%d-%H%M%S", &tm);
    snprintf(name + n, sizeof name - n, "-%04x.jsonl", (unsigned)(sampler_random_seed() & 0xffff));
    return file_join(folder, name);
}

/* A last line without its newline: completed when it is a whole record, else removed. */
static bool mend_last_line(int fd, const char *path, struct error *err)
{
    struct str text = STR_INIT;
    bool ok = file_read_fd(fd, path, transcript_max, &text, err);

    if (ok && text.len > 0 && text.data[text.len - 1] != '\n') {
        char *newline = memrchr(text.data, '\n', text.len);
        size_t start = newline != NULL ? (size_t)(newline - text.data) + 1 : 0;
        bool whole = record_is_whole(text.data + start, text.len - start);
        if (whole ? !file_write_all(fd, "\n", 1) : ftruncate(fd, (off_t)start) != 0)
            ok = error_set_errno(err, errno, "%s", path);
    }
    str_done(&text);
    return ok;
}

static bool open_existing(struct transcript *t, struct error *err)
{
    t->fd = open(t->path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (t->fd < 0)
        return error_set_errno(err, errno, "%s", t->path);
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return error_set(err, "%s: in use by another fader", t->path);
    t->begun = true;
    return mend_last_line(t->fd, t->path, err);
}

struct transcript *transcript_new(const char *folder, const char *path, struct error *err)
{
    struct transcript *t = mem_zalloc(sizeof *t);

    t->fd = -1;
    if (path == NULL) {
        t->path = new_path(folder);
        t->said_system = t->said_preset = true; /* a new file begins with neither */
        return t;
    }
    t->path = mem_strdup(path);
    if (open_existing(t, err))
        return t;
    transcript_free(t);
    return NULL;
}

static bool create(struct transcript *t, struct error *err)
{
    char *slash = strrchr(t->path, '/');

    if (slash != NULL && slash != t->path) {
        *slash = '\0';
        bool made = file_make_dirs(t->path, err);
        *slash = '/';
        if (!made)
            return false;
    }
    t->fd = open(t->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (t->fd < 0)
        return error_set_errno(err, errno, "%s", t->path);
    flock(t->fd, LOCK_EX | LOCK_NB); /* where locks are not to be had, the file is still good */
    return true;
}

bool transcript_flush(struct transcript *t, struct error *err)
{
    if (t->waiting.len == 0)
        return true;
    if (t->fd < 0 && !create(t, err))
        return false;
    while (t->waiting.len > 0) {
        ssize_t n = write(t->fd, t->waiting.data, t->waiting.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(err, errno, "%s", t->path);
        str_erase(&t->waiting, 0, (size_t)n);
    }
    return true;
}

bool transcript_is_waiting(const struct transcript *t)
{
    return t->waiting.len > 0;
}

void transcript_free(struct transcript *t)
{
    struct error ignored;

    if (t == NULL)
        return;
    transcript_flush(t, &ignored);
    if (t->fd >= 0)
        close(t->fd);
    str_done(&t->waiting);
    free(t->model);
    free(t->system);
    free(t->preset);
    free(t->path);
    free(t);
}

const char *transcript_path(const struct transcript *t)
{
    return t->path;
}

/* ---- records -------------------------------------------------------------------------------- */

static struct str *begin(struct transcript *t)
{
    if (!t->begun)
        record_header(&t->waiting);
    t->begun = true;
    return &t->waiting;
}

/* True when `*last` was known and is `text`; remembers it. */
static bool said_already(char **last, bool *known, const char *text)
{
    bool same =
        *known && (text == NULL || *last == NULL ? text == *last : strcmp(*last, text) == 0);

    if (!same) {
        free(*last);
        *last = mem_strdup(text);
        *known = true;
    }
    return same;
}

void transcript_model(struct transcript *t, const char *model, const char *kernels)
{
    bool known = t->model != NULL;

    if (!said_already(&t->model, &known, model))
        record_model(begin(t), model, kernels);
}

void transcript_system(struct transcript *t, const char *system)
{
    if (!said_already(&t->system, &t->said_system, system))
        record_system(begin(t), system);
}

void transcript_preset(struct transcript *t, const char *name)
{
    if (!said_already(&t->preset, &t->said_preset, name))
        record_preset(begin(t), name);
}

/* The tokens before number `n`, with what was moved on the way. */
static void format_tokens(const struct turn *t, size_t n, struct str *out)
{
    size_t move = 0, chain = 0;

    for (size_t i = 0; i < n; i++) {
        for (; move < t->n_moves && t->moves[move].n <= (int32_t)i; move++)
            record_knob(out, t, move);
        for (; chain < t->n_chains && t->chains[chain].n <= (int32_t)i; chain++)
            record_chain(out, t, chain);
        record_token(out, t, i);
    }
}

void transcript_turn(struct transcript *t, const struct turn *turn)
{
    struct str *out = begin(t);

    record_turn(out, turn);
    format_tokens(turn, turn->n_given, out);
}

void transcript_token(struct transcript *t, const struct turn *turn, size_t i)
{
    record_token(begin(t), turn, i);
}

void transcript_knob(struct transcript *t, const struct turn *turn, size_t i)
{
    record_knob(begin(t), turn, i);
}

void transcript_chain(struct transcript *t, const struct turn *turn, size_t i)
{
    record_chain(begin(t), turn, i);
}

void transcript_dropped(struct transcript *t, const struct turn *turn)
{
    record_dropped(begin(t), turn);
}

void transcript_end(struct transcript *t, const struct turn *turn)
{
    record_end(begin(t), turn);
}

void transcript_choose(struct transcript *t, const struct turn *turn)
{
    record_choose(begin(t), turn);
}

void transcript_cut(struct transcript *t, const struct turn *turn)
{
    record_cut(begin(t), turn);
}

/* ---- the whole at once ---------------------------------------------------------------------- */

static void format_answer(const struct turn *t, struct str *out)
{
    record_turn(out, t);
    if (t->dropped_messages > 0)
        record_dropped(out, t);
    format_tokens(t, t->n_tokens, out);
    for (size_t i = 0; i < t->n_moves; i++)
        if (t->moves[i].n >= (int32_t)t->n_tokens) /* for a draw that was not made */
            record_knob(out, t, i);
    if (t->end_reason >= 0)
        record_end(out, t);
}

static void format_choice(struct turn *const *versions, size_t n, size_t chosen,
                          const struct turn *parent, struct str *out)
{
    if (chosen < n)
        record_choose(out, versions[chosen]);
    else if (n > 0)
        record_cut(out, parent);
}

void transcript_format(const struct conversation *c, const char *kernels, struct str *out)
{
    const char *system = NULL;
    int32_t model = -1;

    record_header(out);
    for (size_t i = 0; i < c->n_turns; i++) {
        const struct turn *t = c->turns[i];
        if (t->role != ROLE_ASSISTANT) {
            record_turn(out, t);
            continue;
        }
        if (t->model != model && t->model >= 0)
            record_model(out, c->models[t->model], kernels);
        model = t->model;
        if (system == NULL || t->system == NULL ? system != t->system
                                                : strcmp(system, t->system) != 0)
            record_system(out, t->system);
        system = t->system;
        format_answer(t, out);
    }
    if (system == NULL || c->system == NULL ? system != c->system : strcmp(system, c->system) != 0)
        record_system(out, c->system);
    if (c->preset != NULL)
        record_preset(out, c->preset);
    format_choice(c->roots, c->n_roots, c->chosen_root, NULL, out);
    for (size_t i = 0; i < c->n_turns; i++) {
        const struct turn *t = c->turns[i];
        format_choice(t->children, t->n_children, t->chosen, t, out);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

enum { END_STOPPED_BY_CRASH = 2 }; /* "stopped": the answer's end never reached the file */

static void close_answers(struct conversation *c)
{
    for (size_t i = 0; i < c->n_turns; i++) {
        struct turn *t = c->turns[i];
        if (t->role == ROLE_ASSISTANT && t->end_reason < 0)
            t->end_reason = END_STOPPED_BY_CRASH;
        if (t->n_given > t->n_tokens)
            t->n_given = t->n_tokens;
    }
}

static bool load_lines(struct conversation *c, const char *path, const struct str *text,
                       struct str *warning, struct error *err)
{
    size_t number = 1;

    if (text->len == 0)
        return error_set(err, "%s: not a fader transcript: it is empty", path);
    for (size_t at = 0; at < text->len; number++) {
        const char *line = text->data + at;
        const char *newline = memchr(line, '\n', text->len - at);
        size_t len = newline != NULL ? (size_t)(newline - line) : text->len - at;
        if (len > 0 && !record_read(c, line, len, number == 1, err)) {
            if (newline != NULL || number == 1 || record_is_whole(line, len))
                return error_prefix(err, "%s:%zu", path, number);
            str_add_format(warning, "the last line was cut off, and left out");
        }
        at += len + 1;
    }
    return true;
}

struct conversation *transcript_load(const char *path, struct str *warning, struct error *err)
{
    struct conversation *c = conversation_new();
    struct str text = STR_INIT;

    if (!file_read(path, transcript_max, &text, err) || !load_lines(c, path, &text, warning, err)) {
        conversation_free(c);
        c = NULL;
    } else {
        close_answers(c);
    }
    str_done(&text);
    return c;
}
