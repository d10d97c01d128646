/* What kernels share a row's time by. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "results/kernel_shares.h"
#include "sample.h"

#define assert_near(value, expected) assert_true(fabs((value) / (expected)-1) < 1e-12)

/* Of 22 us one kernel takes 4 and does no FLOPs; both have 128 blocks. */
static void kernels_without_flops(void **state)
{
    (void)state;
    const struct device device = gpu_device();
    struct record record = counted_record();
    struct kernel_shares shares = kernel_shares(&record, &device);
    assert_int_equal(shares.zero_flop_launches, 1);
    assert_near(shares.zero_flop_share, 4.0 / 22.0);
    assert_near(shares.few_blocks, 1);
    record.kernels[0].grid_y = 4; /* 512 blocks for 100 multiprocessors */
    assert_near(kernel_shares(&record, &device).few_blocks, 4.0 / 22.0);

    record.kernels[1].flops_counted = NAN; /* one of them is not known */
    shares = kernel_shares(&record, &device);
    assert_int_equal(shares.zero_flop_launches, FIELD_MISSING);
    assert_true(isnan(shares.zero_flop_share));
    record.flops_counted = 0; /* but all together */
    record.kernels[0].flops_counted = NAN;
    assert_int_equal(kernel_shares(&record, &device).zero_flop_launches, 2);
    assert_true(kernel_shares(&record, &device).zero_flop_share == 1);
    record_clear(&record);
}

/* Then all FLOPs are its own. */
static void the_only_kernel(void **state)
{
    (void)state;
    const struct device device = gpu_device();
    struct record record = counted_record();
    record.kernel_count = 1;
    record.kernels[0].flops_counted = NAN;
    struct kernel_shares shares = kernel_shares(&record, &device);
    assert_int_equal(shares.zero_flop_launches, 0);
    assert_true(shares.zero_flop_share == 0);
    record_clear(&record);
}

static void no_trace(void **state)
{
    (void)state;
    const struct device device = gpu_device();
    struct record record;
    record_init(&record);
    struct kernel_shares shares = kernel_shares(&record, &device);
    assert_int_equal(shares.zero_flop_launches, FIELD_MISSING);
    assert_true(isnan(shares.zero_flop_share) && isnan(shares.few_blocks));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_without_flops),
        cmocka_unit_test(the_only_kernel),
        cmocka_unit_test(no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
