#include "config.h"

#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    yaml_parser_t parser;
    const char *file;
    struct error *err;
};

static bool refuse(struct reader *r, const yaml_mark_t *mark, const char *what)
{
    return error_set(r->err, "%s:%zu:%zu: %s", r->file, mark->line + 1, mark->column + 1, what);
}

/* libyaml counts from 0, and gives a reader error an offset only. */
static bool report_parser_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;

    if (p->error == YAML_MEMORY_ERROR)
        mem_fatal("YAML");
    return refuse(r, p->error == YAML_READER_ERROR ? &p->mark : &p->problem_mark,
                  p->problem != NULL ? p->problem : "not YAML");
}

static bool next_event(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) == 1 || report_parser_error(r);
}

static bool is_null(const char *text)
{
    return *text == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

static bool check_plain_node(struct reader *r, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor != NULL)
        return refuse(r, &event->start_mark, "anchors are not used here");
    if (tag != NULL)
        return refuse(r, &event->start_mark, "tags are not used here");
    return true;
}

static struct node *read_node(struct reader *r, yaml_event_t *event, int depth);

static struct node *read_scalar(struct reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;

    if (strlen(text) != event->data.scalar.length) {
        refuse(r, &event->start_mark, "a NUL character in a text");
        return NULL;
    }
    struct node *n = node_new(!quoted && is_null(text) ? NODE_NULL : NODE_SCALAR);
    n->quoted = quoted;
    if (n->kind == NODE_SCALAR)
        n->text = mem_strdup(text);
    return n;
}

static bool read_key(struct reader *r, const struct node *map, const yaml_event_t *event,
                     char **key)
{
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(r, &event->start_mark, "a key must be a word");
    if (!check_plain_node(r, event))
        return false;
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return refuse(r, &event->start_mark, "a NUL character in a key");
    const struct node *twin = node_get(map, text);
    if (twin != NULL)
        return error_set(r->err, "%s:%zu:%zu: \"%s\" was given in line %d already", r->file,
                         event->start_mark.line + 1, event->start_mark.column + 1, text,
                         twin->key_line);
    *key = mem_strdup(text);
    return true;
}

/* Reads the children of a list or map up to its end. */
static bool read_children(struct reader *r, struct node *parent, int depth)
{
    yaml_event_type_t end =
        parent->kind == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;

    for (;;) {
        yaml_event_t event;
        char *key = NULL;
        if (!next_event(r, &event))
            return false;
        yaml_mark_t mark = event.start_mark;
        if (event.type == end) {
            yaml_event_delete(&event);
            return true;
        }
        if (parent->kind == NODE_MAP) {
            bool ok = read_key(r, parent, &event, &key);
            yaml_event_delete(&event);
            if (!ok || !next_event(r, &event)) {
                free(key);
                return false;
            }
        }
        struct node *child = read_node(r, &event, depth + 1);
        yaml_event_delete(&event);
        if (child == NULL) {
            free(key);
            return false;
        }
        child->key = key;
        child->key_line = (int)mark.line + 1;
        child->key_column = (int)mark.column + 1;
        node_append(parent, child);
    }
}

static struct node *read_node(struct reader *r, yaml_event_t *event, int depth)
{
    struct node *n;

    if (event->type == YAML_ALIAS_EVENT) {
        refuse(r, &event->start_mark, "aliases are not used here");
        return NULL;
    }
    if (!check_plain_node(r, event))
        return NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        n = read_scalar(r, event);
    } else if (depth >= CONFIG_DEPTH_MAX) {
        refuse(r, &event->start_mark, "nested too deeply");
        return NULL;
    } else {
        n = node_new(event->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST);
        if (!read_children(r, n, depth)) {
            node_free(n);
            return NULL;
        }
    }
    if (n != NULL) {
        n->line = (int)event->start_mark.line + 1;
        n->column = (int)event->start_mark.column + 1;
    }
    return n;
}

/* After the root: the document's end, then the stream's. */
static bool read_end(struct reader *r)
{
    yaml_event_t event;

    if (!next_event(r, &event))
        return false;
    yaml_event_delete(&event);
    if (!next_event(r, &event))
        return false;
    bool ok = event.type == YAML_STREAM_END_EVENT ||
              refuse(r, &event.start_mark, "a second document: one file holds one");
    yaml_event_delete(&event);
    return ok;
}

/* stream start, document start, root, ends. */
static struct node *read_document(struct reader *r)
{
    yaml_event_t event;
    struct node *root = NULL;

    for (;;) {
        if (!next_event(r, &event))
            return NULL;
        yaml_event_type_t type = event.type;
        if (type == YAML_STREAM_END_EVENT)
            root = node_new(NODE_MAP);
        else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT)
            root = read_node(r, &event, 0);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return root;
        if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT)
            break;
    }
    if (root != NULL && !read_end(r)) {
        node_free(root);
        root = NULL;
    }
    return root;
}

