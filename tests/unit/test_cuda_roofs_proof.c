/* The CUDA worker's roofs, on a scripted H200 (scripted_cuda.h): what fails, common starts, two devices, proofs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/kernels.h"
#include "base/clock.h"
#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "tuned.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/timer.h"

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
    assert_true(free_bytes - script.free_bytes < 1e6 + (double)bench.gpu.timer->flush_bytes);
    assert_int_equal(measure_at(kind_of("dram read"), 0.0, &roof, &error), STATUS_FAILED);
    assert_non_null(strstr(error.text, "dram read was not tuned"));
}

/* ---- common start ---- */

static void samples_begin_at_the_common_start(void **state)
{
    (void)state;
    const double resolution = 20e-6; /* s, of what is enqueued first */
    tune_all(false);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        struct roof roof;
        struct error error;
        if (!found[kind])
            continue;
        double start = clock_epoch() + 0.05;
        assert_int_equal(measure_at(kind, start, &roof, &error), STATUS_OK);
        assert_true(roof.start_time >= start && roof.start_time < start + resolution);
        /* the device as well: nothing of the warm-up was left to do */
        assert_true(script.begin_time >= start && script.begin_time < start + resolution);
    }
}

static void a_start_that_has_passed_is_too_late(void **state)
{
    (void)state;
    const struct roof_request request = {.memory[LEVEL_DRAM] = true};
    static const double ago[] = {1.0, 10e-3};
    struct roof roof;
    struct error error;
    const int kind = kind_of("dram copy");
    tune(&request, false);
    for (size_t i = 0; i < sizeof ago / sizeof *ago; ++i) {
        assert_int_equal(measure_at(kind, clock_epoch() - ago[i], &roof, &error), STATUS_FAILED);
        assert_true(starts_with(error.text, "too late"));
        assert_true(isnan(roof.bandwidth));
    }
    /* it is the warm-up that takes too long */
    script.rate[kind] /= 10.0;
    assert_int_equal(measure_at(kind, clock_epoch() + 1e-3, &roof, &error), STATUS_FAILED);
    assert_true(starts_with(error.text, "too late"));
    script.rate[kind] *= 10.0;
    assert_int_equal(measure_at(kind, clock_epoch() + 1e-3, &roof, &error), STATUS_OK);
}

/* ---- two devices ---- */

static void a_device_alone_copies_to_no_other(void **state)
{
    (void)state;
    const struct roof_request request = {.transfer = true};
    tune(&request, false);
    assert_false(found[kind_of("device to device")]);
    assert_true(found[kind_of("host to device")]);
}

static void copies_go_to_the_next_device(void **state)
{
    (void)state;
    static const char *const ways[][2] = {{"device 0 to 1, through the host", "0 to 1, direct"},
                                          {"device 1 to 0, through the host", "1 to 0, direct"}};
    const struct roof_request request = {.transfer = true};
    for (int own = 0; own < 2; ++own)
        for (int direct = 0; direct < 2; ++direct) {
            bench_close();
            script_reset();
            script.devices = 2;
            script.own = own;
            script.direct = direct;
            bench_open();
            tune(&request, true);
            struct roof roof = measure("device to device");
            assert_near(roof.bandwidth, script.rate[kind_of("device to device")]);
            assert_non_null(strstr(roof.setting, ways[own][direct]));
        }
}

static void another_device_may_refuse(void **state)
{
    (void)state;
    const struct roof_request request = {.transfer = true};
    cudaError_t *const places[] = {&script.remote_context, &script.remote_memory};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        bench_close();
        script_reset();
        script.devices = 2;
        *places[i] = cudaErrorDevicesUnavailable;
        bench_open();
        tune(&request, false);
        assert_string_equal(refusal("device to device", STATUS_UNSUPPORTED),
                            "device 1, the next one: some failure");
        struct roof roof = measure("host to device");
        assert_near(roof.bandwidth, script.rate[kind_of("host to device")]);
    }
}

/* ---- proofs ---- */

static bool is_counted(int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    return found[kind] && info->measure != ROOF_TIME &&
           !strstr(info->name, "host") /* "to host", "from host": copy engines */;
}

/* All that are counted have this verdict, but those with `other` in their names. */
static void assert_verdicts(enum roof_verdict verdict, const char *exception,
                            enum roof_verdict other)
{
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const char *name = roof_kinds[kind].name;
        if (!is_counted(kind))
            continue;
        struct roof roof = measure(name);
        enum roof_verdict expected = exception && strstr(name, exception) ? other : verdict;
        if (roof.verdict != (int64_t)expected)
            fail_msg("%s is %s", name, roof_verdict_name[roof.verdict]);
    }
}

