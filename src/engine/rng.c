#include "config.h"

#include "engine/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "engine/sampler.h"

enum { PHILOX_ROUNDS = 10 };
static const uint32_t philox_m0 = 0xD2511F53u, philox_m1 = 0xCD9E8D57u; /* multipliers */
static const uint32_t philox_w0 = 0x9E3779B9u, philox_w1 = 0xBB67AE85u; /* key increments */

void rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)philox_m0 * c0, p1 = (uint64_t)philox_m1 * c2;
        uint32_t hi0 = (uint32_t)(p0 >> 32), hi1 = (uint32_t)(p1 >> 32);

        c0 = hi1 ^ c1 ^ k0;
        c2 = hi0 ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += philox_w0;
        k1 += philox_w1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

double sampler_uniform(uint32_t seed, uint64_t n)
{
    const uint32_t counter[4] = {(uint32_t)n, (uint32_t)(n >> 32), 0, 0}, key[2] = {seed, 0};
    uint32_t out[4];

    rng_philox(counter, key, out);
    uint64_t bits = ((uint64_t)out[0] << 32 | out[1]) >> 11;
    return (double)bits * 0x1p-53;
}

uint32_t sampler_random_seed(void)
{
    uint32_t seed;
    ssize_t got;

    do
        got = getrandom(&seed, sizeof seed, 0);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof seed)
        return seed;
    /* A system without random numbers: the clock, stirred, is all that is left. */
    const uint64_t now = (uint64_t)clock_now_ns();
    const uint32_t counter[4] = {(uint32_t)now, (uint32_t)(now >> 32), 0, 0}, key[2] = {0, 0};
    uint32_t out[4];
    rng_philox(counter, key, out);
    return out[0];
}
