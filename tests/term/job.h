/* A program under test on a pseudo terminal, with a shell's job control around it: a small process
 * leads the session, puts the program in front as a job, and takes the terminal back when it stops
 * or ends, as a shell does. So Ctrl-Z, STOP and CONT mean what they mean in life.
 *
 * Life cycle: job_start -> job_pump ... -> job_end. */
#ifndef FADER_TESTS_TERM_JOB_H
#define FADER_TESTS_TERM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct job {
    pid_t shell, program; /* 0: none */
    int master;           /* the terminal's other side; -1: closed */
    int reports, orders;  /* pipes from and to the shell */
    bool stopped;         /* the program is, and the shell has the terminal */
    int n_stops;          /* how often it was */
    bool exited;
    int wait_status;       /* as of waitpid */
    struct termios before; /* the terminal when the program started ... */
    struct termios after;  /* ... and when the shell took it back last */
};

/* Starts argv[0] with the environment as it is, on a terminal of that size. `dumb_input` and
 * `dumb_output` (may be NULL) are files that stand for standard input and output instead. Exits on
 * failure. */
void job_start(struct job *job, char **argv, int rows, int cols, const char *dumb_input,
               const char *dumb_output);

/* Waits up to timeout_ms for output or news. Returns the bytes of output in `bytes`: 0 when there
 * were none. */
size_t job_pump(struct job *job, char *bytes, size_t size, int timeout_ms);

void job_write(struct job *job, const char *bytes, size_t len);
void job_resize(struct job *job, int rows, int cols);
void job_signal(struct job *job, int signal_number);
void job_continue(struct job *job, bool in_front); /* fg, or bg */
void job_hang_up(struct job *job);                 /* the terminal is gone */
bool job_tty_is_restored(
    const struct job *job);    /* after == before, in all that a shell cares for */
void job_end(struct job *job); /* kills what is left, frees */

#endif
