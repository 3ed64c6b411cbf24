#include "config.h"

#include "config/theme.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"
#include "config/colour.h"
#include "config/paths.h"
#include "config/yaml.h"

/* themes/dark.yaml, as text: the theme that exists always (Makefile.am). */
static const char dark_yaml[] =
#include "dark_theme.inc"
    ;

static const char *const style_names[STYLE_COUNT] = {
    [STYLE_TEXT] = "text",       [STYLE_DIM] = "dim",
    [STYLE_ACCENT] = "accent",   [STYLE_TITLE] = "title",
    [STYLE_USER] = "user",       [STYLE_RULE] = "rule",
    [STYLE_STATUS] = "status",   [STYLE_STATUS_STATE] = "status_state",
    [STYLE_MESSAGE] = "message", [STYLE_WARNING] = "warning",
    [STYLE_ERROR] = "error",     [STYLE_FADER] = "fader",
    [STYLE_HANDLE] = "handle",   [STYLE_FOCUS] = "focus",
    [STYLE_BAR] = "bar",         [STYLE_BAR_MODEL] = "bar_model",
    [STYLE_DICE] = "dice",       [STYLE_MARK] = "mark",
    [STYLE_CODE] = "code",       [STYLE_SELECTION] = "selection",
    [STYLE_KEY] = "key",         [STYLE_HEAT_0] = "heat_0",
    [STYLE_HEAT_1] = "heat_1",   [STYLE_HEAT_2] = "heat_2",
    [STYLE_HEAT_3] = "heat_3",
};

const char *style_name(enum style s)
{
    return style_names[s];
}

static int find_style(const char *name)
{
    for (int i = 0; i < STYLE_COUNT; i++)
        if (strcmp(style_names[i], name) == 0)
            return i;
    return -1;
}

/* ---- one style ------------------------------------------------------------------------------ */

struct reader {
    const char *file;
    const struct node *palette; /* NULL: none */
    struct error *err;
};

static const struct {
    const char *name;
    uint8_t attr;
} attr_names[] = {
    {"bold", ATTR_BOLD}, {"underline", ATTR_UNDERLINE}, {"reverse", ATTR_REVERSE},
    {"dim", ATTR_DIM},   {"italic", ATTR_ITALIC},
};
enum { N_ATTRS = sizeof attr_names / sizeof *attr_names };

static uint8_t find_attr(const char *name)
{
    for (size_t i = 0; i < N_ATTRS; i++)
        if (strcmp(attr_names[i].name, name) == 0)
            return attr_names[i].attr;
    return 0;
}

/* "#rrggbb", a name of the palette, or "default". */
static bool read_rgb(struct reader *r, const struct node *n, int32_t *out)
{
    char shown[48];
    const struct node *named = NULL;

    if (n->kind == NODE_SCALAR && strcmp(n->text, "default") == 0) {
        *out = -1;
        return true;
    }
    if (n->kind == NODE_SCALAR && r->palette != NULL)
        named = node_get(r->palette, n->text);
    const struct node *value = named != NULL ? named : n;
    if (value->kind == NODE_SCALAR && colour_parse(value->text, out))
        return true;
    return node_error(r->err, r->file, value,
                      "%s: %s is no \"#rrggbb\", no colour of the palette, and not default",
                      value->key, node_describe(value, shown));
}

static bool read_index(struct reader *r, const struct node *n, int max, int16_t *out)
{
    char shown[48];
    double value;

    if (n->kind == NODE_SCALAR && strcmp(n->text, "default") == 0) {
        *out = -1;
        return true;
    }
    if (!node_number(n, &value) || value != trunc(value) || value < 0 || value > max)
        return node_error(r->err, r->file, n,
                          "%s: %s is neither a colour number from 0 to %d nor default", n->key,
                          node_describe(n, shown), max);
    *out = (int16_t)value;
    return true;
}

/* One name, or a list of them. */
static bool read_attrs(struct reader *r, const struct node *n, uint8_t *out)
{
    const struct node *item = n->kind == NODE_LIST ? n->first : n;
    char shown[48];

    *out = 0;
    for (; item != NULL; item = n->kind == NODE_LIST ? item->next : NULL) {
        uint8_t attr = item->kind == NODE_SCALAR ? find_attr(item->text) : 0;
        bool plain = item->kind == NODE_SCALAR && strcmp(item->text, "plain") == 0;
        if (attr == 0 && !plain)
            return node_error(r->err, r->file, item,
                              "%s: %s is none of plain, bold, underline, reverse, dim, italic",
                              n->key, node_describe(item, shown));
        *out |= attr;
    }
    return true;
}

static bool read_flag(struct reader *r, const struct node *n, uint8_t attr, uint8_t *attrs)
{
    char shown[48];
    bool on;

    if (!node_truth(n, &on))
        return node_error(r->err, r->file, n, "%s: %s is neither true nor false", n->key,
                          node_describe(n, shown));
    *attrs = (uint8_t)(on ? *attrs | attr : *attrs & ~attr);
    return true;
}

