#include "config.h"

#include "tui/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

bool terminal_set_locale(void)
{
    static const char *const fallbacks[] = {"C.UTF-8", "C.utf8", "en_US.UTF-8"};

    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
        return true;
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++) {
        if (setlocale(LC_CTYPE, fallbacks[i]) == NULL)
            continue;
        /* Readline reads the environment itself. */
        unsetenv("LC_ALL");
        setenv("LC_CTYPE", fallbacks[i], 1);
        return true;
    }
    return false;
}
