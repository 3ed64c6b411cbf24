/* UTF-8 at the byte level. Graphemes and columns belong to tui; properties to utf8proc. */
#ifndef FADER_BASE_UTF8_H
#define FADER_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define UTF8_REPLACEMENT 0xFFFDu

/* Decodes one code point from the first of `len` bytes (len > 0). Returns the bytes it takes.
 * Invalid bytes (overlong, surrogate, above 10FFFF, stray, cut off) give UTF8_REPLACEMENT and the
 * length of the maximal subpart (Unicode 3.9), at least 1; *valid (may be NULL) says which. */
size_t utf8_decode(const char *bytes, size_t len, uint32_t *code_point, bool *valid);

/* Writes 1 - 4 bytes, no NUL; returns how many. An invalid code point is written as U+FFFD. */
size_t utf8_encode(uint32_t code_point, char out[4]);

bool utf8_is_valid(const char *bytes, size_t len);

/* How many bytes at the end of `bytes` begin a character that more bytes could still complete: 0
 * - 3. */
size_t utf8_unfinished(const char *bytes, size_t len);

/* Appends `bytes` to `out`, every invalid subpart as U+FFFD. Returns whether all was valid. */
bool utf8_add_clean(struct str *out, const char *bytes, size_t len);

/* Overwrites the control characters of `text` (C0, DEL, C1) with '?', in place: what comes from a
 * file and goes to a terminal as one line must not steer it. */
void utf8_hide_controls(char *text);

#endif
