/* The chat: puts settings, preset and command line together, starts the backend, and hands over to
 * the screen (tui) or to the line-by-line chat (cli/plain). */
#ifndef FADER_CLI_CHAT_H
#define FADER_CLI_CHAT_H

#include "cli/options.h"

int chat_run(const struct options *o); /* the exit status */

#endif
