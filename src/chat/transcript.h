/* Transcript files: a conversation as append-only JSON lines (mode 0600), written as it grows, so that a
 * crash loses at most the line under way; and export as Markdown, text or JSON. The format of the lines is
 * described at the head of transcript.c. */
#ifndef FADER_CHAT_TRANSCRIPT_H
#define FADER_CHAT_TRANSCRIPT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "chat/conversation.h"

struct transcript;           /* an open file; appends whole lines */

/* Creates `folder`/DATE-TIME-XXXX.jsonl and its folder, or continues `path` (the other is NULL). Writes
 * nothing until the first record, so that an empty chat leaves no file. */
struct transcript *transcript_new(const char *folder, const char *path, struct error *err);
void transcript_free(struct transcript *t);          /* flushes and closes */
const char *transcript_path(const struct transcript *t);

/* Each appends one line. After a failure (full disk) the lines are kept in memory and tried again at
 * the next call, so that nothing is lost while the program lives. */
bool transcript_header(struct transcript *t, const char *model, const char *kernels,
                       const char *system, struct error *err);
bool transcript_turn(struct transcript *t, const struct turn *turn, struct error *err);     /* a user's; an answer's opening */
bool transcript_token(struct transcript *t, const struct turn *turn, size_t i, struct error *err);
bool transcript_knob(struct transcript *t, const struct turn *turn, size_t i, struct error *err);
bool transcript_end(struct transcript *t, const struct turn *turn, struct error *err);
bool transcript_choose(struct transcript *t, const struct turn *turn, struct error *err);   /* the path changed */
bool transcript_cut(struct transcript *t, const struct turn *turn, struct error *err);      /* turn NULL: all left */
bool transcript_system(struct transcript *t, const char *system, struct error *err);

/* Reads a file back. A last line that was cut off is dropped with a warning text in `warning` (may
 * stay empty); any other damage is an error with its line. */
struct conversation *transcript_load(const char *path, struct str *warning, struct error *err);

/* The newest transcript in `folder`, owned by the caller, or NULL. */
char *transcript_newest(const char *folder);

enum export_format { EXPORT_MARKDOWN, EXPORT_TEXT, EXPORT_JSON };
void conversation_export(const struct conversation *c, enum export_format format, struct str *out);

#endif
