#include "config.h"

#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

bool script_open(struct script *s, const char *path)
{
    struct str text = STR_INIT;
    struct error err;

    memset(s, 0, sizeof *s);
    if (!file_read(path, 1 << 20, &text, &err)) {
        str_done(&text);
        return false;
    }
    str_add_char(&text, '\n');
    s->text = s->at = str_steal(&text);
    return true;
}

void script_close(struct script *s)
{
    free(s->text);
}

/* Cuts one line off; NULL at the end. */
static char *cut_line(struct script *s)
{
    char *line = s->at, *end = strchr(line, '\n');

    if (end == NULL)
        return NULL;
    *end = '\0';
    s->at = end + 1;
    s->number++;
    return line;
}

static char read_escape(const char **p)
{
    static const char from[] = "nrte", to[] = "\n\r\t\033";
    const char *at = strchr(from, **p);
    char c = **p;

    if (c == 'x' && isxdigit((unsigned char)(*p)[1]) && isxdigit((unsigned char)(*p)[2])) {
        char digits[3] = {(*p)[1], (*p)[2], '\0'};
        *p += 3;
        return (char)strtol(digits, NULL, 16);
    }
    (*p)++;
    return at != NULL && c != '\0' ? to[at - from] : c;
}

static void add_variable(const char **p, struct str *out,
                         const char *(*lookup)(const char *, size_t))
{
    size_t n = 1;

    while (isupper((unsigned char)(*p)[n]))
        n++;
    const char *value = lookup(*p + 1, n - 1);
    if (value != NULL)
        str_add_text(out, value);
    else
        str_add(out, *p, n);
    *p += n;
}

static const char *read_word(const char *p, struct str *out,
                             const char *(*lookup)(const char *, size_t))
{
    bool quoted = *p == '"';

    p += quoted;
    while (*p != '\0' && (quoted ? *p != '"' : !isblank((unsigned char)*p))) {
        if (*p == '\\' && p[1] != '\0') {
            p++;
            str_add_char(out, read_escape(&p));
        } else if (*p == '$') {
            add_variable(&p, out, lookup);
        } else {
            str_add_char(out, *p++);
        }
    }
    return p + (*p == '"');
}

static void add_word(struct script_line *line, struct str *word)
{
    if (line->n == SCRIPT_WORDS_MAX)
        abort();
    str_add(word, "", 0);
    line->lens[line->n] = word->len;
    line->words[line->n++] = word->data != NULL ? str_steal(word) : mem_strdup("");
    line->words[line->n] = NULL;
}

static void read_document(struct script *s, struct script_line *line, const char *end,
                          const char *(*lookup)(const char *, size_t))
{
    struct str text = STR_INIT;
    const char *p;

    while ((p = cut_line(s)) != NULL && strcmp(p, end) != 0) {
        while (*p != '\0') {
            if (*p == '$')
                add_variable(&p, &text, lookup);
            else
                str_add_char(&text, *p++);
        }
        str_add_char(&text, '\n');
    }
    add_word(line, &text);
}

bool script_next(struct script *s, struct script_line *out,
                 const char *(*lookup)(const char *name, size_t len))
{
    const char *p;

    memset(out, 0, sizeof *out);
    while (out->n == 0) {
        if ((p = cut_line(s)) == NULL)
            return false;
        out->number = s->number;
        for (;;) {
            struct str word = STR_INIT;
            p += strspn(p, " \t");
            if (*p == '\0' || *p == '#')
                break;
            if (strncmp(p, "<<", 2) == 0) {
                read_document(s, out, p + 2, lookup);
                break;
            }
            p = read_word(p, &word, lookup);
            add_word(out, &word);
        }
    }
    return true;
}

void script_line_done(struct script_line *line)
{
    for (int i = 0; i < line->n; i++)
        free(line->words[i]);
}
