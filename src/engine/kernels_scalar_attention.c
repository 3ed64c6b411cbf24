/* The portable kernels: attention over a segment of the cache. */
#include "config.h"

#include "engine/kernels_scalar.h"

#include <math.h>
#include <string.h>

#include "engine/exp.h"
#include "engine/quant.h"

enum {
    POSITIONS = KERNEL_POSITIONS,
    SEGMENT = KERNEL_SEGMENT,
    BLOCK = KERNEL_BLOCK,
    LINE = KERNEL_LINE,
    CODE_MAX = 32767
};

static float read_half(const uint8_t *line, size_t i)
{
    uint16_t half;

    memcpy(&half, line + 2 * i, sizeof half);
    return quant_f16_to_f32(half);
}

/* A code by the number of its pair's line, its place there, and which of the two it is. */
static int32_t read_code(const uint8_t *group, size_t line, size_t i, size_t which)
{
    return (int8_t)group[(1 + line) * LINE + 2 * i + which];
}

/* To nearest, ties to even, for |x| < 2^22. */
static int16_t round_code(float x)
{
    return (int16_t)(uint16_t)(quant_f32_bits(x + 0x1.8p23f) & 0xFFFF);
}

/* 16-bit codes of n numbers; returns what one stands for. */
static float code_numbers(const float *x, size_t n, int16_t *code)
{
    float largest = 0.0f;

    for (size_t i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    bool none = !(largest > 1e-30f); /* too small to divide by */
    float by = none ? 0.0f : CODE_MAX / largest;
    for (size_t i = 0; i < n; i++)
        code[i] = round_code(x[i] * by);
    return none ? 0.0f : largest / CODE_MAX;
}

/* Scores become weights exp(score - m), in place; what is not visible gets exactly 0. */
static void softmax(float score[SEGMENT], size_t visible, float *m, float *l)
{
    float sum[16] = {0}, largest = -INFINITY;

    for (size_t p = 0; p < visible; p++)
        largest = score[p] > largest ? score[p] : largest;
    for (size_t p = 0; p < SEGMENT; p++) {
        score[p] = p < visible ? exp_approx(score[p] - largest) : 0.0f;
        sum[p % 16] += score[p];
    }
    for (size_t width = 8; width > 0; width /= 2) {
        for (size_t i = 0; i < width; i++)
            sum[i] += sum[i + width];
    }
    *m = largest;
    *l = sum[0];
}

/* ---- halves ---------------------------------------------------------------------------------- */

static void scores_of_halves(const struct attend *a, const float *q, size_t visible, float *score)
{
    for (size_t p = 0; p < visible; p++) {
        const uint8_t *k = a->k[p / POSITIONS];
        score[p] = 0.0f;
        for (size_t d = 0; d < a->dim; d++)
            score[p] = fmaf(
                q[d], read_half(k + d / BLOCK * KERNEL_HALVES + d % BLOCK * LINE, p % POSITIONS),
                score[p]);
    }
}

static void values_of_halves(const struct attend *a, const float *weight, size_t visible, float *o)
{
    for (size_t d = 0; d < a->dim; d++) {
        o[d] = 0.0f;
        for (size_t p = 0; p < visible; p++) {
            const uint8_t *v = a->v[p / POSITIONS] + d / BLOCK * KERNEL_HALVES;
            o[d] = fmaf(weight[p], read_half(v + p % POSITIONS * LINE, d % BLOCK), o[d]);
        }
    }
}

void scalar_attend_f16(const struct attend *a)
{
    float score[SEGMENT];

    for (size_t i = 0; i < a->n; i++) {
        scores_of_halves(a, a->q + i * a->dim, a->visible[i], score);
        softmax(score, a->visible[i], &a->m[i], &a->l[i]);
        values_of_halves(a, score, a->visible[i], a->o + i * a->dim);
    }
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void scores_of_codes(const struct attend *a, const float *q, size_t visible, float *score)
{
    int16_t code[KERNEL_DIM_MAX];
    float scale = code_numbers(q, a->dim, code);

    for (size_t p = 0; p < visible; p++) {
        score[p] = 0.0f;
        for (size_t g = 0; g < a->dim / BLOCK; g++) {
            const uint8_t *k = a->k[p / POSITIONS] + g * KERNEL_CODES;
            int32_t sum = 0;
            for (size_t d = 0; d < BLOCK; d++)
                sum += code[g * BLOCK + d] * read_code(k, d / 2, p % POSITIONS, d % 2);
            score[p] = fmaf((float)sum, read_half(k, p % POSITIONS) * scale, score[p]);
        }
    }
}

static void values_of_codes(const struct attend *a, const float *weight, size_t visible, float *o)
{
    float scaled[SEGMENT];
    int16_t code[SEGMENT];

    for (size_t g = 0; g < a->dim / BLOCK; g++) {
        for (size_t p = 0; p < visible; p++)
            scaled[p] =
                weight[p] * read_half(a->v[p / POSITIONS] + g * KERNEL_CODES, p % POSITIONS);
        float scale = code_numbers(scaled, visible, code);
        for (size_t d = 0; d < BLOCK; d++) {
            int32_t sum = 0;
            for (size_t p = 0; p < visible; p++)
                sum += code[p] * read_code(a->v[p / POSITIONS] + g * KERNEL_CODES,
                                           p % POSITIONS / 2, d, p % 2);
            o[g * BLOCK + d] = (float)sum * scale;
        }
    }
}

void scalar_attend_q8(const struct attend *a)
{
    float score[SEGMENT];

    for (size_t i = 0; i < a->n; i++) {
        scores_of_codes(a, a->q + i * a->dim, a->visible[i], score);
        softmax(score, a->visible[i], &a->m[i], &a->l[i]);
        values_of_codes(a, score, a->visible[i], a->o + i * a->dim);
    }
}
