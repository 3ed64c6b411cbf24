/* The desk on a terminal: takes the terminal, fills app's view, runs app's loop, gives the terminal
 * back. */
#ifndef FADER_TUI_TUI_H
#define FADER_TUI_TUI_H

struct app;

/* Theme, glyphs, mouse and panel come from app->options.settings. Returns the exit status; says on
 * standard error why when there is no terminal to draw on. */
int tui_run(struct app *app);

#endif
