#include "config.h"

#include "base/nearest.h"

#include <string.h>

static unsigned char fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
    size_t n = min_size(strlen(a), NEAREST_MAX_LEN), m = min_size(strlen(b), NEAREST_MAX_LEN);
    size_t rows[3][NEAREST_MAX_LEN + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t same = fold(a[i - 1]) == fold(b[j - 1]) ? 0 : 1;
            now[j] = min_size(last[j - 1] + same, min_size(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]))
                now[j] = min_size(now[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

void nearest_init(struct nearest *n, const char *word)
{
    size_t len = strlen(word);

    n->word = word;
    n->best = NULL;
    n->distance = len <= 3 ? 1 : len <= 6 ? 2 : 3;
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    size_t distance = nearest_distance(n->word, candidate);

    if (distance < n->distance || (n->best == NULL && distance == n->distance)) {
        n->best = candidate;
        n->distance = distance;
    }
}