static void counts_prove(void **state)
{
    (void)state;
    tune_all(true);
    assert_int_equal(script.collections, 1);
    assert_verdicts(ROOF_PROVEN, NULL, ROOF_PROVEN);
    struct roof roof = measure("dram triad");
    assert_near(roof.bytes_ratio[LEVEL_DRAM], 1.0);
    assert_near(roof.bytes_ratio[LEVEL_L2], 1.0);
    assert_true(isnan(roof.flops_ratio));
    roof = measure("shared read");
    assert_true(roof.bytes_ratio[LEVEL_L1] == 0.0);
    roof = measure("fp8 tensor library");
    assert_near(roof.flops_ratio, 1.0);
    assert_true(isnan(roof.bytes_ratio[LEVEL_DRAM]));
    roof = measure("launch gap");
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
}

static void wrong_counts_contradict(void **state)
{
    (void)state;
    static const struct {
        enum quantity first, last;
        double counted;
        const char *kinds;
    } wrong[] = {
        {QUANTITY_DRAM_READ, QUANTITY_DRAM_WRITE, 1.1, "dram"},
        {QUANTITY_L2_READ, QUANTITY_L2_WRITE, 0.9, "l2"},
        {QUANTITY_L1_READ, QUANTITY_L1_READ, 0.9, "l1"},
        {QUANTITY_VECTOR_FP64, QUANTITY_VECTOR_FP64, 2.0, "fp64 vector"},
        {QUANTITY_TENSOR_BF16, QUANTITY_TENSOR_BF16, 0.95, "bf16 tensor"},
        {QUANTITY_TENSOR_INT8, QUANTITY_TENSOR_INT8, 0.0, "int8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        bench_close();
        bench_set_up(NULL);
        for (enum quantity quantity = wrong[i].first; quantity <= wrong[i].last; ++quantity)
            script.counted[quantity] = wrong[i].counted;
        tune_all(true);
        assert_verdicts(ROOF_PROVEN, wrong[i].kinds, ROOF_CONTRADICTED);
    }
}

/* A neighbour's copies end some time; counting then begins. */
static void another_process_forbids_proofs_while_it_is_there(void **state)
{
    (void)state;
    script.processes = 2;
    tune_all(true);
    assert_true(starts_with(bench.counters, "refused: another process"));
    assert_int_equal(script.collections, 0);
    assert_verdicts(ROOF_UNPROVEN, NULL, ROOF_UNPROVEN);
    script.processes = 1;
    tune_all(true);
    assert_string_equal(bench.counters, "counted");
    assert_verdicts(ROOF_PROVEN, NULL, ROOF_PROVEN);
}

static void without_counters_nothing_is_proven(void **state)
{
    (void)state;
    script.preflight = "refused: not allowed; ask";
    tune_all(true);
    assert_int_equal(script.collections, 0);
    assert_verdicts(ROOF_UNPROVEN, NULL, ROOF_UNPROVEN);
    bench_close();
    bench_set_up(NULL);
    script.collection = "refused: taken by another; wait"; /* from then on */
    tune_all(true);
    assert_int_equal(script.collections, 1);
    assert_verdicts(ROOF_UNPROVEN, NULL, ROOF_UNPROVEN);
    bench_close();
    bench_set_up(NULL);
    script.no_tensors = "refused: metric set"; /* the rest can be counted */
    tune_all(true);
    assert_string_equal(bench.counters, "counted");
    bench_close();
    bench_set_up(NULL);
    tune_all(false);
    assert_int_equal(script.collections, 0);
    assert_string_equal(bench.counters, "");
}

static void what_the_chip_cannot_count_is_unproven(void **state)
{
    (void)state;
    script.absent = QUANTITY_TENSOR_FP8;
    tune_all(true);
    assert_verdicts(ROOF_PROVEN, "fp8", ROOF_UNPROVEN);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_that_is_not_built_is_passed_over),
        TEST(a_chip_has_its_own_tensor_instructions),
        TEST(products_of_fp4_have_scales),
        TEST(a_product_that_is_not_offered_is_passed_over),
        TEST(a_lost_device_is_told),
        TEST(the_way_that_lost_the_device_is_named),
        TEST(a_device_lost_while_it_is_measured_is_told),
        TEST(one_failure_is_survived),
        TEST(little_memory_refuses_what_needs_much),
        TEST(no_memory_is_a_reason),
        TEST(a_device_too_full_to_flush_is_not_counted),
        TEST(roofs_are_tuned_again),
        TEST(samples_begin_at_the_common_start),
        TEST(a_start_that_has_passed_is_too_late),
        TEST(a_device_alone_copies_to_no_other),
        TEST(copies_go_to_the_next_device),
        TEST(another_device_may_refuse),
        TEST(counts_prove),
        TEST(wrong_counts_contradict),
        TEST(another_process_forbids_proofs_while_it_is_there),
        TEST(without_counters_nothing_is_proven),
        TEST(what_the_chip_cannot_count_is_unproven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
