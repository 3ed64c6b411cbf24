#include "config.h"

#include "cli/chat.h"

#include <signal.h>
#include <stdlib.h>

#include "app/app.h"
#include "base/mem.h"
#include "chat/transcript.h"
#include "cli/plain.h"
#include "cli/start.h"
#include "config/paths.h"
#include "tui/terminal.h"
#include "tui/tui.h"

/* /model: another backend with the same options. */
static struct backend *open_model(void *ctx, const char *name, const struct control *initial,
                                  struct error *err)
{
    struct start *s = ctx;
    char *path = models_resolve(name, err);

    if (path == NULL)
        return NULL;
    free(s->model_path);
    s->model_path = path;
    return start_backend(s, initial, err);
}

/* The model file's own sampling values and its vocabulary are wanted before the first frame, and
 * opening it takes milliseconds; the weights are loaded by the backend, behind the screen. */
static bool lay_knobs(struct start *s, struct error *err)
{
    if (s->options->backend != NULL)
        return start_lay_knobs(s, NULL, err);
    if (!start_find_model(s, err))
        return false;
    struct model *m = model_open(s->model_path, err);
    if (m == NULL)
        return false;
    bool ok = start_lay_knobs(s, model_get_info(m), err);
    model_close(m);
    return ok;
}

/* --continue: *path is what to reopen, owned by the caller; NULL: nothing. */
static bool find_transcript(const struct options *o, char **path, struct error *err)
{
    *path = NULL;
    if (o->reopen == NULL)
        return true;
    if (*o->reopen != '\0') {
        *path = mem_strdup(o->reopen);
        return true;
    }
    char *folder = paths_state("transcripts");
    *path = transcript_newest(folder);
    bool found = *path != NULL;
    if (!found)
        error_set(err, "--continue: no conversation in %s", folder);
    free(folder);
    return found;
}

static struct app *make_app(struct start *s, const char *transcript, struct error *err)
{
    const struct options *o = s->options;
    struct control initial = {.knobs = s->desk.now, .pace = s->settings.pace};
    struct app_options options = {
        .settings = &s->settings,
        .model_name = s->model_path != NULL ? s->model_path : o->backend,
        .system = o->system,
        /* What the preset says of these is the app's to know: another may be chosen. */
        .seed = o->seed >= 0 ? o->seed : -1,
        .max_tokens = o->predict >= 0 ? o->predict : -1,
        .no_save = o->no_save || !s->settings.save,
        .continue_path = transcript,
        .open_model = open_model,
        .open_model_ctx = s,
    };
    struct backend *backend = start_backend(s, &initial, err);

    if (backend == NULL)
        return NULL;
    struct preset *preset = s->preset;
    s->preset = NULL; /* the app's from here on */
    return app_new(&options, backend, &s->desk, preset, err);
}

static int run(struct app *app, const struct options *o)
{
    signal(SIGPIPE, SIG_IGN); /* an editor or a pipe that goes away is an ordinary error */
    signal(SIGXFSZ, SIG_IGN);
    int status = o->plain || !terminal_is_usable() ? plain_run(app) : tui_run(app);
    struct error err;
    if (!app_finish(app, &err)) {
        error_prefix(&err, "the conversation is not saved");
        int failed = cli_fail(&err);
        status = status == 0 ? failed : status;
    }
    app_free(app);
    return status;
}

int chat_run(const struct options *o)
{
    struct start s;
    struct error err;
    char *transcript = NULL;
    struct app *app = NULL;
    int status;

    if (start_init(&s, o, &err) && lay_knobs(&s, &err) && find_transcript(o, &transcript, &err))
        app = make_app(&s, transcript, &err);
    status = app != NULL ? run(app, o) : start_fail(&s, &err);
    free(transcript);
    start_done(&s);
    return status;
}
