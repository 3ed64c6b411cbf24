/* fader presets: list, show, check, import. argv[0] is "presets"; returns the exit status. */
#ifndef FADER_CLI_PRESETS_H
#define FADER_CLI_PRESETS_H

int cmd_presets(int argc, char **argv);

#endif
