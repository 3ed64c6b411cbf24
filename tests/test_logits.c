/* The real model against what the exact one says (tests/golden/logits.txt, recorded by
 * record_logits.py). */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "engine/engine.h"

enum { TOP = 5 };

struct golden_line {
    int32_t id;
    double next; /* log-probability of the next line's id */
    int32_t top[TOP];
    double logprob[TOP];
};

struct golden {
    struct golden_line *lines;
    size_t n, prompt;
};

/* Reads the section `name`. */
static struct golden read_golden(const char *name)
{
    char path[4096], line[512], word[16];
    const char *dir = getenv("FADER_SRCDIR");
    struct golden g = {0};

    snprintf(path, sizeof path, "%s/tests/golden/logits.txt", dir != NULL ? dir : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        size_t a, b;
        int fields = sscanf(line, "%15s %zu %zu", word, &a, &b);
        if (fields < 2 || strcmp(word, name) != 0)
            continue;
        g.prompt = fields == 3 ? a : 0;
        g.n = fields == 3 ? b : a;
        break;
    }
    assert_true(g.n > 0);
    g.lines = mem_array(g.n, sizeof *g.lines);
    for (size_t i = 0; i < g.n; i++) {
        struct golden_line *l = &g.lines[i];
        assert_int_equal(fscanf(f, "%d %lf", &l->id, &l->next), 2);
        for (size_t k = 0; k < TOP; k++)
            assert_int_equal(fscanf(f, "%d %lf", &l->top[k], &l->logprob[k]), 2);
    }
    fclose(f);
    return g;
}

/* ---- what fader says ------------------------------------------------------------------------- */

struct said {
    const struct golden *golden;
    size_t n_vocab;
    double off, worst; /* |difference of log-probability|: sum, largest */
    size_t n, best;    /* tokens compared; how often the likeliest agrees */
    double loss;       /* largest amount by which fader's choice is worse than the best one */
};

static double log_sum(const float *logits, size_t n)
{
    double top = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        top = fmax(top, (double)logits[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - top);
    return top + log(sum);
}

static void listen(void *ctx, size_t index, const float *logits)
{
    struct said *s = ctx;
    const struct golden_line *l = &s->golden->lines[index];
    size_t best = 0;

    if (index + 1 >= s->golden->n || index + 1 < s->golden->prompt)
        return;
    double next = (double)logits[s->golden->lines[index + 1].id] - log_sum(logits, s->n_vocab);
    double off = fabs(next - l->next), loss = INFINITY;
    for (size_t i = 1; i < s->n_vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    for (size_t k = 0; k < TOP; k++) {
        if (l->top[k] == (int32_t)best)
            loss = l->logprob[0] - l->logprob[k];
    }
    s->off += off;
    s->worst = fmax(s->worst, off);
    s->loss = fmax(s->loss, loss);
    s->best += loss == 0.0;
    s->n++;
}

static struct said run(struct model *m, const struct golden *g, enum cache_type type)
{
    struct said said = {.golden = g, .n_vocab = (size_t)model_get_info(m)->n_vocab};
    struct eval_hooks hooks = {.logits = listen, .ctx = &said};
    struct error err = {""};
    struct session *s = session_new(m, &(struct session_options){.cache_type = type}, &err);
    int32_t *ids = mem_array(g->n, sizeof *ids);

    assert_non_null(s);
    for (size_t i = 0; i < g->n; i++)
        ids[i] = g->lines[i].id;
    if (session_eval(s, ids, g->n, &hooks, &err) != EVAL_OK)
        fail_msg("%s", err.text);
    free(ids);
    session_free(s);
    return said;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct model *model;

static int load(void **ctx)
{
    struct error err;
    const char *path = test_model();

    (void)ctx;
    if (path == NULL)
        return 0;
    model = model_open(path, &err);
    return model != NULL && model_load(model, &(struct model_load_options){.threads = 2}, &err)
               ? 0
               : -1;
}

static int unload(void **ctx)
{
    (void)ctx;
    model_close(model);
    return 0;
}

/* A page of text. llama.cpp is 0.06 off in the mean on such a page: 8-bit activations cost that
 * much. */
static void check_page(enum cache_type type, double mean)
{
    if (model == NULL)
        skip();
    struct golden g = read_golden("page");
    struct said s = run(model, &g, type);
    free(g.lines);
    print_message(
        "# page: %.4f off in the mean, %.3f at most; the likeliest agrees %zu of %zu times\n",
        s.off / (double)s.n, s.worst, s.best, s.n);
    assert_true(s.off / (double)s.n < mean);
    assert_true(s.worst < 1.0);
    assert_true(s.best * 100 >= s.n * 95);
}

static void test_page(void **ctx)
{
    (void)ctx;
    check_page(CACHE_F16, 0.06);
}

/* An 8-bit cache adds to it: 0.024 by itself, with F16 weights. Over this page and three others
 * fader is 0.0648 off, llama.cpp with a q8_0 cache 0.0638 (from 0.057 to 0.068). */
static void test_page_q8_cache(void **ctx)
{
    (void)ctx;
    check_page(CACHE_Q8_0, 0.066);
}

/* A greedy answer, teacher-forced: at each token fader's choice is the exact model's, or within 0.5
 * nat of it. */
static void test_greedy(void **ctx)
{
    (void)ctx;
    if (model == NULL)
        skip();
    struct golden g = read_golden("greedy");
    assert_true(g.n - g.prompt >= 128);
    struct said s = run(model, &g, CACHE_F16);
    free(g.lines);
    print_message("# greedy: the likeliest agrees %zu of %zu times, else within %.3f nat\n", s.best,
                  s.n, s.loss);
    assert_true(s.loss <= 0.5);
    assert_true(s.best * 100 >= s.n * 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_page_q8_cache),
        cmocka_unit_test(test_greedy),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
