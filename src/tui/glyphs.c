#include "config.h"

#include "tui/glyphs.h"

#include <stddef.h>
#include <string.h>

/* Sorted by code point. */
static const struct {
    uint32_t unicode, cp437;
    char ascii;
} signs[] = {
    {0x00A0, ' ', ' '},    {0x00B7, 0x00B7, '.'}, {0x00D7, 'x', 'x'},    {0x2013, '-', '-'},
    {0x2026, '~', '~'},    {0x2039, '<', '<'},    {0x203A, '>', '>'},    {0x2190, 0x2190, '<'},
    {0x2191, 0x2191, '^'}, {0x2192, 0x2192, '>'}, {0x2193, 0x2193, 'v'}, {0x21E5, 0x2192, '>'},
    {0x23CE, 0x00B6, '$'}, {0x2423, '_', '_'},    {0x2500, 0x2500, '-'}, {0x2502, 0x2502, '|'},
    {0x252C, 0x252C, '+'}, {0x2534, 0x2534, '+'}, {0x253F, 0x256A, '|'}, {0x2581, '_', '.'},
    {0x2582, '_', '.'},    {0x2583, '_', ':'},    {0x2584, 0x2584, ':'}, {0x2585, 0x2584, ':'},
    {0x2586, 0x2584, '#'}, {0x2587, 0x2588, '#'}, {0x2588, 0x2588, '#'}, {0x258C, 0x258C, '#'},
    {0x258F, 0x2502, ']'}, {0x2591, 0x2591, '-'}, {0x2592, 0x2592, '='}, {0x2595, 0x2502, '['},
    {0x25B2, 0x25B2, '^'}, {0x25B6, 0x25BA, '>'}, {0x25B8, 0x25BA, '>'}, {0x25C6, 0x2666, '*'},
    {0x25CF, 0x25A0, 'O'},
};

uint32_t glyphs_replace(enum glyph_set set, uint32_t cp)
{
    if (cp < 0x80 || set == GLYPHS_UNICODE || set == GLYPHS_AUTO)
        return cp;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (signs[i].unicode == cp)
            return set == GLYPHS_CP437 ? signs[i].cp437 : (uint32_t)signs[i].ascii;
    }
    if (cp >= 0x2400 && cp <= 0x2421)
        return set == GLYPHS_CP437 ? 0x00B7 : '?';
    return cp;
}

enum glyph_set glyphs_choose(enum glyph_set wanted, const char *term, int utf8_locale)
{
    if (!utf8_locale)
        return GLYPHS_ASCII;
    if (wanted != GLYPHS_AUTO)
        return wanted;
    if (term != NULL && strcmp(term, "linux") == 0)
        return GLYPHS_CP437;
    return GLYPHS_UNICODE;
}

uint32_t glyphs_bar(enum glyph_set set, int eighths)
{
    switch (set) {
    case GLYPHS_CP437:
        return eighths >= 6 ? 0x2588 : eighths >= 2 ? 0x258C : 0;
    case GLYPHS_ASCII:
        return eighths >= 4 ? '#' : 0;
    default:
        return eighths >= 1 ? 0x2590u - (uint32_t)eighths : 0; /* U+258F an eighth ... U+2588 all */
    }
}