/* What a style's keys said: which colours, and which numbers for fewer colours (-2: none). */
struct said {
    bool fg, bg, mono;
    int16_t fg_256, bg_256, fg_16, bg_16;
};

static bool read_style_key(struct reader *r, const struct node *n, struct style_look *look,
                           struct said *said)
{
    uint8_t attr = find_attr(n->key);

    if (strcmp(n->key, "fg") == 0) {
        said->fg = true;
        return read_rgb(r, n, &look->fg_rgb);
    }
    if (strcmp(n->key, "bg") == 0) {
        said->bg = true;
        return read_rgb(r, n, &look->bg_rgb);
    }
    if (strcmp(n->key, "fg256") == 0)
        return read_index(r, n, 255, &said->fg_256);
    if (strcmp(n->key, "bg256") == 0)
        return read_index(r, n, 255, &said->bg_256);
    if (strcmp(n->key, "fg16") == 0)
        return read_index(r, n, 15, &said->fg_16);
    if (strcmp(n->key, "bg16") == 0)
        return read_index(r, n, 15, &said->bg_16);
    if (strcmp(n->key, "mono") == 0) {
        said->mono = true;
        return read_attrs(r, n, &look->mono_attrs);
    }
    if (attr != 0)
        return read_flag(r, n, attr, &look->attrs);
    return node_key_error(r->err, r->file, n,
                          "unknown key \"%s\": fg, bg, fg256, bg256, fg16, bg16, bold, underline, "
                          "reverse, dim, italic, mono",
                          n->key);
}

/* Fewer colours: as told, else the nearest. Without colour: as told, else the same attributes. */
static void complete_look(struct style_look *look, const struct said *said)
{
    if (said->fg) {
        look->fg_256 = colour_nearest_256(look->fg_rgb);
        look->fg_16 = colour_nearest_16(look->fg_rgb);
    }
    if (said->bg) {
        look->bg_256 = colour_nearest_256(look->bg_rgb);
        look->bg_16 = colour_nearest_16(look->bg_rgb);
    }
    look->fg_256 = said->fg_256 != -2 ? said->fg_256 : look->fg_256;
    look->bg_256 = said->bg_256 != -2 ? said->bg_256 : look->bg_256;
    look->fg_16 = said->fg_16 != -2 ? said->fg_16 : look->fg_16;
    look->bg_16 = said->bg_16 != -2 ? said->bg_16 : look->bg_16;
    if (!said->mono)
        look->mono_attrs = look->attrs;
}

/* Colours that a style leaves out are those of `base`; attributes are its own. */
static bool read_style(struct reader *r, const struct node *map, const struct style_look *base,
                       struct style_look *look)
{
    struct said said = {false, false, false, -2, -2, -2, -2};
    char shown[48];

    if (map->kind != NODE_MAP)
        return node_error(r->err, r->file, map, "%s: %s is not a map of colours and attributes",
                          map->key, node_describe(map, shown));
    *look = *base;
    look->attrs = look->mono_attrs = 0;
    for (const struct node *n = map->first; n != NULL; n = n->next)
        if (!read_style_key(r, n, look, &said))
            return false;
    complete_look(look, &said);
    return true;
}

/* ---- one theme ------------------------------------------------------------------------------ */

static bool refuse_style(struct reader *r, const struct node *n)
{
    struct nearest near;

    nearest_init(&near, n->key);
    for (int i = 0; i < STYLE_COUNT; i++)
        nearest_offer(&near, style_names[i]);
    if (near.best != NULL)
        return node_key_error(r->err, r->file, n, "unknown style \"%s\": did you mean %s?", n->key,
                              near.best);
    return node_key_error(r->err, r->file, n, "unknown style \"%s\"", n->key);
}

static bool read_theme_text(struct reader *r, const struct node *n, char **out)
{
    char shown[48];

    if (n->kind != NODE_SCALAR)
        return node_error(r->err, r->file, n, "%s: %s is not a text", n->key,
                          node_describe(n, shown));
    free(*out);
    *out = mem_strdup(n->text);
    return true;
}

/* "text" comes first, wherever it stands: what the others leave out is as it is there. */
static bool read_text_style(struct reader *r, const struct node *root, struct theme *t)
{
    const struct node *text = node_get(root, style_names[STYLE_TEXT]);
    const struct style_look own = {-1, -1, -1, -1, -1, -1, 0, 0}; /* the terminal's */

    t->looks[STYLE_TEXT] = own;
    if (text != NULL && !read_style(r, text, &own, &t->looks[STYLE_TEXT]))
        return false;
    for (int i = 0; i < STYLE_COUNT; i++)
        t->looks[i] = t->looks[STYLE_TEXT];
    return true;
}

