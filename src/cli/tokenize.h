/* fader tokenize: standard input, byte for byte, to token ids; --decode is the way back. */
#ifndef FADER_CLI_TOKENIZE_H
#define FADER_CLI_TOKENIZE_H

int cmd_tokenize(int argc, char **argv); /* the exit status */

#endif
