/* A configuration tree: what a YAML or JSON file says, before anybody asks what it means. Each node
 * knows its line and column, so that whoever finds a value wrong can point at it.
 *
 * Life cycle: yaml_parse, or node_new and node_append -> node_get, node_number ... -> node_free of
 * the root.
 * Scalars are text; whether "0.8" is a number is decided by the reader of the key. */
#ifndef FADER_CONFIG_TREE_H
#define FADER_CONFIG_TREE_H

#include <stdbool.h>

#include "base/error.h"

enum { CONFIG_FILE_MAX = 64 * 1024, CONFIG_DEPTH_MAX = 16 };

enum node_kind { NODE_NULL, NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    int line, column; /* of the value, from 1; 0: not known (JSON) */
    char *key;        /* in a map, else NULL */
    int key_line, key_column;
    char *text;                /* of a scalar, UTF-8 without NUL */
    bool quoted;               /* it stood in quotes or in a block: text, never a number */
    struct node *first, *next; /* children in order; the next sibling */
    struct node *last;         /* child, for node_append */
};

struct node *node_new(enum node_kind kind); /* empty; text, key and place are the caller's */
void node_free(struct node *n);             /* with all below it; NULL is fine */

/* Makes `child` the last child of a list or map, which owns it from here on. */
void node_append(struct node *parent, struct node *child);

/* A new last child; `key` is copied. node_add_text's is a scalar. */
struct node *node_add(struct node *parent, const char *key, enum node_kind kind);
struct node *node_add_text(struct node *parent, const char *key, const char *text, bool quoted);

/* The child of a map with this key, or NULL. */
const struct node *node_get(const struct node *map, const char *key);

/* Values. False: it is not one; nobody has said so yet. Numbers are decimal, whatever the locale:
 * no "nan", "inf", hexadecimal, digit separators or leading zeros. Truth is true/false, yes/no,
 * on/off. */
bool node_number(const struct node *n, double *out);
bool node_truth(const struct node *n, bool *out);

/* Fills `err` with "file:line:column: ..." (or "file: ..." where the place is not known). Returns
 * false always. node_error speaks of the value, node_key_error of its key. */
bool node_error(struct error *err, const char *file, const struct node *n, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool node_key_error(struct error *err, const char *file, const struct node *n, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* How a value is quoted in a message: its text, shortened, or "a list", "a map", "nothing". */
const char *node_describe(const struct node *n, char out[48]);

/* Parses all of `text` as a decimal number, whatever the locale. */
bool number_parse(const char *text, double *out);

/* Writes the shortest decimal text that number_parse reads back as the same double. */
void number_format(double value, char out[32]);

#endif
