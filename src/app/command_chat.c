/* Commands about the conversation and its answers. */
#include "config.h"

#include "app/command_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "chat/template.h"

void command_new(struct app *app, const char *args)
{
    (void)args;
    app_new_conversation(app);
    app_say(app, SAY_INFO, "a new conversation");
}

/* The path ends after `t`; what was below stays in the tree, and in the file. */
static void cut_after(struct app *app, struct turn *t)
{
    app_leave_answer(app);
    conversation_cut(app->conversation, t);
    if (app->transcript != NULL)
        transcript_cut(app->transcript, t);
    app_path_changed(app);
}

void command_clear(struct app *app, const char *args)
{
    (void)args;
    cut_after(app, NULL);
    app->context_warned = false;
    app_say(app, SAY_INFO, "the context is empty; what was said stays in the file");
}

void command_retry(struct app *app, const char *args)
{
    if (*args != '\0' && strcmp(args, "same") != 0) {
        app_say(app, SAY_WARNING, "/retry takes nothing, or: same (the same dice)");
        return;
    }
    app_retry(app, *args != '\0');
}

void command_undo(struct app *app, const char *args)
{
    struct turn *user = app_last_of(app, ROLE_USER);

    (void)args;
    if (user == NULL) {
        app_say(app, SAY_INFO, "nothing to take back");
        return;
    }
    cut_after(app, user->parent);
    app_say(app, SAY_INFO, "your last message and its answer are taken back");
}

/* Without an input line to put it into, the message goes through the editor. */
static void edit_in_editor(struct app *app, struct turn *user)
{
    struct error err;
    char *text = NULL;

    if (app->ops == NULL || app->ops->edit_text == NULL) {
        app_say(app, SAY_WARNING, "there is no editor here");
        return;
    }
    if (!app->ops->edit_text(app->ops_ctx, str_text(&user->text), &text, &err)) {
        app_say(app, SAY_ERROR, "%s", err.text);
        return;
    }
    app->editing = user;
    app_leave_answer(app);
    if (text != NULL && text[strspn(text, " \t\r\n")] != '\0')
        app_send(app, text);
    free(text);
    app->editing = NULL;
}

void command_edit(struct app *app, const char *args)
{
    struct turn *user = app_last_of(app, ROLE_USER);

    (void)args;
    if (user == NULL) {
        app_say(app, SAY_INFO, "there is no message to edit yet");
        return;
    }
    if (app->ops == NULL || app->ops->set_input == NULL) {
        edit_in_editor(app, user);
        return;
    }
    app_leave_answer(app);
    app->editing = user;
    app_input_changed(app);
    app->ops->set_input(app->ops_ctx, str_text(&user->text));
    app_say(app, SAY_INFO, "change it and press Enter; the earlier version is kept");
}

void command_system(struct app *app, const char *args)
{
    const char *now = app->conversation->system;

    if (*args == '\0') {
        if (now == NULL && app->status.chat_template != NULL)
            now = app->status.chat_template->default_system;
        app_say(app, SAY_INFO, "system (%s): %s", origin_name(app->system_origin),
                now != NULL && *now != '\0' ? now : "none");
        return;
    }
    if (strcmp(args, "reset") == 0) {
        const char *preset = app->preset != NULL ? app->preset->system : NULL;
        conversation_set_system(app->conversation, preset != NULL ? preset : app_base_system(app));
        if (preset != NULL)
            app->system_origin = ORIGIN_PRESET;
    } else {
        conversation_set_system(app->conversation, strcmp(args, "none") == 0 ? "" : args);
        app->system_origin = ORIGIN_SLIDER;
    }
    app_input_changed(app);
    app_say(app, SAY_INFO, "the system prompt holds from the next message");
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The text inside the last code fence of `text`; a fence that is still open counts. */
static char *last_code(const char *text)
{
    const char *start = NULL, *end = NULL, *open = NULL;

    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');
        const char *at = line + strspn(line, " ");
        if (strncmp(at, "```", 3) == 0) {
            if (open != NULL) {
                start = open;
                end = line;
                open = NULL;
            } else {
                open = next != NULL ? next + 1 : line + strlen(line);
            }
        }
        line = next != NULL ? next + 1 : NULL;
    }
    if (open != NULL) {
        start = open;
        end = text + strlen(text);
    }
    return start != NULL ? mem_strndup(start, (size_t)(end - start)) : NULL;
}

static const struct turn *answer_from_end(const struct app *app, long back)
{
    const struct turn *t = conversation_leaf(app->conversation);

    for (; t != NULL; t = t->parent) {
        if (t->role == ROLE_ASSISTANT && --back == 0)
            return t;
    }
    return NULL;
}

void command_copy(struct app *app, const char *args)
{
    bool code = strcmp(args, "code") == 0;
    char *end = NULL;
    long back = *args == '\0' || code ? 1 : strtol(args, &end, 10);
    struct error err;

    if (back < 1 || (end != NULL && *end != '\0')) {
        app_say(app, SAY_WARNING, "/copy takes nothing, code, or a number: 1 is the last answer");
        return;
    }
    const struct turn *t = answer_from_end(app, back);
    char *text = t == NULL ? NULL
                 : code    ? last_code(str_text(&t->text))
                           : mem_strdup(str_text(&t->text));
    if (text == NULL)
        app_say(app, SAY_INFO, t == NULL ? "there is no such answer" : "no code in this answer");
    else if (app->ops == NULL || app->ops->copy == NULL)
        app_say(app, SAY_WARNING, "there is no clipboard here");
    else if (app->ops->copy(app->ops_ctx, text, &err))
        app_say(app, SAY_INFO, "sent to the terminal's clipboard (it does not confirm)");
    else
        app_say(app, SAY_ERROR, "%s", err.text);
    free(text);
}

static const struct {
    const char *extension;
    enum export_format format;
} export_formats[] = {
    {".md", EXPORT_MARKDOWN},
    {".markdown", EXPORT_MARKDOWN},
    {".txt", EXPORT_TEXT},
    {".json", EXPORT_JSON},
};

static int find_format(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof export_formats / sizeof export_formats[0]; i++) {
        if (strcmp(dot, export_formats[i].extension) == 0)
            return (int)export_formats[i].format;
    }
    return -1;
}

void command_export(struct app *app, const char *args)
{
    int format = find_format(args);
    struct str text = STR_INIT;
    struct error err;

    if (format < 0) {
        app_say(app, SAY_WARNING, "/export FILE, which ends in .md, .txt or .json");
        return;
    }
    if (conversation_depth(app->conversation) == 0) {
        app_say(app, SAY_INFO, "nothing to export yet");
        return;
    }
    char *path = command_path(args);
    if (access(path, F_OK) == 0 &&
        command_ask(app, "it exists: r replace it, k keep it", "rk") != 'r') {
        app_say(app, SAY_WARNING, "%s exists and was left as it is", path);
    } else {
        conversation_export(app->conversation, (enum export_format)format, &text);
        if (file_write_atomic(path, str_text(&text), text.len, 0644, &err))
            app_say(app, SAY_INFO, "exported to %s", path);
        else
            app_say(app, SAY_ERROR, "not exported: %s", err.text);
    }
    str_done(&text);
    free(path);
}
