#include "config.h"

#include "engine/sampler_impl.h"

#include <math.h>

#include "engine/softmax.h"

double sampler_weight(const struct sampler *s, float value)
{
    return softmax_exp(((double)value - (double)s->top.value) / s->divisor);
}

static struct field field_of(const struct sampler *s)
{
    return (struct field){.blocks = s->blocks,
                          .value = s->value,
                          .weight = s->weight,
                          .top = s->top.value,
                          .scale = (float)(1.0 / s->divisor)};
}

void sampler_set_sum(struct sampler *s, double sum, double moment)
{
    const double entropy = log(sum) - moment / sum;

    s->sum = sum;
    s->entropy = entropy > 0 ? entropy : 0;
    s->summed = s->measured = true;
}

static void weigh_list(struct sampler *s)
{
    double sum = 0, moment = 0;

    for (size_t i = 0; i < s->n_list; i++) {
        s->share[i] = sampler_weight(s, s->list[i].value);
        sum += s->share[i];
        moment += s->share[i] * ((double)s->list[i].value - (double)s->top.value) / s->divisor;
    }
    sampler_set_sum(s, sum, moment);
}

static void weigh_field(struct sampler *s, bool entropy)
{
    const struct field f = field_of(s);
    struct tally t = {0};

    if (s->weighted)
        t = s->scan->within(&f, s->last, entropy);
    else
        t.sum = s->scan->weigh(&f, s->last, s->weight, entropy ? &t.moment : NULL);
    s->weighted = true;
    sampler_set_sum(s, t.sum, t.moment);
    s->measured = entropy;
}

void sampler_weigh(struct sampler *s, bool entropy)
{
    if (s->measured || (s->summed && !entropy))
        return;
    if (s->listed)
        weigh_list(s);
    else
        weigh_field(s, entropy);
}

void sampler_forget(struct sampler *s, bool weights_too)
{
    s->summed = s->measured = false;
    if (weights_too)
        s->weighted = false;
}

size_t sampler_find_in_list(const struct sampler *s, double target)
{
    double sum = 0;
    size_t last = 0;

    for (size_t i = 0; i < s->n_list; i++) {
        sum += s->share[i];
        if (sum > target)
            return i;
        if (s->share[i] > 0)
            last = i;
    }
    return last;
}

struct entry sampler_find_in_field(struct sampler *s, double target, struct tally *within)
{
    const struct field f = field_of(s);

    return order_find(&s->order, &f, s->maxima, s->last, s->sum, target, within);
}

void sampler_list(struct sampler *s)
{
    s->n_list = order_until(&s->order, s->value, s->maxima, s->last, s->list);
    s->listed = true;
}
