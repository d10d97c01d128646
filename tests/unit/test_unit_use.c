/* Which units did a row's FLOPs, and the time that they need. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "results/unit_use.h"
#include "sample.h"

#define assert_near(value, expected) assert_true(fabs((value) / (expected)-1) < 1e-12)

static void times_of_the_units_add_up(void **state)
{
    (void)state;
    struct device device = gpu_device(); /* fp32 vector 5e13, fp16 tensor 8e14 */
    struct record record = conv2d_record();
    record.flops_tensor[PRECISION_FP16] = 4e9;
    record.flops_vector[PRECISION_FP32] = 1e9;
    record.flops_tensor[PRECISION_INT8] = 1e12; /* no FLOPs */
    struct unit_use use = unit_use(&record, &device, 5e9, true);
    assert_near(use.time, 4e9 / 8e14 + 1e9 / 5e13);
    assert_near(use.peak, 5e9 / use.time);
    assert_near(use.configured, 8e14);
    assert_string_equal(use.note, "");

    device.peak_vector[PRECISION_FP32] = NAN;
    assert_true(isnan(unit_use(&record, &device, 5e9, true).time));
    record.flops_vector[PRECISION_FP32] = 0.9 * 0.01 * 4e9; /* negligible */
    assert_near(unit_use(&record, &device, 4.036e9, true).time, 4e9 / 8e14);
    record_clear(&record);
}

static void without_counts_it_is_the_row_s_own_unit(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record();
    assert_near(unit_use(&record, &device, 4e9, false).time, 4e9 / 8e14);
    assert_near(unit_use(&record, &device, 0, false).peak, 8e14);
    assert_true(unit_use(&record, &device, 0, false).time == 0);
    record.unit = FIELD_MISSING;
    assert_true(isnan(unit_use(&record, &device, 4e9, false).time));
    record_clear(&record);
}

/* Vector units did what tensor units could have done: the row says so, and what was configured is the
 * faster roof. */
static void vector_units_in_place_of_tensor_units(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record();
    device.peak_vector[PRECISION_FP16] = 1e14;
    record.unit = UNIT_VECTOR;
    struct unit_use use = unit_use(&record, &device, 4e9, false);
    assert_string_equal(use.note, "vector units did 100.0 % of the FLOPs; the roof of the tensor "
                                  "units is 8.0 times as high");
    assert_near(use.peak, 1e14);
    assert_near(use.configured, 8e14);

    record.unit = UNIT_TENSOR; /* as the library said; the counters saw something else */
    record.flops_tensor[PRECISION_FP16] = 1e9;
    record.flops_vector[PRECISION_FP16] = 3e9;
    use = unit_use(&record, &device, 4e9, true);
    assert_non_null(strstr(use.note, "vector units did 75.0 %"));
    device.peak_tensor[PRECISION_FP16] = NAN; /* there are none, as far as is known */
    assert_string_equal(unit_use(&record, &device, 4e9, true).note, "");
    record_clear(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_the_units_add_up),
        cmocka_unit_test(without_counts_it_is_the_row_s_own_unit),
        cmocka_unit_test(vector_units_in_place_of_tensor_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
