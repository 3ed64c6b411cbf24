#include "config.h"

#include "tui/base64.h"

#include "base/mem.h"

char *base64_encode(const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = mem_alloc((len + 2) / 3 * 4 + 1), *p = out;

    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        unsigned v = (unsigned char)bytes[i];
        for (size_t k = 1; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)bytes[i + k] : 0U);
        for (size_t k = 0; k < 4; k++)
            *p++ = k <= n ? digits[v >> (18 - 6 * k) & 63] : '=';
    }
    *p = '\0';
    return out;
}
