/* The application: everything that a chat is, without a screen. It owns the conversation, the desk
 * and the backend, turns lines and actions into requests, drains events into the conversation, and
 * tells a view (app/view.h) what changed. tui and plain read struct app to show it; only app writes
 * it, but for the members under "the view", which whoever shows it sets after app_new.
 *
 * Life cycle: app_new -> (the view sets ops, view_fd ...) -> app_run (the loop) or app_poll by hand
 * in tests -> app_free.
 *
 * Requests and turns: `request` is the answer whose events are shown and grow `answer`; `running`
 * is what the backend is busy with. They differ after an answer was left (a retry, /new): its end
 * is awaited before `next` is handed over, and what it still says is ignored by its id.
 *
 * SIGXFSZ and SIGPIPE should be ignored by the program: a full disk is then an error that is said.
 */
#ifndef FADER_APP_APP_H
#define FADER_APP_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/desk.h"
#include "app/view.h"
#include "backend/backend.h"
#include "chat/conversation.h"
#include "chat/transcript.h"
#include "config/settings.h"

enum app_state { APP_LOADING, APP_IDLE, APP_PREFILL, APP_ANSWERING, APP_FAILED };
enum severity { SAY_INFO, SAY_WARNING, SAY_ERROR };

extern const double app_paces[]; /* 0 (full), 40, 20, 12, 5, 2 */
extern const size_t n_app_paces;

struct app_options {
    struct settings *settings; /* borrowed */
    const char *model_name;    /* as resolved, for /show */
    const char *system;        /* from the command line, or NULL */
    int64_t seed;              /* -1: a new random one for each answer */
    int32_t max_tokens;        /* < 0: until the end token */
    bool no_save;
    const char *continue_path; /* a transcript to reopen, or NULL */
    /* /model: opens another model; NULL: it cannot be changed. `initial` is in force in it. */
    struct backend *(*open_model)(void *ctx, const char *name, const struct control *initial,
                                  struct error *err);
    void *open_model_ctx;
};

/* What the last answer took, as its end said. */
struct app_stats {
    bool valid;
    enum end_reason reason;
    int32_t tokens, prompt_tokens, reused_tokens, ahead_tokens;
    double prefill_tps, decode_tps, ttft_ms;
};

/* What all answers of the sitting took. */
struct app_totals {
    int32_t answers; /* that were begun */
    int64_t prompt_tokens, reused_tokens, ahead_tokens;
};

enum { APP_TPS_TOKENS = 16 };

struct app {
    struct app_options options;
    struct backend *backend;      /* owned */
    struct backend_status status; /* refreshed at every drain */
    enum app_state state;
    struct desk desk;
    struct preset *preset; /* the chosen one, owned */
    struct conversation *conversation;
    struct transcript *transcript; /* NULL: not saved */
    struct control control;        /* as last published */
    bool first_fader;              /* the first fader of the sitting was touched: paced already */

    /* the answer under way */
    uint32_t request;      /* id, 0: none */
    struct turn *answer;   /* NULL: none */
    bool answer_drawn;     /* it has drawn its first token */
    bool answer_recorded;  /* its opening is in the transcript */
    bool stopping;         /* it was told to stop; its end has not come yet */
    uint32_t running;      /* the request that the backend is busy with, 0: none */
    uint32_t last_request; /* ids are never used twice */
    struct turn *next;     /* the answer to be asked for when the backend is free, or NULL */
    double load_share;     /* APP_LOADING: 0 - 1 */
    int32_t prefill_done, prefill_total;
    int64_t token_ns[APP_TPS_TOKENS]; /* when the last tokens were drawn: a ring of n_token_ns */
    size_t n_token_ns;
    double tps; /* measured over them; 0: not yet */
    int32_t ctx_used;
    uint64_t kv_used;    /* bytes of these positions in the KV cache */
    uint64_t kv_held;    /* bytes of the blocks that hold them, as the last end said */
    bool context_warned; /* that the context fills was said */
    bool language_noted; /* what languages the model was made for was said */
    struct detokenizer detok;
    struct app_stats stats; /* of the last answer that ended */
    struct app_totals totals;

    struct view view; /* the newest candidates; valid when has_view */
    bool has_view;
    struct turn *view_turn; /* the answer that it is of, or NULL */
    uint32_t view_request;  /* and its request */
    enum knob selected;     /* the fader that nudges move */
    int candidate;          /* the chosen row of view.candidates */

