#include "config.h"

#include "cli/plain_text.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

/* Marks, embeddings, overrides and isolates: text would read in another order than it has. */
static bool changes_direction(uint32_t c)
{
    return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

void plain_text_add(struct str *out, const char *bytes, size_t len)
{
    while (len > 0) {
        uint32_t c;
        bool valid;
        size_t n = utf8_decode(bytes, len, &c, &valid);
        if (!valid)
            utf8_add_clean(out, bytes, n);
        else if (c == '\n' || c == '\t')
            str_add_char(out, (char)c);
        else if (c < 0x20 || c == 0x7F)
            str_add_format(out, "^%c", (int)(c ^ 0x40));
        else if ((c >= 0x80 && c < 0xA0) || changes_direction(c))
            str_add_format(out, "<%02X>", (unsigned)c);
        else
            str_add(out, bytes, n);
        bytes += n;
        len -= n;
    }
}
