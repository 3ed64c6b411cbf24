/* Sessions on tiny models: the same bits whatever the schedule, the right values by an f64
 * reference, and what happens when something is cancelled, full, or shared. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "blocks.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "reference.h"
#include "tiny_gguf.h"

enum { CTX = 1024, LONG = 600, SHORT = 40 };

/* ---- set-up --------------------------------------------------------------------------------- */

static int32_t ids[CTX];
static const char *kernels_asked; /* FADER_KERNELS as this program was started */

/* NULL: none. */
static void ask_kernels(const char *name)
{
    if (name != NULL)
        setenv("FADER_KERNELS", name, 1);
    else
        unsetenv("FADER_KERNELS");
}

static int make_ids(void **ctx)
{
    uint32_t x = 12345;

    (void)ctx;
    kernels_asked = getenv("FADER_KERNELS") != NULL ? mem_strdup(getenv("FADER_KERNELS")) : NULL;
    for (size_t i = 0; i < CTX; i++) {
        x = x * 1664525 + 1013904223;
        ids[i] = TINY_FIRST_BYTE + (int32_t)(x >> 24);
    }
    return 0;
}

static struct tiny_gguf_options tiny(uint32_t type)
{
    return (struct tiny_gguf_options){.type = type, .n_ctx = CTX, .seed = 7};
}

/* Opens (and, with threads > 0, loads) a tiny model; its file is gone already. */
static struct model *open_tiny(const struct tiny_gguf_options *options, int threads, bool no_repack)
{
    char path[] = "/tmp/fader-test-XXXXXX";
    struct error err = {""};
    int fd = mkstemp(path);
    struct model_load_options load = {.threads = threads, .no_repack = no_repack};

    assert_true(fd >= 0);
    close(fd);
    assert_true(tiny_gguf_write(path, options));
    struct model *m = model_open(path, &err);
    unlink(path);
    if (m == NULL || (threads > 0 && !model_load(m, &load, &err)))
        fail_msg("%s", err.text);
    return m;
}

static struct session *start(struct model *m, int32_t batch, enum cache_type type)
{
    struct error err;
    struct session *s = session_new(m, &(struct session_options){CTX, batch, type}, &err);

    assert_non_null(s);
    return s;
}

static void eval(struct session *s, const int32_t *tokens, size_t n)
{
    struct error err = {""};

    if (session_eval(s, tokens, n, NULL, &err) != EVAL_OK)
        fail_msg("session_eval: %s", err.text);
    assert_non_null(session_logits(s));
}

static size_t logits_bytes(const struct model *m)
{
    return (size_t)model_get_info(m)->n_vocab * sizeof(float);
}

/* A copy of the logits after ids[0 .. n-1], by one plain run. The caller frees. */
static float *plain_logits(struct model *m, size_t n)
{
    struct session *s = start(m, 0, CACHE_F16);

    eval(s, ids, n);
    float *copy = mem_dup(session_logits(s), logits_bytes(m));
    session_free(s);
    return copy;
}

static void assert_logits(struct session *s, const struct model *m, const float *expected)
{
    assert_memory_equal(session_logits(s), expected, logits_bytes(m));
}

/* ---- the right values ------------------------------------------------------------------------ */

struct gathered {
    float *logits; /* [n][n_vocab] */
    size_t n, n_vocab;
};

static void gather(void *ctx, size_t index, const float *logits)
{
    struct gathered *g = ctx;

    assert_int_equal(index, g->n);
    memcpy(g->logits + g->n++ * g->n_vocab, logits, g->n_vocab * sizeof *logits);
}

