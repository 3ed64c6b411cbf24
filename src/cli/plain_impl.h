/* What the files of the plain chat share: plain.c is the loop, plain_view.c what app asks of it. */
#ifndef FADER_CLI_PLAIN_IMPL_H
#define FADER_CLI_PLAIN_IMPL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "app/view.h"
#include "base/str.h"

struct conversation;
struct turn;

/* One chat. An answer and the prompt never share a line: while
 * an answer streams there is no prompt; the first key typed then puts one up and holds the
 * generator until Enter, so that nothing is drawn that is not shown. */
struct plain {
    struct app *app;
    bool by_hand; /* standard input is a terminal: readline */
    FILE *notes;  /* prompts and messages: not in a file that takes the answers */
    bool shown;   /* the prompt is on the screen */
    bool held;    /* the generator waits for what is being typed */
    bool starts_line,
        notes_start_line; /* stdout, and notes where they are apart, stand at the start of a line */
    const struct turn *turn; /* the answer being printed, or NULL */
    size_t printed;          /* bytes of its text */
    const struct conversation *conversation;
    char message[256]; /* as printed last */
    struct str typed;  /* lines that end in a backslash so far; or input not yet entered */
    char *line;        /* readline's newest line; owned */
    bool at_end;       /* of the input */
    int64_t interrupted_ns;
    int status;
};

/* Does `out` stand at the start of a line? */
bool *plain_at_start(struct plain *p, FILE *out);
void plain_start_line(struct plain *p, FILE *out);
void plain_print(struct plain *p, FILE *out, const char *text, size_t len); /* made safe */

/* ---- the view's operations; `view` is the struct plain --------------------------------------- */
extern const struct view_ops plain_view_ops;
void plain_changed(void *view, unsigned what); /* in plain.c */
bool plain_edit_text(void *view, const char *text, char **out, struct error *err);
void plain_set_input(void *view, const char *text);

#endif
