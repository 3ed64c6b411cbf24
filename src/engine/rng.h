/* Counter-based random numbers: Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011). A block of output is a pure function of a counter
 * and a key: no state, so the number that a later draw will use can be known now. */
#ifndef FADER_ENGINE_RNG_H
#define FADER_ENGINE_RNG_H

#include <stdint.h>

void rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
