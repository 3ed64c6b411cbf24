/* The portable kernels: what the others are measured against, bit for bit. */
#include "config.h"

#include "engine/kernels.h"

#include <math.h>
#include <string.h>

#include "engine/exp.h"
#include "engine/quant.h"

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK, POSITIONS = KERNEL_POSITIONS };

/* The one order in which lanes are summed. */
static float lane_sum(const float v[LANES])
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

static uint16_t read_u16(const uint8_t *p)
{
    uint16_t value;

    memcpy(&value, p, sizeof value);
    return value;
}

static float read_half(const uint8_t *p)
{
    return quant_f16_to_f32(read_u16(p));
}

/* ---- matrices of codes ---------------------------------------------------------------------- */

/* A packed block's codes as numbers, column by column. */
static void unpack_codes(const uint8_t *codes, int16_t w[BLOCK][LANES], enum pack pack)
{
    size_t words = pack == PACK_Q8_0 ? 8 : 4;

    for (size_t i = 0; i < words * LANES * 4; i++) {
        size_t column = i / (LANES * 4) * 4 + i % 4, r = i / 4 % LANES;
        if (pack == PACK_Q8_0) {
            w[column][r] = (int8_t)codes[i];
        } else {
            w[column][r] = codes[i] & 15;
            w[column + 16][r] = codes[i] >> 4;
        }
    }
}

/* One block of 8 rows times the same block of every token. */
static void add_block(const uint8_t *block, const int8_t *q, const struct act_scale *s, size_t n,
                      float *acc, enum pack pack)
{
    float d[LANES], m[LANES];
    int16_t w[BLOCK][LANES];

    unpack_codes(block + (pack == PACK_Q4_1 ? 32 : 16), w, pack);
    for (size_t r = 0; r < LANES; r++) {
        d[r] = read_half(block + 2 * r);
        m[r] = pack == PACK_Q4_1 ? read_half(block + 16 + 2 * r) : d[r] * -8.0f;
    }
    for (size_t t = 0; t < n; t++, q += BLOCK, s++, acc += LANES) {
        int32_t sum[LANES] = {0};
        for (size_t c = 0; c < BLOCK; c++) {
            for (size_t r = 0; r < LANES; r++)
                sum[r] += w[c][r] * q[c];
        }
        for (size_t r = 0; r < LANES; r++) {
            acc[r] = fmaf((float)sum[r], d[r] * s->d, acc[r]);
            if (pack != PACK_Q8_0)
                acc[r] = fmaf(m[r], s->sum, acc[r]);
        }
    }
}

static void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    size_t head = pack == PACK_Q4_1 ? 32 : 16, bytes = head + (pack == PACK_Q8_0 ? 256 : 128);

    memset(out, 0, n_groups * a->n * LANES * sizeof *out);
    for (size_t g = 0; g < n_groups; g++, out += a->n * LANES) {
        for (size_t b = 0; b < a->cols / BLOCK; b++, groups += bytes)
            add_block(groups, a->q + b * a->n * BLOCK, a->scale + b * a->n, a->n, out, pack);
    }
}

static void matmul_q4_0(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q4_0);
}

static void matmul_q4_1(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q4_1);
}

static void matmul_q8_0(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_codes(groups, n_groups, a, out, PACK_Q8_0);
}

/* ---- matrices of floats --------------------------------------------------------------------- */

static float read_float(const uint8_t *p, enum pack pack)
{
    float value;

    if (pack == PACK_F16)
        return read_half(p);
    if (pack == PACK_BF16)
        return quant_bf16_to_f32(read_u16(p));
    memcpy(&value, p, sizeof value);
    return value;
}

