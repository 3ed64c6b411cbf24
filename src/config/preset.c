#include "config.h"

#include "config/preset.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <utf8proc.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/paths.h"
#include "config/preset_read.h"
#include "config/yaml.h"

enum { NAME_BYTES_MAX = 63, FOLDER_FILES_MAX = 2000 };

/* ---- life ----------------------------------------------------------------------------------- */

struct preset *preset_new(const char *name)
{
    struct preset *p = mem_zalloc(sizeof *p);

    p->name = mem_strdup(name);
    p->knobs = knobs_default();
    p->seed = -1;
    return p;
}

void preset_free(struct preset *p)
{
    if (p == NULL)
        return;
    for (char **t = p->tries; t != NULL && *t != NULL; t++)
        free(*t);
    free(p->tries);
    free(p->name);
    free(p->path);
    free(p->description);
    free(p->system);
    free(p);
}

void preset_warnings_done(struct preset_warnings *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->items[i]);
    free(w->items);
    *w = (struct preset_warnings){NULL, 0, 0};
}

void preset_warnings_add(struct preset_warnings *w, const char *text)
{
    if (w == NULL)
        return;
    mem_grow(&w->items, &w->cap, w->n + 1, sizeof *w->items);
    w->items[w->n] = mem_strdup(text);
    utf8_hide_controls(w->items[w->n++]);
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_name_char(uint32_t c, bool first, bool last)
{
    if (c < 0x80) {
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')
            return true;
        return (c == '-' || c == '.' || c == ' ') && !first && !(c == ' ' && last);
    }
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
        return true;
    default:
        return false;
    }
}

bool preset_check_name(const char *name, struct error *err)
{
    size_t len = strlen(name);
    uint32_t c;
    bool valid;

    if (len == 0)
        return error_set(err, "a preset needs a name");
    if (len > NAME_BYTES_MAX)
        return error_set(err, "preset name: longer than %d bytes", NAME_BYTES_MAX);
    for (size_t i = 0; i < len;) {
        size_t at = i;
        i += utf8_decode(name + i, len - i, &c, &valid);
        if (!valid || !is_name_char(c, at == 0, i == len))
            return error_set(
                err, "preset name \"%s\": letters, digits, and - _ . or blanks inside it", name);
    }
    return true;
}

char *preset_stem(const char *path)
{
    static const char *const endings[] = {".yaml", ".yml", ".json", NULL};
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    size_t len = strlen(file);

    for (const char *const *e = endings; *e != NULL; e++) {
        size_t n = strlen(*e);
        if (len > n && strcasecmp(file + len - n, *e) == 0)
            return mem_strndup(file, len - n);
    }
    return mem_strdup(file);
}

/* ---- loading -------------------------------------------------------------------------------- */

struct preset *preset_load_file(const char *path, struct preset_warnings *warnings,
                                struct error *err)
{
    struct node *root = yaml_load(path, err);

    if (root == NULL)
        return NULL;
    char *stem = preset_stem(path);
    struct preset *p = preset_new(stem);
    p->path = mem_strdup(path);
    bool ok = preset_read_tree(p, root, DIALECT_FADER, path, warnings, err);
    free(stem);
    node_free(root);
    if (ok)
        return p;
    preset_free(p);
    return NULL;
}

/* FOLDER/NAME.yaml when it is there, else NULL. */
static char *find_in_folder(const char *folder, const char *name)
{
    struct str path = STR_INIT;

    str_add_format(&path, "%s/%s.yaml", folder, name);
    if (access(str_text(&path), F_OK) == 0)
        return str_steal(&path);
    str_done(&path);
    return NULL;
}

static void unknown_preset(const char *name, struct error *err)
{
    struct preset_list list;
    struct nearest near;

    preset_list_all(&list);
    nearest_init(&near, name);
    for (size_t i = 0; i < list.n; i++)
        nearest_offer(&near, list.items[i].name);
    if (near.best != NULL)
        error_set(err, "preset %s: there is none of that name: did you mean %s?", name, near.best);
    else
        error_set(err, "preset %s: there is none of that name (`fader presets list' shows them)",
                  name);
    preset_list_done(&list);
}

/* A preset whose file has another name than it says inside. */
static char *find_by_inner_name(const char *name)
{
    struct preset_list list;
    char *path = NULL;

    preset_list_all(&list);
    for (size_t i = 0; path == NULL && i < list.n; i++)
        if (strcmp(list.items[i].name, name) == 0)
            path = mem_strdup(list.items[i].path);
    preset_list_done(&list);
    return path;
}

