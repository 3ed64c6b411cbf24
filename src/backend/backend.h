/* What answers. A backend runs on its own thread; the UI thread talks to it through a vtable, and
 * it talks back in events. Four things lie between (design: sync/): the slots of requests and
 * drafts, the parameter board, the event ring, and the wake pipe with the cancel flags.
 *
 * Life cycle: local_backend_new / scripted_backend_new -> submit, expect, cancel, publish,
 * next_event ... -> backend_close (cancels, joins, frees).  All functions are for the UI thread
 * only. */
#ifndef FADER_BACKEND_BACKEND_H
#define FADER_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chat/message.h"
#include "engine/engine.h"
#include "engine/sampler.h"

/* ---- control: the snapshot on the parameter board ------------------------------------------- */

struct control {
    struct knobs knobs;
    uint32_t version;   /* of this publication; events name it */
    double pace;        /* tokens a second; 0 = full speed */
    bool paused;        /* no draw is made, but for `steps` */
    uint32_t steps;     /* cumulative count of single steps asked for */
    int32_t candidates; /* how many a view event should carry, at most VIEW_MAX; 0: none */
};

/* ---- requests ------------------------------------------------------------------------------- */

/* A knob movement fixed in advance: in force for the draw of answer token n (--at, replays). */
struct move {
    int32_t n;
    enum knob knob;
    double value;
};

/* The same for the order of the stages and the exemption: those of `knobs`, for replays. */
struct chain_move {
    int32_t n;
    struct knobs knobs;
};

enum request_kind { REQUEST_CHAT, REQUEST_RAW };
enum context_policy { CONTEXT_STOP, CONTEXT_DROP_OLDEST };

struct request {
    uint32_t id; /* of the caller's choosing, not 0; every event carries it */
    enum request_kind kind;
    struct message_list messages; /* REQUEST_CHAT: the last one is the user's */
    char *text;                   /* REQUEST_RAW: the prompt, no template */
    size_t text_len;
    int32_t *answer; /* tokens of the answer that are fixed already (a branch) */
    size_t n_answer; /* the first draw is that of answer token n_answer */
    uint32_t seed;
    int32_t max_tokens; /* of the whole answer; < 0: no limit */
    enum context_policy on_full;
    struct move *moves; /* sorted by n */
    size_t n_moves;
    struct chain_move *chains; /* sorted by n */
    size_t n_chains;
};
void request_done(struct request *r); /* frees what it owns */

/* What is probably asked next: a chat whose last message, the user's, is still being written. */
struct draft {
    struct message_list messages;
    enum context_policy on_full;
    bool mains_only; /* not while the computer runs on its battery */
};
void draft_done(struct draft *d); /* frees what it owns */

/* ---- events --------------------------------------------------------------------------------- */

enum event_type {
    EVENT_LOADING,  /* share: the model is being loaded */
    EVENT_READY,    /* the model can answer; model_info is there from here on */
    EVENT_START,    /* an answer begins: the prompt is tokenized, prefill starts */
    EVENT_PROGRESS, /* prefill: done, total */
    EVENT_KNOB,     /* a knob's value changed; in force from token n on */
    EVENT_TOKEN,    /* one token was drawn */
    EVENT_VIEW,     /* the chain on the logits in hand: what the next draw would be */
    EVENT_DROPPED,  /* the oldest turns left the context (CONTEXT_DROP_OLDEST) */
    EVENT_END,      /* the answer is over */
    EVENT_ERROR     /* text says why; if a request was under way it is over */
};

enum end_reason { END_EOG, END_MAX_TOKENS, END_STOPPED, END_CONTEXT_FULL, END_ERROR };
/* "eog", "max_tokens", "stopped", "context_full", "error" */
const char *end_reason_name(enum end_reason r);

enum { VIEW_MAX = 24, VIEW_CUT_MAX = 3, VIEW_TEXT = 32 };

struct view_candidate {
    struct sampler_candidate c;
    char text[VIEW_TEXT]; /* the piece's bytes, cut to fit; may be part of a character */
    uint8_t len;
    bool eog;
};

/* The desk's numbers for one draw. Candidates: survivors first, then up to VIEW_CUT_MAX for each
 * stage that cut something, in stage order (candidate.c.cut_by tells them apart). */
struct view {
    int32_t n;        /* of the answer token that this draw is */
    uint32_t version; /* of the control in force */
    bool greedy;
    bool drawn;   /* false: before the draw; true: what it was made from */
    double dice;  /* the uniform number of this draw */
    int32_t pick; /* the id on which it falls */
    double pick_p;
    double entropy; /* bits, after the whole chain */
    struct sampler_stage stages[STAGE_COUNT];
    int32_t n_survivors;  /* in all */
    int32_t n_candidates; /* in the array below */
    int32_t n_listed;     /* how many of these are survivors */
    struct view_candidate candidates[VIEW_MAX + VIEW_CUT_MAX * STAGE_COUNT];
};

