/* The CUDA worker's roofs, on a scripted H200: see scripted_cuda.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "base/clock.h"
#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/timer.h"

static bool found[ROOF_KINDS];
static const struct roof_request nothing;

static struct roof_request everything(void)
{
    struct roof_request request;
    memset(&request, 1, sizeof request);
    return request;
}

static void tune(const struct roof_request *request, bool prove)
{
    struct error error;
    assert_int_equal(bench_tune(request, prove, found, &error), STATUS_OK);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void tune_all(bool prove)
{
    const struct roof_request request = everything();
    tune(&request, prove);
}

static int kind_of(const char *name)
{
    int kind = roof_kind_find(name);
    assert_true(kind >= 0);
    return kind;
}

static enum status measure_at(int kind, double start, struct roof *roof, struct error *error)
{
    const struct roof_order order = {.start = start};
    roof_init(roof, kind, ROOF_ALONE);
    return roofs_measure(bench.roofs, kind, &order, roof, error);
}

static struct roof measure(const char *name)
{
    struct roof roof;
    struct error error;
    assert_int_equal(measure_at(kind_of(name), 0.0, &roof, &error), STATUS_OK);
    return roof;
}

/* Found, and why it cannot be measured. */
static const char *refusal(const char *name, enum status expected)
{
    static struct error error;
    struct roof roof, untouched;
    roof_init(&untouched, kind_of(name), ROOF_ALONE);
    assert_true(found[kind_of(name)]);
    assert_int_equal(measure_at(kind_of(name), 0.0, &roof, &error), expected);
    assert_memory_equal(&roof, &untouched, sizeof roof);
    return error.text;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* All that the script knows, but for the copy to another one. */
static bool h200_has(int kind)
{
    const char *name = roof_kinds[kind].name;
    return script.rate[kind] > 0.0 ? strcmp(name, "device to device") != 0
                                   : roof_kinds[kind].measure == ROOF_TIME;
}

/* ---- values ---- */

static void all_kinds_have_their_values(void **state)
{
    (void)state;
    tune_all(false);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        assert_int_equal(found[kind], h200_has(kind));
        if (!found[kind] || roof_kinds[kind].measure == ROOF_TIME)
            continue;
        struct roof roof = measure(roof_kinds[kind].name);
        assert_near(roof_value(&roof), script.rate[kind]);
        assert_in_range(roof.samples, 5, 64);
        assert_true(roof.spread < 0.01 && roof.median > 0.99);
        assert_true(strlen(roof.setting) > 5);
        assert_int_equal(roof.verdict, ROOF_UNPROVEN);
        assert_int_equal(roof.throttled, 0); /* the device was still at it */
        assert_near(roof.sm_clock, script.sm_clock);
    }
}

/* What another device of the model has found is tried alone, where it is as fast here; else all are tried. */
static void a_way_that_is_told_is_checked(void **state)
{
    (void)state;
    struct roof_request request = everything();
    struct roof roof, again;
    struct error error;
    memset(request.ways, 0, sizeof request.ways);
    int calls = script.calls;
    tune(&request, false);
    const int all = script.calls - calls;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        request.ways[kind] = found[kind] ? roofs_way(bench.roofs, kind) : (struct roof_way){0};
    const int kind = kind_of("fp32 vector");
    assert_int_equal(measure_at(kind, 0.0, &roof, &error), STATUS_OK);
    assert_true(request.ways[kind].rate > 0);
    calls = script.calls;
    tune(&request, false);
    const int told = script.calls - calls;
    if (!(4 * told < 3 * all))
        fail_msg("%d calls, and %d when the ways are known", all, told);
    assert_int_equal(measure_at(kind, 0.0, &again, &error), STATUS_OK);
    assert_string_equal(again.setting, roof.setting);

    request.ways[kind].rate *= 1.1; /* here it is slower */
    request.ways[kind].number = 0;
    tune(&request, false);
    assert_int_equal(measure_at(kind, 0.0, &again, &error), STATUS_OK);
    assert_string_equal(again.setting, roof.setting);
    request.ways[kind].number = 1000000; /* no such way here */
    tune(&request, false);
    assert_int_equal(measure_at(kind, 0.0, &again, &error), STATUS_OK);
}

