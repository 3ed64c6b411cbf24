/* Chat templates: how a list of messages becomes the text that a model was trained on.
 *
 * fader does not interpret Jinja: it recognises the families in use from the file's template, and
 * says so when it does not. A rendering is a list of spans: markup (the template's own, in which
 * special tokens are parsed), text (what people and models wrote, in which they never are), and
 * token ids (an answer as it was drawn). */
#ifndef FADER_CHAT_TEMPLATE_H
#define FADER_CHAT_TEMPLATE_H

#include <stdbool.h>

#include "base/str.h"
#include "chat/message.h"
#include "engine/engine.h"

struct chat_template; /* static, immutable */

struct template_choice {
    const struct chat_template *tmpl; /* never NULL */
    bool recognised;                  /* false: `tmpl` is what is used instead */
    char
        default_system[4096]; /* the system prompt that the file's template adds by itself; or "" */
    char bos[64];             /* what the rendering begins with: the vocabulary's begin token where
                                 the file's template writes it, or "" */
    char eos[64];             /* the vocabulary's end token, for families that close with it */
};

/* From the file's template text (may be NULL) and the model's vocabulary (may be NULL). */
struct template_choice template_choose(const char *jinja, const struct tokenizer *t);
const struct chat_template *template_find(const char *name); /* "chatml", ... or NULL */
const char *template_name(const struct chat_template *t);

/* A rendering owns the text of its markup; other spans point into the messages, which must outlive
 * it. */
struct rendering {
    struct span *spans;
    size_t n, cap;
    struct str text;
    size_t *offsets;    /* private: where each span's text starts in `text` */
    size_t cap_offsets; /* private */
};

/* Renders all messages, and the opening of an answer when `open_answer`. Adds
 * choice->default_system when the first message is not a system one. An answer that has its tokens
 * stands behind the very opening that it was drawn behind, so that a cache keeps it. `out` is
 * uninitialised. */
void template_render(const struct template_choice *choice, const struct message_list *messages,
                     bool open_answer, struct rendering *out);

/* The same while the last message, the user's, is still being written: up to the end of its text,
 * which may go on. */
void template_render_draft(const struct template_choice *choice,
                           const struct message_list *messages, struct rendering *out);
void rendering_done(struct rendering *r);

#endif