static struct preset *built_in_default(void)
{
    struct preset *p = preset_new("default");

    p->description = mem_strdup("The course's numbers: warm, and kept on the road.");
    return p;
}

struct preset *preset_load(const char *name, struct preset_warnings *warnings, struct error *err)
{
    struct preset *p = NULL;
    char *path = NULL;

    if (strchr(name, '/') != NULL)
        return preset_load_file(name, warnings, err);
    if (!preset_check_name(name, err))
        return NULL;
    char **folders = paths_data("presets");
    for (char **f = folders; path == NULL && *f != NULL; f++)
        path = find_in_folder(*f, name);
    paths_list_free(folders);
    if (path == NULL && strcmp(name, "default") == 0)
        return built_in_default();
    if (path == NULL)
        path = find_by_inner_name(name);
    if (path != NULL)
        p = preset_load_file(path, warnings, err);
    else
        unknown_preset(name, err);
    free(path);
    return p;
}

/* ---- listing -------------------------------------------------------------------------------- */

/* In the order in which they teach (interface.md 6); every other one follows by name. */
static const char *const teaching_order[] = {"default", "rigorous", "poetry",   "wild",
                                             "loop",    "neutral",  "llama.cpp"};
enum { N_TEACHING = sizeof teaching_order / sizeof *teaching_order };

static size_t teaching_rank(const char *name)
{
    size_t i = 0;

    while (i < N_TEACHING && strcmp(teaching_order[i], name) != 0)
        i++;
    return i;
}

static bool is_shadowed(const struct preset_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

static void list_file(struct preset_list *out, const char *path, bool user)
{
    struct error err;
    struct preset *p = preset_load_file(path, NULL, &err);
    struct preset_entry e = {.user = user};

    e.name = p != NULL ? mem_strdup(p->name) : preset_stem(path);
    if (is_shadowed(out, e.name)) {
        free(e.name);
        preset_free(p);
        return;
    }
    e.path = mem_strdup(path);
    e.description = p != NULL ? mem_strdup(p->description) : NULL;
    e.problem = p != NULL ? NULL : mem_strdup(err.text);
    preset_free(p);
    mem_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items);
    out->items[out->n++] = e;
}

static void list_folder(struct preset_list *out, const char *folder, bool user)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    int left = FOLDER_FILES_MAX;

    if (dir == NULL)
        return;
    while (left-- > 0 && (e = readdir(dir)) != NULL) {
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' || n <= 5 || strcmp(e->d_name + n - 5, ".yaml") != 0)
            continue;
        char *path = file_join(folder, e->d_name);
        list_file(out, path, user);
        free(path);
    }
    closedir(dir);
}

static int by_rank(const void *a, const void *b)
{
    const struct preset_entry *x = a, *y = b;
    size_t i = teaching_rank(x->name), j = teaching_rank(y->name);

    if (i != j)
        return i < j ? -1 : 1;
    if (x->user != y->user)
        return x->user ? 1 : -1;
    return strcmp(x->name, y->name);
}

void preset_list_all(struct preset_list *out)
{
    char **folders = paths_data("presets");

    *out = (struct preset_list){NULL, 0, 0};
    for (char **f = folders; *f != NULL; f++)
        list_folder(out, *f, f == folders);
    paths_list_free(folders);
    if (!is_shadowed(out, "default")) {
        struct preset *p = built_in_default();
        mem_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items);
        out->items[out->n++] = (struct preset_entry){.name = mem_strdup(p->name),
                                                     .description = mem_strdup(p->description)};
        preset_free(p);
    }
    if (out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_rank);
}

void preset_list_done(struct preset_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].name);
        free(list->items[i].path);
        free(list->items[i].description);
        free(list->items[i].problem);
    }
    free(list->items);
    *list = (struct preset_list){NULL, 0, 0};
}

/* ---- saving --------------------------------------------------------------------------------- */

bool preset_save(const struct preset *p, bool replace, char **path, struct error *err)
{
    struct str text = STR_INIT, file = STR_INIT;

    if (path != NULL)
        *path = NULL;
    if (!preset_check_name(p->name, err))
        return false;
    str_add_format(&file, "presets/%s.yaml", p->name);
    char *to = paths_config(str_text(&file));
    str_done(&file);
    bool ok = replace || access(to, F_OK) != 0 ||
              error_set(err, "preset %s: %s is there already", p->name, to);
    if (ok) {
        preset_format(p, &text);
        ok = file_write_atomic(to, str_text(&text), text.len, 0644, err);
    }
    str_done(&text);
    if (ok && path != NULL)
        *path = to;
    else
        free(to);
    return ok;
}