/* Root of the mean square of the difference, relative to the spread of the reference's logits. */
static double distance(const float *a, const double *b, size_t n)
{
    double mean = 0, spread = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        mean += b[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        spread += (b[i] - mean) * (b[i] - mean);
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return sqrt(sum / spread);
}

/* Every position's logits against the reference. */
static void check_values(struct model *m, size_t n, double within)
{
    size_t n_vocab = (size_t)model_get_info(m)->n_vocab;
    struct gathered g = {mem_array(n * n_vocab, sizeof(float)), 0, n_vocab};
    struct eval_hooks hooks = {.logits = gather, .ctx = &g};
    struct session *s = start(m, 100, CACHE_F16);
    struct error err;

    assert_int_equal(session_eval(s, ids, n, &hooks, &err), EVAL_OK);
    assert_int_equal(g.n, n);
    assert_memory_equal(session_logits(s), g.logits + (n - 1) * n_vocab, logits_bytes(m));
    double *expected = reference_logits(m, ids, n);
    double off = distance(g.logits, expected, n * n_vocab);
    if (!(off < within))
        fail_msg("logits are %g off the reference, more than %g", off, within);
    session_free(s);
    free(expected);
    free(g.logits);
}

/* Float weights differ by rounding only (and the cache's halves); codes add the activations' 8
 * bits. */
static double tolerance(uint32_t type)
{
    return quant_find(type)->block_elements == 1 ? 2e-3 : 3e-2;
}

static void test_values(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < N_WEIGHT_TYPES; i++) {
        struct tiny_gguf_options options = tiny(weight_types[i]);
        struct model *m = open_tiny(&options, 2, false);
        check_values(m, SHORT, tolerance(weight_types[i]));
        model_close(m);
    }
}

/* Beyond a segment of attention, and beyond a batch. */
static void test_long_values(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_F32);
    struct model *m = open_tiny(&options, 2, false);

    (void)ctx;
    check_values(m, LONG, tolerance(QUANT_F32));
    model_close(m);
}

/* Shapes that are no multiple of anything, biases, an output of its own, frequency divisors, both
 * ropes. */
static void test_odd_models(void **ctx)
{
    static const struct arch_traits neox = {.name = "neox", .rope = ROPE_NEOX};

    (void)ctx;
    for (size_t i = 0; i < 2 * N_WEIGHT_TYPES; i++) {
        struct tiny_gguf_options options = tiny(weight_types[i / 2]);
        size_t block = quant_find(options.type)->block_elements;
        bool floats = block == 1;
        options.biases = options.untied = options.rope_freqs = true;
        options.embd_q8_0 = !floats;
        options.n_extra_tokens = 13;
        options.n_layer = 3;
        options.n_head = floats ? 6 : 8;
        options.n_kv_head = floats ? 3 : 1;
        options.head_dim = floats ? 12 : 20;
        options.n_embd = floats ? 52 : 96;
        options.n_ff = floats ? 75 : 160;
        if (block == 256) {
            options.head_dim = 32;
            options.n_embd = 512;
            options.n_ff = 256;
        }
        struct model *m = open_tiny(&options, 0, false);
        struct model_load_options load = {.threads = 2};
        struct error err;
        if (i % 2 == 1)
            m->arch = &neox;
        assert_true(model_load(m, &load, &err));
        check_values(m, SHORT, tolerance(options.type));
        model_close(m);
    }
}

/* ---- the same bits --------------------------------------------------------------------------- */

static void test_schedules(void **ctx)
{
    static const uint32_t few[] = {QUANT_F32, QUANT_Q4_1};
    static const int32_t batches[] = {1, 7, 64, 512};
    static const int threads[] = {1, 2, 3};

    (void)ctx;
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        struct tiny_gguf_options options = tiny(few[i]);
        float *expected = NULL;
        for (size_t k = 0; k < 4; k++) { /* the fourth runs from the map */
            struct model *m = open_tiny(&options, threads[k % 3], k == 3);
            if (expected == NULL)
                expected = plain_logits(m, LONG);
            for (size_t b = 0; b < 4; b++) {
                struct session *s = start(m, batches[b], CACHE_F16);
                eval(s, ids, LONG);
                assert_logits(s, m, expected);
                session_free(s);
            }
            model_close(m);
        }
        free(expected);
    }
}

