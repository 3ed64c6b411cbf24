/* Errors: a struct filled by whoever fails, carried up to whoever can say it.
 *
 * A function that can fail takes `struct error *err` last, and returns false or NULL when it has
 * filled it. The text is one line, "what: why", names the file, line or option, has no final full
 * stop and no newline. `err` is never NULL.  A caller adds context in front with error_prefix. */
#ifndef FADER_BASE_ERROR_H
#define FADER_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

struct error {
    char text[512]; /* NUL-terminated; empty: no error */
};

/* Fills `err` from a printf format; control characters in the result become '?' (hostile names
 * reach it). Returns false always, so that a failing function can `return error_set(...)`. */
bool error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, with ": " and the text of `errno_value` behind. */
bool error_set_errno(struct error *err, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " in front of what `err` holds. Returns false always. */
bool error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
