/* One answer, streamed to standard output: `fader -p TEXT`, or a prompt on standard input.
 *
 * Without --events the answer's bytes and a final newline, each token as it is drawn. With --events
 * one JSON object a line (design: "start", "knob", "token", "end"). */
#ifndef FADER_CLI_ONESHOT_H
#define FADER_CLI_ONESHOT_H

#include "cli/options.h"

int oneshot_run(const struct options *o); /* the exit status; 130 when Ctrl-C ended it */

#endif
