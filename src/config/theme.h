/* Themes: what each semantic style looks like, in three depths of colour. YAML, one a file. */
#ifndef FADER_CONFIG_THEME_H
#define FADER_CONFIG_THEME_H

#include <stdint.h>

#include "base/error.h"

/* Every style that code may name. Names in files: the lower-case tail ("text",
 * "accent", "heat_1"). */
enum style {
    STYLE_TEXT,         /* the transcript's text */
    STYLE_DIM,          /* what is cut, unused, or secondary */
    STYLE_ACCENT,       /* differs from the preset */
    STYLE_TITLE,        /* headings in the panel, names of speakers */
    STYLE_USER,         /* what the user wrote */
    STYLE_RULE,         /* lines between regions */
    STYLE_STATUS,       /* the status line */
    STYLE_STATUS_STATE, /* PAUSED, generating */
    STYLE_MESSAGE,      /* the message line */
    STYLE_WARNING,
    STYLE_ERROR,
    STYLE_FADER,     /* a fader's track */
    STYLE_HANDLE,    /* its handle */
    STYLE_FOCUS,     /* the selected row, the focused region */
    STYLE_BAR,       /* a candidate's bar: now */
    STYLE_BAR_MODEL, /* its part under the raw softmax */
    STYLE_DICE,      /* where the dice fall */
    STYLE_MARK,      /* a knob's mark in the margin */
    STYLE_CODE,      /* code fences */
    STYLE_SELECTION,
    STYLE_KEY, /* key names in the hint line */
    STYLE_HEAT_0,
    STYLE_HEAT_1,
    STYLE_HEAT_2,
    STYLE_HEAT_3, /* surprise: none to high */
    STYLE_COUNT
};

enum { ATTR_BOLD = 1, ATTR_UNDERLINE = 2, ATTR_REVERSE = 4, ATTR_DIM = 8, ATTR_ITALIC = 16 };

struct style_look {
    int32_t fg_rgb, bg_rgb; /* 0xRRGGBB; -1: the terminal's own */
    int16_t fg_256, bg_256; /* -1: the terminal's own */
    int16_t fg_16, bg_16;
    uint8_t attrs;      /* with colour */
    uint8_t mono_attrs; /* without: NO_COLOR, monochrome terminals */
};

struct theme {
    char *name, *path, *description;
    struct style_look looks[STYLE_COUNT];
};

struct theme *theme_load(const char *name, struct error *err); /* "dark" exists always (built in) */
void theme_free(struct theme *t);
char **theme_names(void);             /* NULL-terminated, sorted, owned (paths_list_free) */
const char *style_name(enum style s); /* as the files of themes call it */

#endif
