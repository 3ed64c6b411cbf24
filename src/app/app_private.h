/* What the files of app share among themselves. */
#ifndef FADER_APP_APP_PRIVATE_H
#define FADER_APP_APP_PRIVATE_H

#include "app/app.h"

/* Tells the view; `what` is of enum app_change. */
void app_changed(struct app *app, unsigned what);

/* Publishes the desk and the control as a new version. */
void app_publish(struct app *app);
void app_refresh_status(struct app *app);

/* ---- controls.c ----------------------------------------------------------------------------- */

/* The seed and the length that a preset says. */
void app_use_preset_numbers(struct app *app, const struct preset *p);

/* ---- answers.c ------------------------------------------------------------------------------ */

/* Adds a message of the user's (a version of the one that is edited) and asks for its answer. */
void app_send(struct app *app, const char *text);
/* Leaves the answer under way: it ends as stopped, and what its request still says is ignored. */
void app_leave_answer(struct app *app);
/* An answer that was asked for but has not begun ends like this. */
void app_drop_next(struct app *app, enum end_reason reason);
/* The backend is free: what waits for it begins. */
void app_go_on(struct app *app);
/* The path shows other turns: what belonged to turns that are gone is forgotten. */
void app_path_changed(struct app *app);
void app_end_turn(struct app *app, struct turn *turn, enum end_reason reason);
struct turn *app_last_of(const struct app *app, enum role role); /* on the path; NULL: none */

/* ---- draft.c --------------------------------------------------------------------------------- */

/* Tells the backend what will probably be asked next, when that is due and nothing else is asked. */
void app_tell_draft(struct app *app, int64_t now_ns);

/* ---- language.c ----------------------------------------------------------------------------- */

/* True when `languages` (codes, comma-separated) are all written in Latin letters and `text` mostly
 * is not; their English names are put into `names`. */
bool app_names_languages(const char *languages, const char *text, struct str *names);
/* Says once, when the text is in a script that the model was not made for, what it was made for. */
void app_note_language(struct app *app, const char *text);

/* ---- record.c: the transcript -------------------------------------------------------------- */

void app_open_transcript(struct app *app); /* a new one, unless nothing is saved */
/* Puts down what the answer begins with: model, system prompt, preset, the turn. Once an answer. */
void app_record_opening(struct app *app, const struct turn *answer);
/* Writes what waits, says once that it could not, and tries again later. */
void app_save(struct app *app, int64_t now_ns);
bool app_has_unsaved(const struct app *app);
void app_close_transcripts(struct app *app);
void app_use_conversation(struct app *app, struct conversation *c /* taken */);
char *app_transcripts_folder(void);

/* ---- app.c ---------------------------------------------------------------------------------- */

/* The system prompt that holds when neither a preset nor /system says one; sets its origin. */
const char *app_base_system(struct app *app);
void app_expire_message(struct app *app, int64_t now_ns);

#endif
