/* Multiply-adds from registers (machine_peak.c) with sdot, for which the compiler needs flags. */
#include "config.h"

#include "engine/machine.h"

#include <arm_neon.h>

enum { SUMS = MACHINE_SUMS };

float machine_dotprod_codes(uint32_t rounds)
{
    int8x16_t q = vdupq_n_s8(3), w = vdupq_n_s8(-5);
    int32x4_t s[SUMS], all = vdupq_n_s32(0);

#pragma GCC unroll 10
    for (int k = 0; k < SUMS; k++)
        s[k] = vdupq_n_s32(k);
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+w"(q));
#pragma GCC unroll 10
        for (int k = 0; k < SUMS; k++)
            s[k] = vdotq_s32(s[k], q, w);
    }
#pragma GCC unroll 10
    for (int k = 0; k < SUMS; k++)
        all = vaddq_s32(all, s[k]);
    return (float)vgetq_lane_s32(all, 0);
}
