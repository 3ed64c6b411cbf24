/* The handlers of the command table, and what they share. `args` is trimmed; "" for none. */
#ifndef FADER_APP_COMMAND_PRIVATE_H
#define FADER_APP_COMMAND_PRIVATE_H

#include "app/app_private.h"
#include "app/command.h"
#include "base/str.h"

/* ---- command_chat.c: conversations and answers ---------------------------------------------- */
void command_new(struct app *app, const char *args);
void command_clear(struct app *app, const char *args);
void command_retry(struct app *app, const char *args);
void command_undo(struct app *app, const char *args);
void command_edit(struct app *app, const char *args);
void command_system(struct app *app, const char *args);
void command_copy(struct app *app, const char *args);
void command_export(struct app *app, const char *args);

/* ---- command_set.c: values ------------------------------------------------------------------- */
void command_set(struct app *app, const char *args);
void command_preset(struct app *app, const char *args);

/* ---- command_file.c: load and save ----------------------------------------------------------- */
void command_save(struct app *app, const char *args);
void command_load(struct app *app, const char *args);

/* ---- command_show.c: pages and the program itself -------------------------------------------- */
void command_help(struct app *app, const char *args);
void command_keys(struct app *app, const char *args);
void command_show(struct app *app, const char *args);
void command_stats(struct app *app, const char *args);
void command_context(struct app *app, const char *args);
void command_model(struct app *app, const char *args);
void command_theme(struct app *app, const char *args);
void command_mouse(struct app *app, const char *args);
void command_quit(struct app *app, const char *args);

/* ---- shared ---------------------------------------------------------------------------------- */

/* Splits the first word off: returns it (owned), *rest points at what follows, trimmed. */
char *command_word(const char *args, const char **rest);

/* Shows a page, or says its first line where the view has no pages. */
void command_page(struct app *app, const char *title, const struct str *text);

/* One key of `keys`; 0 when the view cannot ask or nothing was chosen. */
char command_ask(struct app *app, const char *question, const char *keys);

/* "on" and "off" (yes, no, true, false, 1, 0): 1, 0; -1 for anything else. */
int command_on_off(const char *word);

/* A path as typed: "~/" is the home folder. Owned by the caller. */
char *command_path(const char *typed);

/* The names that /set takes beside the knobs; NULL-terminated. */
extern const char *const command_set_names[];

#endif