struct event {
    enum event_type type;
    uint32_t request; /* 0: of no answer (loading, a peek while idle) */
    /* Token bytes, error text, model name; NUL-terminated, in the queue's memory until the next
     * call of backend_next_event. */
    const char *text;
    size_t len;
    union {
        struct {
            double share;
        } loading;
        struct {
            uint32_t seed;
            int32_t prompt_tokens; /* in the context before the first draw: a given answer too */
            int32_t reused_tokens; /* of these, those that were in the cache already ... */
            int32_t ahead_tokens;  /* ... and of these, those run ahead (backend_expect) */
            int32_t ctx_size;
        } start;
        struct {
            int32_t done, total;
        } progress;
        struct {
            int32_t n;
            enum knob knob;
            double from, value;
            uint32_t version;
        } knob;
        struct {
            int32_t n;
            struct sampler_draw draw;
            uint32_t version;
            struct knobs knobs; /* in force for this draw, moves included */
            int64_t time_ns;    /* monotonic, at the draw */
            double entropy;     /* bits after the chain; NaN where it was not computed */
            int32_t ctx_used;   /* positions, this token included */
        } token;
        struct view view;
        struct {
            int32_t messages, tokens;
        } dropped;
        struct {
            enum end_reason reason;
            int32_t tokens; /* in the answer, the given ones included */
            double prefill_tps, decode_tps, ttft_ms;
            int32_t ctx_used;
            uint64_t kv_used; /* bytes */
        } end;
    } u;
};

/* ---- the backend itself --------------------------------------------------------------------- */

struct backend;

struct backend_status {
    bool ready;                     /* the model is loaded */
    bool failed;                    /* it could not be; an EVENT_ERROR said why */
    const struct model_info *model; /* NULL until it is opened; stays valid until close */
    const struct template_choice *chat_template; /* NULL until it is opened */
    const char *notice; /* what one should know of how it was loaded, or NULL */
    const char *kernels;
    int threads;
    int32_t ctx_size;
    struct ledger ledger; /* of ctx_size */
    double full_tps;      /* what decode makes without pace, measured; 0 = not yet */
    int32_t ahead;        /* of the expected prompt: tokens that are in the cache */
    bool on_battery;      /* the last draft was refused: the computer runs on its battery */
};

struct backend_vtable {
    bool (*submit)(struct backend *b, struct request *r, struct error *err); /* takes what r owns */
    void (*expect)(struct backend *b, struct draft *d);                      /* takes what d owns */
    void (*cancel)(struct backend *b);
    void (*publish)(struct backend *b, const struct control *c);
    bool (*next_event)(struct backend *b, struct event *out);
    void (*status)(const struct backend *b, struct backend_status *out);
    size_t (*piece)(const struct backend *b, int32_t id, char *out, size_t size);
    void (*close)(struct backend *b);
};

struct backend {
    const struct backend_vtable *vtable;
    int wake_fd; /* readable when there are events and the UI has armed */
    struct wake *wake;
};

/* Hands over an answer to be made. False with `err` when one is under way or the model failed.
 * While the model still loads it waits for it. The id must be new. */
bool backend_submit(struct backend *b, struct request *r, struct error *err);

/* Tells what is probably asked next, in place of what was told before. While there is nothing else
 * to do the backend runs as much of it as is certain, so that the request finds it in the cache. A
 * request, a publication and the close interrupt that within milliseconds, and the logits in hand
 * stay as they are. What the prompt then says is the same, to the bit. */
void backend_expect(struct backend *b, struct draft *d);

/* Ends the answer under way within milliseconds; EVENT_END with END_STOPPED still comes. */
void backend_cancel(struct backend *b);

/* Publishes a control snapshot: in force at the next draw. While no draw is being made (idle or
 * paused) it also asks for an EVENT_VIEW of the logits in hand, if control.candidates > 0. */
void backend_publish(struct backend *b, const struct control *c);

/* The oldest event, or false when there is none. Never waits. */
bool backend_next_event(struct backend *b, struct event *out);

/* What it is now; the texts in it are the backend's, valid until it is closed. */
void backend_status(const struct backend *b, struct backend_status *out);

/* Copies the bytes of token `id` (at most size); returns the whole length. 0 before READY. */
size_t backend_piece(const struct backend *b, int32_t id, char *out, size_t size);
void backend_close(struct backend *b); /* NULL is fine */

/* ---- the two that exist --------------------------------------------------------------------- */

struct local_options {
    const char *model_path;
    struct model_load_options load;
    struct session_options session;
    const char *power_folder; /* as of power_on_battery; NULL: the system's */
};
/* Opens and loads the model on the new thread: returns at once. */
struct backend *local_backend_new(const struct local_options *options,
                                  const struct control *initial, struct error *err);

/* For tests: answers from a script of lines, each the candidates of one draw as JSON, with no
 * model; see backend/scripted.c for the format. Runs the real sampler, pace, pause, ring and board.
 */
struct backend *scripted_backend_new(const char *script_path, const struct control *initial,
                                     struct error *err);

#endif
