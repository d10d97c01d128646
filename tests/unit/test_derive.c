/* What a record is on the roofs of its device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "results/derive.h"
#include "sample.h"

#define assert_near(value, expected) assert_true(fabs((value) / (expected)-1) < 1e-12)

/* Modelled bytes: with a hot cache the last-level cache, if it holds all. */
static void test_level(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double l3, l3_bandwidth, l2, l2_bandwidth;
        enum memory_level level;
        double working_set; /* of l2; 0: not measured */
    } cases[] = {
        {"lstm cache=hot", NAN, NAN, 1e6, 1e12, LEVEL_L2, 61696},
        {"lstm cache=hot", NAN, NAN, 1e6, 1e12, LEVEL_DRAM, 61695}, /* less than the cache has */
        {"lstm cache=hot", 61696, 1e11, 1e6, 1e12, LEVEL_L3, 0},    /* exactly the footprint */
        {"lstm cache=hot", 61695, 1e11, 1e6, 1e12, LEVEL_DRAM, 0},
        {"lstm cache=hot", 1e6, NAN, 1e6, 1e12, LEVEL_L3, 0}, /* l2 is private beside an l3 */
        {"lstm cache=hot", NAN, NAN, 1e6, 1e12, LEVEL_L2, 0},
        {"lstm cache=hot", NAN, NAN, 1e4, 1e12, LEVEL_DRAM, 0},
        {"lstm cache=hot", NAN, NAN, NAN, NAN, LEVEL_COUNT, 0}, /* who knows where it lies */
        {"lstm cache=cold", 1e6, 1e11, 1e6, 1e12, LEVEL_DRAM, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct record record = sample_record(cases[i].text, "lstm", "s1-1", 0);
        struct device device = cpu_device();
        device.cache[LEVEL_L3] = cases[i].l3;
        device.peak_bandwidth[LEVEL_L3] = cases[i].l3_bandwidth;
        device.cache[LEVEL_L2] = cases[i].l2;
        if (cases[i].working_set > 0)
            device.working_set[LEVEL_L2] = cases[i].working_set;
        device.peak_bandwidth[LEVEL_L2] = cases[i].l2_bandwidth;
        struct derived derived = derive(&record, &device);
        assert_int_equal(derived.level, cases[i].level);
        for (int level = 0; level < LEVEL_COUNT; ++level)
            assert_int_equal(!isnan(derived.intensity[level]), level == (int)cases[i].level);
    }
}

/* A program that states its bytes says nothing of its tensors. */
static void stated_bytes_are_of_device_memory(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = sample_record("lstm cache=hot", "lstm", "s1-1", 0);
    record.footprint = NAN;
    assert_int_equal(derive(&record, &device).level, LEVEL_DRAM);
    record.bytes_model = NAN;
    assert_int_equal(derive(&record, &device).level, LEVEL_COUNT);
    record_clear(&record);
}

/* As with "memory = dram": the footprint lies in a cache whose roof was not measured. Set against device
 * memory it showed more than 100 %. */
static void no_level_stands_in_for_another(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record();
    assert_false(isnan(derive(&record, &device).roofline.fraction));
    device.peak_bandwidth[LEVEL_L2] = NAN;
    struct derived derived = derive(&record, &device);
    assert_int_equal(derived.level, LEVEL_L2);
    assert_true(isnan(derived.roofline.fraction) && isnan(derived.roofline.roof));
    assert_true(isnan(derived.roofline.bandwidth_time) && isnan(derived.shares.bandwidth));
    assert_int_equal(derived.roofline.bound, BOUND_UNKNOWN);
    device.cache[LEVEL_L2] = NAN; /* nor is it known what the cache holds */
    derived = derive(&record, &device);
    assert_string_equal(derived_level_name(&derived), "");
    assert_true(isnan(derived.roofline.fraction));
    record_clear(&record);
}

/* 25 us, of which kernels run 22 and 2 are the timer's; the host needs 9. */
static void shares_of_the_time(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = counted_record();
    struct derived derived = derive(&record, &device);
    assert_near(derived.gap_time, 1e-6);
    assert_near(derived.busy_share, 22.0 / 23.0);
    assert_near(derived.shares.gap, 1.0 / 23.0);
    assert_near(derived.shares.host, 9.0 / 23.0);
    assert_near(derived.shares.bandwidth, 32.5e6 / 4e12 / 23e-6);
    assert_near(derived.dependent_time, 2 * 2.5e-6);
    assert_near(derived.useful_performance, record.flops_model / 25e-6);
    assert_int_equal(derived.limiter, LIMITER_LATENCY); /* 128 blocks for 100 multiprocessors */
    record.busy_time = 26e-6;                           /* a trace is a run of its own */
    derived = derive(&record, &device);
    assert_true(derived.gap_time == 0 && derived.shares.gap == 0);
    record.busy_time = NAN;
    assert_true(isnan(derive(&record, &device).gap_time));
    record.timer_overhead = record.trace_time = NAN; /* as of a program */
    record.busy_time = 21e-6;
    assert_near(derive(&record, &device).gap_time, 4e-6);
    record.host_time = 30e-6;
    assert_int_equal(derive(&record, &device).limiter, LIMITER_HOST);
    record_clear(&record);
}

