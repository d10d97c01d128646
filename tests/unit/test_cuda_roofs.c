/* The CUDA worker's roofs, on a scripted H200 (scripted_cuda.h): which are asked for, their fastest ways, their values. */
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
#include "scripted_cuda.h"
#include "tuned.h"

static const struct roof_request nothing;

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

/* Devices of a model share the search. What is left to another one comes with a later tune. */
static void a_search_is_shared(void **state)
{
    (void)state;
    struct roof_request own = everything(), all = everything();
    struct roof_way ways[ROOF_KINDS];
    bool first[ROOF_KINDS];
    memset(own.ways, 0, sizeof own.ways);
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        own.later[kind] = kind % 2 == 1;
    tune(&own, true);
    assert_int_equal(script.collections, 0); /* the proof comes with the rest */
    memcpy(first, found, sizeof first);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        if (found[kind] != (h200_has(kind) && !own.later[kind]))
            fail_msg("%s: %d", roof_kinds[kind].name, found[kind]);
        ways[kind] = found[kind] ? roofs_way(bench.roofs, kind) : (struct roof_way){0};
    }
    memcpy(all.ways, ways, sizeof ways);
    memset(script.ran, 0, sizeof script.ran);
    tune_more(&all, true);
    assert_int_equal(script.collections, 1);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        assert_int_equal(found[kind], h200_has(kind));
        if (first[kind])
            assert_int_equal(roofs_way(bench.roofs, kind).number, ways[kind].number);
    }
    assert_int_equal(measure("dram read").verdict, ROOF_PROVEN);
    assert_int_equal(measure("dram write").verdict, ROOF_PROVEN);
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
    assert_near(roof.power, 700.0);
    assert_int_equal(measure_at(kind_of("fp16 vector"), clock_epoch() + 0.05, &roof, &error),
                     STATUS_OK);
    assert_true(isnan(roof.power)); /* of compute it is the burst's */
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
    const double rest = 0.06; /* s, before each of the tensor units: that of a neighbour's turn */
    double rests = 0.0, begin = clock_monotonic();
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        if (!found[kind])
            continue;
        measure(roof_kinds[kind].name);
        rests += roof_kinds[kind].measure == ROOF_COMPUTE && roof_kinds[kind].unit == UNIT_TENSOR
                     ? rest
                     : 0.0;
    }
    assert_true(clock_monotonic() - begin - rests < 0.8);
}

/* Where one pass over the arrays is short a sample is several, so that little of it is the launch.
 */
static void samples_of_memory_are_long(void **state)
{
    (void)state;
    const int most =
        8; /* of ROOF_WINDOW / 5 each, by the trial's rate, and rounded to whole passes */
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
        &request.compute[PRECISION_FP4],
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
        TEST(a_search_is_shared),
        TEST(power_is_of_long_loads),
        TEST(a_roof_is_held),
        TEST(all_roofs_are_measured_soon),
        TEST(samples_of_memory_are_long),
        TEST(launches_have_their_times),
        TEST(the_best_sample_counts_and_the_median_shows),
        TEST(theory_goes_by_the_clock_that_was_counted),
        TEST(the_fastest_way_wins),
        TEST(the_fastest_way_wins_in_the_long_run),
        TEST(the_fastest_algorithm_wins),
        TEST(only_what_is_asked_is_tuned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
