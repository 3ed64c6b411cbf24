#include "config.h"

#include "engine/order.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/order_sort.h"

enum {
    FEW = 256,          /* elements that are worth sorting */
    FRONT_MAX = 256,    /* blocks that a first look goes to */
    FRONT_SAMPLE = 256, /* blocks by which it is told to which */
    TRIES = 8,          /* of a piece, before all is taken that it may lie in */
    LEVELS = 8          /* pieces of pieces: each is a fraction of the one before */
};

const struct entry order_begin = {INFINITY, -1}, order_end = {-FLT_MAX, INT32_MAX};

/* One in so many elements is sampled: the cube root's multiple balances the cost of sorting the
 * sample with that of the pieces, which are the shorter the longer it is. */
static size_t sample_step(size_t n)
{
    size_t step = 1;

    while (step * step * step < 8 * n)
        step++;
    return step;
}

static void part_init(struct part *p, size_t n)
{
    p->value = mem_array(n, sizeof *p->value);
    p->weight = mem_array(n, sizeof *p->weight);
    p->id = mem_array(n, sizeof *p->id);
}

static void part_done(struct part *p)
{
    free(p->value);
    free(p->weight);
    free(p->id);
}

void order_init(struct order *o, size_t blocks)
{
    const size_t n = blocks * SCAN_BLOCK, sampled = n / sample_step(n) + 1;

    o->scan = scan_choose();
    o->blocks = blocks;
    for (int i = 0; i < 2; i++)
        part_init(&o->parts[i], n + SCAN_BLOCK);
    o->entries = mem_array(n, sizeof *o->entries);
    o->scratch = mem_array(n, sizeof *o->scratch);
    o->whole.entries = mem_array(sampled, sizeof *o->whole.entries);
    o->some.entries = mem_array(sampled, sizeof *o->some.entries);
    o->sampled = NULL;
}

void order_done(struct order *o)
{
    for (int i = 0; i < 2; i++)
        part_done(&o->parts[i]);
    free(o->entries);
    free(o->scratch);
    free(o->whole.entries);
    free(o->some.entries);
}

void order_values_changed(struct order *o)
{
    o->sampled = NULL;
}

static bool comes_later(struct entry a, struct entry b)
{
    return a.value < b.value || (a.value == b.value && a.id > b.id);
}

/* ---- all up to an entry ---------------------------------------------------------------------- */

size_t order_until(struct order *o, const float *value, const float *maxima, struct entry last,
                   struct entry *out)
{
    int32_t *id = o->parts[0].id;
    const size_t n = o->scan->gather(value, maxima, o->blocks, last, id);

    for (size_t i = 0; i < n; i++)
        out[i] = (struct entry){value[id[i]], id[i]};
    order_sort(out, n, o->scratch);
    return n;
}

/* ---- where a mass falls: a part that it falls in --------------------------------------------- */

/* What is looked through: a stretch of an order. */
struct search {
    struct field f;
    const int32_t *id;        /* of its elements; NULL: their positions */
    struct entry first, last; /* it lies later than the one, no later than the other */
    double front, total;      /* what all up to these weigh */
    size_t n;                 /* elements of the field, at most */
    struct part *next;        /* where a part of them goes */
};

/* Fills the next part, of which the positions are known, and tells what it weighs. */
static double take_part(const struct search *s, const struct order *o)
{
    const struct part *p = s->next;
    const struct field all = {
        .blocks = (p->n + SCAN_BLOCK - 1) / SCAN_BLOCK, .value = p->value, .weight = p->weight};

    for (size_t i = 0; i < p->n; i++)
        p->value[i] = s->f.value[p->id[i]];
    for (size_t i = p->n; i < all.blocks * SCAN_BLOCK; i++)
        p->value[i] = -INFINITY;
    for (size_t i = 0; s->f.weight != NULL && i < p->n; i++)
        p->weight[i] = s->f.weight[p->id[i]];
    for (size_t i = 0; s->id != NULL && i < p->n; i++)
        p->id[i] = s->id[p->id[i]];
    return s->f.weight != NULL ? o->scan->within(&all, order_end, false).sum : (double)p->n;
}

