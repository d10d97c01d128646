/* How kernels fill a device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/parallelism.h"

static struct device device_of(int64_t multiprocessors)
{
    struct device device;
    device_init(&device);
    device.multiprocessors = multiprocessors;
    device.multiprocessor_threads = 2048;
    return device;
}

static struct kernel kernel_of(int64_t blocks, int64_t threads, int64_t resident)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    kernel.grid_x = blocks;
    kernel.block_x = threads;
    kernel.grid_y = kernel.grid_z = kernel.block_y = kernel.block_z = 1;
    kernel.resident = resident;
    return kernel;
}

/* The guide's figure 3: 12 blocks on 8 multiprocessors that hold one each are two waves, the second of
 * them half empty. */
static void waves_and_their_tail(void **state)
{
    (void)state;
    const struct device device = device_of(8);
    const struct kernel kernel = kernel_of(12, 256, 8), full = kernel_of(16, 256, 8);
    struct parallelism found = parallelism_of(&kernel, &device);
    assert_int_equal(found.blocks, 12);
    assert_int_equal(found.threads, 256);
    assert_true(found.waves == 1.5 && found.tail_loss == 0.25);
    assert_true(found.occupancy == 256.0 / 2048);
    found = parallelism_of(&full, &device);
    assert_true(found.waves == 2 && found.tail_loss == 0);
}

static void enough_is_four_blocks_of_some_hundred_threads(void **state)
{
    (void)state;
    static const struct {
        int64_t blocks, threads, enough;
    } rows[] = {{528, 256, 1}, {527, 256, 0}, {528, 128, 1}, {528, 127, 0}, {14112, 64, 1}};
    const struct device device = device_of(132);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const struct kernel kernel = kernel_of(rows[i].blocks, rows[i].threads, 264);
        assert_int_equal(parallelism_of(&kernel, &device).enough, rows[i].enough);
    }
}

/* Places are given to whole groups of 32 threads. */
static void occupancy_counts_whole_groups(void **state)
{
    (void)state;
    const struct device device = device_of(132);
    const struct kernel kernel = kernel_of(1000, 33, 132 * 32);
    assert_true(parallelism_of(&kernel, &device).occupancy == 1.0);
}

static void nothing_is_known_of_a_cpu_s_regions(void **state)
{
    (void)state;
    const struct device device = device_of(8);
    struct kernel region, alone = kernel_of(12, 256, FIELD_MISSING);
    fields_clear(kernel_fields, &region);
    struct parallelism found = parallelism_of(&region, &device);
    assert_int_equal(found.blocks, FIELD_MISSING);
    assert_int_equal(found.threads, FIELD_MISSING);
    assert_int_equal(found.enough, FIELD_MISSING);
    assert_true(isnan(found.waves) && isnan(found.tail_loss) && isnan(found.occupancy));
    found = parallelism_of(&alone, &device);
    assert_int_equal(found.enough, 0);
    assert_true(isnan(found.waves) && isnan(found.tail_loss) && isnan(found.occupancy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_and_their_tail),
        cmocka_unit_test(enough_is_four_blocks_of_some_hundred_threads),
        cmocka_unit_test(occupancy_counts_whole_groups),
        cmocka_unit_test(nothing_is_known_of_a_cpu_s_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
