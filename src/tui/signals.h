/* Signals, for a program that holds a terminal. Handlers set flags and write a byte into a pipe;
 * the loop polls the pipe and asks what came. Only two things happen inside a handler: a fatal
 * signal gives the terminal back by a string and a termios prepared beforehand, and so does a
 * second request to end when the loop hangs and has not looked at the first.
 *
 * Life cycle: signals_open -> signals_take ... -> signals_close. UI thread only; other threads
 * block all asynchronous signals. */
#ifndef FADER_TUI_SIGNALS_H
#define FADER_TUI_SIGNALS_H

#include <stdbool.h>
#include <termios.h>

#include "base/error.h"

struct signals_seen {
    bool resized;     /* SIGWINCH */
    bool stopping;    /* SIGTSTP */
    bool continued;   /* SIGCONT */
    bool interrupted; /* SIGINT */
    int ending;       /* SIGTERM or SIGHUP; 0: none */
};

/* Takes over SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP, and the fatal ones (unless
 * sanitizers, which have handlers of their own, are built in). */
bool signals_open(struct error *err);
void signals_close(void); /* as they were before signals_open */
int signals_fd(void);     /* readable when there is something to take; -1 when not open */

/* What came since the last call. */
void signals_take(struct signals_seen *out);

/* Another program has the terminal: keyboard signals are its own, and Ctrl-Z stops us both. */
void signals_lend(bool lent);

/* Stops the job, as Ctrl-Z does in other programs; returns when it goes on. The SIGCONT that did it
 * is not told by signals_take. */
void signals_stop_job(void);

/* What gives the terminal back: `reset` (NUL-terminated, cut at 512 bytes) and `termios` for `fd`.
 * NULL: there is nothing to give back. */
void signals_set_rescue(const char *reset, int fd, const struct termios *termios);

/* Gives it back, once. Async-signal-safe. Does nothing when no rescue is set. */
void signals_rescue(void);

#endif