/* One group times one token, whose first block is x. */
static void dot_floats(const uint8_t *group, const struct panel *a, const float *x,
                       float out[LANES], enum pack pack)
{
    size_t size = pack == PACK_F32 ? 4 : 2;

    memset(out, 0, LANES * sizeof *out);
    for (size_t b = 0; b < a->cols / BLOCK; b++, x += a->n * BLOCK) {
        for (size_t c = 0; c < BLOCK; c++) {
            for (size_t r = 0; r < LANES; r++, group += size)
                out[r] = fmaf(read_float(group, pack), x[c], out[r]);
        }
    }
}

static void matmul_floats(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                          enum pack pack)
{
    size_t size = pack == PACK_F32 ? 4 : 2;

    for (size_t g = 0; g < n_groups; g++, groups += a->cols * LANES * size) {
        for (size_t t = 0; t < a->n; t++, out += LANES)
            dot_floats(groups, a, a->f32 + t * BLOCK, out, pack);
    }
}

static void matmul_f16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F16);
}

static void matmul_bf16(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_BF16);
}

static void matmul_f32(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out)
{
    matmul_floats(groups, n_groups, a, out, PACK_F32);
}

/* ---- vectors -------------------------------------------------------------------------------- */

static void rms_norm(const float *x, const float *weight, size_t n, float eps, float *out)
{
    size_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
    float acc[4][LANES] = {{0}}, lanes[LANES];

    for (size_t i = 0; i < padded; i++) {
        float *a = &acc[i % BLOCK / LANES][i % LANES];
        *a = fmaf(x[i], x[i], *a);
    }
    for (size_t r = 0; r < LANES; r++)
        lanes[r] = (acc[0][r] + acc[1][r]) + (acc[2][r] + acc[3][r]);
    float factor = 1.0f / sqrtf(lane_sum(lanes) / (float)n + eps);
    for (size_t i = 0; i < padded; i++)
        out[i] = x[i] * factor * weight[i];
}

/* To nearest, ties to even, for |x| < 2^22: the low bits of the sum are the integer. A NaN gives
 * something. */
static int8_t round_code(float x)
{
    return (int8_t)(uint8_t)(quant_f32_bits(x + 0x1.8p23f) & 0xFF);
}

static void quantize(const float *x, size_t n_blocks, size_t stride, int8_t *q,
                     struct act_scale *scale)
{
    for (size_t b = 0; b < n_blocks; b++, x += BLOCK, q += stride * BLOCK, scale += stride) {
        float largest = 0.0f;
        int32_t sum = 0;
        for (size_t i = 0; i < BLOCK; i++)
            largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
        /* Too small to divide by: nothing that a float sum would still notice. */
        bool none = !(largest > 1e-30f);
        float d = none ? 0.0f : largest / 127.0f, inverse = none ? 0.0f : 127.0f / largest;
        for (size_t i = 0; i < BLOCK; i++) {
            q[i] = round_code(x[i] * inverse);
            sum += q[i];
        }
        *scale = (struct act_scale){d, d * (float)sum, sum};
    }
}

static void silu_mul(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = gate[i] / (1.0f + exp_approx(-gate[i])) * up[i];
}

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

static void scale(float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= by;
}

static void rope(float *x, const float *cosine, const float *sine, size_t dim, bool halves)
{
    size_t step = halves ? dim / 2 : 1, n = halves ? dim / 2 : dim;

    for (size_t i = 0; i < n; i += halves ? 1 : 2) {
        float a = x[i], b = x[i + step];
        x[i] = fmaf(a, cosine[i], b * sine[i]);
        x[i + step] = fmaf(b, cosine[i + step], a * sine[i + step]);
    }
}

static void half_to_float(const uint16_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = quant_f16_to_f32(src[i]);
}

static void float_to_half(const float *src, uint16_t *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = src[i] < 65504.0f ? src[i] : 65504.0f;
        dst[i] = quant_f32_to_f16(x > -65504.0f ? x : -65504.0f);
    }
}

static void expand_codes(const int8_t *codes, const uint16_t *scales, bool shared, float *dst,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)codes[i] * quant_f16_to_f32(scales[shared ? 0 : i]);
}

/* ---- attention ------------------------------------------------------------------------------ */