static void search_in_part(struct search *s, struct order *o, double total)
{
    const struct part *p = s->next;

    s->f.blocks = (p->n + SCAN_BLOCK - 1) / SCAN_BLOCK;
    s->f.value = p->value;
    s->f.weight = s->f.weight != NULL ? p->weight : NULL;
    s->id = p->id;
    s->first = order_begin;
    s->last = order_end;
    s->front = 0;
    s->total = total;
    s->n = p->n;
    s->next = &o->parts[p == &o->parts[0] ? 1 : 0];
}

/* The end of a front of the order in which about k blocks have an element: few more elements, while k
 * is small against the number of blocks. By a sample of the largest values. */
static struct entry front_end(struct order *o, const float *maxima, size_t k)
{
    const size_t step = (o->blocks + FRONT_SAMPLE - 1) / FRONT_SAMPLE;
    struct entry *e = o->entries;
    size_t n = 0;

    for (size_t b = 0; b < o->blocks; b += step)
        e[n++] = (struct entry){maxima[b], (int32_t)(b * SCAN_BLOCK + SCAN_BLOCK - 1)};
    order_sort(e, n, o->scratch);
    return e[n * k / o->blocks];
}

/* Where few weigh much, the mass may lie among the first; and where not, a sample needs to speak of
 * the rest only. No weight is above 1. */
static void try_front(struct search *s, struct order *o, const float *maxima, double target)
{
    const size_t k = o->blocks / 4 < FRONT_MAX ? o->blocks / 4 : FRONT_MAX;

    if (target >= (double)k && s->total > (double)s->n / 2)
        return;
    const struct entry end = front_end(o, maxima, k);
    if (!comes_later(s->last, end))
        return;
    s->next->n = o->scan->gather(s->f.value, maxima, o->blocks, end, s->next->id);
    const double mass = take_part(s, o);
    if (mass > target || !(mass < s->total)) {
        search_in_part(s, o, mass);
    } else {
        s->first = end;
        s->front = mass;
    }
}

/* Those of the whole are taken once for the same values. */
static const struct sample *take_sample(struct order *o, const struct search *s)
{
    const bool whole = s->id == NULL;
    const float *value = s->f.value;
    const size_t n = s->f.blocks * SCAN_BLOCK, step = sample_step(n);
    struct sample *sample = whole ? &o->whole : &o->some;

    if (whole && o->sampled == value)
        return sample;
    if (whole)
        o->sampled = value;
    sample->n = 0;
    for (size_t i = 0, k = 0; i + step <= n; i += step, k += 29) {
        const size_t at = i + k % step;
        sample->entries[sample->n] = (struct entry){value[at], (int32_t)at};
        sample->n += value[at] > -INFINITY;
    }
    order_sort(sample->entries, sample->n, o->scratch);
    return sample;
}

static inline double weight_of(const struct field *f, int32_t id)
{
    return f->weight != NULL ? (double)f->weight[id] : 1.0;
}

/* Where the mass should fall, by the sample, give or take so many standard deviations: later than
 * `after`, no later than `last`. */
static void estimate(struct order *o, const struct search *s, double target, double deviations,
                     struct entry *after, struct entry *last)
{
    const struct sample *sample = take_sample(o, s);
    const struct entry *e = sample->entries;
    const double share = (target - s->front) / (s->total - s->front);
    double all = 0, squares = 0, sum = 0;
    size_t begin = 0, n;

