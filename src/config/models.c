/* Models on this computer. Every source is a root folder and a way to walk it; a walk is bounded in
 * depth and entries, follows symbolic links (Hugging Face's snapshots are links), and never lists a
 * file twice: device and inode decide. */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cJSON.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/paths.h"
#include "engine/engine.h"

#define DEFAULT_MODEL "SmolLM2-135M-Instruct.Q4_1.gguf"
#define OLLAMA_SYSTEM "/usr/share/ollama/.ollama/models"

enum {
    WALK_ENTRIES_MAX = 20000, /* a source: folders of other people's files can be anything */
    MANIFEST_MAX = 1 << 20,
    SPLIT_PARTS_MAX = 1000
};

struct seen {
    dev_t dev;
    ino_t ino;
};

struct finder {
    struct model_file_list *out;
    struct seen *seen;
    size_t n_seen, cap_seen;
    const char *where;
    int entries; /* left in this source */
};

/* ---- one file ------------------------------------------------------------------------------- */

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);

    return n >= m && strcasecmp(text + n - m, suffix) == 0;
}

/* Opened without blocking: a FIFO called x.gguf must not hang us. */
static bool is_gguf(const char *path, struct stat *st)
{
    char magic[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return false;
    bool ok = fstat(fd, st) == 0 && S_ISREG(st->st_mode) && read(fd, magic, 4) == 4 &&
              memcmp(magic, "GGUF", 4) == 0;
    close(fd);
    return ok;
}

static bool mark_seen(struct finder *f, const struct stat *st)
{
    for (size_t i = 0; i < f->n_seen; i++)
        if (f->seen[i].dev == st->st_dev && f->seen[i].ino == st->st_ino)
            return false;
    mem_grow(&f->seen, &f->cap_seen, f->n_seen + 1, sizeof *f->seen);
    f->seen[f->n_seen++] = (struct seen){st->st_dev, st->st_ino};
    return true;
}

/* Length of NAME in "NAME-00001-of-00003.gguf", with part and count; 0 when it is not one of a
 * split. */
static size_t split_parts(const char *file, int *part, int *count)
{
    size_t n = strlen(file), tail = strlen("-00001-of-00003.gguf");
    int used = 0;

    if (n <= tail)
        return 0;
    const char *p = file + n - tail;
    if (sscanf(p, "-%5d-of-%5d.%n", part, count, &used) != 2 || used != (int)tail - 4)
        return 0;
    return *part >= 1 && *count >= *part && *count <= SPLIT_PARTS_MAX ? n - tail : 0;
}

/* Sizes of the parts behind the first; a part that lacks adds nothing. */
static unsigned long long rest_of_split(const char *path, int count)
{
    unsigned long long size = 0;
    char *copy = mem_strdup(path), tail[32];
    char *at = copy + strlen(copy) - strlen("-00001-of-00003.gguf");
    struct stat st;

    for (int i = 2; i <= count; i++) {
        snprintf(tail, sizeof tail, "-%05d-of-%05d", i, count);
        memcpy(at, tail, strlen("-00001-of-00003"));
        if (stat(copy, &st) == 0 && st.st_size > 0)
            size += (unsigned long long)st.st_size;
    }
    free(copy);
    return size;
}

/* `name` NULL: from the file's. Takes what is a model, has not been seen, and is no later part. */
static void add_file(struct finder *f, const char *path, const char *name)
{
    struct stat st;
    int part = 1, count = 1;
    const char *file = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    size_t stem = split_parts(file, &part, &count);

    /* mmproj: the picture half of a model, which cannot answer. */
    if (part > 1 || strncasecmp(file, "mmproj", 6) == 0 || !is_gguf(path, &st) ||
        !mark_seen(f, &st))
        return;
    struct model_file m = {.path = mem_strdup(path), .where = f->where};
    if (name != NULL)
        m.name = mem_strdup(name);
    else
        m.name = mem_strndup(file, stem > 0 ? stem : strlen(file) - strlen(".gguf"));
    m.size = (unsigned long long)st.st_size + (count > 1 ? rest_of_split(path, count) : 0);
    mem_grow(&f->out->items, &f->out->cap, f->out->n + 1, sizeof *f->out->items);
    f->out->items[f->out->n++] = m;
}

/* ---- walking -------------------------------------------------------------------------------- */

typedef void visit(struct finder *f, const char *path, const char *file);

static void visit_gguf(struct finder *f, const char *path, const char *file)
{
    if (has_suffix(file, ".gguf"))
        add_file(f, path, NULL);
}

/* Files at most `depth` folders below `folder`. Loops of links end at the depth. */
static void walk(struct finder *f, const char *folder, int depth, visit *visit_file)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;

    if (dir == NULL)
        return;
    while (f->entries > 0 && (e = readdir(dir)) != NULL) {
        struct stat st;
        if (e->d_name[0] == '.')
            continue;
        f->entries--;
        char *path = file_join(folder, e->d_name);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && depth > 0)
            walk(f, path, depth - 1, visit_file);
        else if (S_ISREG(st.st_mode))
            visit_file(f, path, e->d_name);
        free(path);
    }
    closedir(dir);
}

