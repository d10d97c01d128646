/* Elements in memory: what fits comes back, and the rest is cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/cpu/memory.h"

static double through(enum precision precision, double value)
{
    double data[2] = {0};
    element_store(precision, data, 1, value);
    return element_load(precision, data, 1);
}

static void inputs_come_back(void **state)
{
    (void)state;
    static const enum precision precisions[] = {PRECISION_FP64, PRECISION_FP32, PRECISION_BF16,
                                                PRECISION_FP16};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; ++i)
        for (int exponent = -6; exponent <= 0; ++exponent) {
            struct fill fill =
                fill_make(7, TENSOR_INPUT, precision_info[precisions[i]].significand, exponent);
            for (uint64_t index = 0; index < 5000; ++index) {
                double value = fill_value(fill, index);
                assert_true(through(precisions[i], value) == value);
            }
            assert_true(isnan(through(precisions[i], NAN)));
            assert_true(through(precisions[i], -INFINITY) == -INFINITY);
        }
}

static void halves_have_their_range(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        double value, expected;
    } cases[] = {
        {PRECISION_FP16, 65504.0, 65504.0},   {PRECISION_FP16, 65536.0, INFINITY},
        {PRECISION_FP16, 0x1p-14, 0x1p-14},   {PRECISION_FP16, -0x1p-24, -0x1p-24},
        {PRECISION_FP16, 0x1p-26, 0.0},       {PRECISION_FP16, 0x3p-24, 0x3p-24},
        {PRECISION_FP16, 1.0 + 0x1p-11, 1.0}, {PRECISION_FP16, 1.0 + 0x1p-10, 1.0 + 0x1p-10},
        {PRECISION_BF16, 1.0 + 0x1p-8, 1.0},  {PRECISION_BF16, 1.0 + 0x1p-7, 1.0 + 0x1p-7},
        {PRECISION_BF16, 0x1p100, 0x1p100},   {PRECISION_FP32, 1.0 + 0x1p-40, 1.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_true(through(cases[i].precision, cases[i].value) == cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_come_back),
        cmocka_unit_test(halves_have_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
