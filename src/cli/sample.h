/* fader sample: one sampling step on logits given as JSON, stage by stage. It needs no model. */
#ifndef FADER_CLI_SAMPLE_H
#define FADER_CLI_SAMPLE_H

int cmd_sample(int argc, char **argv); /* the exit status */

#endif
