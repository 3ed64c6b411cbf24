/* Where the computer's electricity comes from. */
#ifndef FADER_BASE_POWER_H
#define FADER_BASE_POWER_H

#include <stdbool.h>

#define POWER_FOLDER "/sys/class/power_supply"

/* Whether a battery of the computer's own is being emptied, and no mains supply is plugged in.
 * `folder`: where the kernel describes the supplies, one folder each (POWER_FOLDER). False where
 * it does not. Reading it may take milliseconds: it may have to ask the hardware. */
bool power_on_battery(const char *folder);

#endif