/* libyaml would take UTF-16 by its mark, and says where a wrong byte is only as an offset. */
static bool check_text(const char *file, const char *text, size_t len, struct error *err)
{
    size_t line = 1, column = 1;
    bool valid = true;
    uint32_t c;

    for (size_t i = 0; i < len; column++) {
        i += utf8_decode(text + i, len - i, &c, &valid);
        if (!valid)
            return error_set(err, "%s:%zu:%zu: not UTF-8", file, line, column);
        if (c == 0)
            return error_set(err, "%s:%zu:%zu: a NUL byte: this is not a text file", file, line,
                             column);
        if (c == '\n') {
            line++;
            column = 0;
        }
    }
    return true;
}

struct node *yaml_parse(const char *file, const char *text, size_t len, struct error *err)
{
    struct reader r = {.file = file, .err = err};

    if (len > CONFIG_FILE_MAX) {
        error_set(err, "%s: larger than %d bytes", file, CONFIG_FILE_MAX);
        return NULL;
    }
    if (!check_text(file, text, len, err))
        return NULL;
    if (!yaml_parser_initialize(&r.parser))
        mem_fatal("YAML");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    struct node *root = read_document(&r);
    yaml_parser_delete(&r.parser);
    return root;
}

struct node *yaml_load(const char *path, struct error *err)
{
    struct str text = STR_INIT;
    struct node *root = NULL;

    if (file_read(path, CONFIG_FILE_MAX, &text, err))
        root = yaml_parse(strcmp(path, "-") == 0 ? "standard input" : path, str_text(&text),
                          text.len, err);
    str_done(&text);
    return root;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int append_bytes(void *out, unsigned char *bytes, size_t len)
{
    str_add(out, (const char *)bytes, len);
    return 1;
}

/* The emitter owns the event from here on. It fails for lack of memory, or because we misuse it. */
static void emit(yaml_emitter_t *emitter, yaml_event_t *event, int initialized)
{
    if (!initialized || !yaml_emitter_emit(emitter, event))
        mem_fatal("YAML");
}

static void emit_scalar(yaml_emitter_t *emitter, const char *raw, bool quoted)
{
    yaml_event_t event;
    struct str clean = STR_INIT;
    yaml_scalar_style_t style = YAML_ANY_SCALAR_STYLE;
    double number;

    utf8_add_clean(&clean, raw, strlen(raw));
    const char *text = str_text(&clean);
    /* A block keeps a final newline or none, but not several spaces and newlines alone. */
    if (quoted && strchr(text, '\n') != NULL)
        style =
            strspn(text, " \t\n") > 0 ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_LITERAL_SCALAR_STYLE;
    else if (quoted && (is_null(text) || number_parse(text, &number)))
        style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    emit(emitter, &event,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)clean.len,
                                      1, 1, style));
    str_done(&clean);
}

static bool is_short_list(const struct node *list)
{
    size_t width = 0;

    for (const struct node *n = list->first; n != NULL; n = n->next) {
        if (n->kind != NODE_SCALAR || n->quoted)
            return false;
        width += strlen(n->text) + 2;
    }
    return width < 90;
}

static void emit_node(yaml_emitter_t *emitter, const struct node *n)
{
    yaml_event_t event;

    if (n->kind == NODE_SCALAR || n->kind == NODE_NULL) {
        emit_scalar(emitter, n->kind == NODE_NULL ? "~" : n->text, n->quoted);
        return;
    }
    bool map = n->kind == NODE_MAP;
    if (map)
        emit(emitter, &event,
             yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
    else
        emit(emitter, &event,
             yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                  is_short_list(n) ? YAML_FLOW_SEQUENCE_STYLE
                                                                   : YAML_BLOCK_SEQUENCE_STYLE));
    for (const struct node *c = n->first; c != NULL; c = c->next) {
        if (map)
            emit_scalar(emitter, c->key, false);
        emit_node(emitter, c);
    }
    emit(emitter, &event,
         map ? yaml_mapping_end_event_initialize(&event)
             : yaml_sequence_end_event_initialize(&event));
}

void yaml_format(const struct node *root, struct str *out)
{
    yaml_emitter_t emitter;
    yaml_event_t event;

    if (!yaml_emitter_initialize(&emitter))
        mem_fatal("YAML");
    yaml_emitter_set_output(&emitter, append_bytes, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    emit(&emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(&emitter, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    emit_node(&emitter, root);
    emit(&emitter, &event, yaml_document_end_event_initialize(&event, 1));
    emit(&emitter, &event, yaml_stream_end_event_initialize(&event));
    yaml_emitter_delete(&emitter);
}
