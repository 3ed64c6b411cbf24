/* fader score: how likely a model finds each token of the text on standard input. */
#ifndef FADER_CLI_SCORE_H
#define FADER_CLI_SCORE_H

int cmd_score(int argc, char **argv); /* the exit status */

#endif
