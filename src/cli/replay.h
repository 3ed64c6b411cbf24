/* fader replay: makes the answers of a saved conversation again, with the seeds, knobs and
 * movements that they were drawn with, and tells whether the texts are the same. */
#ifndef FADER_CLI_REPLAY_H
#define FADER_CLI_REPLAY_H

int cmd_replay(int argc, char **argv); /* 0: all the same; 1: one differs, or an error */

#endif
