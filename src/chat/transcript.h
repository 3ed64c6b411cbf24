/* Transcript files: a conversation as append-only JSON lines (mode 0600), written as it grows, so
 * that a crash loses at most the last two frames; and export as Markdown, text or JSON. The format
 * of the lines is described at the head of transcript.c.
 *
 * Life cycle: transcript_new -> [transcript_turn, _token ... -> transcript_flush]* ->
 * transcript_free. The functions named after records only put lines into memory; transcript_flush
 * writes all of them by one write(2). After a failure (full disk) they stay there and the next
 * flush tries again, so that nothing is lost while the program lives. */
#ifndef FADER_CHAT_TRANSCRIPT_H
#define FADER_CHAT_TRANSCRIPT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "chat/conversation.h"

struct transcript; /* an open file; appends whole lines */

/* Creates `folder`/DATE-TIME-XXXX.jsonl and its folder, or continues `path` (the other is NULL).
 * Writes nothing until the first flush of a record, so that an empty chat leaves no file. A
 * continued file is locked against a second fader, and a last line that was cut off is removed from
 * it. */
struct transcript *transcript_new(const char *folder, const char *path, struct error *err);
void transcript_free(struct transcript *t); /* flushes and closes */
const char *transcript_path(const struct transcript *t);

/* Records. The header, with the time, is put in front of the first one by itself. */
void transcript_model(struct transcript *t, const char *model,
                      const char *kernels);                       /* from here on */
void transcript_system(struct transcript *t, const char *system); /* NULL: the template's own */
void transcript_preset(struct transcript *t, const char *name);
void transcript_turn(struct transcript *t,
                     const struct turn *turn); /* a user's; an answer's opening,
                                                  with the tokens it was given */
void transcript_token(struct transcript *t, const struct turn *turn, size_t i);
void transcript_knob(struct transcript *t, const struct turn *turn, size_t i);
void transcript_chain(struct transcript *t, const struct turn *turn, size_t i);
void transcript_dropped(struct transcript *t, const struct turn *turn);
void transcript_end(struct transcript *t, const struct turn *turn);
void transcript_choose(struct transcript *t,
                       const struct turn *turn);                    /* this version is shown now */
void transcript_cut(struct transcript *t, const struct turn *turn); /* the path ends after it;
                                                 NULL: before the first turn */

/* Writes what is waiting. False with `err` when not all of it could be written. */
bool transcript_flush(struct transcript *t, struct error *err);
bool transcript_is_waiting(const struct transcript *t); /* lines are still in memory */

/* The whole conversation as the lines of a file (/save chat). */
void transcript_format(const struct conversation *c, const char *kernels, struct str *out);

/* Reads a file back. A last line that was cut off is dropped with a warning text in `warning` (may
 * stay empty); any other damage is an error with its line. An answer without its end counts as
 * stopped. */
struct conversation *transcript_load(const char *path, struct str *warning, struct error *err);

/* The transcripts of a folder, the one that was written to last first. */
struct transcript_entry {
    char *path;
    char *first; /* what the user said first, in one line; "" when that cannot be read */
};
struct transcript_list {
    struct transcript_entry *items;
    size_t n, cap;
};
void transcript_list_find(const char *folder, size_t max, struct transcript_list *out);
void transcript_list_done(struct transcript_list *list);

/* The first of them, owned by the caller, or NULL. */
char *transcript_newest(const char *folder);

enum export_format { EXPORT_MARKDOWN, EXPORT_TEXT, EXPORT_JSON };

/* Appends the path that is shown, for people or for programs. It cannot be read back in. */
void conversation_export(const struct conversation *c, enum export_format format, struct str *out);

#endif
