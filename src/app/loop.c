/* The loop: one poll for input, signals and the backend, with the view's next frame, the message's
 * end, the next look at what is being typed and the next attempt to save as its time limit. Nothing
 * to do costs nothing. */
#include "config.h"

#include "app/app_private.h"

#include <limits.h>
#include <poll.h>

#include "base/clock.h"
#include "sync/wake.h"

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something is due though nothing happens: INT64_MAX for never. */
static int64_t next_due(struct app *app, int64_t now_ns)
{
    int64_t due = app->tick != NULL ? app->tick(app->ops_ctx, now_ns) : INT64_MAX;

    if (app->message_until_ns != 0)
        due = earlier(due, app->message_until_ns);
    if (app->draft_due_ns != 0)
        due = earlier(due, app->draft_due_ns);
    if (app_has_unsaved(app))
        due = earlier(due, app->save_after_ns);
    return due;
}

/* Milliseconds until `due`, rounded up so that it is due by then; -1: for ever. */
static int wait_ms(int64_t due, int64_t now_ns, int timeout_ms)
{
    int64_t ms = -1;

    if (due != INT64_MAX)
        ms = due <= now_ns ? 0 : (due - now_ns - 1) / 1000000 + 1;
    if (timeout_ms >= 0 && (ms < 0 || ms > timeout_ms))
        ms = timeout_ms;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

void app_poll(struct app *app, int timeout_ms)
{
    const struct backend *backend = app->backend;
    int64_t now = clock_now_ns();

    app_expire_message(app, now);
    app_save(app, now);
    app_tell_draft(app, now);
    int64_t due = next_due(app, now);
    if (app->quit)
        return; /* the view saw a reason to leave as it drew: nothing to wait for */
    struct pollfd fds[] = {
        {.fd = app->view_fd, .events = POLLIN},
        {.fd = app->signal_fd, .events = POLLIN},
        {.fd = app->backend->wake_fd, .events = POLLIN},
    };
    wake_arm(backend->wake);
    /* looked at once more after the arm: what came before it has not written to the pipe */
    bool any = app_drain(app);
    if (app->backend != backend)
        return; /* a model that failed has given way to another: its pipe is gone */
    int n =
        poll(fds, sizeof fds / sizeof fds[0], any ? 0 : wait_ms(due, clock_now_ns(), timeout_ms));
    wake_disarm(backend->wake);
    if (n > 0 && fds[1].revents != 0 && app->signal_ready != NULL)
        app->signal_ready(app->ops_ctx);
    if (n > 0 && fds[0].revents != 0 && app->input_ready != NULL)
        app->input_ready(app->ops_ctx);
    app_drain(app);
}

int app_run(struct app *app)
{
    while (!app->quit)
        app_poll(app, -1);
    return 0;
}
