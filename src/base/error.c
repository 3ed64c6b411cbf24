#include "config.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void clean(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
}

bool error_set(struct error *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    clean(err->text);
    return false;
}

bool error_set_errno(struct error *err, int errno_value, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    size_t len = strlen(err->text);
    snprintf(err->text + len, sizeof err->text - len, ": %s", strerror(errno_value));
    clean(err->text);
    return false;
}

bool error_prefix(struct error *err, const char *format, ...)
{
    struct error inner = *err;
    va_list args;

    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    size_t len = strlen(err->text);
    snprintf(err->text + len, sizeof err->text - len, ": %s", inner.text);
    clean(err->text);
    return false;
}
