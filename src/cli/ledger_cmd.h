/* fader ledger: what the KV cache costs, per token and for a whole context, of a model or of
 * numbers given on the command line, beside what multi-head attention would have cost. */
#ifndef FADER_CLI_LEDGER_CMD_H
#define FADER_CLI_LEDGER_CMD_H

int cmd_ledger(int argc, char **argv); /* the exit status */

#endif
