/* /save and /load. */
#include "config.h"

#include "app/command_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* ---- save ------------------------------------------------------------------------------------ */

/* The desk as it stands, under a new name: knobs, order, system prompt, a kept seed. */
static struct preset make_preset(struct app *app, char *name)
{
    struct preset p = {
        .name = name,
        .system = app->conversation->system,
        .knobs = app->desk.now,
        .has_order = true,
        .has_exempt = true,
        .seed = app->seed_kept ? (int64_t)app->kept_seed : -1,
        .max_tokens = app->max_tokens > 0 ? app->max_tokens : 0,
    };

    for (int i = 0; i < KNOB_COUNT; i++)
        p.has[i] = true;
    if (app->preset != NULL && strcmp(app->preset->name, name) == 0) {
        p.description = app->preset->description;
        p.tries = app->preset->tries;
    }
    return p;
}

static void save_preset(struct app *app, const char *name)
{
    char *copy = mem_strdup(name), *path = NULL;
    struct preset p = make_preset(app, copy);
    struct error err;
    bool ok = preset_save(&p, false, &path, &err);

    if (!ok &&
        command_ask(app, "a preset of that name exists: r replace it, k keep it", "rk") == 'r')
        ok = preset_save(&p, true, &path, &err);
    if (ok && app_choose_preset(app, name, &err))
        app_say(app, SAY_INFO, "preset %s saved as %s", name, path);
    else
        app_say(app, SAY_ERROR, "%s", err.text);
    free(path);
    free(copy);
}

static void save_chat(struct app *app, const char *typed)
{
    char *path = command_path(typed);
    struct str text = STR_INIT;
    struct error err;

    if (conversation_depth(app->conversation) == 0) {
        app_say(app, SAY_INFO, "nothing to save yet");
    } else if (access(path, F_OK) == 0 &&
               command_ask(app, "it exists: r replace it, k keep it", "rk") != 'r') {
        app_say(app, SAY_WARNING, "%s exists and was left as it is", path);
    } else {
        transcript_format(app->conversation, app->status.kernels, &text);
        if (file_write_atomic(path, str_text(&text), text.len, 0600, &err))
            app_say(app, SAY_INFO, "conversation saved as %s; /load opens it", path);
        else
            app_say(app, SAY_ERROR, "not saved: %s", err.text);
    }
    str_done(&text);
    free(path);
}

static void ask_what(struct app *app)
{
    char what = command_ask(app, "save what? p the knobs as a preset, c the chat", "pc");
    const char *line = what == 'p' ? "/save preset " : what == 'c' ? "/save chat " : NULL;

    if (line != NULL && app->ops->set_input != NULL)
        app->ops->set_input(app->ops_ctx, line);
    else
        app_say(app, SAY_INFO, "/save preset NAME keeps the knobs, /save chat FILE the chat");
}

void command_save(struct app *app, const char *args)
{
    const char *rest;
    char *what = command_word(args, &rest);

    if (strcmp(what, "preset") == 0 && *rest != '\0')
        save_preset(app, rest);
    else if (strcmp(what, "chat") == 0 && *rest != '\0')
        save_chat(app, rest);
    else if (*args == '\0')
        ask_what(app);
    else
        app_say(app, SAY_WARNING, "save what? /save preset NAME, or /save chat FILE");
    free(what);
}

/* ---- load ------------------------------------------------------------------------------------ */

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void load_chat(struct app *app, const char *path)
{
    struct error err;

    app->message[0] = '\0';
    if (!app_load_conversation(app, path, &err))
        app_say(app, SAY_ERROR, "%s", err.text);
    else if (app->message[0] == '\0')
        app_say(app, SAY_INFO, "the conversation goes on: %zu turns",
                conversation_depth(app->conversation));
}

static void load_preset(struct app *app, const char *path)
{
    struct preset_warnings warnings = {NULL, 0, 0};
    struct error err;
    bool yaml = ends_in(path, ".yaml") || ends_in(path, ".yml");
    struct preset *p =
        yaml ? preset_load_file(path, &warnings, &err) : preset_import(path, &warnings, &err);

    if (p == NULL) {
        app_say(app, SAY_ERROR, "%s", err.text);
    } else {
        app_use_preset(app, p);
        if (warnings.n > 0)
            app_say(app, SAY_WARNING, "%s: in use; %s%s", p->name, warnings.items[0],
                    warnings.n > 1 ? " (and more)" : "");
    }
    preset_warnings_done(&warnings);
}

/* A file as typed, else a transcript of that name in the folder where they are. */
static char *find_file(const char *typed)
{
    char *path = command_path(typed);

    if (is_file(path) || strchr(typed, '/') != NULL)
        return path;
    char *folder = app_transcripts_folder();
    char *inside = file_join(folder, typed);
    free(folder);
    if (is_file(inside)) {
        free(path);
        return inside;
    }
    free(inside);
    return path;
}

/* What could be gone on with. */
static void list_chats(struct app *app)
{
    enum { SHOWN = 20 };
    char *folder = app_transcripts_folder();
    struct transcript_list list;
    struct str text = STR_INIT;

    transcript_list_find(folder, SHOWN, &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct transcript_entry *e = &list.items[i];
        bool open =
            app->transcript != NULL && strcmp(transcript_path(app->transcript), e->path) == 0;
        str_add_format(&text, "%c %s  %s\n", open ? '*' : ' ', strrchr(e->path, '/') + 1, e->first);
    }
    str_add_format(&text,
                   "%s/load FILE opens one of these, any other conversation (.jsonl), a\n"
                   "preset (.yaml, or its name), or another program's settings.\n"
                   "These are in %s\n",
                   list.n > 0 ? "\n" : "", folder);
    command_page(app, "Conversations", &text);
    str_done(&text);
    transcript_list_done(&list);
    free(folder);
}

void command_load(struct app *app, const char *args)
{
    struct error err;

    if (*args == '\0') {
        list_chats(app);
        return;
    }
    char *path = find_file(args);
    if (ends_in(path, ".jsonl"))
        load_chat(app, path);
    else if (is_file(path))
        load_preset(app, path);
    else if (!app_choose_preset(app, args, &err))
        app_say(app, SAY_ERROR, "%s", err.text);
    free(path);
}
