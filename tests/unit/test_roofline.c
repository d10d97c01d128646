#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/roofline.h"

#define assert_near(value, expected, relative)                                                     \
    assert_true(fabs((value) - (expected)) <= (relative)*fabs((double)(expected)))

/* The paper's V100: tensor peak, HBM bandwidth and launch overhead. */
static const struct roofline_roofs v100 = {107.479e12, 828.8e9, 4.2e-6};

static void test_check_values(void **state)
{
    (void)state;
    assert_near(roofline_balance(107479, 828.8), 129.68, 1e-4);
    assert_near(roofline_peak(80, 8 * 4 * 4 * 4, 1.312e9), 107.479e12, 1e-5);
    assert_near(roofline_peak(108, 1024, 1.41e9), 312e12, 2e-3); /* A100, fp16 */
    assert_near(roofline_peak(108, 512, 1.41e9), 156e12, 2e-3);  /* A100, tf32 */
}

static double intensity_of(double flops, double bytes)
{
    struct roofline_work work = {flops, bytes, 1e-3, 1};
    return roofline_evaluate(&work, &v100).intensity;
}

/* The table of NVIDIA's guide to GPU performance, in fp16 (2 bytes an element). */
static void test_known_intensities(void **state)
{
    (void)state;
    const double outputs = 4096, inputs = 1024;
    for (int i = 0; i < 2; ++i) {
        double batch = i == 0 ? 512 : 1;
        double flops = 2 * batch * inputs * outputs;
        double elements = batch * inputs + inputs * outputs + batch * outputs;
        assert_true(round(intensity_of(flops, 2 * elements)) == (i == 0 ? 315 : 1));
    }
    /* 3x3 max-pool, stride 1: 9 comparisons an element, which is read once and written once. */
    assert_near(intensity_of(9, 2 + 2), 2.25, 1e-12);
    assert_near(intensity_of(1, 2 + 2), 0.25, 1e-12); /* ReLU */
}

static void test_compute_bound(void **state)
{
    (void)state;
    struct roofline_work work = {1e12, 1e9, 20e-3, 10}; /* AI 1000, above 129.68 */
    struct roofline r = roofline_evaluate(&work, &v100);
    assert_near(r.performance, 50e12, 1e-12);
    assert_near(r.roof, v100.peak, 1e-12);
    assert_near(r.fraction, 50e12 / 107.479e12, 1e-12);
    assert_near(r.compute_time, 20e-3, 1e-12);
    assert_near(r.bandwidth_time, 20e-3 * 129.68 / 1000, 1e-4);
    assert_near(r.overhead_time, 42e-6, 1e-12);
    assert_int_equal(r.bound, BOUND_COMPUTE);
}

static void test_bandwidth_bound(void **state)
{
    (void)state;
    struct roofline_work work = {1e9, 1e9, 2e-3, 1}; /* AI 1 */
    struct roofline r = roofline_evaluate(&work, &v100);
    assert_near(r.roof, 828.8e9, 1e-12);
    assert_near(r.fraction, 0.5e12 / 828.8e9, 1e-12);
    assert_near(r.bandwidth_time, 2e-3, 1e-12);
    assert_near(r.compute_time, 2e-3 / 129.68, 1e-4);
    assert_int_equal(r.bound, BOUND_BANDWIDTH);
}

static void test_overhead_bound(void **state)
{
    (void)state;
    /* The paper's LSTM: FLOPs below P * L * n are overhead-bound, 1.06e14 * 4.2e-6 for one launch.
     */
    struct roofline_work work = {1e6, 1e6, 50e-6, 10};
    struct roofline r = roofline_evaluate(&work, &v100);
    assert_near(r.roof, 1e6 / 42e-6, 1e-12); /* the lowest of the three ceilings */
    assert_near(r.overhead_time, 42e-6, 1e-12);
    assert_int_equal(r.bound, BOUND_OVERHEAD);
    work.time = 30e-6; /* kernels' own time, as the paper has it */
    assert_int_equal(roofline_evaluate(&work, &v100).bound, BOUND_OVERHEAD);

    work.time = 50e-6; /* each side of the box: 41 and 43 microseconds of either */
    work.bytes = 41e-6 * 828.8e9;
    assert_int_equal(roofline_evaluate(&work, &v100).bound, BOUND_OVERHEAD);
    work.bytes = 43e-6 * 828.8e9;
    assert_int_equal(roofline_evaluate(&work, &v100).bound, BOUND_BANDWIDTH);
    work.bytes = 1e6;
    work.flops = 41e-6 * 107479e9;
    assert_int_equal(roofline_evaluate(&work, &v100).bound, BOUND_OVERHEAD);
    work.flops = 43e-6 * 107479e9;
    assert_int_equal(roofline_evaluate(&work, &v100).bound, BOUND_COMPUTE);
}

