/* Commands: one table, from which /help, completion and the man page come. */
#ifndef FADER_APP_COMMAND_H
#define FADER_APP_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct app;

enum completion {
    COMPLETE_NONE,
    COMPLETE_KNOB,
    COMPLETE_PRESET,
    COMPLETE_THEME,
    COMPLETE_FILE,
    COMPLETE_MODEL,
    COMPLETE_COMMAND,
    COMPLETE_ON_OFF
};

struct command {
    const char *name;                               /* "preset" */
    const char *aliases;                            /* "regen" or "", blank-separated */
    const char *syntax;                             /* "[NAME]" */
    const char *help;                               /* one line */
    enum completion completion;                     /* of its first argument */
    void (*run)(struct app *app, const char *args); /* args: trimmed, "" for none */
};
extern const struct command commands[];
extern const size_t n_commands;

const struct command *command_find(const char *name); /* aliases too; NULL */

/* Runs "/name args". An unknown name suggests the nearest. Messages go to the app's
 * message line. */
void command_run(struct app *app, const char *line);

/* The words that could stand where `start` is in `line` (readline's view of completion):
 * NULL-terminated, owned by the caller with free of each; NULL: none. Files are the caller's to
 * complete: command_completes_file says where. */
char **command_complete(struct app *app, const char *line, size_t start, const char *word);
bool command_completes_file(const char *line, size_t start);

#endif