/* Of a short load the sensor would tell what was before it. */
static void power_is_of_long_loads(void **state)
{
    (void)state;
    struct roof roof;
    struct error error;
    tune_all(false);
    assert_true(isnan(measure("dram read").power));
    assert_int_equal(measure_at(kind_of("dram read"), clock_epoch() + 0.05, &roof, &error),
                     STATUS_OK);
    assert_true(roof.power == 700.0);
    assert_int_equal(measure_at(kind_of("fp16 vector"), clock_epoch() + 0.05, &roof, &error),
                     STATUS_OK);
    assert_true(isnan(roof.power)); /* of compute it is the burst's */
}

static struct roof measure_sustained(const char *name, double start)
{
    const struct roof_order order = {.start = start, .sustained = true};
    struct roof roof;
    struct error error;
    roof_init(&roof, kind_of(name), ROOF_ALONE);
    assert_int_equal(roofs_measure(bench.roofs, kind_of(name), &order, &roof, &error), STATUS_OK);
    return roof;
}

/* Two windows of equal clocks are enough. */
static void a_settled_clock_is_sustained_soon(void **state)
{
    (void)state;
    tune_all(false);
    struct roof roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_near(roof.sustained, script.rate[kind_of("fp16 tensor wgmma")]);
    assert_near(roof.sustained_clock, script.sm_clock);
    assert_true(roof.sustained_power == 700.0);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.4 && roof.settling_time < 0.5);
    assert_true(isnan(measure("fp16 tensor wgmma").sustained)); /* nobody asked for it */
    assert_true(isnan(measure_sustained("l2 read", 0.0).sustained));
    assert_true(isnan(measure_sustained("launch gap", 0.0).sustained));
}

/* A clock that holds with more than the power limit will fall. */
static void beyond_the_power_limit_nothing_settles(void **state)
{
    (void)state;
    tune_all(false);
    bench.gpu.power_limit = 650.0; /* the script's sensor says 700 */
    struct roof roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_int_equal(roof.settled, 0);
    assert_true(roof.sustained_power == 700.0 && roof.settling_time > 1.9);
    bench.gpu.power_limit = NAN;
    assert_int_equal(measure_sustained("fp16 tensor wgmma", 0.0).settled, 1);
}

/* In steps of 1/32 of L2. */
static void a_cache_holds_less_than_it_has(void **state)
{
    (void)state;
    const double l2 = (double)bench.gpu.l2_bytes;
    tune_all(false);
    double set = measure_sustained("l2 read", 0.0).working_set;
    assert_true(set <= SCRIPT_REACH * l2 && set > (SCRIPT_REACH - 1.0 / 32.0) * l2);
    assert_true(isnan(measure("l2 read").working_set)); /* nobody asked for it */
    assert_true(isnan(measure_sustained("l2 write", 0.0).working_set));
    assert_true(isnan(measure_sustained("dram read", 0.0).working_set));
    assert_true(isnan(measure_sustained("l1 read", 0.0).working_set));
}

/* The clock falls by a fifth: the burst has the high one, sustained is taken once it has fallen. For
 * each cycle both are then another figure here, since the script's rate does not go by the clock. */
static void sustained_comes_after_the_fall(void **state)
{
    (void)state;
    const double high = 1.25, slow = 30.0, quick = 0.3;
    tune_all(false);
    script.falls_by = high - 1.0;
    script.falls_from = script_device_time();
    script.falls_in = quick;
    struct roof roof = measure_sustained("fp16 tensor wgmma", clock_epoch() + 0.015);
    assert_true(roof.sm_clock > 1.2 * script.sm_clock);
    assert_true(fabs(roof.sustained_clock / script.sm_clock - 1.0) < 0.02);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.5 && roof.settling_time < 1.5);

    script.falls_by = 10.0; /* still falling by 1 % in a window when the time runs out */
    script.falls_from = script_device_time();
    script.falls_in = slow / 10.0;
    roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_int_equal(roof.settled, 0);
    assert_true(roof.settling_time >= 1.9 && roof.settling_time < 2.2);
}

