/* What was entered before: readline's history list, kept in $XDG_STATE_HOME/fader/history (mode
 * 0600). Lines are appended as they are entered, so that several sittings share one file. */
#ifndef FADER_TUI_HISTORY_FILE_H
#define FADER_TUI_HISTORY_FILE_H

#include <stdbool.h>

/* Reads the file; one that cannot be read is an empty history. `save` false: nothing is written. */
void history_file_open(bool save);
void history_file_add(
    const char *text);         /* blank texts and repetitions of the last one are left out */
void history_file_close(void); /* cuts a long file */

#endif
