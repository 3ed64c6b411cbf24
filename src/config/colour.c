#include "config.h"

#include "config/colour.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

bool colour_parse(const char *text, int32_t *rgb)
{
    int32_t value = 0;

    if (*text != '#' || strlen(text) != 7)
        return false;
    for (const char *p = text + 1; *p != '\0'; p++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, *p);
        if (at == NULL)
            return false;
        value = value * 16 + (int32_t)((at - digits) % 16);
    }
    *rgb = value;
    return true;
}

int32_t colour_of_256(int index)
{
    static const int32_t first[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                      0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                      0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};
    static const int32_t step[6] = {0, 95, 135, 175, 215, 255};

    if (index < 16)
        return first[index];
    if (index >= 232)
        return (8 + 10 * (index - 232)) * 0x010101;
    index -= 16;
    return step[index / 36] << 16 | step[index / 6 % 6] << 8 | step[index % 6];
}

/* Differences weighted by what the eye sees in red, green and blue; red's and blue's weights shift
 * with the redness of the pair ("redmean", https://www.compuphase.com/cmetric.htm). */
static double distance(int32_t a, int32_t b)
{
    double red = ((a >> 16) + (b >> 16)) / 2.0;
    double dr = (a >> 16) - (b >> 16), dg = (a >> 8 & 255) - (b >> 8 & 255),
           db = (a & 255) - (b & 255);

    return (2 + red / 256) * dr * dr + 4 * dg * dg + (2 + (255 - red) / 256) * db * db;
}

static int16_t nearest(int32_t rgb, int first, int last)
{
    int best = first;

    if (rgb < 0)
        return -1;
    for (int i = first + 1; i <= last; i++)
        if (distance(rgb, colour_of_256(i)) < distance(rgb, colour_of_256(best)))
            best = i;
    return (int16_t)best;
}

int16_t colour_nearest_256(int32_t rgb)
{
    return nearest(rgb, 16, 255);
}

int16_t colour_nearest_16(int32_t rgb)
{
    return nearest(rgb, 0, 15);
}

/* Relative luminance (WCAG 2.2). */
static double luminance(int32_t rgb)
{
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        double c = (rgb >> (16 - 8 * i) & 255) / 255.0;
        sum += weight[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

double colour_contrast(int32_t a, int32_t b)
{
    double x = luminance(a) + 0.05, y = luminance(b) + 0.05;

    return x > y ? x / y : y / x;
}
