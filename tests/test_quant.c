#include "test.h"

#include <math.h>

#include "engine/kernels.h"
#include "engine/quant.h"
#include "golden.h"

/* ---- half precision ------------------------------------------------------------------------ */

/* What the standard says a half is worth. */
static double worth(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double sign = (half & 0x8000) != 0 ? -1 : 1;

    if (exponent == 31)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25));
}

static void test_f16_every_value(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = quant_f16_to_f32((uint16_t)half);
        if (isnan(worth((uint16_t)half))) {
            assert_true(isnan(value));
            assert_int_equal(quant_f32_to_f16(value), half | 0x200); /* quiet, its bits kept */
            continue;
        }
        assert_true((double)value == worth((uint16_t)half));
        assert_int_equal(signbit(value) != 0, half >> 15);
        assert_int_equal(quant_f32_to_f16(value), half);
    }
}

/* The nearest half there is, and the even one of two as near. */
static void check_rounding(float value)
{
    uint16_t half = quant_f32_to_f16(value);
    double error = fabs(worth(half) - (double)value);

    assert_int_equal(half >> 15, signbit(value) != 0);
    if ((half & 0x7FFF) == 0x7C00) {
        assert_true(fabs((double)value) >= 65520);
        return;
    }
    assert_true(fabs((double)value) < 65520);
    for (int step = -1; step <= 1; step += 2) {
        uint16_t other = (uint16_t)(half + step);
        if ((other & 0x7FFF) >= 0x7C00 || (half & 0x7FFF) + step < 0)
            continue;
        double other_error = fabs(worth(other) - (double)value);
        assert_true(error < other_error || (error == other_error && (half & 1) == 0));
    }
}

static void test_f16_rounding(void **state)
{
    static const float corners[] = {
        0.0f,           -0.0f,      0x1p-24f,     0x1p-25f,     0x1.000002p-25f,
        0x1p-26f,       0x1.8p-24f, 0x1.ffcp-15f, 0x1.ffep-15f, 0x1p-14f,
        65504,          65519.996f, 65520,        1e30f,        1.00048828125f,
        1.00146484375f, 0x1p-149f,  2049,         2051};
    uint32_t bits = 12345;
    (void)state;

    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        check_rounding(corners[i]);
        check_rounding(-corners[i]);
    }
    for (int i = 0; i < 200000; i++) {
        bits = bits * 1664525 + 1013904223;
        uint32_t exponent = 100 + (bits >> 8) % 45; /* where halves live, and a little beyond */
        check_rounding(quant_f32_from_bits((bits & 0x807FFFFF) | exponent << 23));
    }
    assert_int_equal(quant_f32_to_f16(INFINITY), 0x7C00);
    assert_int_equal(quant_f32_to_f16(-INFINITY), 0xFC00);
}

static void test_bf16(void **state)
{
    uint32_t bits = 99;
    (void)state;

    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = quant_bf16_to_f32((uint16_t)half);
        if (isnan(value))
            assert_true(isnan(quant_bf16_to_f32(quant_f32_to_bf16(value))));
        else
            assert_int_equal(quant_f32_to_bf16(value), half);
    }
    for (int i = 0; i < 100000; i++) {
        bits = bits * 1664525 + 1013904223;
        float value = quant_f32_from_bits(bits & 0xBFFFFFFF); /* not near infinity */
        uint16_t short_one = quant_f32_to_bf16(value);
        double error = fabs((double)quant_bf16_to_f32(short_one) - (double)value);
        double up = fabs((double)quant_bf16_to_f32((uint16_t)(short_one + 1)) - (double)value);
        assert_true(error < up || (error == up && (short_one & 1) == 0));
        if ((short_one & 0x7FFF) == 0)
            continue;
        double down = fabs((double)quant_bf16_to_f32((uint16_t)(short_one - 1)) - (double)value);
        assert_true(error < down || (error == down && (short_one & 1) == 0));
    }
    assert_int_equal(quant_f32_to_bf16(0x1.fffffep127f), 0x7F80);
}

/* ---- the table ----------------------------------------------------------------------------- */

static int number(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItem(object, key)->valueint;
}

static void test_table(void **state)
{
    cJSON *goldens = golden_read("quant.json");
    const cJSON *one;
    (void)state;

    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(goldens, "sizes")) > 25);
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(goldens, "sizes"))
    {
        const struct quant_traits *t = quant_find((uint32_t)number(one, "id"));
        assert_non_null(t);
        assert_int_equal(t->id, number(one, "id"));
        assert_string_equal(t->name, cJSON_GetObjectItem(one, "name")->valuestring);
        assert_int_equal(t->block_elements, number(one, "elements"));
        assert_int_equal(t->block_bytes, number(one, "bytes"));
        if (quant_supported(t))
            assert_non_null(kernels_scalar.pack[t->pack]);
    }
    cJSON_Delete(goldens);
    assert_null(quant_find(4)); /* Q4_2, long gone */
    assert_null(quant_find(1000));
    assert_int_equal(quant_row_bytes(quant_find(QUANT_Q4_1), 64), 40);
}

/* Bytes from hexadecimal; returns how many. */
static size_t unhex(const char *hex, unsigned char *bytes, size_t max)
{
    size_t n = strlen(hex) / 2;

    assert_true(n <= max);
    for (size_t k = 0; k < n; k++)
        bytes[k] = (unsigned char)strtoul((char[]){hex[2 * k], hex[2 * k + 1], '\0'}, NULL, 16);
    return n;
}

/* The same bits as the recorded values: signs of zero too. */
static void test_values(void **state)
{
    enum { MAX = 512 };
    cJSON *goldens = golden_read("quant.json");
    const cJSON *row;
    unsigned char bytes[MAX * 4 + 1], expected[MAX * 4];
    float got[MAX];
    (void)state;

    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(goldens, "rows")), 14);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(goldens, "rows"))
    {
        const struct quant_traits *t = quant_find((uint32_t)number(row, "id"));
        size_t n = unhex(cJSON_GetObjectItem(row, "values")->valuestring, expected, MAX * 4) / 4;
        size_t size = unhex(cJSON_GetObjectItem(row, "bytes")->valuestring, bytes + 1, MAX * 4);
        assert_true(n >= 64 && n >= 2 * t->block_elements);
        assert_int_equal(size, quant_row_bytes(t, n));
        t->dequantize_row(bytes + 1, got, n); /* at an odd address */
        for (size_t i = 0; i < n; i++) {
            float value;
            memcpy(&value, expected + 4 * i, sizeof value);
            if (quant_f32_bits(got[i]) != quant_f32_bits(value))
                fail_msg("%s[%zu]: %.9g, not %.9g", t->name, i, (double)got[i], (double)value);
        }
    }
    cJSON_Delete(goldens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_every_value),
        cmocka_unit_test(test_f16_rounding),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_values),
    };

    return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
