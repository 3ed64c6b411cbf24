#include "config.h"

#include "reference.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* out [n][rows] = x [n][cols] times the dequantised matrix, + bias. */
static double *multiply(const struct gguf_tensor *w, const struct gguf_tensor *bias,
                        const double *x, size_t n)
{
    size_t cols = w->dims[0], rows = w->dims[1];
    double *out = mem_array(n * rows, sizeof *out);
    float *row = mem_array(cols, sizeof *row);

    for (size_t r = 0; r < rows; r++) {
        quant_find(w->type)->dequantize_row((const char *)w->data + r * (w->bytes / rows), row,
                                            cols);
        for (size_t t = 0; t < n; t++) {
            double sum = bias != NULL ? (double)((const float *)bias->data)[r] : 0.0;
            for (size_t c = 0; c < cols; c++)
                sum += x[t * cols + c] * (double)row[c];
            out[t * rows + r] = sum;
        }
    }
    free(row);
    return out;
}

static double *normalise(const struct model *m, const struct gguf_tensor *weight, const double *x,
                         size_t n)
{
    size_t width = (size_t)m->info.n_embd;
    double *out = mem_array(n * width, sizeof *out);

    for (size_t t = 0; t < n; t++) {
        double sum = 0;
        for (size_t i = 0; i < width; i++)
            sum += x[t * width + i] * x[t * width + i];
        double factor = 1.0 / sqrt(sum / (double)width + (double)m->hparams.norm_eps);
        for (size_t i = 0; i < width; i++)
            out[t * width + i] =
                x[t * width + i] * factor * (double)((const float *)weight->data)[i];
    }
    return out;
}

/* Turns all heads of x [n][heads][head_dim]. */
static void rotate(const struct model *m, double *x, size_t n, size_t heads)
{
    size_t dim = (size_t)m->info.head_dim, turned = (size_t)m->hparams.rope_dim;
    const float *freqs = m->rope_freqs != NULL ? m->rope_freqs->data : NULL;

    for (size_t i = 0; i < n * heads * (turned / 2); i++) {
        size_t pair = i % (turned / 2), head = i / (turned / 2), t = head / heads;
        size_t a = m->arch->rope == ROPE_NEOX ? pair : 2 * pair;
        size_t b = m->arch->rope == ROPE_NEOX ? pair + turned / 2 : 2 * pair + 1;
        double angle = (double)t * (double)m->hparams.rope_scale /
                       pow((double)m->hparams.rope_base, 2.0 * (double)pair / (double)turned);
        angle /= freqs != NULL ? (double)freqs[pair] : 1.0;
        double *h = x + head * dim, u = h[a], v = h[b];
        h[a] = u * cos(angle) - v * sin(angle);
        h[b] = u * sin(angle) + v * cos(angle);
    }
}

/* One query head of one token over the positions up to it. */
static void attend(const double *q, const double *k, const double *v, size_t t, size_t stride,
                   size_t dim, double *out)
{
    double *share = mem_array(t + 1, sizeof *share), total = 0, top = -INFINITY;

    for (size_t p = 0; p <= t; p++) {
        for (size_t d = 0; d < dim; d++)
            share[p] += q[d] * k[p * stride + d] / sqrt((double)dim);
        top = fmax(top, share[p]);
    }
    for (size_t p = 0; p <= t; p++)
        total += share[p] = exp(share[p] - top);
    for (size_t d = 0; d < dim; d++) {
        out[d] = 0;
        for (size_t p = 0; p <= t; p++)
            out[d] += share[p] / total * v[p * stride + d];
    }
    free(share);
}

static double *attention(const struct model *m, const struct model_layer *y, const double *h,
                         size_t n)
{
    size_t heads = (size_t)m->info.n_head, kv_heads = (size_t)m->info.n_kv_head;
    size_t dim = (size_t)m->info.head_dim;
    double *q = multiply(y->attn_q, y->attn_q_bias, h, n),
           *k = multiply(y->attn_k, y->attn_k_bias, h, n);
    double *v = multiply(y->attn_v, y->attn_v_bias, h, n),
           *o = mem_array(n * heads * dim, sizeof *o);

    rotate(m, q, n, heads);
    rotate(m, k, n, kv_heads);
    for (size_t i = 0; i < n * heads; i++) {
        size_t t = i / heads, from = i % heads * kv_heads / heads;
        attend(q + i * dim, k + from * dim, v + from * dim, t, kv_heads * dim, dim, o + i * dim);
    }
    double *out = multiply(y->attn_output, y->attn_output_bias, o, n);
    free(q);
    free(k);
    free(v);
    free(o);
    return out;
}

static double *feed_forward(const struct model *m, const struct model_layer *y, const double *h,
                            size_t n)
{
    double *gate = multiply(y->ffn_gate, y->ffn_gate_bias, h, n);
    double *up = multiply(y->ffn_up, y->ffn_up_bias, h, n);

    for (size_t i = 0; i < n * (size_t)m->info.n_ff; i++)
        gate[i] = gate[i] / (1.0 + exp(-gate[i])) * up[i];
    double *out = multiply(y->ffn_down, y->ffn_down_bias, gate, n);
    free(gate);
    free(up);
    return out;
}

/* x += y; takes y. */
static void add(double *x, double *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
    free(y);
}

double *reference_logits(const struct model *m, const int32_t *ids, size_t n)
{
    size_t width = (size_t)m->info.n_embd;
    double *x = mem_array(n * width, sizeof *x);
    float *row = mem_array(width, sizeof *row);
    const struct gguf_tensor *e = m->token_embd;

    for (size_t t = 0; t < n; t++) {
        quant_find(e->type)->dequantize_row(
            (const char *)e->data + (size_t)ids[t] * (e->bytes / e->dims[1]), row, width);
        for (size_t i = 0; i < width; i++)
            x[t * width + i] = (double)row[i];
    }
    free(row);
    for (int32_t i = 0; i < m->info.n_layer; i++) {
        const struct model_layer *y = &m->layers[i];
        double *h = normalise(m, y->attn_norm, x, n);
        add(x, attention(m, y, h, n), n * width);
        free(h);
        h = normalise(m, y->ffn_norm, x, n);
        add(x, feed_forward(m, y, h, n), n * width);
        free(h);
    }
    double *h = normalise(m, m->output_norm, x, n), *out = multiply(m->output, NULL, h, n);
    free(h);
    free(x);
    return out;
}