static void test_at_the_balance(void **state)
{
    (void)state;
    const struct roofline_roofs roofs = {64, 8, 0.001};
    struct roofline_work work = {8000, 1000, 200, 1}; /* AI = M = 8 */
    struct roofline r = roofline_evaluate(&work, &roofs);
    assert_true(r.intensity == r.balance);
    assert_true(r.compute_time == 200 && r.bandwidth_time == 200);
    assert_true(r.roof == 64);
    assert_int_equal(r.bound, BOUND_COMPUTE);
}

static void test_one_sided(void **state)
{
    (void)state;
    struct roofline_work copy = {0, 828.8e6, 2e-3, 1};
    struct roofline r = roofline_evaluate(&copy, &v100);
    assert_true(r.intensity == 0 && r.performance == 0 && r.compute_time == 0);
    assert_near(r.bandwidth_time, 2e-3, 1e-12);
    assert_near(r.fraction, 0.5, 1e-12); /* of the bandwidth */
    assert_int_equal(r.bound, BOUND_BANDWIDTH);
    struct roofline_roofs no_peak = v100;
    no_peak.peak = NAN; /* data movement does not need one */
    r = roofline_evaluate(&copy, &no_peak);
    assert_near(r.fraction, 0.5, 1e-12);
    assert_int_equal(r.bound, BOUND_BANDWIDTH);

    struct roofline_work registers = {1e12, 0, 20e-3, 1};
    struct roofline_roofs no_bandwidth = v100;
    no_bandwidth.bandwidth = NAN;
    r = roofline_evaluate(&registers, &no_bandwidth);
    assert_true(isinf(r.intensity) && r.bandwidth_time == 0);
    assert_near(r.compute_time, 20e-3, 1e-12);
    assert_near(r.roof, v100.peak, 1e-12);
    assert_int_equal(r.bound, BOUND_COMPUTE);

    struct roofline_work nothing = {0, 0, 1e-6, 1}; /* an empty kernel: less than its own launch */
    r = roofline_evaluate(&nothing, &v100);
    assert_true(isnan(r.intensity) && isnan(r.roof) && isnan(r.compute_time));
    assert_int_equal(r.bound, BOUND_OVERHEAD);
}

static void test_missing_overhead(void **state)
{
    (void)state;
    struct roofline_work work = {1e12, 1e9, 20e-3, NAN};
    struct roofline_roofs roofs = v100;
    for (int i = 0; i < 2; ++i) {
        struct roofline r = roofline_evaluate(&work, &roofs);
        assert_true(isnan(r.overhead_time));
        assert_near(r.roof, v100.peak, 1e-12);
        assert_int_equal(r.bound, BOUND_COMPUTE);
        work.launches = 1;
        roofs.launch_overhead = NAN;
    }
}

static void test_missing_makes_missing_what_depends(void **state)
{
    (void)state;
    const struct roofline_work work = {1e12, 1e9, 20e-3, 1};

    struct roofline_work no_time = work;
    no_time.time = NAN; /* a configuration that was skipped */
    struct roofline r = roofline_evaluate(&no_time, &v100);
    assert_near(r.intensity, 1000, 1e-12);
    assert_near(r.roof, v100.peak, 1e-12);
    assert_true(isnan(r.performance) && isnan(r.fraction) && isnan(r.compute_time));
    assert_true(isnan(r.bandwidth_time));
    assert_int_equal(r.bound, BOUND_UNKNOWN);

    struct roofline_roofs no_peak = v100;
    no_peak.peak = NAN;
    r = roofline_evaluate(&work, &no_peak);
    assert_near(r.performance, 50e12, 1e-12);
    assert_near(r.intensity, 1000, 1e-12);
    assert_true(isnan(r.balance) && isnan(r.roof) && isnan(r.fraction));
    assert_true(isnan(r.compute_time) && isnan(r.bandwidth_time));
    assert_int_equal(r.bound, BOUND_UNKNOWN);
    struct roofline_work many = work;
    many.launches = 1e6; /* T < n * L holds whatever the peak */
    assert_int_equal(roofline_evaluate(&many, &no_peak).bound, BOUND_OVERHEAD);

    struct roofline_work no_bytes = work;
    no_bytes.bytes = NAN;
    r = roofline_evaluate(&no_bytes, &v100);
    assert_near(r.performance, 50e12, 1e-12);
    assert_true(isnan(r.intensity) && isnan(r.roof) && isnan(r.compute_time));

    struct roofline_work no_flops = work;
    no_flops.flops = NAN;
    r = roofline_evaluate(&no_flops, &v100);
    assert_true(isnan(r.intensity) && isnan(r.performance) && isnan(r.roof) && isnan(r.fraction));
    assert_near(r.overhead_time, 4.2e-6, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_values),
        cmocka_unit_test(test_known_intensities),
        cmocka_unit_test(test_compute_bound),
        cmocka_unit_test(test_bandwidth_bound),
        cmocka_unit_test(test_overhead_bound),
        cmocka_unit_test(test_at_the_balance),
        cmocka_unit_test(test_one_sided),
        cmocka_unit_test(test_missing_overhead),
        cmocka_unit_test(test_missing_makes_missing_what_depends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
