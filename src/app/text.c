#include "config.h"

#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

#include "app/app.h"
#include "base/utf8.h"

/* Appends what fits as a whole; false when it does not. */
static bool put(char *out, size_t size, size_t *at, const char *text, size_t len)
{
    if (*at + len + 1 > size)
        return false;
    memcpy(out + *at, text, len);
    *at += len;
    out[*at] = '\0';
    return true;
}

/* Blanks, breaks and what has no shape of its own, as something that can be seen; false for all
 * else. */
static bool name_invisible(uint32_t c, char name[16])
{
    switch (c) {
    case ' ':
        return snprintf(name, 16, "␣") > 0;
    case '\n':
        return snprintf(name, 16, "⏎") > 0;
    case '\t':
        return snprintf(name, 16, "⇥") > 0;
    default:
        break;
    }
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
        return snprintf(name, 16, "‹%02X›", (unsigned)c) > 0;
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
        return snprintf(name, 16, "‹U+%04X›", (unsigned)c) > 0;
    default:
        return false;
    }
}

/* The bytes of a broken or unfinished character: "‹E4B8›". */
static bool put_bytes(char *out, size_t size, size_t *at, const char *bytes, size_t len)
{
    char name[24] = "‹";

    for (size_t i = 0; i < len; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%02X",
                 (unsigned)(unsigned char)bytes[i]);
    strcat(name, "›");
    return put(out, size, at, name, strlen(name));
}

void app_visible_text(const char *bytes, size_t len, bool eog, char *out, size_t size)
{
    size_t at = 0;

    if (size == 0)
        return;
    out[0] = '\0';
    if (eog) {
        put(out, size, &at, "‹end›", strlen("‹end›"));
        return;
    }
    for (size_t i = 0; i < len;) {
        uint32_t c;
        bool valid, fits;
        char name[16];
        size_t n = utf8_decode(bytes + i, len - i, &c, &valid);
        if (!valid)
            fits = put_bytes(out, size, &at, bytes + i, n);
        else if (name_invisible(c, name))
            fits = put(out, size, &at, name, strlen(name));
        else
            fits = put(out, size, &at, bytes + i, n);
        if (!fits)
            return;
        i += n;
    }
}

void app_dropped_text(const struct turn *turn, char *out, size_t size)
{
    if (turn->dropped_messages <= 0)
        snprintf(out, size, "%s", "");
    else
        snprintf(out, size, "the oldest %d message%s left the context (%d tokens: it was full)",
                 turn->dropped_messages, turn->dropped_messages == 1 ? "" : "s",
                 turn->dropped_tokens);
}
