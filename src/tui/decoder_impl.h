/* What the files of the decoder share: decoder.c knows bytes and time, decoder_csi.c what sequences
 * mean. */
#ifndef FADER_TUI_DECODER_IMPL_H
#define FADER_TUI_DECODER_IMPL_H

#include "tui/decoder.h"

#define MS ((int64_t)1000000)

enum { CTRL_C = 3, BEL = 7, CTRL_X = 0x18, ESC = 0x1B, DEL = 0x7F };

enum decoder_state {
    GROUND,
    UTF8,      /* in a character */
    ESCAPE,    /* ESC */
    CSI,       /* ESC [ */
    SS3,       /* ESC O */
    LINUX_F,   /* ESC [ [: the Linux console's F1 - F5 */
    X10_MOUSE, /* ESC [ M: three bytes follow */
    STRING,    /* an OSC, DCS or APC: a reply to somebody */
    PASTE
};

/* ---- decoder.c ------------------------------------------------------------------------------ */
void decoder_push(struct decoder *d, const struct term_event *event);
void decoder_push_key(struct decoder *d, int key, const void *raw, size_t raw_len, int64_t now_ns);
void decoder_push_reply(struct decoder *d, enum term_reply reply, int a, int b);
void decoder_go_to(struct decoder *d, enum decoder_state state);

/* The sequence in d->seq is complete and is `key`; a second ESC in front of it was Alt. */
void decoder_finish_key(struct decoder *d, int key, int64_t now_ns);

/* ---- decoder_csi.c -------------------------------------------------------------------------- */

/* A complete CSI sequence lies in d->seq. */
void decoder_finish_csi(struct decoder *d, int64_t now_ns);

/* `code` as in the SGR encoding; x and y from 1. */
void decoder_push_mouse(struct decoder *d, int code, int x, int y, bool release, int64_t now_ns);

/* The key of ESC O `final`, or 0. */
int decoder_ss3_key(unsigned char final);

#endif
