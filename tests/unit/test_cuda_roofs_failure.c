/* The CUDA worker's roofs, on a scripted H200 (scripted_cuda.h): what fails, and what memory allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "tuned.h"
#include "worker/gpu/vendor.h"

/* ---- what fails ---- */

static void a_row_that_is_not_built_is_passed_over(void **state)
{
    (void)state;
    script.refused = "4 in flight";
    script.refusal = cudaErrorNoKernelImageForDevice;
    tune_all(false);
    struct roof roof = measure("l2 read");
    assert_non_null(strstr(roof.setting, "1 in flight"));
    assert_string_equal(refusal("l2 write", STATUS_FAILED),
                        "write: no kernel image (cudaErrorNoKernelImageForDevice)");
    roof = measure("fp16 tensor mma");
    assert_near(roof.performance, script.rate[kind_of("fp16 tensor mma")]);
}

static void a_chip_has_its_own_tensor_instructions(void **state)
{
    (void)state;
    const struct roof_request request = {
        .compute = {[PRECISION_FP16] = true, [PRECISION_FP4] = true}};
    const int tcgen05 = kind_of("fp16 tensor tcgen05"), fp4 = kind_of("fp4 tensor tcgen05");
    script.rate[tcgen05] = 2250e12;
    script.rate[fp4] = 9000e12;
    tune(&request, false);
    assert_false(found[tcgen05] || found[fp4]);
    bench.gpu.capability = script.capability = 100;
    tune(&request, false);
    assert_near(measure("fp16 tensor tcgen05").performance, script.rate[tcgen05]);
    assert_near(measure("fp4 tensor tcgen05").performance, script.rate[fp4]);
    assert_false(found[kind_of("fp16 tensor wgmma")]);
}

/* The scripted library looks at the scales. */
static void products_of_fp4_have_scales(void **state)
{
    (void)state;
    const struct roof_request request = {.compute[PRECISION_FP4] = true};
    const int kind = kind_of("fp4 tensor library");
    script.rate[kind] = 8000e12;
    script.rate[kind_of("fp4 tensor tcgen05")] = 9000e12;
    tune(&request, false);
    assert_false(found[kind]);
    bench.gpu.capability = script.capability = 100;
    bench.gpu.chip = chip_find(100, "NVIDIA B200");
    tune(&request, true);
    struct roof roof = measure("fp4 tensor library");
    assert_near(roof.performance, script.rate[kind]);
    assert_near(roof.flops_ratio, 1.0);
    assert_non_null(strstr(roof.setting, "k = 32768, e2m1 to bf16"));
}

static void a_product_that_is_not_offered_is_passed_over(void **state)
{
    (void)state;
    const struct roof_request request = {
        .compute = {[PRECISION_INT8] = true, [PRECISION_FP8] = true}};
    for (int i = 0; i < 2; ++i) {
        script.not_offered = i == 0; /* otherwise it shows when it is run */
        script.refused = ": int8";
        tune(&request, false);
        struct roof roof = measure("int8 tensor library");
        assert_non_null(strstr(roof.setting, "to int32"));
        script.refused = "library";
        tune(&request, false);
        assert_non_null(strstr(refusal("int8 tensor library", STATUS_UNSUPPORTED), "supported"));
        assert_non_null(strstr(refusal("fp8 tensor library", STATUS_UNSUPPORTED), "supported"));
        roof = measure("fp8 tensor wgmma");
        assert_near(roof.performance, script.rate[kind_of("fp8 tensor wgmma")]);
    }
}

/* Opens the device and a neighbour anew, and gives the number of the last call. */
static int open_two(void)
{
    bench_close();
    script_reset();
    script.devices = 2;
    bench_open();
    return script.calls;
}

/* How many calls it takes to tune these. */
static int calls_of(const struct roof_request *request)
{
    int before = open_two();
    tune(request, true);
    return script.calls - before;
}

/* The next call that fails: each of the first ones, then ever fewer. */
static int next_failure(int at)
{
    return at + 1 + at / 150;
}

/* What is asked for at a time: few calls, so that most of them fail once. */
static const struct roof_request requests[] = {
    {.transfer = true},           {.launch = true},           {.compute[PRECISION_TF32] = true},
    {.memory[LEVEL_DRAM] = true}, {.memory[LEVEL_L1] = true},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

/* At any call: the process must know it, and hold nothing any more. */
static void device_loss_is_told(const struct roof_request *request)
{
    const int calls = calls_of(request);
    for (int at = 1; at < calls; at = next_failure(at)) {
        struct error error;
        bool untouched[ROOF_KINDS] = {false};
        script.lost_at = open_two() + at;
        assert_int_equal(bench_tune(request, true, untouched, &error), STATUS_DEVICE);
        assert_null(bench.roofs);
        for (int kind = 0; kind < ROOF_KINDS; ++kind)
            assert_false(untouched[kind]);
    }
}

/* Of hundreds of ways, so that it can be found. */
static void the_way_that_lost_the_device_is_named(void **state)
{
    (void)state;
    const struct roof_request request = {.memory[LEVEL_DRAM] = true};
    struct error error;
    script.lost_at = script.calls + 400;
    assert_int_equal(bench_tune(&request, false, found, &error), STATUS_DEVICE);
    if (!starts_with(error.text, "dram read, 1 x 81"))
        fail_msg("%s", error.text);
}

static void a_lost_device_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; ++i)
        device_loss_is_told(&requests[i]);
}

