/* What the files of the plain chat share: plain.c is the loop, plain_view.c what app asks of it. */
#ifndef FADER_CLI_PLAIN_IMPL_H
#define FADER_CLI_PLAIN_IMPL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <termios.h>

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
    struct termios shell_modes,
        own_modes;   /* of that terminal, when others have it and when we do */
    int typed_ahead; /* bytes that are still to be read and came while others had it */
    FILE *notes;     /* prompts and messages: not in a file that takes the answers */
    bool shown;      /* the prompt is on the screen */
    bool held;       /* the generator waits for what is being typed */
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

/* ---- the terminal, in plain_tty.c ------------------------------------------------------------
 * It has one set of modes for as long as the chat has it, an answer or not: a key that came while
 * they changed would be damaged. */
void plain_tty_open(struct plain *p);  /* notes the shell's modes; before readline sets its own */
void plain_tty_adopt(struct plain *p); /* notes readline's, which stay from here on */
void plain_tty_take(struct plain *p);  /* our modes, after another program's */
void plain_tty_lend(struct plain *p);  /* the shell's */
int plain_tty_read_byte(struct plain *p); /* below 0: there will be none */

/* Takes what signals came. True: the user wants an end of what is under way. */
bool plain_heed_signals(struct plain *p);

/* ---- the view's operations; `view` is the struct plain --------------------------------------- */
extern const struct view_ops plain_view_ops;
void plain_changed(void *view, unsigned what); /* in plain.c */
bool plain_edit_text(void *view, const char *text, char **out, struct error *err);
void plain_set_input(void *view, const char *text);

#endif