/* Of compute: a longer load before it would bring the clock down. */
static void a_burst_begins_cool(void **state)
{
    (void)state;
    tune_all(false);
    double busy = script.busy;
    measure_sustained("fp16 tensor wgmma", clock_epoch() + 0.5);
    busy = script.busy - busy;
    assert_true(busy > 0.4 && busy < 0.5); /* the windows, not the half second before */
}

static bool a_few_times(void *argument)
{
    return --*(int *)argument >= 0;
}

/* So that no neighbour's sample falls after the others have ended. */
static void a_roof_is_held(void **state)
{
    (void)state;
    struct error error;
    tune_all(false);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        int left = 7;
        double busy = script.busy;
        if (!found[kind])
            continue;
        assert_int_equal(roofs_hold(bench.roofs, kind, a_few_times, &left, &error), STATUS_OK);
        assert_int_equal(left, -1);
        assert_true(script.busy > busy);
    }
    int left = 7;
    assert_int_equal(roofs_hold(NULL, ROOF_DRAM_READ, a_few_times, &left, &error), STATUS_FAILED);
    assert_int_equal(left, 7);
}

/* The devices of a node measure alone in turn: eight of them, ten seconds. */
static void all_roofs_are_measured_soon(void **state)
{
    (void)state;
    tune_all(false);
    double begin = clock_monotonic();
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (found[kind])
            measure(roof_kinds[kind].name);
    assert_true(clock_monotonic() - begin < 1.3);
}

/* Where one pass over the arrays is short a sample is several, so that little of it is the launch.
 */
static void samples_of_memory_are_long(void **state)
{
    (void)state;
    const int most = 9; /* of ROOF_WINDOW / 8 each, by the trial's rate */
    tune_all(false);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const struct roof_kind *info = &roof_kinds[kind];
        if (found[kind] && info->measure == ROOF_BANDWIDTH && info->level < LEVEL_COUNT)
            assert_in_range(measure(info->name).samples, 5, most);
    }
}

static void launches_have_their_times(void **state)
{
    (void)state;
    const struct roof_request request = {.launch = true};
    const struct {
        const char *name;
        double time;
    } launches[] = {
        {"launch host", script.call_time},
        {"launch latency", script.call_time + script.empty_time + script.call_time},
        {"launch gap", script.empty_time},
        {"launch gap graph", script.node_time},
        {"launch gap dependent", script.link_time},
        {"launch gap dependent graph", script.link_node_time},
    };
    tune(&request, false);
    for (size_t i = 0; i < sizeof launches / sizeof *launches; ++i) {
        struct roof roof = measure(launches[i].name);
        assert_near(roof.time, launches[i].time);
        assert_non_null(strstr(roof.setting, "median"));
        assert_in_range(roof.samples, 5, 64);
    }
}

/* Of the times' factors half are 1.1, in the middle. */
static void the_best_sample_counts_and_the_median_shows(void **state)
{
    (void)state;
    const double jitter[SCRIPT_JITTER] = {1.1, 1.0, 1.1, 1.4};
    static const char *const kinds[] = {"dram triad", "l2 read", "fp16 tensor library",
                                        "device to host"};
    tune_all(false);
    memcpy(script.jitter, jitter, sizeof jitter);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct roof roof = measure(kinds[i]);
        assert_near(roof_value(&roof), script.rate[kind_of(kinds[i])]);
        assert_near(roof.median, 1.0 / 1.1);
        assert_near(roof.spread, 0.4 / 1.1);
    }
    struct roof roof = measure("launch gap graph"); /* the median itself */
    assert_near(roof.time, 1.1 * script.node_time);
    assert_near(roof.spread, 0.4 / 1.1);
    assert_true(roof.median == 1.0);
}

