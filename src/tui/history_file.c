#include "config.h"

#include "tui/history_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>

#include "base/file.h"
#include "config/paths.h"

enum { ENTRIES_MAX = 2000, LINES_MAX = 4000 };

static char *path; /* owned; NULL: nothing is written */

/* An empty file of the right mode, where there is none: append_history makes none. */
static bool make_file(const char *name)
{
    struct error err;
    char *slash = strrchr(name, '/'),
         *folder = strndup(name, slash != NULL ? (size_t)(slash - name) : 0);
    bool made = folder != NULL && (*folder == '\0' || file_make_dirs(folder, &err));
    int fd = made ? open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    free(folder);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

void history_file_open(bool save)
{
    char *name = paths_state("history");

    using_history();
    stifle_history(ENTRIES_MAX);
    /* With time stamps an entry may have several lines. They begin with a character that no entry
     * does. */
    history_comment_char = '\001';
    history_write_timestamps = 1;
    read_history(name);
    if (save && make_file(name))
        path = name;
    else
        free(name);
}

void history_file_add(const char *text)
{
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;

    if (text[strspn(text, " \t\n")] == '\0' || (last != NULL && strcmp(last->line, text) == 0))
        return;
    add_history(text);
    using_history(); /* "previous" is this one from here on */
    if (path != NULL)
        append_history(1, path);
}

void history_file_close(void)
{
    if (path != NULL) {
        history_truncate_file(path, LINES_MAX);
        chmod(path, 0600);
    }
    free(path);
    path = NULL;
    clear_history();
}
