/* What the files of the test runner share: termtest.c runs scripts, act.c does what a user does,
 * expect.c looks at what came of it. */
#ifndef FADER_TESTS_TERM_TERMTEST_H
#define FADER_TESTS_TERM_TERMTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "job.h"
#include "screen.h"
#include "script.h"

enum replies { REPLIES_ON, REPLIES_OFF, REPLIES_HELD };

/* The test under way. */
struct test {
    const char *file;
    struct script_line *line; /* the command under way */
    struct job job;
    struct screen screen;
    bool started;
    int rows, cols;
    char *input, *output; /* files instead of the terminal */
    enum replies replies;
    char dir[64];
    bool masked_rows[256]; /* rows that no golden tells of */
    bool failed, skipped;
    const char *why_skipped;
};
extern struct test t;
extern char model_path[4096];

struct command {
    const char *name;
    void (*run)(void);
    int words;    /* at least, itself included */
    bool running; /* there must be a program */
};
extern const struct command act_commands[], expect_commands[]; /* end with name NULL */

/* The command under way fails: says where and why, and shows the screen. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_comment(const char *text);

/* Takes in what came within timeout_ms, and answers for the terminal. */
void pump(int timeout_ms);

/* Is it true, or becomes it so in time? */
bool await(bool (*is_true)(void));

void start_program(char **argv);

/* Words of the line under way: 0 and "" where there are none. */
int number(int i);
const char *word(int i);
int row_number(int i); /* below 0: from the bottom, -1 is the last */

#endif
