/* The portable kernels: what the others are measured against, bit for bit. */
#include "config.h"

#include "engine/kernels_scalar.h"

#include <math.h>
#include <string.h>

#include "engine/exp.h"
#include "engine/quant.h"

enum { LANES = KERNEL_LANES, BLOCK = KERNEL_BLOCK };

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

/* Columns 16 * half ... of a row, times a token's. */
static int32_t dot_half(const struct pack_tile *w, size_t half, size_t r, const int8_t *q)
{
    int32_t sum = 0;

    for (size_t j = 4 * half; j < 4 * half + 4; j++) {
        for (size_t c = 0; c < 4; c++)
            sum += w->q[j][4 * r + c] * q[4 * j + c];
    }
    return sum;
}

/* One scale for 32 columns. */
static void add_block(const struct pack_traits *p, const struct pack_tile *w, const int8_t *q,
                      const struct act_scale *s, float acc[LANES])
{
    for (size_t r = 0; r < LANES; r++) {
        int32_t dot = dot_half(w, 0, r, q) + dot_half(w, 1, r, q);
        float d = w->d[r] * (float)w->scale[0][r];
        acc[r] = fmaf((float)dot, d * s->d, acc[r]);
        if (p->has_min)
            acc[r] = fmaf(w->m[r] * (float)w->min[0][r], s->sum, acc[r]);
        else if (p->offset > 0)
            acc[r] = fmaf(d * -(float)p->offset, s->sum, acc[r]);
    }
}

/* One for 16. */
static void add_halves(const struct pack_traits *p, const struct pack_tile *w, const int8_t *q,
                       const struct act_scale *s, float acc[LANES])
{
    for (size_t r = 0; r < LANES; r++) {
        int32_t v = 0, u = 0;
        for (size_t h = 0; h < 2; h++) {
            v += w->scale[h][r] * (dot_half(w, h, r, q) - p->offset * s->half[h]);
            u += w->min[h][r] * s->half[h];
        }
        acc[r] = fmaf((float)v, w->d[r] * s->d, acc[r]);
        if (p->has_min)
            acc[r] = fmaf((float)u, w->m[r] * s->d, acc[r]);
    }
}

static void matmul_codes(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                         enum pack pack)
{
    const struct pack_traits *p = &pack_traits[pack];
    bool halves = pack_has_halves(pack);
    struct pack_tile w;

    memset(out, 0, n_groups * a->n * LANES * sizeof *out);
    for (size_t g = 0; g < n_groups; g++, out += a->n * LANES) {
        for (size_t b = 0; b < a->cols / BLOCK; b++) {
            pack_decode(pack, groups, b, &w);
            for (size_t t = 0, at = b * a->n; t < a->n; t++, at++)
                (halves ? add_halves : add_block)(p, &w, a->q + at * BLOCK, &a->scale[at],
                                                  out + t * LANES);
        }
        groups += a->cols / p->columns * p->bytes;
    }
}

#include "engine/kernels_codes.h"

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

/* One group, `step` bytes from column to column, times one token, whose first block is x. */
static void dot_floats(const uint8_t *group, size_t step, const struct panel *a, const float *x,
                       float out[LANES], enum pack pack)
{
    size_t size = pack_traits[pack].bytes / LANES;

    memset(out, 0, LANES * sizeof *out);
    for (size_t b = 0; b < a->cols / BLOCK; b++, x += a->n * BLOCK) {
        for (size_t c = 0; c < BLOCK; c++, group += step) {
            for (size_t r = 0; r < LANES; r++)
                out[r] = fmaf(read_float(group + r * size, pack), x[c], out[r]);
        }
    }
}

static void matmul_floats(const uint8_t *groups, size_t n_groups, const struct panel *a, float *out,
                          enum pack pack)
{
    size_t bytes = pack_traits[pack].bytes;

    for (size_t width; n_groups > 0; groups += a->cols * width * bytes, n_groups -= width) {
        width = n_groups < KERNEL_CHUNK ? n_groups : KERNEL_CHUNK;
        for (size_t i = 0; i < width * a->n; i++, out += LANES)
            dot_floats(groups + i / a->n * bytes, width * bytes, a, a->f32 + i % a->n * BLOCK, out,
                       pack);
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
        int16_t half[2] = {0};
        for (size_t i = 0; i < BLOCK; i++)
            largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
        /* Too small to divide by: nothing that a float sum would still notice. */
        bool none = !(largest > 1e-30f);
        float d = none ? 0.0f : largest / 127.0f, inverse = none ? 0.0f : 127.0f / largest;
        for (size_t i = 0; i < BLOCK; i++) {
            q[i] = round_code(x[i] * inverse);
            half[i / 16] = (int16_t)(half[i / 16] + q[i]);
        }
        int32_t sum = half[0] + half[1];
        *scale = (struct act_scale){d, d * (float)sum, sum, {half[0], half[1]}};
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

static void float_to_half(const float *src, uint16_t *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = src[i] < 65504.0f ? src[i] : 65504.0f;
        dst[i] = quant_f32_to_f16(x > -65504.0f ? x : -65504.0f);
    }
}

/* ---- attention: the rest is in kernels_scalar_attention.c ------------------------------------ */

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
    .pack = pack_rows_scalar,
    .matmul = {[PACK_F16] = matmul_f16,
               [PACK_BF16] = matmul_bf16,
               [PACK_F32] = matmul_f32,
               FOR_PACKS_OF_CODES(MATMUL_ENTRY)},
    .rms_norm = rms_norm,
    .quantize = quantize,
    .silu_mul = silu_mul,
    .add = add,
    .rope = rope,
    .attend_f16 = scalar_attend_f16,
    .attend_q8 = scalar_attend_q8,
    .merge = merge,
    .scale = scale,
    .float_to_half = float_to_half,
};