static void a_device_lost_while_it_is_measured_is_told(void **state)
{
    (void)state;
    struct roof roof;
    struct error error;
    tune_all(false);
    script.lost_at = script.calls + 10;
    assert_int_equal(measure_at(kind_of("dram read"), 0.0, &roof, &error), STATUS_DEVICE);
    assert_int_equal(measure_at(kind_of("launch gap graph"), 0.0, &roof, &error), STATUS_DEVICE);
}

/* It costs a candidate, at most a kind, and no memory. */
static void failure_is_survived(const struct roof_request *request)
{
    const int calls = calls_of(request);
    for (int at = 1; at < calls; at = next_failure(at)) {
        struct error error;
        int missing = 0;
        script.fail_at = open_two() + at;
        enum status status = bench_tune(request, true, found, &error);
        assert_true(status == STATUS_OK || status == STATUS_FAILED);
        for (int kind = 0; status == STATUS_OK && kind < ROOF_KINDS; ++kind) {
            struct roof roof;
            missing += found[kind] && measure_at(kind, 0.0, &roof, &error) != STATUS_OK;
        }
        assert_in_range(missing, 0, 1);
    }
}

static void one_failure_is_survived(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; ++i)
        failure_is_survived(&requests[i]);
}

/* ---- memory ---- */

static void little_memory_refuses_what_needs_much(void **state)
{
    (void)state;
    script.free_bytes = 400e6; /* of 3.6 GB, on a slice of a GPU */
    tune_all(true);
    assert_string_equal(refusal("dram read", STATUS_UNSUPPORTED),
                        "too little device memory is free");
    assert_non_null(strstr(refusal("fp16 tensor library", STATUS_UNSUPPORTED),
                           "of device memory for matrix products"));
    static const char *const possible[] = {"l2 read",     "l2 triad",         "l1 read",
                                           "fp64 vector", "fp8 tensor wgmma", "host to device",
                                           "launch gap"};
    for (size_t i = 0; i < sizeof possible / sizeof *possible; ++i) {
        struct roof roof = measure(possible[i]);
        assert_false(isnan(roof_value(&roof)));
    }
}

/* However little there is: each kind is measured, or says that memory is what it lacks. */
static void no_memory_is_a_reason(void **state)
{
    (void)state;
    static const double sizes[] = {0.0, 4e3, 1e5, 1e6, 5e6, 20e6, 60e6, 150e6, 600e6, 2e9};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        struct error error;
        script.free_bytes = sizes[i] + 20e3; /* for the clock's */
        tune_all(false);
        for (int kind = 0; kind < ROOF_KINDS; ++kind) {
            struct roof roof;
            assert_int_equal(found[kind], h200_has(kind));
            enum status status = found[kind] ? measure_at(kind, 0.0, &roof, &error) : STATUS_OK;
            if (status && (status != STATUS_UNSUPPORTED || !strstr(error.text, "memory")))
                fail_msg("%g byte free, %s: %s", sizes[i], roof_kinds[kind].name, error.text);
        }
        bench_release_roofs();
    }
}

/* Counts need a flushed cache; what else there is room for needs no counts. */
static void a_device_too_full_to_flush_is_not_counted(void **state)
{
    (void)state;
    script.free_bytes = 20e6;
    tune_all(true);
    assert_memory_equal(bench.counters, "refused: ", 9);
    assert_non_null(strstr(bench.counters, "memory"));
    assert_int_equal(profiler_attached(bench.profiler), PROFILER_NOTHING);
    assert_int_equal(script.collections, 0);
    struct roof roof = measure("fp64 vector");
    assert_near(roof.performance, script.rate[kind_of("fp64 vector")]);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
}

static void roofs_are_tuned_again(void **state)
{
    (void)state;
    struct roof roof;
    struct error error;
    const double free_bytes = script.free_bytes;
    tune_all(false);
    tune_all(true);
    roof = measure("fp16 tensor library");
    assert_near(roof.performance, script.rate[kind_of("fp16 tensor library")]);
    bench_release_roofs();
    bench_release_roofs();
    assert_true(free_bytes - script.free_bytes < 1e6 + 2.0 * (double)bench.gpu.l2_bytes);
    assert_int_equal(measure_at(kind_of("dram read"), 0.0, &roof, &error), STATUS_FAILED);
    assert_non_null(strstr(error.text, "dram read was not tuned"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_that_is_not_built_is_passed_over),
        TEST(a_chip_has_its_own_tensor_instructions),
        TEST(products_of_fp4_have_scales),
        TEST(a_product_that_is_not_offered_is_passed_over),
        TEST(the_way_that_lost_the_device_is_named),
        TEST(a_lost_device_is_told),
        TEST(a_device_lost_while_it_is_measured_is_told),
        TEST(one_failure_is_survived),
        TEST(little_memory_refuses_what_needs_much),
        TEST(no_memory_is_a_reason),
        TEST(a_device_too_full_to_flush_is_not_counted),
        TEST(roofs_are_tuned_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
