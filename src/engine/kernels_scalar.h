/* The portable kernels that have a file of their own. */
#ifndef FADER_ENGINE_KERNELS_SCALAR_H
#define FADER_ENGINE_KERNELS_SCALAR_H

#include "engine/kernels.h"

extern pack_kernel *const pack_rows_scalar[PACK_COUNT];

void scalar_attend_f16(const struct attend *a);
void scalar_attend_q8(const struct attend *a);

#endif
