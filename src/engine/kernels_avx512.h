/* The AVX-512 kernels that have a file of their own. */
#ifndef FADER_ENGINE_KERNELS_AVX512_H
#define FADER_ENGINE_KERNELS_AVX512_H

#include "engine/kernels.h"

void avx512_attend_f16(const struct attend *a);
void avx512_attend_q8(const struct attend *a);

#endif