/* Turns the scores of one query into weights exp(score - m), in place; positions beyond `visible`
 * get exactly 0. Returns what the sums so far are to be multiplied by. */
static float softmax_step(float score[POSITIONS], size_t visible, float *m, float *l)
{
    float largest = *m, lanes[LANES];

    for (size_t i = 0; i < POSITIONS; i++) {
        score[i] = i < visible ? score[i] : -INFINITY;
        largest = score[i] > largest ? score[i] : largest;
    }
    float correction = exp_approx(*m - largest);
    for (size_t i = 0; i < POSITIONS; i++)
        score[i] = exp_approx(score[i] - largest);
    for (size_t r = 0; r < LANES; r++)
        lanes[r] = (score[r] + score[8 + r]) + (score[16 + r] + score[24 + r]);
    *l = fmaf(*l, correction, lane_sum(lanes));
    *m = largest;
    return correction;
}

enum form { HALVES, FLOATS, CODES };

/* Value `i` of a block; a code has scale number `at`. */
static float read_cache(const void *values, size_t i, enum form form, const uint16_t *scales,
                        size_t at)
{
    if (form == CODES)
        return (float)((const int8_t *)values)[i] * quant_f16_to_f32(scales[at]);
    return form == HALVES ? quant_f16_to_f32(((const uint16_t *)values)[i])
                          : ((const float *)values)[i];
}

static void attend(const struct attend *a, enum form form)
{
    size_t groups = (a->dim + BLOCK - 1) / BLOCK;

    for (size_t i = 0; i < a->n; i++) {
        const float *q = a->q + i * a->dim;
        float score[POSITIONS] = {0}, *o = a->o + i * a->dim;
        for (size_t d = 0; d < a->dim; d++) {
            for (size_t p = 0; p < POSITIONS; p++)
                score[p] = fmaf(q[d],
                                read_cache(a->k, d * POSITIONS + p, form, a->k_scales,
                                           d / BLOCK * POSITIONS + p),
                                score[p]);
        }
        scale(o, softmax_step(score, a->visible[i], &a->m[i], &a->l[i]), a->dim);
        for (size_t p = 0; p < POSITIONS; p++) {
            for (size_t d = 0; d < a->dim; d++)
                o[d] = fmaf(
                    score[p],
                    read_cache(a->v, p * a->dim + d, form, a->v_scales, p * groups + d / BLOCK),
                    o[d]);
        }
    }
}

static void attend_f16(const struct attend *a)
{
    attend(a, HALVES);
}

static void attend_f32(const struct attend *a)
{
    attend(a, FLOATS);
}

static void attend_q8(const struct attend *a)
{
    attend(a, CODES);
}

static void merge(float *m, float *l, float *o, float m2, float l2, const float *o2, size_t dim)
{
    float largest = m2 > *m ? m2 : *m;
    float c1 = exp_approx(*m - largest), c2 = exp_approx(m2 - largest);

    *m = largest;
    *l = fmaf(l2, c2, *l * c1);
    for (size_t d = 0; d < dim; d++)
        o[d] = fmaf(o2[d], c2, o[d] * c1);
}

const struct kernels kernels_scalar = {
    .name = "scalar",
    .matmul = {[PACK_Q4_0] = matmul_q4_0,
               [PACK_Q4_1] = matmul_q4_1,
               [PACK_Q8_0] = matmul_q8_0,
               [PACK_F16] = matmul_f16,
               [PACK_BF16] = matmul_bf16,
               [PACK_F32] = matmul_f32},
    .rms_norm = rms_norm,
    .quantize = quantize,
    .silu_mul = silu_mul,
    .add = add,
    .rope = rope,
    .attend_f16 = attend_f16,
    .attend_f32 = attend_f32,
    .attend_q8 = attend_q8,
    .merge = merge,
    .scale = scale,
    .half_to_float = half_to_float,
    .float_to_half = float_to_half,
    .expand_codes = expand_codes,
};
