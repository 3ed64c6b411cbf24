#include "config.h"

#include "tui/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tui/terminal.h"

enum { EDITED_MAX = 4 << 20 };

static const char *editor_name(void)
{
    const char *name = getenv("VISUAL");

    if (name == NULL || *name == '\0')
        name = getenv("EDITOR");
    return name != NULL && *name != '\0' ? name : "vi";
}

static char *write_temporary(const char *text, struct error *err)
{
    const char *folder = getenv("TMPDIR");
    char *path = file_join(folder != NULL && *folder != '\0' ? folder : "/tmp", "fader-XXXXXX.md");
    int fd = mkostemps(path, 3, O_CLOEXEC);

    if (fd < 0) {
        error_set_errno(err, errno, "%s", path);
        free(path);
        return NULL;
    }
    bool written = file_write_all(fd, text, strlen(text)) &&
                   (*text == '\0' || text[strlen(text) - 1] == '\n' || file_write_all(fd, "\n", 1));
    if (!written)
        error_set_errno(err, errno, "%s", path);
    close(fd);
    if (!written) {
        unlink(path);
        free(path);
        return NULL;
    }
    return path;
}

/* In the child: the editor's name may have options, so the shell reads it. */
static _Noreturn void exec_editor(const char *path)
{
    static const int reset[] = {SIGINT, SIGTSTP, SIGQUIT, SIGPIPE};
    struct str command = STR_INIT;
    sigset_t none;

    for (size_t i = 0; i < sizeof reset / sizeof reset[0]; i++)
        signal(reset[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    str_add_format(&command, "%s \"$1\"", editor_name());
    execl("/bin/sh", "sh", "-c", str_text(&command), "sh", path, (char *)NULL);
    _exit(127);
}

/* Runs it to its end. While it is stopped, so are we: the shell stops the whole job. */
static bool run(const char *path, struct error *err)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        exec_editor(path);
    if (child < 0)
        return error_set_errno(err, errno, "%s", editor_name());
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return error_set_errno(err, errno, "%s", editor_name());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return error_set(err, "%s: not found (set VISUAL or EDITOR)", editor_name());
    if (WIFEXITED(status))
        return error_set(err, "%s: ended with status %d; nothing was changed", editor_name(),
                         WEXITSTATUS(status));
    return error_set(err, "%s: ended by signal %d; nothing was changed", editor_name(),
                     WTERMSIG(status));
}

bool editor_run(const char *text, char **out, struct error *err)
{
    struct str edited = STR_INIT, clean = STR_INIT;
    char *path = write_temporary(text, err);

    *out = NULL;
    if (path == NULL)
        return false;
    terminal_suspend();
    bool done = run(path, err);
    terminal_resume();
    if (done && file_read(path, EDITED_MAX, &edited, err)) {
        if (edited.len > 0 && edited.data[edited.len - 1] == '\n')
            str_truncate(&edited, edited.len - 1);
        /* One text, as readline holds it: valid, and without NULs. */
        utf8_add_clean(&clean, str_text(&edited), strlen(str_text(&edited)));
        *out = mem_strdup(str_text(&clean));
    }
    unlink(path);
    free(path);
    str_done(&edited);
    str_done(&clean);
    return *out != NULL;
}
