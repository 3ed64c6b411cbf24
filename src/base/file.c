#include "config.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

bool file_read_fd(int fd, const char *name, size_t max, struct str *out, struct error *err)
{
    size_t start = out->len;
    char buf[65536];

    for (;;) {
        ssize_t n = read(fd, buf, sizeof buf);
        if (n == 0)
            return true;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            str_truncate(out, start);
            return error_set_errno(err, errno, "%s", name);
        }
        if ((size_t)n > max - (out->len - start)) {
            str_truncate(out, start);
            return error_set(err, "%s: larger than %zu bytes", name, max);
        }
        str_add(out, buf, (size_t)n);
    }
}

bool file_read(const char *path, size_t max, struct str *out, struct error *err)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return file_read_fd(STDIN_FILENO, "standard input", max, out, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    bool ok = false;
    if (fstat(fd, &st) != 0)
        error_set_errno(err, errno, "%s", path);
    else if (S_ISDIR(st.st_mode))
        error_set_errno(err, EISDIR, "%s", path);
    else
        ok = file_read_fd(fd, path, max, out, err);
    close(fd);
    return ok;
}

bool file_write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool file_make_dirs(const char *path, struct error *err)
{
    char *copy = mem_strdup(path);
    bool ok = true;

    for (char *p = copy + 1; ok && *copy != '\0'; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char keep = *p;
        *p = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            ok = error_set_errno(err, errno, "%s", copy);
        *p = keep;
        if (keep == '\0')
            break;
    }
    free(copy);
    return ok;
}

char *file_join(const char *folder, const char *name)
{
    struct str s = STR_INIT;

    if (*name != '/') {
        str_add_text(&s, folder);
        if (s.len > 0 && s.data[s.len - 1] != '/')
            str_add_char(&s, '/');
    }
    str_add_text(&s, name);
    return str_steal(&s);
}

/* Writes, syncs and renames; `temp` is unlinked when any of it fails. */
static bool write_and_rename(int fd, const char *temp, const char *path, const char *bytes,
                             size_t len, struct error *err)
{
    bool ok = file_write_all(fd, bytes, len) && fsync(fd) == 0;
    int saved = errno;

    if (close(fd) != 0 && ok) {
        ok = false;
        saved = errno;
    }
    if (ok && rename(temp, path) != 0) {
        ok = false;
        saved = errno;
    }
    if (!ok) {
        unlink(temp);
        error_set_errno(err, saved, "%s", path);
    }
    return ok;
}

/* The process's umask, which can only be read by setting it. */
static mode_t current_umask(void)
{
    mode_t mask = umask(077);

    umask(mask);
    return mask;
}

bool file_write_atomic(const char *path, const char *bytes, size_t len, mode_t mode,
                       struct error *err)
{
    char *real = realpath(path, NULL);
    struct str temp = STR_INIT;

    if (real == NULL)
        real = mem_strdup(path);
    char *slash = strrchr(real, '/');
    bool ok = true;
    if (slash != NULL && slash != real) {
        *slash = '\0';
        ok = file_make_dirs(real, err);
        *slash = '/';
    }
    if (ok) {
        str_add_format(&temp, "%s.XXXXXX", real);
        int fd = mkstemp(temp.data);
        if (fd < 0 || fchmod(fd, mode & ~current_umask()) != 0) {
            ok = error_set_errno(err, errno, "%s", path);
            if (fd >= 0) {
                close(fd);
                unlink(temp.data);
            }
        } else {
            ok = write_and_rename(fd, temp.data, real, bytes, len, err);
        }
    }
    str_done(&temp);
    free(real);
    return ok;
}
