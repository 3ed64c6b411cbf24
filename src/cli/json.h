/* JSON for scripts: cJSON, and what it lacks: text that may hold NUL bytes or be no UTF-8. */
#ifndef FADER_CLI_JSON_H
#define FADER_CLI_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

/* Adds `key` with `len` bytes of valid UTF-8, NULs included. */
void json_add_text(cJSON *object, const char *key, const char *text, size_t len);

/* Adds "bytes": [..]. */
void json_add_bytes(cJSON *object, const char *bytes, size_t len);

/* Writes the object on one line to standard output and deletes it. */
void json_print_line(cJSON *object);

#endif
