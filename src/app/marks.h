/* Marks: what the margin says about the movements of knobs in an answer.
 *
 * Movements of one knob with no token between are one mark; movements of one knob, each within
 * MARK_RIDE_TOKENS of the one before, are one ride ("temp 0.80▸1.60 over 9 words"). A movement that
 * was taken back before the next token leaves no mark. Pure functions of the turn. */
#ifndef FADER_APP_MARKS_H
#define FADER_APP_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "chat/conversation.h"

enum { MARK_RIDE_TOKENS = 10, MARK_LABEL = 96 };

struct mark {
    int32_t n;    /* the first token drawn with a moved knob: underline it */
    int32_t last; /* the first token drawn with `to`; n when it is not a ride */
    enum knob knob;
    double from, to;
    char letter;            /* for the margin: R T K P M N */
    char label[MARK_LABEL]; /* UTF-8, for the end of the line that holds token n */
};

/* Writes up to `max` marks of an answer (`out` may be NULL for none), by n, then in the order of
 * enum knob; returns how many there are in all. */
size_t marks_of(const struct turn *turn, struct mark *out, size_t max);

/* 'T' for the temperature, K top-k, P top-p, M min-p, R the repetition penalty, N its window. */
char mark_letter(enum knob knob);

#endif