static size_t random_below(size_t n)
{
    static uint32_t x = 4711;

    x = x * 1664525 + 1013904223;
    return (x >> 8) % n;
}

/* ids[0 .. n-1] in pieces and batches of random sizes, the last one as a lane beside two others. */
static void check_random_schedule(struct model *m, size_t n, const float *expected)
{
    struct session *s = start(m, 1 + (int32_t)random_below(80), CACHE_F16), *lanes[3];
    struct error err = {""};

    for (size_t at = 0, piece; at < n - 1; at += piece) {
        piece = 1 + random_below(n - 1 - at);
        eval(s, ids + at, piece);
    }
    for (size_t i = 0; i < 3; i++)
        lanes[i] = i == 1 ? s : session_fork(s, &err);
    assert_int_equal(session_eval_lanes(lanes, ids + n - 2, 3, &err), EVAL_OK);
    assert_logits(s, m, expected);
    for (size_t i = 0; i < 3; i++)
        session_free(lanes[i]);
}

/* Every type: one token at a time, by one thread, against random schedules, threads, and all sets
 * of kernels, repacked or not. (Sets are allowed to differ by their contract; these do not.) */
static void test_types(void **ctx)
{
    static const char *const names[] = {"scalar", "avx2", "avx512"};
    enum { N = 140 };

    (void)ctx;
    for (size_t i = 0; i < N_WEIGHT_TYPES; i++) {
        struct tiny_gguf_options options = tiny(weight_types[i]);
        struct model *m = open_tiny(&options, 1, false);
        struct session *s = start(m, 1, CACHE_F16);
        for (size_t t = 0; t < N; t++)
            eval(s, ids + t, 1);
        float *expected = mem_dup(session_logits(s), logits_bytes(m));
        session_free(s);
        model_close(m);
        for (size_t k = 0; k < 6; k++) {
            struct model_load_options load = {.threads = 1 + (int)random_below(3),
                                              .no_repack = k % 2 == 1};
            struct error err;
            ask_kernels(names[k / 2]);
            m = open_tiny(&options, 0, false);
            if (model_load(m, &load, &err)) {
                assert_string_equal(engine_kernels(), names[k / 2]);
                check_random_schedule(m, N, expected);
            }
            model_close(m);
            ask_kernels(kernels_asked);
        }
        free(expected);
    }
}

static void test_unknown_kernels(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q4_1);
    struct model *m = open_tiny(&options, 0, false);
    struct error err;

    (void)ctx;
    ask_kernels("mmx");
    assert_false(model_load(m, NULL, &err));
    assert_non_null(strstr(err.text, "FADER_KERNELS=mmx"));
    ask_kernels(kernels_asked);
    assert_null(session_new(m, NULL, &err));
    assert_true(model_load(m, NULL, &err));
    assert_true(model_threads(m) >= 1);
    model_close(m);
}

static void test_reuse(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q4_1);
    struct model *m = open_tiny(&options, 2, false);
    float *expected = plain_logits(m, LONG);
    static const size_t kept[] = {0, 1, 31, 32, 33, 255, 256, 257, LONG - 1};
    int32_t other[CTX];

    (void)ctx;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        struct session *s = start(m, 100, CACHE_F16);
        memcpy(other, ids, sizeof other);
        for (size_t k = kept[i]; k < LONG + 50; k++)
            other[k] = ids[k] == 5 ? 6 : 5;
        eval(s, other, LONG + 50);
        assert_int_equal(session_reuse(s, ids, LONG), (int)kept[i]);
        assert_int_equal(session_length(s), (int)kept[i]);
        assert_null(session_logits(s));
        eval(s, ids + kept[i], LONG - kept[i]);
        assert_logits(s, m, expected);
        assert_memory_equal(session_tokens(s), ids, LONG * sizeof *ids);
        /* All of it is there already: one token is run again all the same. */
        assert_int_equal(session_reuse(s, ids, LONG), LONG - 1);
        eval(s, ids + LONG - 1, 1);
        assert_logits(s, m, expected);
        session_free(s);
    }
    free(expected);
    model_close(m);
}