/* The own clock is what the device counts, not what the driver says. */
static void theory_goes_by_the_clock_that_was_counted(void **state)
{
    (void)state;
    const double nominal = 1.98e9;
    static const char *const kinds[] = {"fp64 vector", "fp16 tensor wgmma", "l1 read",
                                        "shared read"};
    tune_all(false);
    script.sm_clock = 0.9 * nominal;
    script.memory_clock = 0.95 * bench.gpu.theory.memory_clock;
    const double theory[] = {bench.gpu.theory.vector[PRECISION_FP64],
                             bench.gpu.theory.tensor[PRECISION_FP16],
                             bench.gpu.theory.bandwidth[LEVEL_L1], bench.gpu.theory.shared_read};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct roof roof = measure(kinds[i]);
        double fraction = script.rate[kind_of(kinds[i])] / theory[i];
        assert_near(roof.sm_clock, script.sm_clock);
        assert_near(roof.nominal_fraction, fraction);
        assert_near(roof.clock_fraction, fraction / 0.9);
        assert_int_equal(roof.verdict, fraction / 0.9 > 1.01 ? ROOF_ABOVE_THEORY : ROOF_UNPROVEN);
    }
    struct roof roof = measure("dram read");
    double fraction = script.rate[kind_of("dram read")] / bench.gpu.theory.bandwidth[LEVEL_DRAM];
    assert_near(roof.nominal_fraction, fraction);
    assert_near(roof.clock_fraction, fraction / 0.95);
    roof = measure("l2 read"); /* nobody states it of this chip */
    assert_true(isnan(roof.nominal_fraction) && isnan(roof.clock_fraction));
}

/* ---- the fastest way ---- */

static void the_fastest_way_wins(void **state)
{
    (void)state;
    const int sms = bench.gpu.multiprocessors;
    const struct {
        const char *kind, *what;
        int blocks, threads;
        const char *setting;
    } ways[] = {
        {"dram read", "1 in flight", 1 * sms, 512, "132 blocks of 512 threads, 1 in flight"},
        {"dram read", "4 in flight", 64 * sms, 256, "8448 blocks of 256 threads, 4 in flight"},
        {"dram copy", "4 in flight", 8 * sms, 256, "1056 blocks of 256 threads, 4 in flight"},
        {"dram triad", "", 16 * sms, 128, "2112 blocks of 128 threads"},
        {"l2 copy", "1 in flight", 4 * sms, 256, "528 blocks of 256 threads, 1 in flight"},
        {"l2 atomic", "", 2 * sms, 512, "264 blocks of 512 threads, 4 bytes each"},
        {"l1 read", "", 4 * sms, 256, "528 blocks of 256 threads"},
        {"shared read", "", 1 * sms, 512, "132 blocks of 512 threads"},
        {"fp32 vector", "", 8 * sms, 256, "1056 blocks of 256 threads"},
        {"fp64 vector", "", 1 * sms, 512, "132 blocks of 512 threads"},
        {"fp64 tensor mma", "m16n8k16", 0, 0, "m16n8k16, 132 blocks of 512 threads"},
        {"fp16 tensor mma", "m16n8k8", 0, 0, "m16n8k8, 264 blocks of 256 threads"},
        {"int8 tensor library", "", 0, 0, "to int8"}, /* to int32 is slower */
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
        const int kind = kind_of(ways[i].kind);
        script.best.what = ways[i].what;
        script.best.blocks = ways[i].blocks;
        script.best.threads = ways[i].threads;
        struct roof_request request = nothing;
        enum memory_level level = roof_kinds[kind].level;
        request.memory[level < LEVEL_COUNT ? level : LEVEL_L1] = true;
        request.compute[roof_kinds[kind].precision] = roof_kinds[kind].measure == ROOF_COMPUTE;
        tune(&request, false);
        struct roof roof = measure(ways[i].kind);
        if (!strstr(roof.setting, ways[i].setting))
            fail_msg("%s: %s", ways[i].kind, roof.setting);
        assert_near(roof_value(&roof), script.rate[kind]);
    }
}

