/* Colours: from 24 bits to the palettes of terminals, and how well text reads on its ground. */
#ifndef FADER_CONFIG_COLOUR_H
#define FADER_CONFIG_COLOUR_H

#include <stdbool.h>
#include <stdint.h>

/* "#rrggbb". */
bool colour_parse(const char *text, int32_t *rgb);

/* The nearest entry; -1 gives -1. Of the 256 only the cube and the greys are used (16 - 255), which
 * no terminal's settings change; of the 16, xterm's values are assumed. */
int16_t colour_nearest_256(int32_t rgb);
int16_t colour_nearest_16(int32_t rgb);

/* The 24 bits behind entry 0 - 255 of xterm's palette. */
int32_t colour_of_256(int index);

/* WCAG 2 contrast of two colours, 1 - 21. */
double colour_contrast(int32_t a, int32_t b);

#endif
