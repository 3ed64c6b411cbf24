/* The chat for a terminal that cannot draw, or should not: line by line, with ordinary readline
 * where there is a terminal. Commands, /set, presets and pace work, while an answer streams too. No
 * escape sequence leaves the program, and the model's control characters are shown, not obeyed. */
#ifndef FADER_CLI_PLAIN_H
#define FADER_CLI_PLAIN_H

struct app;

/* Runs the chat until it ends; the exit status (128 + n after signal n). Standard input that is not
 * a terminal is read line by line, each entered when the answer to the one before has ended. */
int plain_run(struct app *app);

#endif
