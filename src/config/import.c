/* Presets of other programs. Each reader turns its file into a tree with the keys that the program
 * uses; what they mean is in preset_read.c's table. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cJSON.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/preset.h"
#include "config/preset_read.h"
#include "config/yaml.h"

enum { IMPORT_MAX = 1 << 20 }; /* SillyTavern's files carry more than presets */

/* ---- nodes that know their line ------------------------------------------------------------- */

static void set_line(struct node *n, int line)
{
    n->line = n->key_line = line;
    n->column = n->key_column = 1;
}

static void append(struct node *parent, const char *key, enum node_kind kind, int line)
{
    set_line(node_add(parent, key, kind), line);
}

static void append_text(struct node *map, const char *key, const char *text, bool quoted, int line)
{
    set_line(node_add_text(map, key, text, quoted), line);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static struct node *from_json(const cJSON *json, int depth, const char *file, struct error *err)
{
    struct node *n = node_new(NODE_NULL);
    char number[32];
    const cJSON *item;

    if (cJSON_IsNumber(json)) {
        number_format(json->valuedouble, number);
        n->kind = NODE_SCALAR;
        n->text = mem_strdup(number);
    } else if (cJSON_IsBool(json)) {
        n->kind = NODE_SCALAR;
        n->text = mem_strdup(cJSON_IsTrue(json) ? "true" : "false");
    } else if (cJSON_IsString(json)) {
        n->kind = NODE_SCALAR;
        n->text = mem_strdup(json->valuestring);
        n->quoted = true;
    } else if (cJSON_IsArray(json) || cJSON_IsObject(json)) {
        n->kind = cJSON_IsArray(json) ? NODE_LIST : NODE_MAP;
        if (depth >= CONFIG_DEPTH_MAX) {
            error_set(err, "%s: nested too deeply", file);
            node_free(n);
            return NULL;
        }
        cJSON_ArrayForEach(item, json)
        {
            struct node *child = NULL;
            if (n->kind == NODE_MAP && cJSON_GetObjectItemCaseSensitive(json, item->string) != item)
                error_set(err, "%s: \"%s\" is given twice", file, item->string);
            else
                child = from_json(item, depth + 1, file, err);
            if (child == NULL) {
                node_free(n);
                return NULL;
            }
            child->key = mem_strdup(item->string);
            node_append(n, child);
        }
    }
    return n;
}

/* cJSON says where it stopped; people want a line. */
static void report_json(const char *file, const char *text, const char *end, struct error *err)
{
    int line = 1, column = 1;

    for (const char *p = text; end != NULL && p < end; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    error_set(err, "%s:%d:%d: not JSON from here on", file, line, column);
}

static struct node *read_json(const char *file, const struct str *text, struct error *err)
{
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(text->data, text->len + 1, &end, true);

    if (json == NULL) {
        report_json(file, text->data, end, err);
        return NULL;
    }
    struct node *root = from_json(json, 0, file, err);
    cJSON_Delete(json);
    return root;
}

/* Hugging Face writes "temperature", SillyTavern "temp" and far more; both write "top_p". */
static enum dialect json_dialect(const struct node *root)
{
    static const char *const tavern[] = {"temp",     "rep_pen", "rep_pen_range",    "sampler_order",
                                         "samplers", "genamt",  "sampler_priority", "typical"};

    for (size_t i = 0; i < sizeof tavern / sizeof *tavern; i++)
        if (node_get(root, tavern[i]) != NULL)
            return DIALECT_TAVERN;
    return DIALECT_HF;
}

/* ---- lines of words ------------------------------------------------------------------------- */

/* Takes one word off *p: quotes group, a backslash takes the next character as it is outside single
 * quotes. False at the end. */
static bool next_word(const char **p, struct str *out)
{
    char quote = '\0';

    str_clear(out);
    while (**p != '\0' && (strchr(" \t\r\n", **p) != NULL || strncmp(*p, "\\\n", 2) == 0))
        *p += **p == '\\' ? 2 : 1;
    if (**p == '\0')
        return false;
    for (; **p != '\0' && (quote != '\0' || strchr(" \t\r\n", **p) == NULL); (*p)++) {
        if (quote == '\0' && (**p == '"' || **p == '\''))
            quote = **p;
        else if (**p == quote)
            quote = '\0';
        else if (**p == '\\' && quote != '\'' && (*p)[1] == '\n')
            (*p)++; /* the line goes on */
        else if (**p == '\\' && quote != '\'' && (*p)[1] != '\0')
            str_add_char(out, *++*p);
        else
            str_add_char(out, **p);
    }
    return true;
}

/* ---- llama.cpp's command line --------------------------------------------------------------- */

static const struct {
    const char *flag, *key;
} llama_flags[] = {
    {"--temperature", "temp"},
    {"--sampler-seq", "sampler_seq"},
    {"-n", "predict"},
    {"--n-predict", "predict"},
    {"-s", "seed"},
    {"-sys", "system"},
    {"--sampling-seq", "sampler_seq"},
};

/* "--top-k" is the key top_k; some have two names. */
static void flag_key(const char *flag, struct str *key)
{
    str_clear(key);
    for (size_t i = 0; i < sizeof llama_flags / sizeof *llama_flags; i++) {
        if (strcmp(flag, llama_flags[i].flag) == 0) {
            str_add_text(key, llama_flags[i].key);
            return;
        }
    }
    for (const char *c = flag + strspn(flag, "-"); *c != '\0'; c++)
        str_add_char(key, *c == '-' ? '_' : *c);
}

/* --sampler-seq edskypmxt: a letter a sampler. */
static void expand_sequence(struct str *value)
{
    static const struct {
        char letter;
        const char *name;
    } letters[] = {{'e', "penalties"}, {'d', "dry"},   {'s', "top_n_sigma"},
                   {'k', "top_k"},     {'y', "typ_p"}, {'p', "top_p"},
                   {'m', "min_p"},     {'x', "xtc"},   {'t', "temperature"}};
    struct str names = STR_INIT;

    for (const char *c = str_text(value); *c != '\0'; c++) {
        const char *name = NULL;
        for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
            if (letters[i].letter == *c)
                name = letters[i].name;
        str_add_format(&names, "%s%.*s;", name != NULL ? name : "", name == NULL, c);
    }
    str_done(value);
    *value = names;
}

static bool is_flag(const char *word)
{
    double number;

    return *word == '-' && word[1] != '\0' && !number_parse(word, &number);
}

static struct node *read_flags(const char *text)
{
    struct node *root = node_new(NODE_MAP);
    struct str word = STR_INIT, key = STR_INIT;
    const char *p = text;

    while (next_word(&p, &word)) {
        if (!is_flag(str_text(&word)))
            continue; /* the program's name, a file */
        flag_key(str_text(&word), &key);
        const char *ahead = p;
        if (!next_word(&ahead, &word) || is_flag(str_text(&word))) {
            append(root, str_text(&key), NODE_NULL, 0);
            continue;
        }
        p = ahead;
        if (strcmp(str_text(&key), "sampler_seq") == 0) {
            expand_sequence(&word);
            append_text(root, "samplers", str_text(&word), false, 0);
        } else {
            append_text(root, str_text(&key), str_text(&word), false, 0);
        }
    }
    str_done(&word);
    str_done(&key);
    return root;
}

/* ---- Ollama's Modelfile --------------------------------------------------------------------- */

static const char *const modelfile_words[] = {"FROM",    "PARAMETER", "TEMPLATE", "SYSTEM",
                                              "ADAPTER", "LICENSE",   "MESSAGE",  "RENDERER",
                                              "PARSER",  "REQUIRES"};

/* The instruction at `p`, followed by a blank, or NULL. */
static const char *instruction_at(const char *p)
{
    for (size_t i = 0; i < sizeof modelfile_words / sizeof *modelfile_words; i++) {
        size_t n = strlen(modelfile_words[i]);
        if (strncasecmp(p, modelfile_words[i], n) == 0 && (p[n] == ' ' || p[n] == '\t'))
            return modelfile_words[i];
    }
    return NULL;
}

struct modelfile {
    const char *file;
    const char *p;
    int line;
    struct error *err;
};

/* The rest of an instruction: """text over lines""", "text", or what is left of the line. */
static bool read_value(struct modelfile *m, struct str *out, bool *quoted)
{
    const char *start, *end;

    str_clear(out);
    m->p += strspn(m->p, " \t");
    *quoted = *m->p == '"';
    if (strncmp(m->p, "\"\"\"", 3) == 0) {
        start = m->p + 3;
        end = strstr(start, "\"\"\"");
        m->p = end != NULL ? end + 3 : start;
    } else if (*quoted) {
        start = m->p + 1;
        end = strchr(start, '"');
        m->p = end != NULL ? end + 1 : start;
    } else {
        start = m->p;
        end = start + strcspn(start, "\n");
        m->p = end;
        while (end > start && isspace((unsigned char)end[-1]))
            end--;
    }
    if (end == NULL)
        return error_set(m->err, "%s:%d:1: the quotes are not closed", m->file, m->line);
    str_add(out, start, (size_t)(end - start));
    return true;
}

static int count_lines(const char *from, const char *to)
{
    int n = 0;

    for (; from < to; from++)
        n += *from == '\n';
    return n;
}

static bool read_parameter(struct modelfile *m, struct node *root)
{
    struct str value = STR_INIT;
    bool quoted;

    m->p += strspn(m->p, " \t");
    size_t n = strcspn(m->p, " \t\r\n");
    char *key = mem_strndup(m->p, n);
    m->p += n;
    bool ok = read_value(m, &value, &quoted);
    for (char *c = key; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    if (ok && n == 0)
        ok = error_set(m->err, "%s:%d:1: PARAMETER without a name", m->file, m->line);
    if (ok)
        append_text(root, key, str_text(&value), false, m->line);
    free(key);
    str_done(&value);
    return ok;
}

static bool read_instruction(struct modelfile *m, struct node *root)
{
    const char *word = instruction_at(m->p);
    struct str value = STR_INIT;
    bool quoted, ok;

    if (word == NULL)
        return error_set(m->err, "%s:%d:1: not an instruction of a Modelfile", m->file, m->line);
    m->p += strlen(word);
    if (strcmp(word, "PARAMETER") == 0)
        return read_parameter(m, root);
    ok = read_value(m, &value, &quoted);
    if (ok && strcmp(word, "SYSTEM") == 0)
        append_text(root, "system", str_text(&value), true, m->line);
    else if (ok)
        append(root, word, NODE_NULL, m->line);
    str_done(&value);
    return ok;
}

static struct node *read_modelfile(const char *file, const char *text, struct error *err)
{
    struct modelfile m = {.file = file, .p = text, .line = 1, .err = err};
    struct node *root = node_new(NODE_MAP);

    while (*m.p != '\0') {
        const char *start = m.p;
        if (isspace((unsigned char)*m.p)) {
            m.p++;
        } else if (*m.p == '#') {
            m.p += strcspn(m.p, "\n");
        } else if (!read_instruction(&m, root)) {
            node_free(root);
            return NULL;
        }
        m.line += count_lines(start, m.p);
    }
    return root;
}

/* ---- which it is ---------------------------------------------------------------------------- */

static const char *first_line(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (*text != '#')
            return text;
        text += strcspn(text, "\n");
    }
}

static bool is_command_line(const char *p)
{
    if (*p == '-')
        return isalpha((unsigned char)p[1]) || (p[1] == '-' && isalpha((unsigned char)p[2]));
    const char *end = p + strcspn(p, " \t\n"), *slash = p;
    for (const char *c = p; c < end; c++)
        if (*c == '/')
            slash = c + 1;
    return strncmp(slash, "llama-", 6) == 0 || strncmp(slash, "llama.cpp", 9) == 0;
}

static struct node *read_any(const char *file, const struct str *text, enum dialect *dialect,
                             struct error *err)
{
    const char *start = first_line(text->data);
    struct node *root;

    if (*start == '{') {
        root = read_json(file, text, err);
        *dialect = root != NULL ? json_dialect(root) : DIALECT_HF;
    } else if (instruction_at(start) != NULL) {
        *dialect = DIALECT_OLLAMA;
        root = read_modelfile(file, text->data, err);
    } else if (is_command_line(start)) {
        *dialect = DIALECT_LLAMA;
        root = read_flags(start);
    } else {
        root = yaml_parse(file, text->data, text->len, err);
        *dialect = root != NULL && preset_tree_is_ours(root) ? DIALECT_FADER : DIALECT_WEBUI;
    }
    return root;
}

/* A name that can be saved under, from one that may not be. */
static char *clean_name(const char *path)
{
    char *stem = preset_stem(path);
    struct error err;

    if (strcmp(path, "-") == 0 || !preset_check_name(stem, &err)) {
        free(stem);
        return mem_strdup("imported");
    }
    return stem;
}

struct preset *preset_import(const char *path, struct preset_warnings *warnings, struct error *err)
{
    const char *file = strcmp(path, "-") == 0 ? "standard input" : path;
    struct str text = STR_INIT;
    struct preset *p = NULL;
    struct node *root = NULL;
    enum dialect dialect;

    if (!file_read(path, IMPORT_MAX, &text, err))
        goto done;
    if (text.len == 0 || memchr(text.data, '\0', text.len) != NULL ||
        !utf8_is_valid(text.data, text.len)) {
        error_set(err, "%s: %s", file, text.len == 0 ? "empty" : "not a text file in UTF-8");
        goto done;
    }
    root = read_any(file, &text, &dialect, err);
    if (root == NULL)
        goto done;
    char *name = clean_name(path);
    p = preset_new(name);
    free(name);
    p->path = mem_strdup(path);
    bool ok = preset_read_tree(p, root, dialect, file, warnings, err);
    if (ok && !preset_tree_sets_anything(root, dialect))
        ok = error_set(err, "%s: no sampling parameter in it, read as a file of %s", file,
                       dialect_name(dialect));
    if (!ok) {
        preset_free(p);
        p = NULL;
    }
done:
    node_free(root);
    str_done(&text);
    return p;
}
