/* The compute roof at a clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "results/compute_roof.h"

static struct device device_with(double peak, double cycle, double sustained)
{
    struct device device;
    device_init(&device);
    device.peak_tensor[PRECISION_FP16] = peak;
    device.cycle_tensor[PRECISION_FP16] = cycle;
    device.sustained_tensor[PRECISION_FP16] = sustained;
    return device;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(b);
}

static void a_roof_goes_with_the_clock(void **state)
{
    (void)state;
    static const struct {
        double peak, cycle, sustained;
        int64_t unit;
        enum precision precision;
        double clock, expected, expected_sustained;
    } cases[] = {
        {8e14, 5e5, 7e14, UNIT_TENSOR, PRECISION_FP16, 1.9e9, 9.5e14, 7e14},
        {8e14, 5e5, 7e14, UNIT_TENSOR, PRECISION_FP16, 1.5e9, 7.5e14, 7e14},
        {8e14, 5e5, NAN, UNIT_TENSOR, PRECISION_FP16, NAN, 8e14, NAN},    /* no clock of the row */
        {8e14, NAN, NAN, UNIT_TENSOR, PRECISION_FP16, 1.9e9, 8e14, NAN},  /* nor of the roof */
        {8e14, 5e5, 7e14, UNIT_VECTOR, PRECISION_FP16, 1.9e9, NAN, NAN},  /* another unit */
        {8e14, 5e5, 7e14, UNIT_TENSOR, PRECISION_FP32, 1.9e9, NAN, NAN},  /* another precision */
        {8e14, 5e5, 7e14, UNIT_TENSOR, PRECISION_COUNT, 1.9e9, NAN, NAN}, /* none */
        {8e14, 5e5, 7e14, FIELD_MISSING, PRECISION_FP16, 1.9e9, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct device device = device_with(cases[i].peak, cases[i].cycle, cases[i].sustained);
        struct compute_roof roof =
            compute_roof_of(&device, cases[i].unit, cases[i].precision, cases[i].clock);
        if (!same(roof.peak, cases[i].expected) ||
            !same(roof.sustained, cases[i].expected_sustained))
            fail_msg("case %zu: %g, %g", i, roof.peak, roof.sustained);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_roof_goes_with_the_clock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
