#include "config.h"

#include "tui/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/mapguard.h"

enum { RESET_MAX = 512, ALTERNATE_STACK = 64 << 10 };
enum {
    PATIENCE_S = 1
}; /* an end asked for again after that, and still not looked at: the loop hangs */

static int pipe_fds[2] = {-1, -1};

/* One flag a signal: a handler may run between any two instructions of signals_take. */
static volatile sig_atomic_t seen_resized, seen_stopping, seen_continued, seen_interrupted,
    seen_ending;
static volatile sig_atomic_t ending_since; /* seconds */

static struct {
    char reset[RESET_MAX];
    size_t len;
    int fd;
    struct termios termios;
} rescue;
static atomic_bool rescue_armed;

static const int flag_signals[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP};
static const int fatal_signals[] = {
#ifndef WITH_SANITIZERS
    SIGSEGV, SIGABRT, SIGFPE, SIGILL,
#endif
    SIGBUS,  SIGQUIT,
};
enum {
    N_FLAG_SIGNALS = sizeof flag_signals / sizeof flag_signals[0],
    N_FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0]
};
static struct sigaction old_actions[N_FLAG_SIGNALS + N_FATAL_SIGNALS];

/* ---- inside handlers ------------------------------------------------------------------------ */

static void write_bytes(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

void signals_rescue(void)
{
    int saved = errno;

    if (atomic_exchange(&rescue_armed, false)) {
        write_bytes(rescue.fd, rescue.reset, rescue.len);
        tcsetattr(rescue.fd, TCSANOW, &rescue.termios);
    }
    errno = saved;
}

/* The signal again, with its default action: it takes effect when the handler returns. */
static void die_of(int signal_number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
    raise(signal_number);
}

static void on_fatal(int signal_number, siginfo_t *info, void *context)
{
    static const struct {
        int number;
        const char *text;
    } lines[] = {
        {SIGSEGV, "fader: crashed: segmentation fault\n"},
        {SIGABRT, "fader: crashed: aborted\n"},
        {SIGFPE, "fader: crashed: arithmetic fault\n"},
        {SIGILL, "fader: crashed: illegal instruction\n"},
        {SIGBUS, "fader: crashed: bus error\n"},
        {SIGQUIT, "fader: quit\n"},
    };

    (void)context;
    if (signal_number == SIGBUS && mapguard_catch(info->si_addr))
        return;
    signals_rescue();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (lines[i].number == signal_number)
            write_bytes(STDERR_FILENO, lines[i].text, strlen(lines[i].text));
    die_of(signal_number);
}

static sig_atomic_t seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (sig_atomic_t)t.tv_sec;
}

static void on_flag(int signal_number)
{
    int saved = errno;

    switch (signal_number) {
    case SIGWINCH:
        seen_resized = 1;
        break;
    case SIGTSTP:
        seen_stopping = 1;
        break;
    case SIGCONT:
        seen_continued = 1;
        break;
    case SIGINT:
        seen_interrupted = 1;
        break;
    default:
        if (seen_ending == signal_number && seconds_now() - ending_since > PATIENCE_S) {
            signals_rescue();
            die_of(signal_number);
        }
        if (seen_ending == 0)
            ending_since = seconds_now();
        seen_ending = signal_number;
    }
    write_bytes(pipe_fds[1], "", 1);
    errno = saved;
}

/* ---- outside -------------------------------------------------------------------------------- */

static bool open_pipe(struct error *err)
{
    if (pipe(pipe_fds) != 0) {
        pipe_fds[0] = pipe_fds[1] = -1;
        return error_set_errno(err, errno, "signals: pipe");
    }
    for (int i = 0; i < 2; i++) {
        fcntl(pipe_fds[i], F_SETFL, O_NONBLOCK);
        fcntl(pipe_fds[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

static void set_flag_handler(int signal_number, void (*handler)(int), struct sigaction *old)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, old);
}

static void use_alternate_stack(void)
{
    static char stack[ALTERNATE_STACK];
    stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};

    sigaltstack(&s, NULL);
}

bool signals_open(struct error *err)
{
    struct sigaction fatal = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (!open_pipe(err))
        return false;
    for (size_t i = 0; i < N_FLAG_SIGNALS; i++) {
        set_flag_handler(flag_signals[i], on_flag, &old_actions[i]);
        /* nohup and background jobs start us with these ignored: they stay so. */
        if (flag_signals[i] == SIGHUP && old_actions[i].sa_handler == SIG_IGN)
            sigaction(SIGHUP, &old_actions[i], NULL);
    }
#ifndef WITH_SANITIZERS
    use_alternate_stack();
#else
    (void)use_alternate_stack;
#endif
    sigemptyset(&fatal.sa_mask);
    for (size_t i = 0; i < N_FATAL_SIGNALS; i++)
        sigaction(fatal_signals[i], &fatal, &old_actions[N_FLAG_SIGNALS + i]);
    return true;
}

void signals_close(void)
{
    if (pipe_fds[0] < 0)
        return;
    for (size_t i = 0; i < N_FLAG_SIGNALS; i++)
        sigaction(flag_signals[i], &old_actions[i], NULL);
    for (size_t i = 0; i < N_FATAL_SIGNALS; i++)
        sigaction(fatal_signals[i], &old_actions[N_FLAG_SIGNALS + i], NULL);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    pipe_fds[0] = pipe_fds[1] = -1;
    seen_resized = seen_stopping = seen_continued = seen_interrupted = seen_ending = 0;
}

int signals_fd(void)
{
    return pipe_fds[0];
}

static int take(volatile sig_atomic_t *flag)
{
    int value = *flag;

    if (value == 0)
        return 0; /* to clear it would lose one that comes just now */
    *flag = 0;
    return value;
}

void signals_take(struct signals_seen *out)
{
    char bytes[64];

    /* The pipe first: a signal that comes in between is seen now and wakes the loop once for
     * nothing. */
    if (pipe_fds[0] >= 0)
        while (read(pipe_fds[0], bytes, sizeof bytes) > 0)
            ;
    *out = (struct signals_seen){
        .resized = take(&seen_resized) != 0,
        .stopping = take(&seen_stopping) != 0,
        .continued = take(&seen_continued) != 0,
        .interrupted = take(&seen_interrupted) != 0,
        .ending = take(&seen_ending),
    };
}

void signals_lend(bool lent)
{
    set_flag_handler(SIGINT, lent ? SIG_IGN : on_flag, NULL);
    set_flag_handler(SIGTSTP, lent ? SIG_DFL : on_flag, NULL);
}

void signals_stop_job(void)
{
    set_flag_handler(SIGTSTP, SIG_DFL, NULL);
    kill(0, SIGTSTP); /* the whole job: a script that started us must stop too */
    set_flag_handler(SIGTSTP, on_flag, NULL);
    seen_continued = 0;
}

void signals_set_rescue(const char *reset, int fd, const struct termios *termios)
{
    atomic_store(&rescue_armed, false);
    if (reset == NULL)
        return;
    rescue.len = strlen(reset) < RESET_MAX ? strlen(reset) : RESET_MAX;
    memcpy(rescue.reset, reset, rescue.len);
    rescue.fd = fd;
    rescue.termios = *termios;
    atomic_store(&rescue_armed, true);
}
