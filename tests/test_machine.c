/* The limits: what the loops measure is what they say, and the work of a model is counted
 * by hand. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "engine/machine.h"
#include "engine/model.h"
#include "tiny_gguf.h"

enum { LAYERS = 2, EMBD = 64, HEADS = 4, KV_HEADS = 2, HEAD_DIM = 16, FF = 96 };

static struct model *open_tiny(uint32_t type, bool no_repack)
{
    struct tiny_gguf_options options = {.type = type, .seed = 3};
    struct model_load_options load = {.threads = 2, .no_repack = no_repack};
    char path[] = "/tmp/fader-test-XXXXXX";
    struct error err = {""};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_true(tiny_gguf_write(path, &options));
    struct model *m = model_open(path, &err);
    unlink(path);
    assert_non_null(m);
    assert_true(model_load(m, &load, &err));
    return m;
}

/* Multiply-adds of one layer's matrices, of the head, and of attention for one position seen. */
static double layer_macs(void)
{
    const double q = HEADS * HEAD_DIM, kv = KV_HEADS * HEAD_DIM;

    return EMBD * (q + 2 * kv) + q * EMBD + 3.0 * EMBD * FF;
}

static double head_macs(const struct model *m)
{
    return (double)EMBD * model_get_info(m)->n_vocab;
}

static double position_macs(void)
{
    return 2.0 * LAYERS * HEADS * HEAD_DIM;
}

static void test_a_decode_step(void **ctx)
{
    (void)ctx;
    struct model *m = open_tiny(QUANT_Q8_0, false);
    struct work w = model_work(m, 100, 1, CACHE_F16);
    const double kv_bytes = 2.0 * LAYERS * KV_HEADS * HEAD_DIM * 2; /* f16 */

    assert_true(w.bytes == (double)model_decode_bytes(m) + 100 * kv_bytes);
    assert_true(w.codes == LAYERS * layer_macs() + head_macs(m));
    assert_true(w.floats == 101 * position_macs());
    model_close(m);
}

static void test_a_prefill(void **ctx)
{
    (void)ctx;
    struct model *m = open_tiny(QUANT_F32, false);
    struct work w = model_work(m, 0, 10, CACHE_Q8_0);

    assert_true(w.bytes == (double)model_decode_bytes(m));
    assert_true(w.codes == 0.0);
    assert_true(w.floats == 10 * LAYERS * layer_macs() + head_macs(m) + 55 * position_macs());
    model_close(m);
}

static void test_seconds(void **ctx)
{
    const struct machine machine = {.bytes = 10, .codes = 100, .floats = 20};
    bool by_memory;

    (void)ctx;
    assert_true(machine_seconds(&machine, &(struct work){50, 100, 20}, &by_memory) == 5.0);
    assert_true(by_memory);
    assert_true(machine_seconds(&machine, &(struct work){10, 200, 40}, &by_memory) == 4.0);
    assert_false(by_memory);
    assert_true(machine_seconds(&machine, &(struct work){0, 100, 0}, NULL) == 1.0);
}

/* Three rounds by hand: each of the ten sums begins with its number; a code product is 3 * -5, a
 * float one 0.5 * 0.5, and one lane is looked at. */
static void test_peak_loops_do_their_work(void **ctx)
{
    static const struct {
        const char *kernels;
        double codes, floats, floats_per_round;
    } expected[] = {{"avx512", 45 - 3 * 10 * 4 * 15, 45 + 3 * 10 * 0.25, 160},
                    {"avx2", 45 - 3 * 10 * 2 * 15, 45 + 3 * 10 * 0.25, 80},
                    {"dotprod", 45 - 3 * 10 * 4 * 15, 45 + 3 * 10 * 0.25, 40},
                    {"neon", 45 - 3 * 10 * 15, 45 + 3 * 10 * 0.25, 40},
                    {"scalar", -3 * 32 * 15, 45 + 3 * 10 * 0.25, 10}};
    const struct machine_peak *peak = machine_find_peak(engine_kernels());
    bool found = false;

    (void)ctx;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (strcmp(expected[i].kernels, engine_kernels()) != 0)
            continue;
        assert_string_equal(peak->kernels, engine_kernels());
        assert_true(peak->codes(3) == (float)expected[i].codes);
        assert_true(peak->floats(3) == (float)expected[i].floats);
        assert_true(peak->floats_per_round == expected[i].floats_per_round);
        found = true;
    }
    assert_true(found);
}

static void test_unknown_kernels_are_measured_as_portable_ones(void **ctx)
{
    (void)ctx;
    assert_string_equal(machine_find_peak("sse9")->kernels, "scalar");
    assert_string_equal(machine_find_peak("scalar")->kernels, "scalar");
}

static void test_measuring(void **ctx)
{
    (void)ctx;
    for (int no_repack = 0; no_repack < 2; no_repack++) {
        struct model *m = open_tiny(QUANT_Q4_0, no_repack);
        struct machine machine = {0};
        struct error err = {""};
        assert_true(machine_measure_stream(m, &machine.bytes, &err));
        machine_measure_peaks(m, &machine.codes, &machine.floats);
        assert_true(machine.bytes > 1e6);
        assert_true(machine.codes > 1e6);
        assert_true(machine.floats > 1e6);
        model_close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_decode_step),
        cmocka_unit_test(test_a_prefill),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_peak_loops_do_their_work),
        cmocka_unit_test(test_unknown_kernels_are_measured_as_portable_ones),
        cmocka_unit_test(test_measuring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
