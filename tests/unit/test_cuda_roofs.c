/* The CUDA worker's roofs, on a scripted H200 (scripted_vendor.h). Those of the library are
 * not there (scripted_bench.c): tests/gpu/roofs.sh measures them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "scripted_bench.h"
#include "scripted_vendor.h"
#include "worker/gpu/energy.h"

static bool found[ROOF_KINDS]; /* by the last tuning */
static struct resting_power resting;

static struct roof_request everything(void)
{
    struct roof_request request;
    memset(&request, 1, sizeof request);
    memset(request.later, 0, sizeof request.later); /* none */
    memset(request.ways, 0, sizeof request.ways);
    return request;
}

static void tune_more(const struct roof_request *request, bool prove)
{
    struct error error;
    assert_int_equal(bench_tune(request, prove, found, &error), STATUS_OK);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void tune(const struct roof_request *request, bool prove)
{
    bench_release_roofs();
    tune_more(request, prove);
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

static enum status measure_as(int kind, struct roof_order order, struct roof *roof,
                              struct error *error)
{
    roof_init(roof, kind, ROOF_ALONE);
    return roofs_measure(bench.roofs, kind, &order, &resting, roof, error);
}

static enum status measure_at(int kind, double start, struct roof *roof, struct error *error)
{
    return measure_as(kind, (struct roof_order){.start = start}, roof, error);
}

static struct roof measured(const char *name, struct roof_order order)
{
    struct roof roof;
    struct error error;
    assert_int_equal(measure_as(kind_of(name), order, &roof, &error), STATUS_OK);
    return roof;
}

static struct roof measure(const char *name)
{
    return measured(name, (struct roof_order){.start = 0.0});
}

/* Found, and why it cannot be measured. */
static void assert_refused(const char *name, enum status expected, const char *why)
{
    struct error error;
    struct roof roof, untouched;
    roof_init(&untouched, kind_of(name), ROOF_ALONE);
    assert_true(found[kind_of(name)]);
    assert_int_equal(measure_at(kind_of(name), 0.0, &roof, &error), expected);
    assert_memory_equal(&roof, &untouched, sizeof roof);
    assert_string_equal(error.text, why);
}

static void assert_starts(const char *text, const char *start)
{
    if (strncmp(text, start, strlen(start)) != 0)
        fail_msg("\"%s\", not \"%s\"", text, start);
}

/* All that the script knows, but for the copy to another one. */
static bool h200_has(int kind)
{
    const char *name = roof_kinds[kind].name;
    return !strstr(name, "library") &&
           (script.rate[kind] > 0.0 ? strcmp(name, "device to device") != 0
                                    : roof_kinds[kind].measure == ROOF_TIME);
}

/* Opens the device anew, with a neighbour. */
static void open_two(void)
{
    bench_close();
    script_reset();
    script.devices = 2;
    bench_open();
}

/* ---- values ---- */

/* Where one pass over the arrays is short a sample is several, so that little of it is the launch:
 * such samples are few, of ROOF_WINDOW / 5 each, by the trial's rate and rounded to whole passes.
 * The devices of a node measure alone in turn, so all kinds take little time but for the rests of
 * the tensor units. */
static void all_kinds_have_their_values(void **state)
{
    const double rest = 0.06; /* s */
    double rests = 0.0;
    (void)state;
    tune_all(false);
    const double begin = clock_monotonic();
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const struct roof_kind *info = &roof_kinds[kind];
        const bool passes = info->measure == ROOF_BANDWIDTH && info->level < LEVEL_COUNT;
        assert_int_equal(found[kind], h200_has(kind));
        if (!found[kind])
            continue;
        rests += info->measure == ROOF_COMPUTE && info->unit == UNIT_TENSOR ? rest : 0.0;
        struct roof roof = measure(info->name);
        assert_in_range(roof.samples, 5, passes ? 8 : 64);
        assert_true(strlen(roof.setting) > 5);
        assert_int_equal(roof.verdict, ROOF_UNPROVEN);
        if (info->measure == ROOF_TIME)
            continue;
        assert_near(roof_value(&roof), script.rate[kind]);
        assert_true(roof.spread < 0.01 && roof.median > 0.99);
        assert_int_equal(roof.throttled, 0); /* the device was still at it */
        assert_near(roof.sm_clock, script.sm_clock);
    }
    assert_true(clock_monotonic() - begin - rests < 0.8);
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
    for (size_t i = 0; i < sizeof launches / sizeof *launches; ++i) {
        struct roof roof = measure(launches[i].name);
        assert_near(roof.time, launches[i].time);
        assert_non_null(strstr(roof.setting, "median"));
    }
}

/* Of the times' factors half are 1.1, in the middle. */
static void the_best_sample_counts_and_the_median_shows(void **state)
{
    const double jitter[SCRIPT_JITTER] = {1.1, 1.0, 1.1, 1.4};
    static const char *const kinds[] = {"dram triad", "l2 read", "fp16 tensor mma",
                                        "device to host"};
    (void)state;
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
    tune_all(false);
    const struct theory *theory = &bench.gpu.theory;
    script.sm_clock = 0.9 * 1.98e9;
    script.memory_clock = 0.95 * theory->memory_clock;
    const struct {
        const char *kind;
        double theory, clock; /* clock: over the nominal one */
    } cases[] = {
        {"fp64 vector", theory->vector[PRECISION_FP64], 0.9},
        {"fp16 tensor wgmma", theory->tensor[PRECISION_FP16], 0.9},
        {"l1 read", theory->bandwidth[LEVEL_L1], 0.9},
        {"shared read", theory->shared_read, 0.9},
        {"dram read", theory->bandwidth[LEVEL_DRAM], 0.95},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct roof roof = measure(cases[i].kind);
        double fraction = script.rate[kind_of(cases[i].kind)] / cases[i].theory;
        assert_near(roof.sm_clock, script.sm_clock);
        assert_near(roof.nominal_fraction, fraction);
        assert_near(roof.clock_fraction, fraction / cases[i].clock);
        assert_int_equal(roof.verdict,
                         fraction / cases[i].clock > 1.01 ? ROOF_ABOVE_THEORY : ROOF_UNPROVEN);
    }
    struct roof roof = measure("l2 read"); /* nobody states it of this chip */
    assert_true(isnan(roof.nominal_fraction) && isnan(roof.clock_fraction));
}

/* Of a short load the sensor would tell what was before it. */
static void power_is_of_long_loads(void **state)
{
    (void)state;
    tune_all(false);
    assert_true(isnan(measure("dram read").power));
    const struct roof_order soon = {.start = clock_epoch() + 0.05};
    assert_near(measured("dram read", soon).power, 700.0);
    const struct roof_order then = {.start = clock_epoch() + 0.05};
    assert_true(isnan(measured("fp16 vector", then).power)); /* of compute it is the burst's */
}

static bool a_few_times(void *argument)
{
    return --*(int *)argument >= 0;
}

/* So that no neighbour's sample falls after the others have ended. */
static void a_roof_is_held(void **state)
{
    struct error error;
    (void)state;
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

/* ---- the search ---- */

/* begin_time: in a short run it would count for more than that others are slower. */
static void the_fastest_way_wins(void **state)
{
    const int sms = bench.gpu.multiprocessors;
    const struct {
        const char *kind, *what;
        int blocks, threads;
        const char *setting;
        double less, begin_time;
    } ways[] = {
        {"dram read", "1 in flight", 1, 512, "132 blocks of 512 threads, 1 in flight", 0, 0},
        {"dram read", "4 in flight", 64, 256, "8448 blocks of 256 threads, 4 in flight", 0, 0},
        {"dram copy", "4 in flight", 8, 256, "1056 blocks of 256 threads, 4 in flight", 0, 0},
        {"dram triad", "", 16, 128, "2112 blocks of 128 threads", 0, 0},
        {"l2 copy", "1 in flight", 4, 256, "528 blocks of 256 threads, 1 in flight", 0, 0},
        {"l2 atomic", "", 2, 512, "264 blocks of 512 threads, 4 bytes each", 0, 0},
        {"l1 read", "", 4, 256, "528 blocks of 256 threads", 0, 0},
        {"shared read", "", 1, 512, "132 blocks of 512 threads", 0, 0},
        {"fp32 vector", "", 8, 256, "1056 blocks of 256 threads", 0, 0},
        {"fp64 vector", "", 1, 512, "132 blocks of 512 threads", 0, 0},
        {"fp64 tensor mma", "m16n8k16", 0, 0, "m16n8k16, 132 blocks of 512 threads", 0, 0},
        {"fp16 tensor mma", "m16n8k8", 0, 0, "m16n8k8, 264 blocks of 256 threads", 0, 0},
        {"fp32 vector", "", 2, 1024, "264 blocks of 1024 threads", 0.99, 20e-6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
        const struct roof_kind *info = &roof_kinds[kind_of(ways[i].kind)];
        struct roof_request request = {.launch = false};
        script.best.what = ways[i].what;
        script.best.blocks = ways[i].blocks * sms;
        script.best.threads = ways[i].threads;
        script.best.begin_time = ways[i].begin_time;
        script.less = ways[i].less > 0 ? ways[i].less : script.less;
        request.memory[info->level < LEVEL_COUNT ? info->level : LEVEL_L1] = true;
        request.compute[info->precision] = info->measure == ROOF_COMPUTE;
        tune(&request, false);
        struct roof roof = measure(ways[i].kind);
        if (!strstr(roof.setting, ways[i].setting))
            fail_msg("%s: %s", ways[i].kind, roof.setting);
        assert_near(roof_value(&roof), script.rate[kind_of(ways[i].kind)]);
    }
}

/* What another device of the model has found is tried alone, where it is as fast here; else all are
 * tried. */
static void a_way_that_is_told_is_checked(void **state)
{
    const int kind = kind_of("fp32 vector");
    struct roof_request request = everything();
    (void)state;
    int calls = script.calls;
    tune(&request, false);
    const int all = script.calls - calls;
    for (int i = 0; i < ROOF_KINDS; ++i)
        request.ways[i] = found[i] ? roofs_way(bench.roofs, i) : (struct roof_way){0};
    const struct roof roof = measure("fp32 vector");
    assert_true(request.ways[kind].rate > 0);
    calls = script.calls;
    tune(&request, false);
    assert_true(4 * (script.calls - calls) < 3 * all);
    assert_string_equal(measure("fp32 vector").setting, roof.setting);

    request.ways[kind].rate *= 1.1; /* here it is slower */
    request.ways[kind].number = 0;
    tune(&request, false);
    assert_string_equal(measure("fp32 vector").setting, roof.setting);
    request.ways[kind].number = 1000000; /* no such way here */
    tune(&request, false);
    assert_string_equal(measure("fp32 vector").setting, roof.setting);
}

/* Devices of a model share the search. What is left to another one comes with a later tune, and so
 * does the proof. */
static void a_search_is_shared(void **state)
{
    struct roof_request own = everything(), all = everything();
    (void)state;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        own.later[kind] = kind % 2 == 1;
    tune(&own, true);
    assert_int_equal(script.collections, 0);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        assert_int_equal(found[kind], h200_has(kind) && !own.later[kind]);
        if (found[kind])
            all.ways[kind] = roofs_way(bench.roofs, kind);
    }
    tune_more(&all, true);
    assert_int_equal(script.collections, 1);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        assert_int_equal(found[kind], h200_has(kind));
        if (all.ways[kind].rate > 0)
            assert_int_equal(roofs_way(bench.roofs, kind).number, all.ways[kind].number);
    }
    assert_int_equal(measure("dram read").verdict, ROOF_PROVEN);
    assert_int_equal(measure("dram write").verdict, ROOF_PROVEN);
}

static void only_what_is_asked_is_tuned(void **state)
{
    struct roof_request request;
    const size_t flags = offsetof(struct roof_request, condition); /* all before are of bool */
    (void)state;
    for (size_t i = 0; i <= flags; ++i) { /* last nothing */
        request = (struct roof_request){.launch = false};
        if (i < flags)
            ((bool *)&request)[i] = true;
        memset(script.ran, 0, sizeof script.ran);
        tune(&request, i == flags);
        for (int kind = 0; kind < ROOF_KINDS; ++kind) {
            bool wanted = roof_requested(&request, kind) && h200_has(kind);
            assert_int_equal(found[kind], wanted);
            if (roof_kinds[kind].measure != ROOF_TIME)
                assert_int_equal(script.ran[kind], wanted);
        }
    }
    assert_int_equal(script.collections, 0);
}

static void a_chip_has_its_own_tensor_instructions(void **state)
{
    const struct roof_request request = {
        .compute = {[PRECISION_FP16] = true, [PRECISION_FP4] = true}};
    const int tcgen05 = kind_of("fp16 tensor tcgen05"), fp4 = kind_of("fp4 tensor tcgen05");
    (void)state;
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

/* ---- what fails ---- */

static void a_row_that_is_not_built_is_passed_over(void **state)
{
    (void)state;
    script.refused = "4 in flight";
    script.refusal = cudaErrorNoKernelImageForDevice;
    tune_all(false);
    assert_non_null(strstr(measure("l2 read").setting, "1 in flight"));
    assert_refused("l2 write", STATUS_FAILED,
                   "write: no kernel image (cudaErrorNoKernelImageForDevice)");
    assert_near(measure("fp16 tensor mma").performance, script.rate[kind_of("fp16 tensor mma")]);
}

/* Each of the first calls fails once, then ever fewer; what is asked for at a time are few calls.
 * If the device is lost, the process must know it, and hold nothing any more. Any other failure
 * costs a candidate, at most a kind, and no memory. */
static void any_call_may_fail(void **state)
{
    static const struct roof_request requests[] = {
        {.transfer = true},           {.launch = true},           {.compute[PRECISION_TF32] = true},
        {.memory[LEVEL_DRAM] = true}, {.memory[LEVEL_L1] = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; ++i) {
        open_two();
        const int before = script.calls;
        tune(&requests[i], true);
        const int calls = script.calls - before;
        for (int at = 1; at < calls; at += 1 + at / 150) {
            struct error error;
            struct roof roof;
            const bool none[ROOF_KINDS] = {false};
            memset(found, 0, sizeof found);
            open_two();
            script.lost_at = script.calls + at;
            assert_int_equal(bench_tune(&requests[i], true, found, &error), STATUS_DEVICE);
            assert_null(bench.roofs);
            assert_memory_equal(found, none, sizeof found);
            open_two();
            script.fail_at = script.calls + at;
            int missing = 0;
            enum status status = bench_tune(&requests[i], true, found, &error);
            assert_true(status == STATUS_OK || status == STATUS_FAILED);
            for (int kind = 0; status == STATUS_OK && kind < ROOF_KINDS; ++kind)
                missing += found[kind] && measure_at(kind, 0.0, &roof, &error) != STATUS_OK;
            assert_in_range(missing, 0, 1);
        }
    }
}

/* The way that lost the device is named, of hundreds, so that it can be found. */
static void a_lost_device_is_told(void **state)
{
    const struct roof_request request = {.memory[LEVEL_DRAM] = true};
    struct roof roof;
    struct error error;
    (void)state;
    script.lost_at = script.calls + 400;
    assert_int_equal(bench_tune(&request, false, found, &error), STATUS_DEVICE);
    assert_starts(error.text, "dram read, 1 x 81");
    open_two();
    tune_all(false);
    script.lost_at = script.calls + 10;
    assert_int_equal(measure_at(kind_of("dram read"), 0.0, &roof, &error), STATUS_DEVICE);
    assert_int_equal(measure_at(kind_of("launch gap graph"), 0.0, &roof, &error), STATUS_DEVICE);
}

/* However little memory there is: each kind is measured, or says that memory is what it lacks. */
static void no_memory_is_a_reason(void **state)
{
    static const double sizes[] = {0.0, 4e3, 1e5, 1e6, 5e6, 20e6, 60e6, 150e6, 600e6, 2e9};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        script.free_bytes = sizes[i] + 20e3; /* for the clock's */
        tune_all(false);
        for (int kind = 0; kind < ROOF_KINDS; ++kind) {
            struct roof roof;
            struct error error;
            assert_int_equal(found[kind], h200_has(kind));
            enum status status = found[kind] ? measure_at(kind, 0.0, &roof, &error) : STATUS_OK;
            if (status && (status != STATUS_UNSUPPORTED || !strstr(error.text, "memory")))
                fail_msg("%g byte free, %s: %s", sizes[i], roof_kinds[kind].name, error.text);
        }
        bench_release_roofs();
    }
    script.free_bytes = 400e6; /* of 3.6 GB, on a slice of a GPU */
    tune_all(true);
    assert_refused("dram read", STATUS_UNSUPPORTED, "too little device memory is free");
    static const char *const possible[] = {"l2 triad", "fp8 tensor wgmma", "host to device"};
    for (size_t i = 0; i < sizeof possible / sizeof *possible; ++i) {
        struct roof roof = measure(possible[i]);
        assert_false(isnan(roof_value(&roof)));
    }
}

static void roofs_are_tuned_again(void **state)
{
    struct roof roof;
    struct error error;
    const double free_bytes = script.free_bytes;
    (void)state;
    tune_all(false);
    tune_all(true);
    assert_near(measure("fp16 tensor mma").performance, script.rate[kind_of("fp16 tensor mma")]);
    bench_release_roofs();
    bench_release_roofs();
    assert_true(free_bytes - script.free_bytes < 1e6 + 2.0 * (double)bench.gpu.l2_bytes);
    assert_int_equal(measure_at(kind_of("dram read"), 0.0, &roof, &error), STATUS_FAILED);
    assert_non_null(strstr(error.text, "dram read was not tuned"));
}

/* ---- common start ---- */

static void samples_begin_at_the_common_start(void **state)
{
    const double resolution = 20e-6; /* s, of what is enqueued first */
    (void)state;
    tune_all(false);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const double start = clock_epoch() + 0.05;
        if (!found[kind])
            continue;
        struct roof roof = measured(roof_kinds[kind].name, (struct roof_order){.start = start});
        assert_true(roof.start_time >= start && roof.start_time < start + resolution);
        /* the device as well: nothing of the warm-up was left to do */
        assert_true(script.begin_time >= start && script.begin_time < start + resolution);
    }
}

static void a_start_that_has_passed_is_too_late(void **state)
{
    const struct roof_request request = {.memory[LEVEL_DRAM] = true};
    static const struct {
        double start, slower; /* s, from now on; the last one's warm-up takes too long */
    } cases[] = {{-1.0, 1.0}, {-10e-3, 1.0}, {1e-3, 10.0}};
    const int kind = kind_of("dram copy");
    struct roof roof;
    struct error error;
    (void)state;
    tune(&request, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        script.rate[kind] /= cases[i].slower;
        assert_int_equal(measure_at(kind, clock_epoch() + cases[i].start, &roof, &error),
                         STATUS_FAILED);
        script.rate[kind] *= cases[i].slower;
        assert_starts(error.text, "too late");
        assert_true(isnan(roof.bandwidth));
    }
    assert_int_equal(measure_at(kind, clock_epoch() + 1e-3, &roof, &error), STATUS_OK);
}

/* ---- two devices ---- */

static void copies_go_to_the_next_device(void **state)
{
    static const char *const ways[][2] = {{"device 0 to 1, through the host", "0 to 1, direct"},
                                          {"device 1 to 0, through the host", "1 to 0, direct"}};
    const struct roof_request request = {.transfer = true};
    (void)state;
    tune(&request, false);
    assert_false(found[kind_of("device to device")]); /* alone */
    assert_true(found[kind_of("host to device")]);
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
    for (int i = 0; i < 2; ++i) { /* the other device may refuse */
        open_two();
        *(i ? &script.remote_context : &script.remote_memory) = cudaErrorDevicesUnavailable;
        tune(&request, false);
        assert_refused("device to device", STATUS_UNSUPPORTED,
                       "device 1, the next one: some failure");
        assert_near(measure("host to device").bandwidth, script.rate[kind_of("host to device")]);
    }
}

/* ---- proofs ---- */

/* All that counters see have this verdict, but those with `exception` in their names. Copy engines,
 * to or from the host, are not seen. */
static void assert_verdicts(enum roof_verdict verdict, const char *exception,
                            enum roof_verdict other)
{
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const char *name = roof_kinds[kind].name;
        if (!found[kind] || roof_kinds[kind].measure == ROOF_TIME || strstr(name, "host"))
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
    struct roof roof = measure("dram triad");
    assert_near(roof.bytes_ratio[LEVEL_DRAM], 1.0);
    assert_near(roof.bytes_ratio[LEVEL_L2], 1.0);
    assert_true(isnan(roof.flops_ratio));
    assert_true(measure("shared read").bytes_ratio[LEVEL_L1] == 0.0);
    roof = measure("fp8 tensor wgmma");
    assert_near(roof.flops_ratio, 1.0);
    assert_true(isnan(roof.bytes_ratio[LEVEL_DRAM]));
    assert_int_equal(measure("launch gap").verdict, ROOF_UNPROVEN);
}

/* What is counted over what was done, of the quantities from `first` to `last`. */
static void what_is_counted_is_the_verdict(void **state)
{
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
    static const struct {
        const char *preflight, *collection, *no_tensors; /* NULL: as it is */
        int processes;                                   /* 0: as it is */
        double free_bytes;                               /* the same */
        enum quantity absent;
        int collections;
        const char *counters; /* what their outcome begins with */
        enum roof_verdict verdict;
        const char *exception;
    } cases[] = {
        {NULL, NULL, NULL, 0, 0, QUANTITY_COUNT, 1, "counted", ROOF_PROVEN, NULL},
        {NULL, NULL, NULL, 2, 0, QUANTITY_COUNT, 0, "refused: another process", ROOF_UNPROVEN,
         NULL},
        {"refused: not allowed; ask", NULL, NULL, 0, 0, QUANTITY_COUNT, 0, "refused: not allowed",
         ROOF_UNPROVEN, NULL},
        {NULL, "refused: taken by another; wait", NULL, 0, 0, QUANTITY_COUNT, 1, "", ROOF_UNPROVEN,
         NULL},
        {NULL, NULL, "refused: metric set", 0, 0, QUANTITY_COUNT, 1, "counted", ROOF_PROVEN, NULL},
        {NULL, NULL, NULL, 0, 0, QUANTITY_TENSOR_FP8, 1, "counted", ROOF_PROVEN, "fp8"},
        /* Counts need a flushed cache. */
        {NULL, NULL, NULL, 0, 20e6, QUANTITY_COUNT, 0, "refused: ", ROOF_UNPROVEN, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        bench_close();
        bench_set_up(NULL);
        for (enum quantity quantity = wrong[i].first; quantity <= wrong[i].last; ++quantity)
            script.counted[quantity] = wrong[i].counted;
        tune_all(true);
        assert_verdicts(ROOF_PROVEN, wrong[i].kinds, ROOF_CONTRADICTED);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        bench_close();
        bench_set_up(NULL);
        if (cases[i].preflight)
            script.preflight = cases[i].preflight;
        if (cases[i].collection)
            script.collection = cases[i].collection;
        script.no_tensors = cases[i].no_tensors;
        script.processes = cases[i].processes ? cases[i].processes : script.processes;
        script.free_bytes = cases[i].free_bytes > 0 ? cases[i].free_bytes : script.free_bytes;
        script.absent = cases[i].absent;
        tune_all(true);
        assert_starts(bench.counters, cases[i].counters);
        assert_int_equal(script.collections, cases[i].collections);
        if (cases[i].free_bytes > 0)
            assert_int_equal(measure("fp64 vector").verdict, ROOF_UNPROVEN);
        else
            assert_verdicts(cases[i].verdict, cases[i].exception, ROOF_UNPROVEN);
    }
}

/* A neighbour's copies end some time; counting then begins. */
static void a_refused_proof_comes_later(void **state)
{
    (void)state;
    script.processes = 2;
    tune_all(true);
    script.processes = 1;
    tune_all(true);
    assert_string_equal(bench.counters, "counted");
    assert_verdicts(ROOF_PROVEN, NULL, ROOF_PROVEN);
}

/* ---- sustained ---- */

static struct roof sustain(const char *name, double start)
{
    return measured(name, (struct roof_order){.start = start, .sustained = true});
}

/* After the bursts of all: its own is not measured again. */
static struct roof sustain_only(const char *name)
{
    return measured(name, (struct roof_order){.sustained = true, .only_sustained = true});
}

static void assert_between(double value, double least, double most)
{
    if (!(value > least && value < most))
        fail_msg("%g is not between %g and %g", value, least, most);
}

/* A window at the burst's clock is enough: nothing limits it. */
static void a_settled_clock_is_sustained_soon(void **state)
{
    (void)state;
    tune_all(false);
    struct roof roof = sustain("fp16 tensor wgmma", 0.0);
    assert_near(roof.sustained, script.rate[kind_of("fp16 tensor wgmma")]);
    assert_near(roof.sustained_clock, script.sm_clock);
    assert_near(roof.sustained_power, 700.0);
    assert_int_equal(roof.settled, 1);
    assert_between(roof.settling_time, 0.1, 0.15);
    assert_true(isnan(measure("fp16 tensor wgmma").sustained)); /* nobody asked for it */
    assert_true(isnan(sustain("l2 read", 0.0).sustained));
    assert_true(isnan(sustain("launch gap", 0.0).sustained));

    roof = sustain_only("fp16 tensor wgmma");
    assert_near(roof.sustained, script.rate[kind_of("fp16 tensor wgmma")]);
    assert_int_equal(roof.settled, 1);
    assert_true(isnan(roof_value(&roof)) && isnan(roof.sm_clock));
    assert_int_equal(roof.samples, FIELD_MISSING);
    roof = sustain_only("dram read"); /* of other kinds it says nothing */
    assert_near(roof_value(&roof), script.rate[kind_of("dram read")]);
}

/* The set is found in steps of 1/32 of L2. */
static void a_cache_holds_less_than_it_has(void **state)
{
    const double l2 = (double)bench.gpu.l2_bytes;
    (void)state;
    tune_all(false);
    assert_between(sustain("l2 read", 0.0).working_set / l2, SCRIPT_REACH - 1.0 / 32.0,
                   SCRIPT_REACH + 1e-9);
    assert_true(isnan(measure("l2 read").working_set)); /* nobody asked for it */
    assert_true(isnan(sustain("l2 write", 0.0).working_set));
    assert_true(isnan(sustain("dram read", 0.0).working_set));
    assert_true(isnan(sustain("l1 read", 0.0).working_set));
}

/* After a burst at the full clock it is `share` of that, and comes back to it with a time constant,
 * s. The script's power goes by the clock: 700 W at all of it. The limit is kept on the average: a
 * load draws more for a while, and then less. */
static void a_load_goes_on_until_the_clock_settles(void **state)
{
    static const struct {
        double share, comes_back_in, swings_by, limit;
        bool settled;
        double earliest, latest; /* s */
        double clock;            /* NaN: it is not asked for */
    } cases[] = {
        {1.0, 1e6, 0, 650.0, false, 1.9, 2.2, NAN}, /* with more power than that it will fall */
        {1.0, 1e6, 0, NAN, true, 0.0, 0.35, 1.0},
        {0.9, 1e6, 0, 630.0, true, 0.25, 0.35, 0.9}, /* the clock is what the limit allows */
        {0.9, 1e6, 0, 800.0, true, 0.95, 1.3, 0.9},  /* something else holds it still for 1 s */
        {0.5, 2.0, 0, 800.0, false, 1.9, 2.2, NAN},  /* it rises all the time */
        {1.0, 1e6, 0.08, 700.0, true, 0.25, 1.2, 1.0},
    };
    (void)state;
    tune_all(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        script.falls_by = script.swings_by = 0.0;
        measure("fp16 tensor wgmma");
        bench.gpu.power_limit = cases[i].limit;
        script.falls_by = cases[i].share - 1.0;
        script.falls_from = script_device_time();
        script.falls_in = cases[i].comes_back_in;
        script.swings_by = cases[i].swings_by;
        script.swings_in = 1.0;
        struct roof roof = sustain_only("fp16 tensor wgmma");
        assert_int_equal(roof.settled, cases[i].settled);
        assert_between(roof.settling_time, cases[i].earliest, cases[i].latest);
        if (!isnan(cases[i].clock)) {
            assert_between(roof.sustained_clock / script.sm_clock / cases[i].clock, 0.975, 1.025);
            assert_between(roof.sustained_power / 700.0 / cases[i].clock, 0.975, 1.025);
        }
    }
}

/* The clock falls by a fifth: the burst has the high one, sustained is taken once it has fallen.
 * For each cycle both are then another figure here, since the script's rate does not go by the
 * clock. */
static void sustained_comes_after_the_fall(void **state)
{
    (void)state;
    tune_all(false);
    script.falls_by = 0.25;
    script.falls_from = script_device_time();
    script.falls_in = 0.3;
    struct roof roof = sustain("fp16 tensor wgmma", clock_epoch() + 0.015);
    assert_true(roof.sm_clock > 1.2 * script.sm_clock);
    assert_between(roof.sustained_clock / script.sm_clock, 0.98, 1.02);
    assert_int_equal(roof.settled, 1);
    assert_between(roof.settling_time, 0.5, 1.8);

    script.falls_by = 10.0; /* still falling by 1 % in a window when the time runs out */
    script.falls_from = script_device_time();
    script.falls_in = 3.0;
    roof = sustain("fp16 tensor wgmma", 0.0);
    assert_int_equal(roof.settled, 0);
    assert_between(roof.settling_time, 1.9, 2.2);
}

/* ---- energy ---- */

/* What the device draws at rest is measured once and taken off. Where the counter is read less
 * often, it takes longer to know the power to 2 %. */
static void a_roof_has_its_energy(void **state)
{
    static const char *const kinds[] = {"dram triad",        "l2 read",    "shared read",
                                        "fp16 tensor wgmma", "launch gap", "device to host"};
    static const struct {
        int pause_every;
        double pause_time, earliest, latest; /* s */
    } paces[] = {{0, 0.0, 0.65, 1.1}, {8, 20e-3, 0.9, 1.6}, {8, 80e-3, 3.0, 4.5}};
    (void)state;
    tune_all(false);
    assert_true(isnan(measure("dram triad").energy)); /* nobody asked for it */
    resting = (struct resting_power){NAN, NAN};
    assert_true(isnan(measured("dram triad", (struct roof_order){.energy = true}).energy_power));
    script.idle_power = 100.0; /* there is a counter */
    script.held_power = 150.0;
    script.busy_power = 600.0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const struct roof roof = measured(kinds[i], (struct roof_order){.energy = true});
        const bool has = i < 4;
        assert_int_equal(!isnan(roof.energy), has);
        if (has) {
            assert_near(roof.rest_power, 100.0);
            assert_near(roof.constant_power, 150.0);
            assert_near(roof.energy_power, 600.0);
            assert_near(roof.energy, 450.0 / script.rate[kind_of(kinds[i])]);
        }
    }
    for (size_t i = 0; i < sizeof paces / sizeof *paces; ++i) {
        script.pause_every = paces[i].pause_every;
        script.pause_time = paces[i].pause_time;
        const double begin = clock_monotonic();
        const struct roof roof = measured("l2 read", (struct roof_order){.energy = true});
        assert_between(clock_monotonic() - begin, paces[i].earliest, paces[i].latest);
        assert_int_equal(!isnan(roof.energy_power), paces[i].latest < 4.0);
    }
}

/* Of compute: a longer load before it would bring the clock down. */
static void a_burst_begins_cool(void **state)
{
    (void)state;
    tune_all(false);
    double busy = script.busy;
    sustain("fp16 tensor wgmma", clock_epoch() + 0.5);
    assert_between(script.busy - busy, 0.1, 0.2); /* the window, not the half second before */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_kinds_have_their_values),
        TEST(the_best_sample_counts_and_the_median_shows),
        TEST(theory_goes_by_the_clock_that_was_counted),
        TEST(power_is_of_long_loads),
        TEST(a_roof_is_held),
        TEST(the_fastest_way_wins),
        TEST(a_way_that_is_told_is_checked),
        TEST(a_search_is_shared),
        TEST(only_what_is_asked_is_tuned),
        TEST(a_chip_has_its_own_tensor_instructions),
        TEST(a_row_that_is_not_built_is_passed_over),
        TEST(any_call_may_fail),
        TEST(a_lost_device_is_told),
        TEST(no_memory_is_a_reason),
        TEST(roofs_are_tuned_again),
        TEST(samples_begin_at_the_common_start),
        TEST(a_start_that_has_passed_is_too_late),
        TEST(copies_go_to_the_next_device),
        TEST(counts_prove),
        TEST(what_is_counted_is_the_verdict),
        TEST(a_refused_proof_comes_later),
        TEST(a_settled_clock_is_sustained_soon),
        TEST(a_cache_holds_less_than_it_has),
        TEST(a_load_goes_on_until_the_clock_settles),
        TEST(sustained_comes_after_the_fall),
        TEST(a_roof_has_its_energy),
        TEST(a_burst_begins_cool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
