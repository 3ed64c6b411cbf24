/* Text for a terminal that must not be told what to do: control characters as ^[ or <9B>, direction
 * overrides as <202E>, invalid bytes as U+FFFD. Newlines and tabs stay. */
#ifndef FADER_CLI_PLAIN_TEXT_H
#define FADER_CLI_PLAIN_TEXT_H

#include <stddef.h>

#include "base/str.h"

void plain_text_add(struct str *out, const char *bytes, size_t len);

#endif
