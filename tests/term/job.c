#include "config.h"

#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum news { STARTED, STOPPED, CONTINUED, EXITED };

struct report {
    enum news what;
    int value;
    struct termios termios;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "termtest: %s: %s\n", what, strerror(errno));
    exit(99);
}

/* ---- the shell's side ----------------------------------------------------------------------- */

/* `modes`: those of the terminal at that time. */
static void tell(int fd, enum news what, int value, const struct termios *modes)
{
    struct report r;

    memset(&r, 0, sizeof r);
    r.what = what;
    r.value = value;
    if (modes != NULL)
        r.termios = *modes;
    else
        tcgetattr(STDERR_FILENO, &r.termios);
    if (write(fd, &r, sizeof r) != (ssize_t)sizeof r)
        _exit(98);
}

static _Noreturn void run_program(char **argv, const char *input, const char *output)
{
    setpgid(0, 0);
    tcsetpgrp(STDERR_FILENO, getpid());
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    if (input != NULL) {
        int fd = open(input, O_RDONLY);
        if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
            _exit(97);
    }
    if (output != NULL) {
        int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
            _exit(97);
    }
    execv(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(96);
}

/* Takes the terminal back as a shell does: its own group in front, its own modes. */
static void take_terminal(const struct termios *modes)
{
    tcsetpgrp(STDERR_FILENO, getpgrp());
    tcsetattr(STDERR_FILENO, TCSADRAIN, modes);
}

/* Waits for 'f' or 'b' and continues the job. */
static void obey(int orders, pid_t program)
{
    char order;

    while (read(orders, &order, 1) < 0 && errno == EINTR)
        ;
    if (order == 'f')
        tcsetpgrp(STDERR_FILENO, program);
    kill(-program, SIGCONT);
}

static _Noreturn void be_shell(char **argv, int reports, int orders, const char *input,
                               const char *output)
{
    struct termios modes;
    int status, running[2];
    char nothing;

    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    tcgetattr(STDERR_FILENO, &modes);
    if (pipe(running) != 0)
        _exit(94);
    fcntl(running[1], F_SETFD, FD_CLOEXEC);
    pid_t program = fork();
    if (program == 0)
        run_program(argv, input, output);
    setpgid(program, program);
    tcsetpgrp(STDERR_FILENO, program);
    /* Not before it runs: a Ctrl-Z that comes earlier would be lost. */
    close(running[1]);
    while (read(running[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    tell(reports, STARTED, program, &modes);
    for (;;) {
        if (waitpid(program, &status, WUNTRACED) < 0) {
            if (errno == EINTR)
                continue;
            _exit(95);
        }
        if (!WIFSTOPPED(status))
            break;
        tell(reports, STOPPED, WSTOPSIG(status), NULL);
        take_terminal(&modes);
        obey(orders, program);
        tell(reports, CONTINUED, 0, NULL);
    }
    tell(reports, EXITED, status, NULL);
    _exit(0);
}

/* ---- the test's side ------------------------------------------------------------------------ */

void job_start(struct job *job, char **argv, int rows, int cols, const char *dumb_input,
               const char *dumb_output)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    int reports[2], orders[2];

    memset(job, 0, sizeof *job);
    if (pipe(reports) != 0 || pipe(orders) != 0)
        die("pipe");
    for (int i = 0; i < 2; i++) {
        fcntl(reports[i], F_SETFD, FD_CLOEXEC);
        fcntl(orders[i], F_SETFD, FD_CLOEXEC);
    }
    job->shell = forkpty(&job->master, NULL, NULL, &size);
    if (job->shell < 0)
        die("forkpty");
    if (job->shell == 0) {
        close(reports[0]);
        close(orders[1]);
        be_shell(argv, reports[1], orders[0], dumb_input, dumb_output);
    }
    close(reports[1]);
    close(orders[0]);
    job->reports = reports[0];
    job->orders = orders[1];
    fcntl(job->master, F_SETFD, FD_CLOEXEC);
}

static void take_report(struct job *job)
{
    struct report r;

    if (read(job->reports, &r, sizeof r) != (ssize_t)sizeof r) {
        close(job->reports);
        job->reports = -1;
        return;
    }
    if (r.what == STARTED) {
        job->program = r.value;
        job->before = r.termios;
        return;
    }
    job->stopped = r.what == STOPPED;
    job->n_stops += r.what == STOPPED;
    if (r.what != CONTINUED)
        job->after = r.termios;
    if (r.what == EXITED) {
        job->exited = true;
        job->wait_status = r.value;
    }
}

size_t job_pump(struct job *job, char *bytes, size_t size, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = job->master, .events = POLLIN},
                            {.fd = job->reports, .events = POLLIN}};

    if (poll(fds, 2, timeout_ms) <= 0)
        return 0;
    if (fds[0].revents != 0) {
        ssize_t n = read(job->master, bytes, size);
        if (n > 0)
            return (size_t)n;
        if (n == 0 || errno != EINTR) { /* everybody has left it */
            close(job->master);
            job->master = -1;
        }
    }
    /* News after output: when an exit is known, all that was written before is too. */
    if (fds[1].revents != 0)
        take_report(job);
    return 0;
}

void job_write(struct job *job, const char *bytes, size_t len)
{
    while (len > 0 && job->master >= 0) {
        ssize_t n = write(job->master, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

void job_resize(struct job *job, int rows, int cols)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    ioctl(job->master, TIOCSWINSZ, &size);
}

void job_signal(struct job *job, int signal_number)
{
    if (job->program > 0 && !job->exited)
        kill(job->program, signal_number);
}

void job_continue(struct job *job, bool in_front)
{
    job->stopped = false;
    if (write(job->orders, in_front ? "f" : "b", 1) != 1)
        die("the shell has gone");
}

void job_hang_up(struct job *job)
{
    if (job->master >= 0)
        close(job->master);
    job->master = -1;
}

bool job_tty_is_restored(const struct job *job)
{
    const struct termios *a = &job->before, *b = &job->after;

    return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_lflag == b->c_lflag &&
           a->c_cflag == b->c_cflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

void job_end(struct job *job)
{
    int status;

    if (job->shell <= 0)
        return;
    if (job->program > 0 && !job->exited)
        kill(job->program, SIGKILL);
    if (job->master >= 0)
        close(job->master);
    if (job->stopped) /* the shell waits for an order */
        job_continue(job, false);
    close(job->orders);
    waitpid(job->shell, &status, 0);
    if (job->reports >= 0)
        close(job->reports);
    memset(job, 0, sizeof *job);
    job->master = -1;
}
