/* A small deterministic source of numbers, and vocabularies made of them. */
#ifndef FADER_TESTS_NUMBERS_H
#define FADER_TESTS_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static uint32_t numbers_seed;

static inline double numbers_uniform(void)
{
    numbers_seed = numbers_seed * 1664525u + 1013904223u;
    return (double)(numbers_seed >> 8) * 0x1p-24;
}

static inline float numbers_normal(double deviation)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += numbers_uniform();
    return (float)((sum - 6) * deviation);
}

enum shape {
    SHAPE_BELL,
    SHAPE_FLAT,
    SHAPE_PEAKED, /* a bell, and a few far above it */
    SHAPE_COARSE, /* many ties */
    SHAPE_TWO,    /* two values */
    SHAPE_EQUAL,
    SHAPE_RISING,
    SHAPE_FALLING,
    SHAPE_HOLES, /* a bell of which most is missing */
    SHAPE_COUNT
};

static inline float numbers_shaped(enum shape shape, size_t i, size_t n)
{
    const float bell = numbers_normal(2);

    switch (shape) {
    case SHAPE_FLAT:
        return bell / 20;
    case SHAPE_PEAKED:
        return i % 97 == 31 && i < 1000 ? 15 - bell : bell;
    case SHAPE_COARSE:
        return floorf(bell * 4) / 4;
    case SHAPE_TWO:
        return bell > 1 ? 3 : -1;
    case SHAPE_EQUAL:
        return 2;
    case SHAPE_RISING:
        return 8 * (float)i / (float)n - 5;
    case SHAPE_FALLING:
        return 3 - 8 * (float)i / (float)n;
    case SHAPE_HOLES:
        return numbers_uniform() < 0.9 ? -INFINITY : bell;
    default:
        return bell;
    }
}

#endif
