/* fader models: the GGUF files found on this computer. argv[0] is "models"; returns the exit
 * status. */
#ifndef FADER_CLI_MODELS_H
#define FADER_CLI_MODELS_H

int cmd_models(int argc, char **argv);

#endif
