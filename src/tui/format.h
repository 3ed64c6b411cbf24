/* Numbers as the desk writes them, whatever the locale. */
#ifndef FADER_TUI_FORMAT_H
#define FADER_TUI_FORMAT_H

#include <stdint.h>

enum { FORMAT_MAX = 32 };

void format_count(int64_t n, char out[FORMAT_MAX]);      /* "49,152" */
void format_bytes(uint64_t bytes, char out[FORMAT_MAX]); /* "850 KB", "1.5 MB": 1,000 to the KB */
void format_share(double share, char out[FORMAT_MAX]);   /* 0.319 as "31.9" */
void format_rate(double rate, char out[FORMAT_MAX]);     /* "168", "9.6" */

#endif
