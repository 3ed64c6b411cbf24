/* Test scripts: one command a line, words apart by blanks, '#' begins a comment. A word in double
 * quotes may hold blanks and \n \r \t \e \" \\ \xHH (not \x00). $DIR (the test's own folder), $SRC,
 * $BUILD and $MODEL are replaced anywhere. A line that ends in <<END is followed by lines up to
 * END, which are its last word. */
#ifndef FADER_TESTS_TERM_SCRIPT_H
#define FADER_TESTS_TERM_SCRIPT_H

#include <stddef.h>
#include <stdbool.h>

enum { SCRIPT_WORDS_MAX = 64 };

struct script_line {
    int number;                        /* from 1 */
    char *words[SCRIPT_WORDS_MAX + 1]; /* owned; NULL after the last */
    size_t lens[SCRIPT_WORDS_MAX + 1];
    int n;
};

struct script {
    char *text, *at; /* owned; what is left */
    int number;
};

bool script_open(struct script *s, const char *path);
void script_close(struct script *s);

/* The next line that has words; false at the end. `lookup` gives a variable's value, or NULL. */
bool script_next(struct script *s, struct script_line *out,
                 const char *(*lookup)(const char *name, size_t len));
void script_line_done(struct script_line *line);

#endif
