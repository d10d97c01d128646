/* The roofs of this CPU, and the cores of the device. */
#include "unit.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "opened.h"
#include "worker/device_ops.h"

static const struct roof_order at_once;

static void tune(struct device_state *state, const struct roof_request *request,
                 bool found[ROOF_KINDS])
{
    assert_ok(device_ops.tune_roofs(state, request, true, found, &failure));
}

static void check_roof(const struct roof *roof, int kind, double before)
{
    bool is_time = roof_kinds[kind].measure == ROOF_TIME;
    assert_int_equal(roof->kind.index, kind);
    double value = roof_value(roof); /* a range that every computer meets */
    assert_true(is_time ? value > 1e-9 && value < 100.0 : value > 1e7 && value < 1e15);
    assert_true(isfinite(roof->bandwidth) + isfinite(roof->performance) + isfinite(roof->time) ==
                1);
    assert_true(roof->samples >= 10 && roof->spread >= 0.0);
    assert_true(is_time ? roof->median == 1.0 : roof->median > 0.0 && roof->median <= 1.0);
    assert_true(roof->start_time >= before && roof->start_time <= clock_epoch());
    assert_true(isnan(roof->nominal_fraction) && isnan(roof->flops_ratio)); /* unknown on CPUs */
    assert_true(isnan(roof->sm_clock) || roof->sm_clock > 1e8);
    assert_int_equal(roof->verdict, ROOF_UNPROVEN);
    assert_says(roof->setting, "thread");
    assert_null(strstr(roof->setting, "not measured"));
    if (is_time)
        return;
    if (strstr(roof->setting, "past the caches"))
        assert_true(roof_kinds[kind].level == LEVEL_DRAM &&
                    roof_kinds[kind].pattern != PATTERN_READ);
}

/* A cache that the machine lacks or hides has no roofs. CPUs have no atomic pattern. */
DEVICE_TEST(roofs_are_sane)
{
    struct roof_request request = roof_request_all();
    struct roof roofs[ROOF_KINDS];
    bool found[ROOF_KINDS] = {false};
    int there[LEVEL_COUNT + 1] = {0};
    tune(*state, &request, found);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        double before = clock_epoch();
        roof_init(&roofs[kind], kind, ROOF_ALONE);
        if (!found[kind])
            assert_int_equal(
                device_ops.measure_roof(*state, kind, &at_once, &roofs[kind], &failure),
                STATUS_UNSUPPORTED);
        else if (device_ops.measure_roof(*state, kind, &at_once, &roofs[kind], &failure))
            fail_msg("%s: %s", roof_kinds[kind].name, failure.text);
        else
            check_roof(&roofs[kind], kind, before);
        there[roof_kinds[kind].level] += found[kind];
        assert_false(found[kind] && roof_kinds[kind].pattern == PATTERN_ATOMIC);
    }
    for (int level = 0; level < LEVEL_COUNT; ++level)
        assert_true(there[level] == 4 || (there[level] == 0 && level != LEVEL_DRAM));
    device_ops.release_roofs(*state);
}

/* found[] is false for roofs that were not requested, and for GPU roofs. */
DEVICE_TEST(roofs_are_those_requested)
{
    struct roof_request request = {
        .compute = {[PRECISION_FP32] = true}, .launch = true, .transfer = true};
    bool found[ROOF_KINDS] = {false};
    tune(*state, &request, found);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        bool expected = kind == ROOF_FP32_VECTOR || kind == ROOF_LAUNCH_GAP;
        if (found[kind] != expected)
            fail_msg("%s", roof_kinds[kind].name);
    }
    /* Tuning again drops the earlier roofs. */
    struct roof roof;
    request = (struct roof_request){.memory = {[LEVEL_DRAM] = true}};
    tune(*state, &request, found);
    roof_init(&roof, ROOF_FP32_VECTOR, ROOF_ALONE);
    assert_int_equal(device_ops.measure_roof(*state, ROOF_FP32_VECTOR, &at_once, &roof, &failure),
                     STATUS_UNSUPPORTED);
    assert_true(found[ROOF_DRAM_TRIAD] && !found[ROOF_FP32_VECTOR]);
    /* close_device must free the roofs. */
}

DEVICE_TEST(roofs_begin_together)
{
    struct roof_request request = {.memory = {[LEVEL_L1] = true}, .launch = true};
    struct roof roof;
    bool found[ROOF_KINDS] = {false};
    int kind = ROOF_LAUNCH_GAP;
    tune(*state, &request, found);
    assert_true(found[kind]);
    double start = clock_epoch() + 0.2;
    roof_init(&roof, kind, ROOF_TOGETHER);
    assert_ok(device_ops.measure_roof(*state, kind, &(struct roof_order){.start = start}, &roof,
                                      &failure));
    assert_true(roof.start_time >= start && roof.start_time < start + 1.0);
    assert_int_equal(roof.condition, ROOF_TOGETHER);
    roof_init(&roof, kind, ROOF_TOGETHER);
    assert_fails(device_ops.measure_roof(*state, kind,
                                         &(struct roof_order){.start = clock_epoch() - 0.01}, &roof,
                                         &failure),
                 STATUS_FAILED, "start");
    device_ops.release_roofs(*state);
    assert_int_equal(device_ops.measure_roof(*state, kind, &at_once, &roof, &failure),
                     STATUS_UNSUPPORTED);
    device_ops.release_roofs(*state); /* a second release has no effect */
}

/* The device has the processors of the affinity mask. Closing restores the mask. */
TEST(device_is_the_mask)
{
    cpu_set_t all, one, after;
    CPU_ZERO(&all);
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        skip(); /* more than 1024 CPUs */
    int cpu = CPU_SETSIZE - 1;
    while (!CPU_ISSET(cpu, &all))
        --cpu;
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    struct device_state *opened;
    struct device device;
    int count = 0, addresses[VISIBLE_MAX];
    device_init(&device);
    assert_ok(device_ops.list(&count, addresses, &failure));
    assert_int_equal(count, 1);
    assert_ok(device_ops.open(0, &opened, &device, &failure));
    assert_int_equal(device.multiprocessors, 1);
    assert_string_equal(device.kind, "cpu");
    char suffix[16];
    snprintf(suffix, sizeof suffix, "-%d", cpu);
    assert_string_equal(device.uuid + strlen(device.uuid) - strlen(suffix), suffix);
    assert_true(device.memory > 0.0);
    device_ops.close(opened);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&one, &after));
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(device_ops.open(1, &opened, &device, &failure), STATUS_DEVICE);
}
