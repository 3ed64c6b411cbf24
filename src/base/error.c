#include "config.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

bool error_set(struct error *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    utf8_hide_controls(err->text);
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
    utf8_hide_controls(err->text);
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
    utf8_hide_controls(err->text);
    return false;
}
