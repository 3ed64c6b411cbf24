#include "config.h"

#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, COLUMNS_MAX = 200 };

void progress_init(struct progress *p)
{
    struct winsize size;

    *p = (struct progress){.on = isatty(STDERR_FILENO) != 0, .columns = COLUMNS_DEFAULT};
    if (p->on && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        p->columns = size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

/* Writes `text` over the line. The last column stays free: a full line would move on to the next.
 */
static void show(struct progress *p, const char *text)
{
    int n = fprintf(stderr, "\r%.*s", p->columns - 1, text) - 1;

    if (n < 0)
        return;
    if (n < p->shown)
        fprintf(stderr, "%*s\r%.*s", p->shown - n, "", n, text);
    fflush(stderr);
    p->shown = n;
}

void progress_say(struct progress *p, const char *format, ...)
{
    char text[COLUMNS_MAX + 1];
    va_list args;

    if (!p->on)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    show(p, text);
}

void progress_end(struct progress *p)
{
    if (p->shown > 0)
        show(p, "");
}