static bool read_theme_key(struct reader *r, const struct node *n, struct theme *t)
{
    int style = find_style(n->key);

    if (n == r->palette || style == STYLE_TEXT)
        return true;
    if (style >= 0)
        return read_style(r, n, &t->looks[STYLE_TEXT], &t->looks[style]);
    if (strcmp(n->key, "name") == 0)
        return read_theme_text(r, n, &t->name);
    if (strcmp(n->key, "description") == 0)
        return read_theme_text(r, n, &t->description);
    return refuse_style(r, n);
}

static bool read_theme(struct reader *r, const struct node *root, struct theme *t)
{
    char shown[48];

    if (root->kind != NODE_MAP)
        return node_error(r->err, r->file, root, "%s where styles should be",
                          node_describe(root, shown));
    r->palette = node_get(root, "palette");
    if (r->palette != NULL && r->palette->kind != NODE_MAP)
        return node_error(r->err, r->file, r->palette, "palette: not a map of names and colours");
    if (!read_text_style(r, root, t))
        return false;
    for (const struct node *n = root->first; n != NULL; n = n->next)
        if (!read_theme_key(r, n, t))
            return false;
    return true;
}

/* `path` NULL: built in. Takes the tree. */
static struct theme *build_theme(const char *name, const char *path, struct node *root,
                                 struct error *err)
{
    struct theme *t;

    if (root == NULL)
        return NULL;
    t = mem_zalloc(sizeof *t);
    t->name = mem_strdup(name);
    t->path = mem_strdup(path);
    struct reader r = {.file = path != NULL ? path : name, .err = err};
    bool ok = read_theme(&r, root, t);
    node_free(root);
    if (ok)
        return t;
    theme_free(t);
    return NULL;
}

void theme_free(struct theme *t)
{
    if (t == NULL)
        return;
    free(t->name);
    free(t->path);
    free(t->description);
    free(t);
}

static char *find_theme(const char *name)
{
    char **folders = paths_data("themes"), *found = NULL;

    for (char **f = folders; found == NULL && *f != NULL; f++) {
        struct str path = STR_INIT;
        str_add_format(&path, "%s/%s.yaml", *f, name);
        if (access(str_text(&path), F_OK) == 0)
            found = str_steal(&path);
        str_done(&path);
    }
    paths_list_free(folders);
    return found;
}

static void unknown_theme(const char *name, struct error *err)
{
    char **names = theme_names();
    struct str all = STR_INIT;
    struct nearest near;

    nearest_init(&near, name);
    for (char **n = names; *n != NULL; n++) {
        nearest_offer(&near, *n);
        str_add_format(&all, "%s%s", n > names ? ", " : "", *n);
    }
    if (near.best != NULL)
        error_set(err, "theme %s: there is none of that name: did you mean %s?", name, near.best);
    else
        error_set(err, "theme %s: there is none of that name, but %s", name, str_text(&all));
    str_done(&all);
    paths_list_free(names);
}

struct theme *theme_load(const char *name, struct error *err)
{
    struct theme *t = NULL;
    bool is_path = strchr(name, '/') != NULL;
    char *path = is_path ? mem_strdup(name) : find_theme(name);

    if (path != NULL)
        t = build_theme(name, path, yaml_load(path, err), err);
    else if (strcmp(name, "dark") == 0)
        t = build_theme(name, NULL, yaml_parse(name, dark_yaml, strlen(dark_yaml), err), err);
    else
        unknown_theme(name, err);
    free(path);
    return t;
}

/* ---- names ---------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    char **items;
    size_t n, cap;
};

static void add_name(struct names *list, const char *name, size_t len)
{
    for (size_t i = 0; i < list->n; i++)
        if (strlen(list->items[i]) == len && memcmp(list->items[i], name, len) == 0)
            return;
    mem_grow(&list->items, &list->cap, list->n + 2, sizeof *list->items);
    list->items[list->n++] = mem_strndup(name, len);
}

char **theme_names(void)
{
    enum { FOLDER_FILES_MAX = 2000 };
    char **folders = paths_data("themes");
    struct names list = {NULL, 0, 0};

    add_name(&list, "dark", strlen("dark"));
    for (char **f = folders; *f != NULL; f++) {
        DIR *dir = opendir(*f);
        const struct dirent *e;
        int left = FOLDER_FILES_MAX;
        while (dir != NULL && left-- > 0 && (e = readdir(dir)) != NULL) {
            size_t n = strlen(e->d_name);
            if (e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".yaml") == 0)
                add_name(&list, e->d_name, n - 5);
        }
        if (dir != NULL)
            closedir(dir);
    }
    paths_list_free(folders);
    qsort(list.items, list.n, sizeof *list.items, by_text);
    list.items[list.n] = NULL;
    return list.items;
}
