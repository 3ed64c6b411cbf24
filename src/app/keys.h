/* Actions, and the one table that binds keys to them: /keys, /help, the hint line, the man page
 * and the decoder all read it. */
#ifndef FADER_APP_KEYS_H
#define FADER_APP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum action {
    ACTION_NONE,
    /* anywhere */
    ACTION_PAUSE,
    ACTION_STEP,
    ACTION_SLOWER,
    ACTION_FASTER,
    ACTION_STOP,
    ACTION_PRESETS,
    ACTION_PANEL,
    ACTION_HELP,
    ACTION_RETRY,
    ACTION_RETRY_SAME,
    ACTION_REDRAW,
    ACTION_EDITOR,
    ACTION_FOCUS_NEXT,
    ACTION_FOCUS_PREVIOUS,
    ACTION_NUDGE_LEFT,
    ACTION_NUDGE_RIGHT,
    ACTION_FADER_UP,
    ACTION_FADER_DOWN,
    ACTION_SCROLL_UP,
    ACTION_SCROLL_DOWN,
    ACTION_SCROLL_HOME,
    ACTION_SCROLL_END,
    ACTION_SUSPEND,
    ACTION_NEW_LINE,
    ACTION_SEND,
    /* faders focused */
    ACTION_COARSE_LEFT,
    ACTION_COARSE_RIGHT,
    ACTION_FADER_RESET,
    ACTION_FADER_MUTE,
    ACTION_FADER_UNDO,
    /* candidates focused */
    ACTION_CANDIDATE_UP,
    ACTION_CANDIDATE_DOWN,
    ACTION_CANDIDATE_PICK,
    /* transcript focused */
    ACTION_TOKEN_LEFT,
    ACTION_TOKEN_RIGHT,
    ACTION_LINE_UP,
    ACTION_LINE_DOWN,
    ACTION_VERSION_PREVIOUS,
    ACTION_VERSION_NEXT,
    ACTION_COPY,
    ACTION_HEAT,
    /* faders, candidates, transcript: back to the input line; leave */
    ACTION_FOCUS_INPUT,
    ACTION_QUIT,
    ACTION_COUNT
};

enum focus { FOCUS_INPUT, FOCUS_FADERS, FOCUS_CANDIDATES, FOCUS_TRANSCRIPT, FOCUS_COUNT };

/* Keys as the decoder names them: a code point, or one of these; modifiers or'ed in. Control
 * characters are their own code points (Ctrl-C is 3, Tab 9, Enter 13, Esc 27, Backspace 127 or 8),
 * never KEYMOD_CTRL; capital letters carry no KEYMOD_SHIFT. */
enum key {
    KEY_BASE_ = 0x110000,
    KEYS_UP,
    KEYS_DOWN,
    KEYS_LEFT,
    KEYS_RIGHT,
    KEYS_HOME,
    KEYS_END,
    KEYS_PAGE_UP,
    KEYS_PAGE_DOWN,
    KEYS_INSERT,
    KEYS_DELETE,
    KEYS_BACKTAB,
    KEYS_F1,
    KEYS_F2,
    KEYS_F3,
    KEYS_F4,
    KEYS_F5,
    KEYS_F6,
    KEYS_F7,
    KEYS_F8,
    KEYS_F9,
    KEYS_F10,
    KEYS_F11,
    KEYS_F12
};
enum {
    KEYMOD_ALT = 1 << 24,
    KEYMOD_CTRL = 1 << 25,
    KEYMOD_SHIFT = 1 << 26,
    KEYMOD_CTRL_X = 1 << 27
};

enum { BIND_ANYWHERE = -1 }; /* else an enum focus */

struct binding {
    int where; /* BIND_ANYWHERE or enum focus */
    int key;   /* with modifiers; KEYMOD_CTRL_X: after ^X */
    enum action action;
};
extern const struct binding bindings[];
extern const size_t n_bindings;

struct action_help {
    enum action action;
    const char *what;       /* "pause, go on" */
    const char *everywhere; /* "^X Space" */
    const char *fast;       /* "F5" or "" */
    const char *fails;      /* where the fast one fails, or "" */
};
extern const struct action_help action_helps[];
extern const size_t n_action_helps;

/* The action bound to `key` when `focus` has it, or ACTION_NONE. */
enum action keys_find(enum focus focus, int key);
void keys_format(int key, char out[24]); /* "^X Space", "Alt-j", "F5" */

/* The text of /keys: every action with its keys, and what holds in which place. */
struct str;
void keys_describe(struct str *out);

/* What a key that arrived is and does, for /keys as a tester: "^X Space: pause, go on", "Alt-q:
 * readline's". */
void keys_explain(int key, char *out, size_t size);

/* The hint line: what may be done here and now, the most useful first; the view shows as many as
 * fit. `answering`: an answer is under way; `paused`: the desk is paused. Static, ends with key
 * NULL. */
struct key_hint {
    const char *key;  /* "F5" */
    const char *what; /* "go on" */
};
const struct key_hint *keys_hints(enum focus focus, bool answering, bool paused);

#endif
