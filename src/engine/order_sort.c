#include "config.h"

#include "engine/order_sort.h"

#include <stdint.h>
#include <string.h>

enum {
    SMALL = 48, /* entries that insertion sorts fastest */
    DIGITS = 4,
    BUCKETS = 256
};

/* Whole numbers that ascend where values descend: the bits of a float are ordered like its size. */
static inline uint32_t key_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    uint32_t negative = (uint32_t) - (int32_t)(bits >> 31);
    return bits ^ (~negative & 0x7FFFFFFFu);
}

static inline size_t digit_of(uint32_t key, int digit)
{
    return key >> (8 * digit) & (BUCKETS - 1);
}

static void sort_small(struct entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct entry moving = e[i];
        size_t at = i;

        for (; at > 0 && e[at - 1].value < moving.value; at--)
            e[at] = e[at - 1];
        e[at] = moving;
    }
}

/* By radix, the lowest digit first. What lies close together often has digits in common. */
void order_sort(struct entry *e, size_t n, struct entry *scratch)
{
    uint32_t at[DIGITS][BUCKETS] = {{0}};
    struct entry *from = e, *to = scratch;

    if (n <= SMALL) {
        sort_small(e, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = key_of(e[i].value);
        for (int digit = 0; digit < DIGITS; digit++)
            at[digit][digit_of(key, digit)]++;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        uint32_t *next = at[digit], sum = 0;

        if (next[digit_of(key_of(from[0].value), digit)] == n)
            continue;
        for (size_t b = 0; b < BUCKETS; b++) {
            const uint32_t count = next[b];
            next[b] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[next[digit_of(key_of(from[i].value), digit)]++] = from[i];
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e)
        memcpy(e, from, n * sizeof *e);
}
