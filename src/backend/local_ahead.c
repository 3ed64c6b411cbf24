/* Running ahead: while nothing else is to do, the beginning of the next prompt is put into a cache,
 * from the end of the last answer to the last whole word of what is being typed.
 *
 * It runs on a fork of the answers' session, which shares the blocks of what both have and leaves
 * the logits in hand alone. The request that comes is compared with both, token by token, and goes
 * on from the one that has more of it: what was run for nothing costs time, never a wrong bit. One
 * fork there is at most, so the caches never hold more than two contexts. */
#include "config.h"

#include "backend/local_impl.h"
#include "base/power.h"

enum {
    BATCH = 32, /* tokens: nearly as fast as large ones, and soon done */
    WORTH = 6 /* fewer cost little with the rest of the prompt, and as much as one for themselves */
};

/* With how many of these tokens the session begins; `s` may be NULL. */
static int32_t shared(const struct session *s, const struct token_list *tokens)
{
    return s != NULL ? session_common(s, tokens->ids, tokens->n) : 0;
}

void local_expect(struct source *source, const struct draft *d)
{
    struct local *l = local_of(source);
    const char *folder = l->power_folder != NULL ? l->power_folder : POWER_FOLDER;
    const bool on_battery = d->mains_only && power_on_battery(folder);

    atomic_store(&l->on_battery, on_battery);
    atomic_store(&l->n_ahead, 0);
    l->expected.n = 0;
    if (!on_battery)
        local_compose_draft(l, d, &l->expected);
}

/* Makes l->ahead the session that has most of what is expected, cut where they part. False: nothing
 * is left that would be worth it, or there is no memory. */
static bool prepare_fork(struct local *l)
{
    const int32_t in_hand = shared(l->session, &l->expected);
    const int32_t ahead = shared(l->ahead, &l->expected);
    const int32_t most = in_hand > ahead ? in_hand : ahead;
    struct error ignored;

    atomic_store(&l->n_ahead, most);
    if (l->expected.n - (size_t)most < WORTH)
        return false;
    if (l->ahead == NULL || in_hand > ahead) {
        session_free(l->ahead);
        l->ahead = session_fork(l->session, &ignored);
    }
    if (l->ahead == NULL)
        return false;
    session_truncate(l->ahead, most);
    return true;
}

bool local_run_ahead(struct source *source, struct generator *g)
{
    struct local *l = local_of(source);
    const struct eval_hooks hooks = {.cancel = generator_interrupt_flag(g)};
    struct error ignored;

    if (!prepare_fork(l))
        return false;
    const size_t done = (size_t)session_length(l->ahead), left = l->expected.n - done;
    enum eval_result result = session_eval(l->ahead, l->expected.ids + done,
                                           left < BATCH ? left : BATCH, &hooks, &ignored);
    if (result == EVAL_OK || result == EVAL_CANCELLED)
        return true;
    l->expected.n = 0; /* the request, if it comes, will say why not */
    return false;
}

int32_t local_take_ahead(struct local *l, const struct token_list *tokens)
{
    const int32_t in_hand = shared(l->session, tokens), ahead = shared(l->ahead, tokens);

    l->expected.n = 0;
    atomic_store(&l->n_ahead, 0);
    if (ahead <= in_hand)
        return 0;
    session_free(l->session);
    l->session = l->ahead;
    l->ahead = NULL;
    return ahead - in_hand;
}
