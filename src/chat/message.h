/* Messages: what has been said, in the order in which a model reads it. Plain data,
 * owned copies. */
#ifndef FADER_CHAT_MESSAGE_H
#define FADER_CHAT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_COUNT };

struct message {
    enum role role;
    char *text;      /* UTF-8, owned, NUL-terminated */
    int32_t *tokens; /* the ids that a model drew for it, owned; NULL: tokenize the text */
    size_t n_tokens;
};

struct message_list {
    struct message *items; /* owned */
    size_t n, cap;
};

const char *role_name(enum role role); /* "system", "user", "assistant" */
int role_find(const char *name);       /* enum role, or -1 */

/* Appends a copy; `tokens` may be NULL. Returns the message inside the list (valid
 * until it grows). */
struct message *message_list_add(struct message_list *list, enum role role, const char *text,
                                 const int32_t *tokens, size_t n_tokens);
void message_list_done(struct message_list *list);

#endif