static void walk_source(struct finder *f, const char *where, char *root, int depth,
                        visit *visit_file)
{
    f->where = where;
    f->entries = WALK_ENTRIES_MAX;
    if (root != NULL)
        walk(f, root, depth, visit_file);
    free(root);
}

/* ---- Hugging Face --------------------------------------------------------------------------- */

/* models--ORG--REPO/snapshots/REV/[folder/]*.gguf; blobs and refs are not looked into. */
static void walk_hub(struct finder *f, const char *where, char *root)
{
    DIR *dir = root != NULL ? opendir(root) : NULL;
    const struct dirent *e;

    f->where = where;
    f->entries = WALK_ENTRIES_MAX;
    while (dir != NULL && f->entries-- > 0 && (e = readdir(dir)) != NULL) {
        struct str path = STR_INIT;
        if (strncmp(e->d_name, "models--", 8) != 0)
            continue;
        str_add_format(&path, "%s/%s/snapshots", root, e->d_name);
        walk(f, str_text(&path), 3, visit_gguf);
        str_done(&path);
    }
    if (dir != NULL)
        closedir(dir);
    free(root);
}

/* ---- Ollama --------------------------------------------------------------------------------- */

static const char ollama_model[] = "application/vnd.ollama.image.model";

/* The digest of the model's layer, "sha256-..." as blobs are named, or NULL. It comes from a file
 * and becomes a path: hexadecimal digits and nothing else. */
static char *model_digest(const cJSON *manifest)
{
    const cJSON *layer;

    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(manifest, "layers"))
    {
        const char *type =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "mediaType"));
        const char *digest =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "digest"));
        if (type == NULL || digest == NULL || strcmp(type, ollama_model) != 0)
            continue;
        if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 7 + 64 ||
            strspn(digest + 7, "0123456789abcdef") != 64)
            continue;
        char *name = mem_strdup(digest);
        name[6] = '-';
        return name;
    }
    return NULL;
}

/* "llama3.2:1b" from .../manifests/registry/library/llama3.2/1b; other namespaces and
 * hosts stay. */
static char *ollama_name(const char *below_manifests)
{
    static const char library[] = "registry.ollama.ai/library/", host[] = "registry.ollama.ai/";
    const char *p = below_manifests;

    if (strncmp(p, library, strlen(library)) == 0)
        p += strlen(library);
    else if (strncmp(p, host, strlen(host)) == 0)
        p += strlen(host);
    char *name = mem_strdup(p), *slash = strrchr(name, '/');
    if (slash != NULL)
        *slash = ':';
    return name;
}

