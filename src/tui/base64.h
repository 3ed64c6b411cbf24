/* Base64 (RFC 4648), as OSC 52 wants it. */
#ifndef FADER_TUI_BASE64_H
#define FADER_TUI_BASE64_H

#include <stddef.h>

/* NUL-terminated; owned by the caller. */
char *base64_encode(const char *bytes, size_t len);

#endif
