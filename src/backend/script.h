/* A script for the scripted backend, read from a file: its format stands at the head of scripted.c.
 * Immutable once it is read. */
#ifndef FADER_BACKEND_SCRIPT_H
#define FADER_BACKEND_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SCRIPT_END_TOKEN = 0 };
#define SCRIPT_NO_REPEAT SIZE_MAX

enum action_kind { SCRIPT_PROGRESS, SCRIPT_DROPPED, SCRIPT_ERROR, SCRIPT_FULL, SCRIPT_HANG };

struct script_action {
    enum action_kind kind;
    int32_t a, b; /* progress: done, total; dropped: messages, tokens */
    char *text;   /* error */
};

struct script_candidate {
    int32_t id;
    float logit;
};

struct script_draw {
    struct script_candidate *candidates;
    size_t n, cap;
    struct script_action *actions; /* before it */
    size_t n_actions, cap_actions;
};

struct script_answer {
    char *wanted;              /* for prompts that hold this text; NULL: for any */
    struct script_draw *draws; /* the last one may have actions only */
    size_t n, cap;
    size_t repeat; /* after the last draw comes this one again, or SCRIPT_NO_REPEAT */
};

struct script_piece {
    char *bytes;
    size_t len;
};

struct script {
    char *path, *name;
    int32_t ctx_size;
    char *error;     /* the model does not load, and this is why; or NULL */
    double *loading; /* shares to report while it loads */
    size_t n_loading, cap_loading;
    struct script_answer *answers;
    size_t n, cap;
    struct script_piece *pieces; /* the vocabulary; SCRIPT_END_TOKEN is the first */
    size_t n_pieces, cap_pieces;
};

/* NULL with `err` ("file:line: ...") when it cannot be read or is no script. */
struct script *script_read(const char *path, struct error *err);
void script_free(struct script *s);

#endif