static void visit_manifest(struct finder *f, const char *path, const char *file)
{
    struct str text = STR_INIT, blob = STR_INIT;
    struct error err;
    /* the last, so that a folder called manifests above the store does no harm */
    const char *marker = strstr(path, "/manifests/");
    (void)file;

    for (const char *again = marker; again != NULL; again = strstr(again + 1, "/manifests/"))
        marker = again;
    if (marker == NULL || !file_read(path, MANIFEST_MAX, &text, &err)) {
        str_done(&text);
        return;
    }
    cJSON *manifest = cJSON_ParseWithLength(str_text(&text), text.len);
    char *digest = model_digest(manifest);
    if (digest != NULL) {
        char *name = ollama_name(marker + strlen("/manifests/"));
        str_add_format(&blob, "%.*s/blobs/%s", (int)(marker - path), path, digest);
        add_file(f, str_text(&blob), name);
        free(name);
    }
    free(digest);
    cJSON_Delete(manifest);
    str_done(&blob);
    str_done(&text);
}

static void walk_ollama(struct finder *f, char *root)
{
    walk_source(f, "Ollama", file_join(root, "manifests"), 4, visit_manifest);
    free(root);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static const char *get_env(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

static char *hub_folder(void)
{
    const char *hub = get_env("HF_HUB_CACHE"), *home = get_env("HF_HOME");

    if (hub != NULL)
        return mem_strdup(hub);
    return home != NULL ? file_join(home, "hub") : paths_home(".cache/huggingface/hub");
}

static int by_name(const void *a, const void *b)
{
    const struct model_file *x = a, *y = b;
    int order = strcasecmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->path, y->path);
}

void models_find(struct model_file_list *out)
{
    struct finder f = {.out = out};
    const char *llama = get_env("LLAMA_CACHE"), *ollama = get_env("OLLAMA_MODELS");

    *out = (struct model_file_list){NULL, 0, 0};
    walk_source(&f, "fader", paths_cache("models"), 2, visit_gguf);
    size_t own = out->n;
    walk_hub(&f, "Hugging Face", hub_folder());
    if (llama != NULL) {
        walk_hub(&f, "llama.cpp", mem_strdup(llama));
        walk_source(&f, "llama.cpp", mem_strdup(llama), 0, visit_gguf);
    }
    walk_source(&f, "llama.cpp", paths_home(".cache/llama.cpp"), 0, visit_gguf);
    if (ollama != NULL) {
        walk_ollama(&f, mem_strdup(ollama));
    } else {
        walk_ollama(&f, paths_home(".ollama/models"));
        walk_ollama(&f, mem_strdup(OLLAMA_SYSTEM));
    }
    walk_source(&f, "LM Studio", paths_home(".lmstudio/models"), 3, visit_gguf);
    walk_source(&f, "here", mem_strdup("."), 0, visit_gguf);
    if (own > 1)
        qsort(out->items, own, sizeof *out->items, by_name);
    if (out->n - own > 1)
        qsort(out->items + own, out->n - own, sizeof *out->items, by_name);
    free(f.seen);
}

void model_file_list_done(struct model_file_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].path);
        free(list->items[i].name);
    }
    free(list->items);
    *list = (struct model_file_list){NULL, 0, 0};
}

/* ---- resolving ------------------------------------------------------------------------------ */

static bool is_same(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text != '\0'; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

/* "a, b (path), c and 3 more": names that occur twice are told apart by their paths. */
static void describe_matches(const struct model_file_list *list, const size_t *match, size_t n,
                             struct str *out)
{
    enum { SHOWN = 6 };

    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const struct model_file *m = &list->items[match[i]];
        bool twin = false;
        for (size_t j = 0; j < n; j++)
            twin |= j != i && strcasecmp(m->name, list->items[match[j]].name) == 0;
        str_add_format(out, "%s%s", i > 0 ? ", " : "", twin ? m->path : m->name);
    }
    if (n > SHOWN)
        str_add_format(out, " and %zu more", n - SHOWN);
}

