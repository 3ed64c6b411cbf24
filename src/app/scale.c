#include "config.h"

#include "app/scale.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* Stops of a logarithmic scale within one decade: few where they are far apart in effect. */
static const int first_decade[] = {1, 2, 3, 5, 7};
static const int later_decades[] = {10, 15, 20, 30, 40, 50, 70};
enum { N_FIRST = 5, N_LATER = 7 };

static const double min_p_stops[] = {0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.007, 0.01,
                                     0.015, 0.02,   0.03,  0.04,  0.05,  0.07,  0.1,   0.15,
                                     0.2,   0.3,    0.4,   0.5,   0.7,   1.0};
enum { N_MIN_P = sizeof min_p_stops / sizeof min_p_stops[0] };

/* The share of a logarithmic scale's travel that lies between "off" and the next stop. */
static const double off_gap = 0.06;

static const double top_p_middle = 0.8; /* half of the travel is left for what lies above */

struct linear {
    double min, max, fine, coarse;
    int decimals;
};

static const struct linear linears[KNOB_COUNT] = {
    [KNOB_TEMPERATURE] = {0, 2, 0.05, 0.2, 2},
    [KNOB_TOP_P] = {0, 1, 0.01, 0.05, 2},
    [KNOB_REPETITION_PENALTY] = {1, 1.5, 0.01, 0.05, 2},
};

double scale_round(double value, int decimals)
{
    double unit = pow(10, decimals);

    return round(value * unit) / unit;
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* ---- the scales with stops ------------------------------------------------------------------ */

static double top_k_stop(size_t i)
{
    if (i < N_FIRST)
        return first_decade[i];
    i -= N_FIRST;
    return later_decades[i % N_LATER] * pow(10, (double)(i / N_LATER));
}

static double vocabulary(int32_t n_vocab)
{
    return n_vocab > 1 ? n_vocab : SCALE_VOCAB_UNKNOWN;
}

/* Stop number `i` of a scale from its left end, "off" included, and how many there are. */
static size_t n_stops(enum knob knob, int32_t n_vocab)
{
    size_t n = 0;

    if (knob == KNOB_MIN_P)
        return N_MIN_P + 1;
    while (top_k_stop(n) < vocabulary(n_vocab))
        n++;
    return n + 1;
}

static double stop_at(enum knob knob, size_t i, int32_t n_vocab)
{
    if (knob == KNOB_MIN_P)
        return i == 0 ? 0 : min_p_stops[i - 1];
    return i + 1 == n_stops(knob, n_vocab) ? 0 : top_k_stop(i);
}

/* The order in which values stand on the scale: off is the right end of top-k, the
 * left of min-p. */
static double rank_of(enum knob knob, double value)
{
    return knob == KNOB_TOP_K && value <= 0 ? INFINITY : value;
}

static double step_once(enum knob knob, double value, bool up, int32_t n_vocab)
{
    size_t n = n_stops(knob, n_vocab);
    double at = rank_of(knob, value);

    if (up) {
        for (size_t i = 0; i < n; i++) {
            if (rank_of(knob, stop_at(knob, i, n_vocab)) > at)
                return stop_at(knob, i, n_vocab);
        }
        return value;
    }
    for (size_t i = n; i-- > 0;) {
        if (rank_of(knob, stop_at(knob, i, n_vocab)) < at)
            return stop_at(knob, i, n_vocab);
    }
    return value;
}

static double top_k_travel(double value, int32_t n_vocab, bool *beyond)
{
    double max = vocabulary(n_vocab);

    if (value <= 0)
        return 1;
    *beyond = value > max;
    return log(clamp(value, 1, max)) / log(max) * (1 - off_gap);
}

static double min_p_travel(double value)
{
    if (value <= 0)
        return 0;
    double low = log(min_p_stops[0]);
    return off_gap + (1 - off_gap) * (log(clamp(value, min_p_stops[0], 1)) - low) / -low;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static bool has_stops(enum knob knob)
{
    return knob == KNOB_TOP_K || knob == KNOB_MIN_P;
}

double scale_travel(enum knob knob, double value, int32_t n_vocab, bool *beyond)
{
    bool ignored;

    if (beyond == NULL)
        beyond = &ignored;
    *beyond = false;
    if (knob == KNOB_TOP_K)
        return top_k_travel(value, n_vocab, beyond);
    if (knob == KNOB_MIN_P)
        return min_p_travel(value);
    if (knob == KNOB_TOP_P)
        return value <= top_p_middle
                   ? 0.5 * clamp(value, 0, 1) / top_p_middle
                   : 0.5 + 0.5 * (clamp(value, 0, 1) - top_p_middle) / (1 - top_p_middle);
    const struct linear *l = &linears[knob];
    if (l->max <= l->min) /* the penalty's window is no fader */
        return 0;
    *beyond = value < l->min || value > l->max;
    return (clamp(value, l->min, l->max) - l->min) / (l->max - l->min);
}

static double snap_to_stop(enum knob knob, double travel, int32_t n_vocab)
{
    double best = 0, best_distance = INFINITY;

    for (size_t i = 0, n = n_stops(knob, n_vocab); i < n; i++) {
        double value = stop_at(knob, i, n_vocab);
        double distance = fabs(scale_travel(knob, value, n_vocab, NULL) - travel);
        if (distance < best_distance) {
            best = value;
            best_distance = distance;
        }
    }
    return best;
}

double scale_snap(enum knob knob, double travel, int32_t n_vocab)
{
    travel = clamp(travel, 0, 1);
    if (has_stops(knob))
        return snap_to_stop(knob, travel, n_vocab);
    const struct linear *l = &linears[knob];
    double value = l->min + travel * (l->max - l->min);
    if (knob == KNOB_TOP_P)
        value = travel <= 0.5 ? travel / 0.5 * top_p_middle
                              : top_p_middle + (travel - 0.5) / 0.5 * (1 - top_p_middle);
    return scale_round(round(value / l->fine) * l->fine, l->decimals);
}

double scale_step(enum knob knob, double value, int steps, bool coarse, int32_t n_vocab)
{
    bool up = steps > 0;

    if (has_stops(knob)) {
        for (int i = abs(steps) * (coarse ? 3 : 1); i > 0; i--)
            value = step_once(knob, value, up, n_vocab);
        return value;
    }
    const struct linear *l = &linears[knob];
    if (steps == 0 || (up && value >= l->max) || (!up && value <= l->min))
        return value;
    double moved = scale_round(value + steps * (coarse ? l->coarse : l->fine), l->decimals);
    return up ? fmin(moved, l->max) : fmax(moved, l->min);
}
