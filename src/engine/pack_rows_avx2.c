/* Packing rows with AVX2: a vector has the word of all 8 rows, 0 - 3 and 4 - 7. */
#include "config.h"

#include "engine/kernels_avx2.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

typedef uint32_t words __attribute__((vector_size(32)));
enum { WORDS_ROWS = 8 };

INLINE words words_read(const uint8_t *p, size_t stride)
{
    __m128i first = _mm_loadu_si128((const __m128i *)p);
    __m128i fourth = _mm_loadu_si128((const __m128i *)(p + 4 * stride));

    return (words)_mm256_inserti128_si256(_mm256_castsi128_si256(first), fourth, 1);
}

INLINE void words_zip(words *a, words *b)
{
    __m256i x = (__m256i)*a, y = (__m256i)*b;

    *a = (words)_mm256_unpacklo_epi32(x, y);
    *b = (words)_mm256_unpackhi_epi32(x, y);
}

INLINE void words_store_bytes(const words w[1], uint8_t *out, size_t gap)
{
    const __m256i by_byte = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i join = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8((__m256i)*w, by_byte), join);
    __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);

    _mm_storel_epi64((__m128i *)out, low);
    _mm_storeh_pi((__m64 *)(out + gap), _mm_castsi128_ps(low));
    _mm_storel_epi64((__m128i *)(out + 2 * gap), high);
    _mm_storeh_pi((__m64 *)(out + 3 * gap), _mm_castsi128_ps(high));
}

INLINE void words_store_shorts(const words w[1], uint8_t *out, size_t gap)
{
    const __m256i by_short = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    __m256i v = _mm256_permute4x64_epi64(_mm256_shuffle_epi8((__m256i)*w, by_short), 0xD8);

    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(out + gap), _mm256_extracti128_si256(v, 1));
}

#include "engine/pack_rows.h"

pack_kernel *const pack_rows_avx2[PACK_COUNT] = {PACK_ENTRIES};
