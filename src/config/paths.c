#include "config.h"

#include "config/paths.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { DATA_FOLDERS_MAX = 4 };

static const char *get_env(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

char *paths_home(const char *name)
{
    const char *home = get_env("HOME");

    if (home == NULL) {
        const struct passwd *pw = getpwuid(getuid());
        home = pw != NULL && pw->pw_dir != NULL ? pw->pw_dir : "/";
    }
    return file_join(home, name);
}

/* The XDG specification: a base directory that is not absolute is to be ignored. */
static char *xdg(const char *variable, const char *fallback, const char *name)
{
    const char *base = get_env(variable);
    char *folder = base != NULL && *base == '/' ? mem_strdup(base) : paths_home(fallback);
    char *ours = file_join(folder, "fader");
    char *path = name != NULL && *name != '\0' ? file_join(ours, name) : mem_strdup(ours);

    free(folder);
    free(ours);
    return path;
}

char *paths_config(const char *name)
{
    return xdg("XDG_CONFIG_HOME", ".config", name);
}

char *paths_state(const char *name)
{
    return xdg("XDG_STATE_HOME", ".local/state", name);
}

char *paths_cache(const char *name)
{
    return xdg("XDG_CACHE_HOME", ".cache", name);
}

/* ---- the package's own data ----------------------------------------------------------------- */

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The folder of the running program, or NULL where the system does not tell. */
static char *program_folder(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    if (n <= 0 || (size_t)n >= sizeof path - 1)
        return NULL;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return NULL;
    *slash = '\0';
    return mem_strdup(path);
}

/* FOLDER/RELATIVE/KIND where it is there, without its dots; else NULL. */
static char *existing_folder(const char *folder, const char *relative, const char *kind)
{
    struct str path = STR_INIT;

    str_add_format(&path, "%s/%s%s", folder, relative, kind);
    char *found = is_dir(str_text(&path)) ? realpath(str_text(&path), NULL) : NULL;
    str_done(&path);
    return found;
}

/* A program that was built in SOURCE or SOURCE/build, or was installed under another prefix than it
 * was configured for, finds its data beside it. */
static char *data_beside_program(const char *kind)
{
    char *folder = program_folder(), *status, *found;

    if (folder == NULL)
        return NULL;
    status = file_join(folder, "config.status");
    if (is_file(status)) {
        found = existing_folder(folder, "", kind);
        if (found == NULL)
            found = existing_folder(folder, "../", kind);
    } else {
        found = existing_folder(folder, "../share/fader/", kind);
    }
    free(status);
    free(folder);
    return found;
}

char **paths_data(const char *kind)
{
    char **list = mem_array(DATA_FOLDERS_MAX + 1, sizeof *list);
    const char *data = get_env("FADER_DATA_DIR");
    size_t n = 0;

    list[n++] = paths_config(kind);
    if (data != NULL) {
        list[n++] = file_join(data, kind);
        return list;
    }
    char *beside = data_beside_program(kind), *installed = file_join(FADER_PKGDATADIR, kind);
    if (beside != NULL)
        list[n++] = beside;
    if (beside == NULL || strcmp(beside, installed) != 0)
        list[n++] = installed;
    else
        free(installed);
    return list;
}

void paths_list_free(char **list)
{
    for (char **p = list; list != NULL && *p != NULL; p++)
        free(*p);
    free(list);
}