static size_t find_matches(const struct model_file_list *list, const char *name,
                           bool (*matches)(const char *, const char *), size_t *match)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (matches(list->items[i].name, name))
            match[n++] = i;
    return n;
}

/* The one model that `name` means: its whole name, else a part of one name only. */
static char *resolve_name(const struct model_file_list *list, const char *name, struct error *err)
{
    size_t *match = mem_array(list->n, sizeof *match);
    struct str names = STR_INIT;
    char *path = NULL;

    size_t n = find_matches(list, name, is_same, match);
    if (n == 0)
        n = find_matches(list, name, contains, match);
    describe_matches(list, match, n, &names);
    if (n == 1)
        path = mem_strdup(list->items[match[0]].path);
    else if (n == 0)
        error_set(err,
                  "model %s: no such file, and no model found has it in its name "
                  "(`fader models' lists them)",
                  name);
    else
        error_set(err, "model %s: it could be %s", name, str_text(&names));
    str_done(&names);
    free(match);
    return path;
}

static char *resolve_default(const struct model_file_list *list, struct error *err)
{
    char *path = paths_cache("models/" DEFAULT_MODEL);

    if (access(path, R_OK) == 0)
        return path;
    free(path);
    if (list->n == 1)
        return mem_strdup(list->items[0].path);
    if (list->n == 0)
        error_set(err,
                  "no model found: `./bootstrap model' fetches one, or name a GGUF file with -m");
    else
        error_set(err,
                  "there are %zu models, and none was chosen: -m NAME (`fader models' lists them)",
                  list->n);
    return NULL;
}

char *models_resolve(const char *name, struct error *err)
{
    struct model_file_list list;
    struct stat st;

    if (name != NULL && stat(name, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return mem_strdup(name);
        error_set(err, "model %s: a folder; name a GGUF file in it", name);
        return NULL;
    }
    if (name != NULL && (strchr(name, '/') != NULL || has_suffix(name, ".gguf")) &&
        (*name == '/' || *name == '.')) {
        error_set_errno(err, errno, "model %s", name);
        return NULL;
    }
    models_find(&list);
    char *path = name != NULL ? resolve_name(&list, name, err) : resolve_default(&list, err);
    model_file_list_done(&list);
    return path;
}

struct model *models_open(const char *name, struct error *err)
{
    char *path = models_resolve(name, err);
    struct model *m = path != NULL ? model_open(path, err) : NULL;

    free(path);
    return m;
}

void models_explain(struct str *out)
{
    char *own = paths_cache("models"), *hub = hub_folder();
    const char *llama = get_env("LLAMA_CACHE"), *ollama = get_env("OLLAMA_MODELS");

    str_add_text(out,
                 "fader needs a language model in a GGUF file, and there is none to start with.\n\n"
                 "It looked for " DEFAULT_MODEL " in\n");
    str_add_format(out, "  %s\n\nand for any other model in\n", own);
    str_add_format(out, "  Hugging Face  %s\n", hub);
    str_add_format(out, "  llama.cpp     %s%s~/.cache/llama.cpp\n", llama != NULL ? llama : "",
                   llama != NULL ? ", " : "");
    str_add_format(out, "  Ollama        %s\n",
                   ollama != NULL ? ollama : "~/.ollama/models, " OLLAMA_SYSTEM);
    str_add_text(out, "  LM Studio     ~/.lmstudio/models\n"
                      "  here          *.gguf in the working folder\n\n"
                      "What to do, one of:\n"
                      "  ./bootstrap model    fetches SmolLM2-135M-Instruct (98 MB) and checks it\n"
                      "  fader -m FILE        starts with a GGUF file of yours\n"
                      "  fader models         lists what is found on this computer\n");
    free(own);
    free(hub);
}