/* The traced iteration took 40 us on a busy machine, the median one 25: busy and gap are parts of the former. */
static void shares_of_a_cpu(void **state)
{
    (void)state;
    struct device device = cpu_device();
    struct record record = counted_record();
    record.trace_time = 40e-6;
    record.busy_time = 30e-6;
    struct derived derived = derive(&record, &device);
    assert_near(derived.gap_time, 10e-6);
    assert_near(derived.busy_share, 0.75);
    assert_near(derived.shares.gap, 0.25);
    assert_near(derived.shares.host, 9.0 / 23.0);
    record_clear(&record);
}

static void test_counted(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record();
    struct derived derived = derive(&record, &device);
    assert_int_equal(derived.flops_source, SOURCE_MODELLED);
    assert_int_equal(derived.bytes_source, SOURCE_MODELLED);
    assert_int_equal(derived.level, LEVEL_L2);

    record.flops_counted = 4e9;
    record.bytes_counted[LEVEL_DRAM] = 1e6; /* the l2 kept most of it */
    record.bytes_counted[LEVEL_L1] = 8e7;
    derived = derive(&record, &device);
    assert_int_equal(derived.flops_source, SOURCE_COUNTED);
    assert_int_equal(derived.bytes_source, SOURCE_COUNTED);
    assert_int_equal(derived.level, LEVEL_DRAM);
    assert_near(derived.intensity[LEVEL_DRAM], 4000);
    assert_near(derived.intensity[LEVEL_L1], 50);
    assert_true(isnan(derived.intensity[LEVEL_L2]));
    assert_near(derived.roofline.performance, 4e9 / 25e-6);
    assert_near(derived.roofline.balance, 8e14 / 4e12);

    /* 1e6 at 4e12 take 0.25 us, 4e7 at 8e12 take 5 us: the l2 is what bounds it */
    record.bytes_counted[LEVEL_L2] = 4e7;
    derived = derive(&record, &device);
    assert_int_equal(derived.level, LEVEL_L2);
    assert_near(derived.roofline.intensity, 100);
    assert_near(derived.roofline.balance, 8e14 / 8e12);
    record_clear(&record);
}

/* The compute roof is of the record's own unit and precision, and of nothing else. */
static void test_peak(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record(); /* fp16 */
    assert_near(derive(&record, &device).roofline.balance, 8e14 / 8e12);
    record.unit = UNIT_VECTOR; /* this device has no measured fp16 peak of it */
    struct derived derived = derive(&record, &device);
    assert_true(isnan(derived.roofline.roof) && isnan(derived.roofline.fraction));
    assert_int_equal(derived.roofline.bound, BOUND_UNKNOWN);
    device.peak_vector[PRECISION_FP16] = 1e14;
    assert_near(derive(&record, &device).roofline.balance, 1e14 / 8e12);
    record.unit = FIELD_MISSING;
    assert_true(isnan(derive(&record, &device).roofline.balance));
    record_clear(&record);
}

/* A short row runs at another clock than the roof did: it is held against the roof at its own. */
static void test_own_clock(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record();
    device.cycle_tensor[PRECISION_FP16] = 5e5;
    device.sustained_tensor[PRECISION_FP16] = 7e14;
    record.sm_clock_counted = 1.8e9;
    struct derived derived = derive(&record, &device);
    assert_near(derived.compute_roof, 9e14);
    assert_near(derived.roofline.balance, 9e14 / 8e12);
    assert_near(derived.sustained_fraction, derived.roofline.performance / 7e14);
    record.sm_clock_counted = NAN;
    assert_near(derive(&record, &device).compute_roof, 8e14);
    record_clear(&record);
}

/* Rows that read are held against reads alone, rows that write against writes. */
static void test_directions(void **state)
{
    (void)state;
    struct device device = gpu_device();
    struct record record = conv2d_record();
    device.read_bandwidth[LEVEL_L2] = 6e12;
    device.write_bandwidth[LEVEL_L2] = 3e12;
    record.flops_counted = 4e9;
    record.bytes_counted[LEVEL_DRAM] = 1e6;
    record.bytes_counted[LEVEL_L2] = 4e7;
    assert_near(derive(&record, &device).bandwidth_roof, 8e12); /* directions are not known */
    record.bytes_read[LEVEL_L2] = 4e7;
    record.bytes_written[LEVEL_L2] = 0.0;
    assert_near(derive(&record, &device).bandwidth_roof, 6e12);
    record.bytes_read[LEVEL_L2] = 0.0;
    record.bytes_written[LEVEL_L2] = 4e7;
    assert_near(derive(&record, &device).bandwidth_roof, 3e12);
    record.bytes_read[LEVEL_L2] = 2.8e7;
    record.bytes_written[LEVEL_L2] = 1.2e7;
    assert_near(derive(&record, &device).bandwidth_roof, 8e12);
    record_clear(&record);
}

static void test_nothing_known(void **state)
{
    (void)state;
    struct record record;
    struct device device;
    record_init(&record);
    device_init(&device);
    struct derived derived = derive(&record, &device);
    assert_int_equal(derived.flops_source, SOURCE_NONE);
    assert_int_equal(derived.bytes_source, SOURCE_NONE);
    assert_int_equal(derived.roofline.bound, BOUND_UNKNOWN);
    assert_true(isnan(derived.roofline.performance) && isnan(derived.roofline.roof));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level),
        cmocka_unit_test(stated_bytes_are_of_device_memory),
        cmocka_unit_test(no_level_stands_in_for_another),
        cmocka_unit_test(shares_of_the_time),
        cmocka_unit_test(shares_of_a_cpu),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_own_clock),
        cmocka_unit_test(test_directions),
        cmocka_unit_test(test_nothing_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