static void test_fork(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q8_0);
    struct model *m = open_tiny(&options, 2, false);
    float *at_50 = plain_logits(m, 50), *at_90 = plain_logits(m, 90);
    struct session *s = start(m, 0, CACHE_F16);
    struct error err;

    (void)ctx;
    eval(s, ids, 50);
    struct session *fork = session_fork(s, &err);
    assert_non_null(fork);
    assert_logits(fork, m, at_50);
    assert_int_equal(session_length(fork), 50);
    /* The one goes elsewhere, in the block that both have: the other must not notice. */
    eval(s, ids + 500, 60);
    eval(fork, ids + 50, 40);
    assert_logits(fork, m, at_90);
    session_truncate(s, 50);
    assert_null(session_logits(s));
    eval(s, ids + 50, 40);
    assert_logits(s, m, at_90);
    session_free(s);
    session_truncate(fork, 49);
    eval(fork, ids + 49, 1);
    assert_logits(fork, m, at_50);
    session_free(fork);
    free(at_50);
    free(at_90);
    model_close(m);
}

/* Lanes of different lengths, some from one shared prompt, beside each other: each as if alone. */
static void test_lanes(void **ctx)
{
    enum { LANES = 16, STEPS = 5 };
    static const int together[] = {1, 3, 8, 9, LANES}; /* few are prepared otherwise than many */
    struct tiny_gguf_options options = tiny(QUANT_Q4_1);
    struct model *m = open_tiny(&options, 3, false);
    struct session *alone[LANES], *lane[LANES], *prompt = start(m, 0, CACHE_F16);
    struct error err = {""};

    (void)ctx;
    eval(prompt, ids, 270);
    for (size_t i = 0; i < LANES; i++) {
        if (i % 2 == 0) {
            lane[i] = session_fork(prompt, &err);
        } else {
            lane[i] = start(m, 0, CACHE_F16);
            eval(lane[i], ids + i, 1 + 17 * i);
        }
        alone[i] = session_fork(lane[i], &err);
    }
    for (size_t k = 0; k < sizeof together / sizeof *together; k++) {
        int n = together[k];
        for (size_t step = 0; step < STEPS; step++) {
            int32_t next[LANES];
            for (size_t i = 0; i < (size_t)n; i++) {
                next[i] = ids[step * LANES + i];
                eval(alone[i], &next[i], 1);
            }
            assert_int_equal(session_eval_lanes(lane, next, n, &err), EVAL_OK);
            for (size_t i = 0; i < (size_t)n; i++) {
                assert_logits(lane[i], m, session_logits(alone[i]));
                assert_int_equal(session_length(lane[i]), session_length(alone[i]));
            }
        }
    }
    assert_int_equal(session_eval_lanes(lane, ids, 17, &err), EVAL_FAILED);
    session_free(prompt);
    for (size_t i = 0; i < LANES; i++) {
        session_free(alone[i]);
        session_free(lane[i]);
    }
    model_close(m);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static void test_q8_cache(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_F32);
    options.head_dim = 40; /* a whole scale and a part of one */
    struct model *m = open_tiny(&options, 2, false);
    size_t n_vocab = (size_t)model_get_info(m)->n_vocab;
    struct session *exact = start(m, 0, CACHE_F16), *s = start(m, 0, CACHE_Q8_0),
                   *t = start(m, 9, CACHE_Q8_0);
    double *wide = mem_array(n_vocab, sizeof *wide);

    (void)ctx;
    eval(exact, ids, 300);
    eval(s, ids, 300);
    eval(t, ids, 300);
    assert_logits(t, m, session_logits(s));
    for (size_t i = 0; i < n_vocab; i++)
        wide[i] = (double)session_logits(exact)[i];
    double off = distance(session_logits(s), wide, n_vocab);
    assert_true(off > 0 && off < 2e-2);
    assert_true(session_kv_used(s) < session_kv_used(exact) * 6 / 10);
    free(wide);
    session_free(exact);
    session_free(s);
    session_free(t);
    model_close(m);
}

