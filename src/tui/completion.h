/* Completion for readline: commands, presets, themes, models from app/command.h; files from
 * readline. */
#ifndef FADER_TUI_COMPLETION_H
#define FADER_TUI_COMPLETION_H

struct app;

/* Sets readline's hooks. Only lines that begin with '/' are completed. */
void completion_set_up(struct app *app);

#endif
