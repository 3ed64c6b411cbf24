/* Which value of each knob the next draw uses: the board's, unless a movement fixed in advance
 * (request.moves) stands over it. Such a movement wins from its token on, until the board's own
 * value of that knob changes: the hand at the desk has the last word. Pure logic, of the generation
 * thread. */
#ifndef FADER_BACKEND_KNOBSTATE_H
#define FADER_BACKEND_KNOBSTATE_H

#include "backend/backend.h"

struct knob_state {
    struct knobs in_force;    /* of the last draw of this answer */
    struct knobs board;       /* as last seen */
    bool moved[KNOB_COUNT];   /* a movement stands over it ... */
    double value[KNOB_COUNT]; /* ... with this value */
    const struct move *moves; /* of the request; sorted by n, those before `next` are made */
    size_t n_moves, next;
    const struct chain_move *chain; /* the one that stands over the board's chain, or NULL */
    const struct chain_move *chains;
    size_t n_chains, next_chain;
};

/* A snapshot was read. */
void knob_state_see(struct knob_state *s, const struct knobs *board);

/* An answer starts with these knobs. Movements of tokens that the request brought along are made
 * without a word: they were told when those tokens were drawn. */
void knob_state_start(struct knob_state *s, const struct knobs *board, const struct request *r);
void knob_state_end(struct knob_state *s);

/* The draw of answer token n comes next: makes the movements that are due. */
void knob_state_move(struct knob_state *s, int32_t n);

/* The knobs for the next draw: the board's, but for those that a movement of this answer set. */
struct knobs knob_state_effective(const struct knob_state *s, const struct knobs *board);

#endif