    while (begin < sample->n && order_within(e[begin], s->first))
        begin++;
    for (n = begin; n < sample->n && order_within(e[n], s->last); n++) {
        const double w = weight_of(&s->f, e[n].id);
        all += w;
        squares += w * w;
    }
    const double margin = deviations * sqrt(fmax(0, share * (1 - share)) * squares);
    size_t at = begin;
    while (at < n && sum + weight_of(&s->f, e[at].id) <= share * all - margin)
        sum += weight_of(&s->f, e[at++].id);
    *after = at > begin + 1 ? e[at - 2] : s->first;
    while (at < n && sum <= share * all + margin)
        sum += weight_of(&s->f, e[at++].id);
    *last = at < n ? e[at] : s->last;
}

/* Leaves the part in which the mass falls; returns the tally of what lies in front of it. A wrong
 * estimate at least tells more about where it falls. */
static struct tally narrow(struct search *s, struct order *o, double target, bool moment)
{
    const struct entry end = s->last;

    for (int tries = 1;; tries++) {
        struct entry after = order_begin, last = end;

        if (tries < TRIES)
            estimate(o, s, target, 2.5 * tries, &after, &last);
        const struct tally front =
            o->scan->split(&s->f, after, last, moment, s->next->id, &s->next->n);
        const double mass = take_part(s, o), sum = front.sum + mass;
        const bool to_end = !comes_later(s->last, last);
        const bool earlier = front.sum > target || (to_end && !(mass > 0));
        if (tries == TRIES || (!earlier && (to_end || sum > target))) {
            search_in_part(s, o, mass);
            return front;
        }
        if (earlier || !(sum < s->total)) { /* or nothing that weighs is left, by rounding */
            s->last = earlier ? after : last;
            s->total = earlier ? front.sum : sum;
        } else {
            s->first = last;
            s->front = sum;
        }
    }
}

/* ---- and there the element ------------------------------------------------------------------- */

static void tally_add(struct tally *t, const struct tally *more)
{
    t->count += more->count;
    t->sum += more->sum;
    t->moment += more->moment;
}

/* The elements under search as entries, in order. */
static size_t lay_out(struct order *o, const struct search *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct entry e = {s->f.value[i], (int32_t)i};
        o->entries[n] = e;
        n += order_within(e, s->last);
    }
    order_sort(o->entries, n, o->scratch);
    return n;
}

/* The one on which the mass falls, or else the last with a weight; what `before` counts grows by all
 * up to it. */
static struct entry walk(const struct search *s, const struct entry *e, size_t n, double target,
                         struct tally *before)
{
    struct tally sum = *before;
    size_t found = 0;

    for (size_t i = 0; i < n && !(sum.sum > target); i++) {
        const double w = weight_of(&s->f, e[i].id);
        sum.sum += w;
        sum.moment += w * (double)scan_exponent(e[i].value, s->f.top, s->f.scale);
        if (w > 0) {
            found = i;
            *before = sum;
        }
    }
    before->count += found + 1;
    const int32_t id = e[found].id;
    return (struct entry){e[found].value, s->id != NULL ? s->id[id] : id};
}

struct entry order_find(struct order *o, const struct field *f, const float *maxima,
                        struct entry last, double total, double target, struct tally *within)
{
    struct search s = {*f, NULL, order_begin, last, 0, total, f->blocks * SCAN_BLOCK, &o->parts[0]};
    struct tally before = {0};

    try_front(&s, o, maxima, target);
    for (int level = 0; s.n > FEW && level < LEVELS; level++) {
        const struct tally front = narrow(&s, o, target - before.sum, within != NULL);
        tally_add(&before, &front);
    }
    const size_t n = lay_out(o, &s);
    const struct entry found = walk(&s, o->entries, n, target, &before);
    if (within != NULL)
        *within = before;
    return found;
}

struct entry order_kth(struct order *o, const float *value, const float *maxima, struct entry last,
                       size_t alive, size_t k)
{
    const struct field each = {.blocks = o->blocks, .value = value};

    return order_find(o, &each, maxima, last, (double)alive, (double)k - 0.5, NULL);
}
