/* How much more memory this process may have, so that what is large can be laid out to fit before
 * it is asked for. Everything the system does not say counts as no limit. */
#ifndef FADER_BASE_ROOM_H
#define FADER_BASE_ROOM_H

#include <stdint.h>

#define ROOM_UNLIMITED UINT64_MAX

/* Bytes that can be filled without pushing out more than cached files: the least of what the
 * machine has (MemAvailable) and what each control group leaves that this process is in, version 1
 * or 2. `root` stands in front of /proc and /sys: "" but in tests. */
uint64_t room_memory(const char *root);

/* Bytes that can be mapped under the process's own limits (ulimit -v and -d). */
uint64_t room_addresses(const char *root);

#endif
