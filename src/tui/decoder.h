/* The decoder: bytes from the terminal in, events out. A pure state machine: it reads nothing,
 * writes nothing and has no clock of its own (whoever feeds it says what time it is), so every
 * sequence, split at every byte, is testable.
 *
 * Keys are named as in app/keys.h: a code point or KEYS_*, with KEYMOD_* or'ed in. Enter is '\r',
 * Tab '\t', Esc 27, Backspace 127, Ctrl-C 3, Ctrl-Space 0. KEYMOD_SHIFT and KEYMOD_CTRL stand on
 * named keys and Enter only, and only where the terminal tells them apart.
 *
 * ^X and the key after it are
 * one event, KEYMOD_CTRL_X | key, whose raw bytes are both: what no binding takes goes to readline
 * whole. After ^X and an arrow, plain arrows are ^X arrows too, as long as each comes within a
 * second of the one before. ^X Esc is nothing, ^X Ctrl-C is Ctrl-C.
 *
 * Life cycle: decoder_init -> (decoder_feed, decoder_expire, decoder_next ...) -> decoder_done. */
#ifndef FADER_TUI_DECODER_H
#define FADER_TUI_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum term_event_kind {
    TERM_KEY,   /* key; raw: what readline should be fed if nobody else wants it */
    TERM_MOUSE, /* mouse */
    TERM_PASTE, /* text: clean (UTF-8, no control characters but '\n' and '\t') */
    TERM_REPLY, /* reply: the terminal answered a question */
    /* From the terminal itself (tui/terminal.h), never from the decoder: */
    TERM_RESIZE,  /* curses knows the new size already: lay out and draw everything */
    TERM_RESUMED, /* we were stopped and go on, with every mode set again: draw everything */
    TERM_QUIT /* a signal, or the terminal is gone: end with `status`; the last event there is */
};

enum mouse_kind { MOUSE_PRESS, MOUSE_RELEASE, MOUSE_DRAG, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };
enum term_reply { REPLY_SYNC, REPLY_CURSOR, REPLY_OTHER };

enum { TERM_RAW_MAX = 32 };

struct term_event {
    enum term_event_kind kind;
    int key;
    unsigned char raw[TERM_RAW_MAX];
    size_t raw_len;
    struct {
        int x, y;   /* cell, from 0 */
        int button; /* 1 left, 2 middle, 3 right; 0 for the wheel */
        enum mouse_kind kind;
        int clicks; /* of a press: 1, 2 (double), 3 ... */
        int mods;   /* KEYMOD_* */
    } mouse;
    const char *text; /* until the next decoder_next; NUL-terminated */
    size_t len;
    enum term_reply reply;
    int reply_a, reply_b; /* REPLY_SYNC: the DECRPM value (1, 2, 3: known); REPLY_CURSOR: row,
                             column from 1 */
    int status; /* TERM_QUIT: the exit status, 128 + signal (SIGHUP when the terminal is gone) */
};

struct decoder_options {
    int64_t escape_ns;   /* how long a lone Esc waits for more */
    bool backspace_is_h; /* the tty's erase character is ^H */
};

struct decoder {
    struct decoder_options options;
    int state;                       /* enum state in decoder.c */
    unsigned char seq[TERM_RAW_MAX]; /* the sequence so far, ESC included */
    size_t seq_len;
    int64_t since_ns;        /* when its last byte came */
    int64_t await_until_ns;  /* until then an ESC may begin a reply: be patient */
    bool has_prefix;         /* ^X came and waits for its second key */
    int64_t repeat_until_ns; /* until then a plain arrow counts as ^X arrow */
    struct str paste;        /* what a bracketed paste has brought so far */
    size_t paste_match;      /* bytes of its end marker seen */
    int button;              /* the mouse button that is down; 0: none */
    struct {
        int64_t when_ns;
        int x, y, button, count;
    } click;                  /* the last press, for double clicks */
    struct term_event *queue; /* owned; [head, n) wait to be taken */
    size_t head, n, cap;
    char *handed_out; /* text of the event taken last; owned */
};

void decoder_init(struct decoder *d, const struct decoder_options *options);
void decoder_done(struct decoder *d);

/* Takes bytes as they came at `now_ns`. */
void decoder_feed(struct decoder *d, const char *bytes, size_t len, int64_t now_ns);

/* Time has passed and nothing more came: a lone Esc becomes a key, a paste without an end is given
 * up waiting for. Call it only after everything there was to read has been fed. */
void decoder_expire(struct decoder *d, int64_t now_ns);

/* When decoder_expire has something to do; INT64_MAX: never. */
int64_t decoder_deadline(const struct decoder *d);

/* A question was sent: until `until_ns` an ESC may be the start of its answer, and is waited for
 * longer. */
void decoder_await_reply(struct decoder *d, int64_t until_ns);

/* Takes the oldest event; false when there is none. */
bool decoder_next(struct decoder *d, struct term_event *out);

#endif
