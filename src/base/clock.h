/* Time: monotonic for measuring, wall for naming files. */
#ifndef FADER_BASE_CLOCK_H
#define FADER_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_now_ns(void);          /* monotonic, nanoseconds */
double clock_since_s(int64_t start); /* seconds since a clock_now_ns value */

#endif