    char *queued;         /* typed while answering; sent when the answer ends */
    struct turn *editing; /* /edit: the next message becomes a version of this one, or NULL */
    bool seed_kept;       /* the seed is fixed ("kept") */
    uint32_t kept_seed;
    uint32_t seed;      /* of the answer under way, or the last */
    int32_t max_tokens; /* of an answer; < 0: until the end token */
    enum context_policy on_full;
    enum prefill_mode prefill; /* of what is being typed */
    int64_t draft_ns;          /* it differs since then from what the backend was told; 0: no */
    int64_t draft_due_ns;      /* when it is told; 0: not now */
    enum origin pace_origin, seed_origin, max_tokens_origin, on_full_origin, system_origin,
        prefill_origin;
    char *theme; /* name of the theme in use, owned */
    bool mouse;

    char message[256]; /* the message line; "" = none */
    enum severity severity;
    int64_t message_until_ns;    /* it goes at this time; 0: stays until the next */
    bool save_failed;            /* a transcript could not be written: said, and tried again */
    struct transcript **unsaved; /* of conversations that were left before they could be written */
    size_t n_unsaved, cap_unsaved;
    int64_t save_after_ns;             /* not before this time is written (again) */
    char *model_name, *previous_model; /* as last asked for; to go back to when it does not load */

    /* the view; all of it may be absent (NULL, -1) */
    const struct view_ops *ops; /* members may be NULL too */
    void *ops_ctx;
    int view_fd;                     /* polled for input; -1: none */
    void (*input_ready)(void *view); /* called when it is readable */
    int signal_fd;                   /* polled too, for the view's signals; -1: none */
    void (*signal_ready)(void *view);
    int64_t (*tick)(void *view, int64_t now_ns); /* draws when due; returns when it wants to be
                                                    called again, or INT64_MAX */
    bool quit;
};

/* NULL with `err` when options->continue_path cannot be read; backend and preset are freed then. */
struct app *app_new(const struct app_options *options, struct backend *backend /* taken */,
                    const struct desk *desk, struct preset *preset /* taken, may be NULL */,
                    struct error *err);
void app_free(struct app *app);

/* Ends the answer under way and writes what is not saved yet: before app_free, so that a failure
 * can be said where it is read. */
bool app_finish(struct app *app, struct error *err);

int app_run(struct app *app);                   /* until quit; the exit status */
void app_poll(struct app *app, int timeout_ms); /* one round of the loop */
bool app_drain(struct app *app); /* takes every event there is; true if there was one */

/* A line that was entered: a command when it starts with '/', else a message ("//" sends a slash).
 * While an answer runs a message is queued; commands act at once. */
void app_enter(struct app *app, const char *line);

/* What is being typed (view_ops.get_input) has changed: the backend is told of it when the hand
 * rests, and runs what is certain of it before it is entered. */
void app_input_changed(struct app *app);

/* An action. Those that are the view's own (focus, scrolling, the token cursor, the panel, the
 * editor) are handed to it; it is offered ACTION_VERSION_* first, for the turn under its cursor. */
void app_act(struct app *app, enum action action);

/* Knobs: each publishes a snapshot at once, and posts a peek when nothing is drawing. */
bool app_set_knob(struct app *app, enum knob knob, double value, struct error *err);
void app_nudge(struct app *app, enum knob knob, int steps, bool coarse);
void app_move_fader(struct app *app, enum knob knob, double travel);
void app_reset_fader(struct app *app, enum knob knob);
void app_mute_fader(struct app *app, enum knob knob);
void app_undo_fader(struct app *app);
bool app_choose_preset(struct app *app, const char *name, struct error *err);
void app_use_preset(struct app *app, struct preset *preset /* taken */);
void app_set_pace(struct app *app, double pace);
void app_set_paused(struct app *app, bool paused);
void app_step(struct app *app);
void app_set_candidates(struct app *app, int32_t n); /* how many rows the view has for them */

/* Answers. */
void app_stop(struct app *app);
void app_retry(struct app *app, bool same_dice);
void app_pick(struct app *app, int32_t id); /* go on from here with this token instead: a branch */
void app_cancel_edit(struct app *app); /* after /edit: the next message is a new one after all */
void app_version(struct app *app, int direction); /* '[' and ']': of the last turn with versions */
void app_version_of(struct app *app, struct turn *turn, int direction); /* of this one */
bool app_is_answering(const struct app *app); /* an answer is under way, or waits for its turn */

/* Conversations. */
void app_new_conversation(struct app *app);
bool app_load_conversation(struct app *app, const char *path, struct error *err);
bool app_switch_model(struct app *app, const char *name, struct error *err);

/* The message line, one sentence. */
void app_clear_message(struct app *app);
void app_say(struct app *app, enum severity severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Tokens of `id` as shown in a list: blanks, newlines and parts of characters made visible ("␣",
 * "⏎", "‹E4›", "‹end›"). Columns are the caller's concern. */
void app_visible_text(const char *bytes, size_t len, bool eog, char *out, size_t size);

/* What stands above an answer for which the oldest turns left the context, in one line; "" when
 * none did. */
void app_dropped_text(const struct turn *turn, char *out, size_t size);

#endif
