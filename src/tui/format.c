#include "config.h"

#include "tui/format.h"

#include <inttypes.h>
#include <stdio.h>

void format_count(int64_t n, char out[FORMAT_MAX])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n < 0 ? (uint64_t)-n : (uint64_t)n);
    char *to = out;

    if (n < 0)
        *to++ = '-';
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

void format_bytes(uint64_t bytes, char out[FORMAT_MAX])
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    double value = (double)bytes / 1000.0;
    size_t unit = 0;

    while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000.0;
        unit++;
    }
    snprintf(out, FORMAT_MAX, "%.*f %s", unit > 0 && value < 99.95 ? 1 : 0, value, units[unit]);
}

void format_share(double share, char out[FORMAT_MAX])
{
    snprintf(out, FORMAT_MAX, "%.1f", 100.0 * share);
}

void format_rate(double rate, char out[FORMAT_MAX])
{
    snprintf(out, FORMAT_MAX, rate < 9.95 ? "%.1f" : "%.0f", rate);
}
