#include "config.h"

#include "base/utf8.h"

/* First bytes by class: how many follow, and the range that the second byte must be in. */
struct lead {
    unsigned char first, last; /* of the lead byte */
    unsigned char follow;      /* bytes after it */
    unsigned char low, high;   /* of the second byte */
};

static const struct lead leads[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF},
    {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF},
    {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

static const struct lead *lead_find(unsigned char byte)
{
    for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    }
    return NULL;
}

/* How many of the bytes from `p` (at most `len`) form a prefix of one well-formed character. */
static size_t prefix_len(const unsigned char *p, size_t len, const struct lead *lead)
{
    size_t n = 1;

    if (n < len && p[1] >= lead->low && p[1] <= lead->high) {
        n++;
        while (n < len && n < (size_t)lead->follow + 1 && (p[n] & 0xC0) == 0x80)
            n++;
    }
    return n;
}

size_t utf8_decode(const char *bytes, size_t len, uint32_t *code_point, bool *valid)
{
    const unsigned char *p = (const unsigned char *)bytes;
    const struct lead *lead = p[0] < 0x80 ? NULL : lead_find(p[0]);
    size_t n = lead != NULL ? prefix_len(p, len, lead) : 1;
    bool ok = p[0] < 0x80 || (lead != NULL && n == (size_t)lead->follow + 1);

    if (valid != NULL)
        *valid = ok;
    if (!ok) {
        *code_point = UTF8_REPLACEMENT;
        return n;
    }
    uint32_t c = p[0] < 0x80 ? p[0] : p[0] & (0x3Fu >> lead->follow);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3Fu);
    *code_point = c;
    return n;
}

size_t utf8_encode(uint32_t c, char out[4])
{
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        c = UTF8_REPLACEMENT;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t follow = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char marks[] = {0, 0xC0, 0xE0, 0xF0};
    for (size_t i = follow; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)(marks[follow] | c);
    return follow + 1;
}

bool utf8_is_valid(const char *bytes, size_t len)
{
    bool valid = true;
    uint32_t c;

    for (size_t i = 0; i < len && valid;)
        i += utf8_decode(bytes + i, len - i, &c, &valid);
    return valid;
}

size_t utf8_unfinished(const char *bytes, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const unsigned char *p = (const unsigned char *)bytes + len - back;
        const struct lead *lead = lead_find(*p);
        if (lead != NULL)
            return back <= lead->follow && prefix_len(p, back, lead) == back ? back : 0;
        if ((*p & 0xC0) != 0x80)
            return 0;
    }
    return 0;
}

bool utf8_add_clean(struct str *out, const char *bytes, size_t len)
{
    bool all = true, valid;
    uint32_t c;

    for (size_t i = 0; i < len;) {
        size_t n = utf8_decode(bytes + i, len - i, &c, &valid);
        if (valid)
            str_add(out, bytes + i, n);
        else
            str_add_text(out, "\xEF\xBF\xBD");
        all = all && valid;
        i += n;
    }
    return all;
}

void utf8_hide_controls(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7F)
            *p = '?';
        else if (*p == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0)
            p[0] = p[1] = '?';
    }
}
