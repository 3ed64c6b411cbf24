/* One line on a terminal's standard error that says what is being done, and goes away. Nothing is
 * written when standard error is no terminal. Carriage returns and blanks only: any terminal will
 * do.
 *
 * Life cycle: progress_init -> progress_say ... -> progress_end (may be said to again). */
#ifndef FADER_CLI_PROGRESS_H
#define FADER_CLI_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool on;
    int columns; /* of the terminal */
    int shown;   /* characters on the line now */
};

void progress_init(struct progress *p);

/* Shows the text (ASCII) instead of the last one, cut to the width of the terminal. */
void progress_say(struct progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void progress_end(struct progress *p); /* takes the line away */

#endif
