#include "config.h"

#include "backend/knobstate.h"

#include <string.h>

void knob_state_see(struct knob_state *s, const struct knobs *board)
{
    for (int k = 0; k < KNOB_COUNT; k++) {
        if (s->board.value[k] != board->value[k])
            s->moved[k] = false;
    }
    if (!knobs_same_chain(&s->board, board))
        s->chain = NULL;
    s->board = *board;
}

void knob_state_move(struct knob_state *s, int32_t n)
{
    for (; s->next < s->n_moves && s->moves[s->next].n <= n; s->next++) {
        const struct move *m = &s->moves[s->next];
        s->moved[m->knob] = true;
        s->value[m->knob] = m->value;
    }
    for (; s->next_chain < s->n_chains && s->chains[s->next_chain].n <= n; s->next_chain++)
        s->chain = &s->chains[s->next_chain];
}

void knob_state_start(struct knob_state *s, const struct knobs *board, const struct request *r)
{
    memset(s->moved, 0, sizeof s->moved);
    s->moves = r->moves;
    s->n_moves = r->n_moves;
    s->next = 0;
    s->chain = NULL;
    s->chains = r->chains;
    s->n_chains = r->n_chains;
    s->next_chain = 0;
    knob_state_move(s, (int32_t)r->n_answer - 1);
    s->in_force = knob_state_effective(s, board);
}

void knob_state_end(struct knob_state *s)
{
    memset(s->moved, 0, sizeof s->moved);
    s->moves = NULL;
    s->n_moves = s->next = 0;
    s->chain = s->chains = NULL;
    s->n_chains = s->next_chain = 0;
}

struct knobs knob_state_effective(const struct knob_state *s, const struct knobs *board)
{
    struct knobs k = *board;

    for (int i = 0; i < KNOB_COUNT; i++) {
        if (s->moved[i])
            k.value[i] = s->value[i];
    }
    if (s->chain != NULL)
        knobs_set_chain(&k, &s->chain->knobs);
    return k;
}
