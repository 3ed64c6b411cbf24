/* Packing rows in the compiler's own vectors of 16 bytes, which most CPUs have; the others get plain
 * code for them. */
#include "config.h"

#include "engine/kernels_scalar.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef uint32_t words __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(16)));
typedef uint8_t chars __attribute__((vector_size(16)));
enum { WORDS_ROWS = 4 };

#if defined __clang__ || __GNUC__ >= 12
#define SHUFFLE(type, a, b, ...) (words) __builtin_shufflevector((type)(a), (type)(b), __VA_ARGS__)
#else
#define SHUFFLE(type, a, b, ...)                                                                   \
    (words) __builtin_shuffle((type)(a), (type)(b), (type){__VA_ARGS__})
#endif

INLINE words words_read(const uint8_t *p, size_t stride)
{
    words value;

    (void)stride;
    memcpy(&value, p, sizeof value);
    return value;
}

INLINE void words_zip(words *a, words *b)
{
    words x = *a, y = *b;

    *a = SHUFFLE(words, x, y, 0, 4, 1, 5);
    *b = SHUFFLE(words, x, y, 2, 6, 3, 7);
}

/* Three zips of rows 0 - 3 with 4 - 7 leave the rows, which were the upper digits of an element's
 * number, as the lower ones. */

INLINE void words_store_bytes(const words w[2], uint8_t *out, size_t gap)
{
    words x = w[0], y = w[1];

#pragma GCC unroll 3
    for (int round = 0; round < 3; round++) {
        words low = SHUFFLE(chars, x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        y = SHUFFLE(chars, x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        x = low;
    }
    memcpy(out, &x, 8);
    memcpy(out + gap, (const char *)&x + 8, 8);
    memcpy(out + 2 * gap, &y, 8);
    memcpy(out + 3 * gap, (const char *)&y + 8, 8);
}

INLINE void words_store_shorts(const words w[2], uint8_t *out, size_t gap)
{
    words x = w[0], y = w[1];

#pragma GCC unroll 3
    for (int round = 0; round < 3; round++) {
        words low = SHUFFLE(shorts, x, y, 0, 8, 1, 9, 2, 10, 3, 11);
        y = SHUFFLE(shorts, x, y, 4, 12, 5, 13, 6, 14, 7, 15);
        x = low;
    }
    memcpy(out, &x, sizeof x);
    memcpy(out + gap, &y, sizeof y);
}

#include "engine/pack_rows.h"

pack_kernel *const pack_rows_scalar[PACK_COUNT] = {PACK_ENTRIES};