/* Both forms of the cache: the same bits by every kernel set, batch and order of growth. */
static void test_cache_schedules(void **ctx)
{
    static const char *const names[] = {"scalar", "avx2", "avx512"};
    static const int head_dims[] = {16, 40, 128};
    static const int32_t batches[] = {1, 7, 512};

    (void)ctx;
    for (size_t i = 0; i < 6; i++) {
        enum cache_type type = i % 2 == 0 ? CACHE_F16 : CACHE_Q8_0;
        struct tiny_gguf_options options = tiny(QUANT_Q8_0);
        float *expected = NULL;
        options.head_dim = head_dims[i / 2];
        for (size_t k = 0; k < 3; k++) {
            struct model *m = open_tiny(&options, 0, false);
            struct error err;
            ask_kernels(names[k]);
            if (model_load(m, &(struct model_load_options){.threads = 2}, &err)) {
                struct session *s = start(m, batches[k], type), *other = start(m, 0, type);
                /* Both grow by turns, so that neither has its blocks in a row. */
                for (size_t n = 0; n < LONG; n += 60) {
                    eval(s, ids + n, 60);
                    eval(other, ids + 2 * n % LONG, 40);
                }
                if (expected == NULL)
                    expected = mem_dup(session_logits(s), logits_bytes(m));
                assert_logits(s, m, expected);
                session_free(s);
                session_free(other);
            }
            model_close(m);
            ask_kernels(kernels_asked);
        }
        free(expected);
    }
}

static void test_kv_used(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q4_0);
    options.head_dim = 32; /* the cache holds whole groups of 32 */
    struct model *m = open_tiny(&options, 1, false);
    struct session *s = start(m, 0, CACHE_F16);
    uint64_t per_token = model_ledger(m, CTX, CACHE_F16).bytes_per_token;

    (void)ctx;
    assert_true(session_kv_used(s) == 0);
    eval(s, ids, 1);
    assert_true(session_kv_used(s) == 32 * per_token);
    eval(s, ids, 31);
    assert_true(session_kv_used(s) == 32 * per_token);
    eval(s, ids, 1);
    assert_true(session_kv_used(s) == 64 * per_token);
    session_truncate(s, 32);
    assert_true(session_kv_used(s) == 32 * per_token);
    session_truncate(s, -3);
    assert_int_equal(session_length(s), 0);
    assert_true(session_kv_used(s) == 0);
    session_free(s);
    model_close(m);
}

/* ---- what does not work out ------------------------------------------------------------------ */

static void test_refusals(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q4_0);
    struct model *m = open_tiny(&options, 2, false);
    struct error err;
    struct session *s = session_new(m, &(struct session_options){.ctx_size = 40}, &err);
    int32_t bad[] = {1, 1 << 20}, negative = -1;

    (void)ctx;
    assert_int_equal(session_ctx_size(s), 40);
    assert_int_equal(session_eval(s, ids, 41, NULL, &err), EVAL_FULL);
    assert_int_equal(session_length(s), 0);
    eval(s, ids, 39);
    assert_int_equal(session_eval(s, ids, 2, NULL, &err), EVAL_FULL);
    assert_non_null(session_logits(s));
    session_truncate(s, 30);
    assert_int_equal(session_eval(s, bad, 2, NULL, &err), EVAL_FAILED);
    assert_non_null(strstr(err.text, "1048576"));
    assert_int_equal(session_eval_lanes(&s, &negative, 1, &err), EVAL_FAILED);
    assert_int_equal(session_length(s), 30);
    eval(s, ids, 10);
    assert_int_equal(session_eval_lanes(&s, ids, 1, &err), EVAL_FULL);
    assert_null(session_new(m, &(struct session_options){.ctx_size = -1}, &err));
    session_free(s);
    model_close(m);
}

