#include "config.h"

#include "tui/styles.h"

#include <curses.h>
#include <stdbool.h>
#include <stdlib.h>
#include <term.h>

enum colour_depth styles_depth(void)
{
    const char *no_color = getenv("NO_COLOR");

    if ((no_color != NULL && *no_color != '\0') || !has_colors())
        return DEPTH_MONO;
    start_color();
    use_default_colors();
    if (COLORS >= 1 << 24 && tigetflag("RGB") > 0)
        return DEPTH_DIRECT;
    return COLORS >= 256 ? DEPTH_256 : COLORS >= 16 ? DEPTH_16 : DEPTH_8;
}

static attr_t curses_attrs(unsigned attrs)
{
    static const struct {
        unsigned ours;
        attr_t curses;
    } table[] = {{ATTR_BOLD, A_BOLD},
                 {ATTR_UNDERLINE, A_UNDERLINE},
                 {ATTR_REVERSE, A_REVERSE},
                 {ATTR_DIM, A_DIM},
                 {ATTR_ITALIC, A_ITALIC}};
    attr_t all = A_NORMAL;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (attrs & table[i].ours)
            all |= table[i].curses;
    }
    return all;
}

/* A colour in the terminal's numbering; -1: its own. Where numbers up to 7 are palette entries in
 * direct colour, the nearest one above is used. */
static int colour(const struct style_look *look, bool background, enum colour_depth depth)
{
    switch (depth) {
    case DEPTH_DIRECT: {
        int32_t rgb = background ? look->bg_rgb : look->fg_rgb;
        return rgb >= 0 && rgb < 8 ? 8 : rgb;
    }
    case DEPTH_256:
        return background ? look->bg_256 : look->fg_256;
    default:
        return background ? look->bg_16 : look->fg_16;
    }
}

static int inherited(const struct theme *theme, enum style style, bool background,
                     enum colour_depth depth)
{
    int own = colour(&theme->looks[style], background, depth);

    return own >= 0 ? own : colour(&theme->looks[STYLE_TEXT], background, depth);
}

/* Sixteen colours on a terminal of eight: the bright half is the plain one in bold; bright black
 * would be black on black there, and is the terminal's own colour, dim. Returns the attributes that
 * it takes. */
static attr_t to_eight(int *fg, int *bg)
{
    enum { BRIGHT_BLACK = 8 };
    attr_t attrs = *fg == BRIGHT_BLACK ? A_DIM : *fg > BRIGHT_BLACK ? A_BOLD : A_NORMAL;

    *fg = *fg == BRIGHT_BLACK ? -1 : *fg >= 0 ? *fg % 8 : *fg;
    *bg = *bg >= 0 ? *bg % 8 : *bg;
    return attrs;
}

void styles_set(struct styles *s, const struct theme *theme, enum colour_depth depth)
{
    s->depth = depth;
    for (int i = 0; i < STYLE_COUNT; i++) {
        const struct style_look *look = &theme->looks[i];
        s->pairs[i] = 0;
        s->attrs[i] = curses_attrs(depth == DEPTH_MONO ? look->mono_attrs : look->attrs);
        if (depth == DEPTH_MONO)
            continue;
        int fg = inherited(theme, (enum style)i, false, depth);
        int bg = inherited(theme, (enum style)i, true, depth);
        if (depth == DEPTH_8)
            s->attrs[i] |= to_eight(&fg, &bg);
        if (fg < 0 && bg < 0)
            continue;
        s->pairs[i] = i + 1;
        init_extended_pair(i + 1, fg, bg);
    }
}
