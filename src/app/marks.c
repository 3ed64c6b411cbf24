#include "config.h"

#include "app/marks.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/desk.h"
#include "base/mem.h"

char mark_letter(enum knob knob)
{
    static const char letters[KNOB_COUNT] = {
        [KNOB_REPETITION_PENALTY] = 'R',
        [KNOB_TEMPERATURE] = 'T',
        [KNOB_TOP_K] = 'K',
        [KNOB_TOP_P] = 'P',
        [KNOB_MIN_P] = 'M',
        [KNOB_REPEAT_LAST_N] = 'N',
    };

    return letters[knob];
}

/* A ride under way, and the value farthest from where it began, for one that comes back. */
struct ride {
    struct mark mark;
    double peak;
    bool open;
};

struct mark_list {
    struct mark *items;
    size_t n, cap;
};

/* How many words begin between two tokens; at least one. */
static int words_between(const struct turn *t, int32_t from, int32_t to)
{
    int words = 0;

    for (int32_t i = from; i < to; i++) {
        size_t len;
        const char *text = turn_token_text(t, (size_t)i, &len);
        if (len > 1 && (text[0] == ' ' || text[0] == '\n'))
            words++;
    }
    return words > 0 ? words : 1;
}

static void write_label(const struct turn *t, struct ride *r)
{
    struct mark *m = &r->mark;
    char from[16], to[16], peak[16], over[32] = "";

    fader_value_text(m->knob, m->from, from);
    fader_value_text(m->knob, m->to, to);
    fader_value_text(m->knob, r->peak, peak);
    if (m->last > m->n) {
        int words = words_between(t, m->n, m->last);
        snprintf(over, sizeof over, " over %d word%s", words, words == 1 ? "" : "s");
    }
    if (m->from == m->to)
        snprintf(m->label, sizeof m->label, "%s %s▸%s▸%s%s", knob_traits[m->knob].label, from, peak,
                 to, over);
    else
        snprintf(m->label, sizeof m->label, "%s %s▸%s%s", knob_traits[m->knob].label, from, to,
                 over);
}

static double distance(double a, double b)
{
    return a < b ? b - a : a - b;
}

static int by_place(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (int)x->knob - (int)y->knob;
}

static void close_ride(const struct turn *t, struct ride *r, struct mark_list *out)
{
    if (!r->open)
        return;
    write_label(t, r);
    mem_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items);
    out->items[out->n++] = r->mark;
}

static void rides_of(const struct turn *t, enum knob knob, struct mark_list *out)
{
    struct ride ride = {.open = false};

    for (size_t i = 0; i < t->n_moves; i++) {
        const struct answer_knob *first = &t->moves[i];
        if (first->knob != knob)
            continue;
        /* movements with no token between: only where the last one ended counts */
        double from = first->from, value = first->value;
        while (i + 1 < t->n_moves && t->moves[i + 1].n == first->n) {
            i++;
            if (t->moves[i].knob == knob)
                value = t->moves[i].value;
        }
        if (value == from)
            continue;
        if (ride.open && first->n - ride.mark.last <= MARK_RIDE_TOKENS) {
            ride.mark.last = first->n;
            ride.mark.to = value;
        } else {
            close_ride(t, &ride, out);
            ride = (struct ride){{.n = first->n,
                                  .last = first->n,
                                  .knob = knob,
                                  .from = from,
                                  .to = value,
                                  .letter = mark_letter(knob)},
                                 value,
                                 true};
        }
        if (distance(value, ride.mark.from) > distance(ride.peak, ride.mark.from))
            ride.peak = value;
    }
    close_ride(t, &ride, out);
}

size_t marks_of(const struct turn *turn, struct mark *out, size_t max)
{
    struct mark_list marks = {NULL, 0, 0};

    if (turn->n_moves == 0)
        return 0;
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        rides_of(turn, (enum knob)knob, &marks);
    if (marks.n > 1)
        qsort(marks.items, marks.n, sizeof *marks.items, by_place);
    for (size_t i = 0; i < marks.n && i < max; i++)
        out[i] = marks.items[i];
    free(marks.items);
    return marks.n;
}
