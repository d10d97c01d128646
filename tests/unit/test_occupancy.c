/* How many blocks a multiprocessor holds: what registers, shared memory, threads and places for blocks
 * allow, worked out by hand for a multiprocessor of compute capability 9.0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/field.h"
#include "worker/cuda/gpu/occupancy.h"

static struct occupancy_limits limits_of(int major)
{
    return (struct occupancy_limits){
        .major = major,
        .warp_threads = 32,
        .block_threads = 1024,
        .multiprocessor_threads = 2048,
        .block_registers = 65536,
        .multiprocessor_registers = 65536,
        .block_shared = 49152,
        .block_shared_most = 232448,
        .reserved_shared = 1024,
        .multiprocessor_shared = 233472,
    };
}

static void each_resource_limits(void **state)
{
    (void)state;
    static const struct {
        struct occupancy_kernel kernel; /* threads, registers, static, dynamic, room */
        int64_t blocks;
    } rows[] = {
        {{256, 32, 0, 0, 0}, 8},          /* 2048 threads */
        {{32, 16, 0, 0, 0}, 32},          /* places for blocks */
        {{256, 168, 0, 0, 0}, 1},         /* 12 warps of 5376 registers */
        {{384, 168, 0, 0, 0}, 1},         /* exactly 12 */
        {{128, 168, 0, 0, 0}, 3},         /* 3 times 4 of 12 */
        {{128, 32, 0, 65536, 0}, 3},      /* 66560 byte each, of 233472 */
        {{128, 32, 1024, 64512, 0}, 3},   /* the same */
        {{128, 32, 0, 65536, 135168}, 2}, /* the driver gave less to shared memory */
        {{128, 32, 0, 231424, 0}, 1},
    };
    const struct occupancy_limits limits = limits_of(9);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        assert_int_equal(occupancy_blocks(&limits, &rows[i].kernel), rows[i].blocks);
}

static void a_chip_that_the_toolkit_does_not_know(void **state)
{
    (void)state;
    const struct occupancy_limits limits = limits_of(99);
    const struct occupancy_kernel kernel = {256, 32, 0, 0, 0};
    assert_int_equal(occupancy_blocks(&limits, &kernel), FIELD_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_resource_limits),
        cmocka_unit_test(a_chip_that_the_toolkit_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
