/* YAML, through libyaml: the only code that includes it. One document of maps, lists and scalars,
 * with a cap on size and depth; anchors, aliases, tags, a second document and a key given twice are
 * refused (fader's files need none of them, and a hostile file does). */
#ifndef FADER_CONFIG_YAML_H
#define FADER_CONFIG_YAML_H

#include "base/error.h"
#include "base/str.h"
#include "config/tree.h"

/* Parses `len` bytes of UTF-8. `file` is for messages. The root is owned by the caller; an empty
 * document is a map without keys. NULL with `err` ("file:line:column: what"). */
struct node *yaml_parse(const char *file, const char *text, size_t len, struct error *err);

/* Reads and parses a file of at most CONFIG_FILE_MAX bytes ("-": standard input). */
struct node *yaml_load(const char *path, struct error *err);

/* Writes a tree as YAML: block style, lists of short scalars in one line. Scalars that are `quoted`
 * come out so that they are read as text again, those with newlines as blocks. */
void yaml_format(const struct node *root, struct str *out);

#endif
