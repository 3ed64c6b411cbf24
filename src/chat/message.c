#include "config.h"

#include "chat/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const names[ROLE_COUNT] = {
    [ROLE_SYSTEM] = "system",
    [ROLE_USER] = "user",
    [ROLE_ASSISTANT] = "assistant",
};

const char *role_name(enum role role)
{
    return names[role];
}

int role_find(const char *name)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (strcmp(names[role], name) == 0)
            return role;
    }
    return -1;
}

struct message *message_list_add(struct message_list *list, enum role role, const char *text,
                                 const int32_t *tokens, size_t n_tokens)
{
    mem_grow(&list->items, &list->cap, list->n + 1, sizeof *list->items);
    struct message *m = &list->items[list->n++];
    *m = (struct message){.role = role, .text = mem_strdup(text), .n_tokens = 0};
    if (tokens != NULL) {
        m->tokens = mem_dup(tokens, n_tokens * sizeof *tokens);
        m->n_tokens = n_tokens;
    }
    return m;
}

void message_list_done(struct message_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].text);
        free(list->items[i].tokens);
    }
    free(list->items);
    *list = (struct message_list){NULL, 0, 0};
}
