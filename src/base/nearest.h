/* The nearest word: for "did you mean". Optimal string alignment distance (Damerau and Levenshtein
 * with adjacent transpositions), bytes compared without regard to ASCII case. */
#ifndef FADER_BASE_NEAREST_H
#define FADER_BASE_NEAREST_H

#include <stddef.h>

enum { NEAREST_MAX_LEN = 64 }; /* longer words are compared by their first 64 bytes */

/* Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`. */
size_t nearest_distance(const char *a, const char *b);

/* A search over candidates offered one by one, so that they need not stand in one array. */
struct nearest {
    const char *word; /* borrowed: what was typed */
    const char *best; /* borrowed: the nearest so far, or NULL */
    size_t distance;  /* of `best`; at the start, the largest that would still be accepted */
};

/* What is near enough grows with the word: 1 for up to three letters, 2 up to six, else 3. */
void nearest_init(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);

#endif
