#include "config.h"

#include "tui/textwidth.h"

#include <stdbool.h>
#include <stdio.h>
#include <utf8proc.h>
#include <wchar.h>

#include "base/utf8.h"

enum { ZWJ = 0x200D, EMOJI_STYLE = 0xFE0F };

static bool is_printable_ascii(unsigned char c)
{
    return c >= 0x20 && c < 0x7F;
}

/* Code points that would steer the terminal, or leave no trace on it, when nothing carries them. */
static bool is_format(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);

    return category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

static bool is_mark(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);

    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME;
}

/* A cluster of these is one picture: what follows the first code point modifies it. */
static bool is_picture(uint32_t cp)
{
    int bound = utf8proc_get_property((utf8proc_int32_t)cp)->boundclass;

    return bound == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC ||
           bound == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR;
}

/* Spells out what cannot be drawn: control pictures below U+0020, else ‹hex›. */
static size_t spell_out(uint32_t cp, struct glyph *out)
{
    char hex[12];
    size_t n = 0;

    if (cp < 0x20 || cp == 0x7F) {
        out[0] = (struct glyph){{cp == 0x7F ? 0x2421 : 0x2400 + cp}, 1};
        return 1;
    }
    int len = snprintf(hex, sizeof hex, cp < 0x100 ? "%02X" : "%04X", (unsigned)cp);
    out[n++] = (struct glyph){{0x2039}, 1};
    for (int i = 0; i < len; i++)
        out[n++] = (struct glyph){{(uint32_t)hex[i]}, 1};
    out[n++] = (struct glyph){{0x203A}, 1};
    return n;
}

static int point_width(uint32_t cp)
{
    return wcwidth((wchar_t)cp);
}

static bool add_mark(struct glyph *g, uint32_t cp)
{
    for (int i = 1; i < GLYPH_POINTS; i++) {
        if (g->points[i] == 0) {
            g->points[i] = cp;
            return true;
        }
    }
    return false;
}

/* Draws one cluster. Every code point either starts a glyph, joins the one before, or is left out
 * (joiners, variation selectors, what modifies a picture). */
static size_t draw_cluster(const char *bytes, size_t len, struct glyph *out)
{
    size_t n = 0, at = 0;
    bool picture = false;

    while (at < len && n < GRAPHEME_GLYPHS) {
        uint32_t cp;
        at += utf8_decode(bytes + at, len - at, &cp, NULL);
        int width = point_width(cp);
        if (n == 0) {
            if (width <= 0)
                return spell_out(cp, out);
            out[n++] = (struct glyph){{cp}, width};
            picture = is_picture(cp);
        } else if (picture || is_format(cp) || cp == EMOJI_STYLE || width < 0) {
            continue;
        } else if (width == 0) {
            add_mark(&out[n - 1], cp);
        } else {
            out[n++] = (struct glyph){{cp}, width};
        }
    }
    return n;
}

static size_t cluster_length(const char *bytes, size_t len)
{
    utf8proc_int32_t state = 0;
    uint32_t before, cp;
    size_t at = utf8_decode(bytes, len, &before, NULL);

    while (at < len) {
        size_t n = utf8_decode(bytes + at, len - at, &cp, NULL);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)cp,
                                             &state))
            break;
        at += n;
        before = cp;
    }
    return at;
}

static enum grapheme_kind kind_of(uint32_t cp)
{
    if (cp == '\n' || cp == '\r')
        return GRAPHEME_NEWLINE;
    if (cp == '\t')
        return GRAPHEME_TAB;
    if (cp == ' ')
        return GRAPHEME_SPACE;
    if (cp < 0x20 || cp == 0x7F || (cp >= 0x80 && cp < 0xA0))
        return GRAPHEME_CONTROL;
    if ((point_width(cp) <= 0 && is_mark(cp)) || is_format(cp))
        return GRAPHEME_CONTROL;
    return GRAPHEME_TEXT;
}

void text_next(const char *bytes, size_t len, struct grapheme *out)
{
    struct glyph glyphs[GRAPHEME_GLYPHS];
    unsigned char c = (unsigned char)bytes[0];

    if (is_printable_ascii(c) && (len == 1 || (unsigned char)bytes[1] < 0x80)) {
        *out = (struct grapheme){c == ' ' ? GRAPHEME_SPACE : GRAPHEME_TEXT, 1, 1, c};
        return;
    }
    utf8_decode(bytes, len, &out->first, NULL);
    out->len = cluster_length(bytes, len);
    out->kind = kind_of(out->first);
    out->width = 0;
    if (out->kind == GRAPHEME_NEWLINE && bytes[out->len - 1] != '\n')
        out->kind = GRAPHEME_CONTROL; /* a carriage return of its own is shown, not obeyed */
    size_t n = text_glyphs(bytes, out, glyphs);
    for (size_t i = 0; i < n; i++)
        out->width += glyphs[i].width;
    if (out->kind == GRAPHEME_TAB)
        out->width = 1;
}

size_t text_glyphs(const char *bytes, const struct grapheme *g, struct glyph out[GRAPHEME_GLYPHS])
{
    switch (g->kind) {
    case GRAPHEME_NEWLINE:
    case GRAPHEME_TAB:
        return 0;
    case GRAPHEME_CONTROL:
        return spell_out(g->first, out);
    default:
        if (g->len == 1 && is_printable_ascii((unsigned char)bytes[0])) {
            out[0] = (struct glyph){{g->first}, 1};
            return 1;
        }
        return draw_cluster(bytes, g->len, out);
    }
}

int text_tab_width(int column)
{
    return TEXT_TAB - column % TEXT_TAB;
}

static size_t walk(const char *bytes, size_t len, int columns, int *width)
{
    struct grapheme g;
    size_t at = 0;

    *width = 0;
    while (at < len) {
        text_next(bytes + at, len - at, &g);
        int w = g.kind == GRAPHEME_TAB ? text_tab_width(*width) : g.width;
        if (w > columns - *width)
            break;
        *width += w;
        at += g.len;
    }
    return at;
}

int text_width(const char *bytes, size_t len)
{
    int width;

    walk(bytes, len, 1 << 30, &width);
    return width;
}

size_t text_fit(const char *bytes, size_t len, int columns)
{
    int width;

    return walk(bytes, len, columns, &width);
}
