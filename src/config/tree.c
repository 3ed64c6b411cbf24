#include "config.h"

#include "config/tree.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/utf8.h"

struct node *node_new(enum node_kind kind)
{
    struct node *n = mem_zalloc(sizeof *n);

    n->kind = kind;
    return n;
}

/* The depth is capped where trees are built, so the recursion is too. */
void node_free(struct node *n)
{
    while (n != NULL) {
        struct node *next = n->next;
        node_free(n->first);
        free(n->key);
        free(n->text);
        free(n);
        n = next;
    }
}

void node_append(struct node *parent, struct node *child)
{
    if (parent->last != NULL)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}

struct node *node_add(struct node *parent, const char *key, enum node_kind kind)
{
    struct node *n = node_new(kind);

    n->key = mem_strdup(key);
    node_append(parent, n);
    return n;
}

struct node *node_add_text(struct node *parent, const char *key, const char *text, bool quoted)
{
    struct node *n = node_add(parent, key, NODE_SCALAR);

    n->text = mem_strdup(text);
    n->quoted = quoted;
    return n;
}

const struct node *node_get(const struct node *map, const char *key)
{
    if (map->kind != NODE_MAP)
        return NULL;
    for (const struct node *n = map->first; n != NULL; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* [-+] digits [. digits] [e [-+] digits], or . digits; no leading zero before another digit. */
static bool is_decimal(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    const char *whole = p;

    p = skip_digits(p);
    size_t n = (size_t)(p - whole);
    if (n > 1 && *whole == '0')
        return false;
    if (*p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction);
        n += (size_t)(p - fraction);
    }
    if (n == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent)
            return false;
    }
    return *p == '\0';
}

/* strtod and printf obey LC_NUMERIC. The program never sets it, but a library that
 * links this may. */
static locale_t enter_c_locale(locale_t *old)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    if (c == (locale_t)0)
        mem_fatal("locale");
    *old = uselocale(c);
    return c;
}

static void leave_c_locale(locale_t c, locale_t old)
{
    uselocale(old);
    freelocale(c);
}

bool number_parse(const char *text, double *out)
{
    locale_t old;

    if (!is_decimal(text))
        return false;
    locale_t c = enter_c_locale(&old);
    *out = strtod(text, NULL);
    leave_c_locale(c, old);
    return isfinite(*out);
}

void number_format(double value, char out[32])
{
    locale_t old;
    locale_t c = enter_c_locale(&old);

    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    /* %g turns to exponents early: 1e+02 for 100. */
    if (fabs(value) < 1e15 && value == trunc(value))
        snprintf(out, 32, "%.0f", value + 0.0);
    leave_c_locale(c, old);
}

bool node_number(const struct node *n, double *out)
{
    return n->kind == NODE_SCALAR && !n->quoted && number_parse(n->text, out);
}

bool node_truth(const struct node *n, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

    if (n->kind != NODE_SCALAR || n->quoted)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(n->text, words[i]) == 0) {
            *out = (i & 1) != 0;
            return true;
        }
    }
    return false;
}

/* ---- messages ------------------------------------------------------------------------------- */

static void set_at(struct error *err, const char *file, int line, int column, const char *format,
                   va_list args) __attribute__((format(printf, 5, 0)));

static void set_at(struct error *err, const char *file, int line, int column, const char *format,
                   va_list args)
{
    char what[sizeof err->text];

    vsnprintf(what, sizeof what, format, args);
    if (line > 0)
        error_set(err, "%s:%d:%d: %s", file, line, column, what);
    else
        error_set(err, "%s: %s", file, what);
}

bool node_error(struct error *err, const char *file, const struct node *n, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_at(err, file, n->line, n->column, format, args);
    va_end(args);
    return false;
}

bool node_key_error(struct error *err, const char *file, const struct node *n, const char *format,
                    ...)
{
    va_list args;

    va_start(args, format);
    set_at(err, file, n->key_line, n->key_column, format, args);
    va_end(args);
    return false;
}

const char *node_describe(const struct node *n, char out[48])
{
    enum { SHOWN = 32 };

    switch (n->kind) {
    case NODE_NULL:
        return "nothing";
    case NODE_LIST:
        return "a list";
    case NODE_MAP:
        return "a map";
    case NODE_SCALAR:
        break;
    }
    size_t len = strlen(n->text);
    bool cut = len > SHOWN;
    if (cut) {
        len = SHOWN;
        len -= utf8_unfinished(n->text, len);
    }
    snprintf(out, 48, "\"%.*s%s\"", (int)len, n->text, cut ? "..." : "");
    return out;
}
