/* Private to chat: one line of a transcript as text, and back. The format is described at the head
 * of transcript.c. */
#ifndef FADER_CHAT_RECORDS_H
#define FADER_CHAT_RECORDS_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/str.h"
#include "chat/conversation.h"

enum { RECORD_FORMAT = 1, N_RECORD_ENDS = 5 };

extern const char *const record_end_names[N_RECORD_ENDS]; /* by enum end_reason */
extern const char *const record_exempt_names[2];          /* by enum exempt_mode */

/* Adds `"key": text` to a JSON object. JSON text is UTF-8, and cJSON ends it at a NUL: invalid
 * bytes and NULs become U+FFFD. */
void record_add_text(cJSON *o, const char *key, const char *text, size_t len);

/* Each appends one line, newline included. */
void record_header(struct str *out);
void record_model(struct str *out, const char *model,
                  const char *kernels); /* kernels may be NULL */
void record_system(struct str *out, const char *system);
void record_preset(struct str *out, const char *name);
void record_turn(struct str *out, const struct turn *turn);
void record_token(struct str *out, const struct turn *turn, size_t i);
void record_knob(struct str *out, const struct turn *turn, size_t i);
void record_chain(struct str *out, const struct turn *turn, size_t i);
void record_dropped(struct str *out, const struct turn *turn);
void record_end(struct str *out, const struct turn *turn);
void record_choose(struct str *out, const struct turn *turn);
void record_cut(struct str *out, const struct turn *turn);

/* Lays one line over the conversation that the lines before it made. `first`: it must be a header.
 * False with `err` (what is wrong, without the place) when it is not a record or contradicts them.
 */
bool record_read(struct conversation *c, const char *line, size_t len, bool first,
                 struct error *err);

/* Whether these bytes are one whole record of whatever type: a line that was cut off is not. */
bool record_is_whole(const char *line, size_t len);

#endif