struct cancelling {
    atomic_bool cancel, ready;
    size_t batches, cancel_after;
    useconds_t wait;
};

static void cancel_in_time(void *ctx, size_t done, size_t total)
{
    struct cancelling *c = ctx;

    assert_true(done <= total);
    if (++c->batches == c->cancel_after)
        atomic_store(&c->cancel, true);
}

/* Finished batches stay, the one under way is rolled back, and going on gives the same bits. */
static void test_cancel(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q4_1);
    options.head_dim = 32; /* the cache holds whole groups of 32 */
    struct model *m = open_tiny(&options, 2, false);
    float *expected = plain_logits(m, LONG);
    struct session *s = start(m, 50, CACHE_F16);
    struct cancelling c = {.cancel_after = 3};
    struct eval_hooks hooks = {.cancel = &c.cancel, .progress = cancel_in_time, .ctx = &c};
    struct error err;

    (void)ctx;
    assert_int_equal(session_eval(s, ids, LONG, &hooks, &err), EVAL_CANCELLED);
    assert_int_equal(session_length(s), 150);
    assert_null(session_logits(s));
    uint64_t used = 5 * 32 * model_ledger(m, CTX, CACHE_F16).bytes_per_token; /* 150 positions */
    assert_true(session_kv_used(s) == used);
    assert_int_equal(session_eval(s, ids + 150, LONG - 150, &hooks, &err), EVAL_CANCELLED);
    assert_int_equal(session_length(s), 150);
    assert_true(session_kv_used(s) == used);
    atomic_store(&c.cancel, false);
    assert_int_equal(session_eval(s, ids + 150, LONG - 150, &hooks, &err), EVAL_OK);
    assert_logits(s, m, expected);
    session_free(s);
    free(expected);
    model_close(m);
}

static void *cancel_later(void *arg)
{
    struct cancelling *c = arg;

    while (!atomic_load(&c->ready))
        ;
    for (volatile useconds_t i = 0; i < c->wait; i++)
        ;
    atomic_store(&c->cancel, true);
    return NULL;
}

/* From another thread, at any moment: cancelled or done, and sound either way. */
static void test_cancel_any_time(void **ctx)
{
    struct tiny_gguf_options options = tiny(QUANT_Q8_0);
    struct model *m = open_tiny(&options, 2, false);
    float *expected = plain_logits(m, LONG);
    struct error err;

    (void)ctx;
    for (useconds_t i = 0; i < 20; i++) {
        struct session *s = start(m, 512, CACHE_F16);
        struct cancelling c = {.wait = i * i * 2000};
        struct eval_hooks hooks = {.cancel = &c.cancel};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &c), 0);
        atomic_store(&c.ready, true);
        enum eval_result result = session_eval(s, ids, LONG, &hooks, &err);
        pthread_join(thread, NULL);
        assert_true(result == EVAL_OK || result == EVAL_CANCELLED);
        size_t have = (size_t)session_length(s);
        assert_true(have == 0 || have == 512 || (have == LONG && result == EVAL_OK));
        if (have < LONG)
            eval(s, ids + have, LONG - have);
        assert_logits(s, m, expected);
        session_free(s);
    }
    free(expected);
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),          cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_odd_models),      cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_types),           cmocka_unit_test(test_unknown_kernels),
        cmocka_unit_test(test_reuse),           cmocka_unit_test(test_fork),
        cmocka_unit_test(test_lanes),           cmocka_unit_test(test_q8_cache),
        cmocka_unit_test(test_cache_schedules), cmocka_unit_test(test_kv_used),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_any_time),
    };

    return cmocka_run_group_tests(tests, make_ids, NULL);
}
