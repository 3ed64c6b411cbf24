#include "config.h"

#include "sync/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool wake_init(struct wake *w, struct error *err)
{
    int fds[2];

    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0)
        return error_set_errno(err, errno, "cannot make a pipe");
    w->read_fd = fds[0];
    w->write_fd = fds[1];
    atomic_init(&w->armed, false);
    return true;
}

void wake_done(struct wake *w)
{
    close(w->read_fd);
    close(w->write_fd);
}

void wake_arm(struct wake *w)
{
    atomic_store(&w->armed, true);
}

void wake_disarm(struct wake *w)
{
    char bytes[64];

    atomic_store(&w->armed, false);
    while (read(w->read_fd, bytes, sizeof bytes) > 0)
        continue;
}

void wake_signal(struct wake *w)
{
    int saved = errno;

    /* A full pipe is readable: the byte that does not fit is not needed. */
    if (atomic_exchange(&w->armed, false)) {
        while (write(w->write_fd, "", 1) < 0 && errno == EINTR)
            continue;
    }
    errno = saved;
}