/* In a short run its begin would count for more than that others are slower. */
static void the_fastest_way_wins_in_the_long_run(void **state)
{
    (void)state;
    const struct roof_request request = {.compute[PRECISION_FP32] = true};
    const int kind = kind_of("fp32 vector");
    script.less = 0.99;
    script.best.blocks = 2 * bench.gpu.multiprocessors;
    script.best.threads = 1024;
    script.best.begin_time = 20e-6;
    tune(&request, false);
    struct roof roof = measure("fp32 vector");
    if (!strstr(roof.setting, "264 blocks of 1024 threads"))
        fail_msg("%s", roof.setting);
    assert_true(roof.performance > script.less * script.rate[kind]);
}

static void the_fastest_algorithm_wins(void **state)
{
    (void)state;
    const struct roof_request request = {.compute[PRECISION_TF32] = true};
    for (int i = 0; i < SCRIPT_ALGORITHMS; ++i) {
        script.best.algorithm = i;
        tune(&request, false);
        struct roof roof = measure("tf32 tensor library");
        assert_near(roof_value(&roof), script.rate[kind_of("tf32 tensor library")]);
        assert_true(starts_with(roof.setting, "cuBLASLt, m = "));
        assert_non_null(strstr(roof.setting, "k = 4096, to fp32"));
    }
}

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
    const struct roof_request request = {.compute[PRECISION_FP16] = true};
    const int tcgen05 = kind_of("fp16 tensor tcgen05");
    script.rate[tcgen05] = 2250e12;
    tune(&request, false);
    assert_false(found[tcgen05]);
    bench.gpu.capability = script.capability = 100;
    tune(&request, false);
    assert_near(measure("fp16 tensor tcgen05").performance, script.rate[tcgen05]);
    assert_false(found[kind_of("fp16 tensor wgmma")]);
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
    assert_int_equal(profiler_state(bench.profiler), PROFILER_UNDECIDED);
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

/* ---- requests ---- */

static void only_what_is_asked_is_tuned(void **state)
{
    (void)state;
    struct roof_request request = nothing;
    bool *const members[] = {
        &request.memory[LEVEL_DRAM],
        &request.memory[LEVEL_L3],
        &request.memory[LEVEL_L2],
        &request.memory[LEVEL_L1],
        &request.compute[PRECISION_FP64],
        &request.compute[PRECISION_FP32],
        &request.compute[PRECISION_TF32],
        &request.compute[PRECISION_FP16],
        &request.compute[PRECISION_BF16],
        &request.compute[PRECISION_FP8],
        &request.compute[PRECISION_INT8],
        &request.launch,
        &request.transfer,
    };
    int all = 0, expected = 0;
    for (size_t i = 0; i < sizeof members / sizeof *members; ++i) {
        request = nothing;
        *members[i] = true;
        memset(script.ran, 0, sizeof script.ran);
        tune(&request, false);
        for (int kind = 0; kind < ROOF_KINDS; ++kind) {
            bool wanted = roof_requested(&request, kind) && h200_has(kind);
            assert_int_equal(found[kind], wanted);
            if (roof_kinds[kind].measure != ROOF_TIME)
                assert_int_equal(script.ran[kind], wanted);
            all += found[kind];
        }
    }
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        expected += h200_has(kind);
    assert_int_equal(all, expected);
    tune(&nothing, true);
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        assert_false(found[kind]);
    assert_int_equal(script.collections, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_kinds_have_their_values),
        TEST(a_way_that_is_told_is_checked),
        TEST(power_is_of_long_loads),
        TEST(a_settled_clock_is_sustained_soon),
        TEST(beyond_the_power_limit_nothing_settles),
        TEST(a_cache_holds_less_than_it_has),
        TEST(sustained_comes_after_the_fall),
        TEST(a_burst_begins_cool),
        TEST(a_roof_is_held),
        TEST(all_roofs_are_measured_soon),
        TEST(samples_of_memory_are_long),
        TEST(launches_have_their_times),
        TEST(the_best_sample_counts_and_the_median_shows),
        TEST(theory_goes_by_the_clock_that_was_counted),
        TEST(the_fastest_way_wins),
        TEST(the_fastest_way_wins_in_the_long_run),
        TEST(the_fastest_algorithm_wins),
        TEST(a_row_that_is_not_built_is_passed_over),
        TEST(a_chip_has_its_own_tensor_instructions),
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
        TEST(only_what_is_asked_is_tuned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
