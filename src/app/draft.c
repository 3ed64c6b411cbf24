/* What is being typed, told to the backend before it is sent: the prompt that Enter would make of
 * it can then be in the cache when Enter comes. Told when the hand rests for a moment, and now and
 * then while it does not; at once it would be work for every key, and most of it for nothing. */
#include "config.h"

#include "app/app_private.h"

#include <string.h>

#include "base/clock.h"

static const int64_t rest_ns = 150000000;     /* without a key: a pause between two words */
static const int64_t longest_ns = 1000000000; /* of typing on */

void app_input_changed(struct app *app)
{
    const int64_t now = clock_now_ns();

    if (app->draft_ns == 0)
        app->draft_ns = now;
    const int64_t latest = app->draft_ns + longest_ns;
    app->draft_due_ns = now + rest_ns < latest ? now + rest_ns : latest;
}

/* The message that Enter would send; "" when it would send none. */
static const char *draft_text(const struct app *app)
{
    const char *text = "";

    if (app->ops != NULL && app->ops->get_input != NULL)
        text = app->ops->get_input(app->ops_ctx);
    if (text[0] != '/')
        return text;
    return text[1] == '/' ? text + 1 : "";
}

/* The messages that it would be sent with (app_send). */
static void draft_messages(const struct app *app, struct message_list *out)
{
    const struct conversation *c = app->conversation;
    struct turn *parent = app->editing != NULL ? app->editing->parent : conversation_leaf(c);

    *out = (struct message_list){NULL, 0, 0};
    if (parent != NULL)
        conversation_messages(c, parent, out);
    else if (c->system != NULL)
        message_list_add(out, ROLE_SYSTEM, c->system, NULL, 0);
    message_list_add(out, ROLE_USER, draft_text(app), NULL, 0);
}

void app_tell_draft(struct app *app, int64_t now_ns)
{
    struct draft d = {.on_full = app->on_full, .mains_only = app->prefill == PREFILL_AUTO};

    if (app->draft_due_ns == 0 || now_ns < app->draft_due_ns)
        return;
    app->draft_ns = app->draft_due_ns = 0;
    if (app->prefill == PREFILL_OFF || app->state != APP_IDLE || app->running != 0 ||
        app_is_answering(app))
        return; /* after an answer it is looked at again (app_go_on) */
    draft_messages(app, &d.messages);
    backend_expect(app->backend, &d);
}
