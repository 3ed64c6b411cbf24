/* Files: whole reads with a cap, atomic writes, folders. */
#ifndef FADER_BASE_FILE_H
#define FADER_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/* Appends the file (or, for "-", standard input) to `out`. More than `max` bytes is an error, as is
 * anything but a regular file, pipe or terminal. Appends nothing on failure. */
bool file_read(const char *path, size_t max, struct str *out, struct error *err);

/* Reads from an open descriptor up to its end. `name` is for the error. */
bool file_read_fd(int fd, const char *name, size_t max, struct str *out, struct error *err);

/* Replaces `path` by `bytes`, or leaves it as it was: temporary file beside it, fsync, rename.
 * The folder is made where it lacks. A symbolic link at `path` is followed, not replaced. The file
 * has `mode` less the umask. UI thread. */
bool file_write_atomic(const char *path, const char *bytes, size_t len, mode_t mode,
                       struct error *err);

/* write(2) until all is out; EINTR is retried. False with errno set on failure. */
bool file_write_all(int fd, const char *bytes, size_t len);

/* Makes a folder and those above it (0700 where new). One that exists is fine. */
bool file_make_dirs(const char *path, struct error *err);

/* "a" and "b" give "a/b"; the caller frees. `b` alone when it is absolute. */
char *file_join(const char *folder, const char *name);

#endif
