#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/stats.h"

#define assert_near(value, expected, relative)                                                     \
    assert_true(fabs((value) - (expected)) <= (relative)*fabs((double)(expected)))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct stats compute(const double *values, size_t count)
{
    struct stats stats;
    struct error error;
    assert_int_equal(stats_compute(values, count, &stats, &error), STATUS_OK);
    return stats;
}

static void test_hand_values(void **state)
{
    (void)state;
    const double values[] = {9, 2, 5, 4, 12, 7, 8, 11, 9, 3, 7, 4, 12, 5, 4, 10, 9, 6, 9, 4};
    struct stats stats = compute(values, COUNT(values));
    assert_near(stats.mean, 7, 1e-15);
    assert_near(stats.stdev, sqrt(178.0 / 19), 1e-14);
    assert_near(stats.median, 7, 1e-15);
    assert_true(stats.min == 2 && stats.max == 12);
    assert_true(values[0] == 9 && values[19] == 4); /* the input keeps its order */
}

static void test_odd_even_and_single(void **state)
{
    (void)state;
    const double values[] = {30, 10, 20, 1000};
    assert_near(compute(values, 3).median, 20, 1e-15);
    assert_near(compute(values, 4).median, 25, 1e-15);
    struct stats one = compute(values, 1);
    assert_true(one.median == 30 && one.mean == 30 && one.min == 30 && one.max == 30);
    assert_true(isnan(one.stdev));
}

/* A deviation of 1 ns on 1000 s: a sum of squares would give 0 or the root of a negative number. */
static void test_small_deviation(void **state)
{
    (void)state;
    const double values[] = {1000 - 1e-9, 1000, 1000 + 1e-9};
    assert_near(compute(values, 3).stdev, 1e-9, 1e-3);
    const double equal[] = {4.2e-6, 4.2e-6, 4.2e-6};
    assert_true(compute(equal, 3).stdev < 1e-20);
}

/* Uniform on a grid: mean 1/2, variance 1/12, median 1/2; given from both ends inwards. */
static void test_uniform(void **state)
{
    (void)state;
    enum { N = 100001 };
    static double values[N];
    for (int i = 0; i < N; ++i)
        values[i] = (double)(i % 2 ? N - 1 - i / 2 : i / 2) / (N - 1);
    struct stats stats = compute(values, N);
    assert_near(stats.mean, 0.5, 1e-9);
    assert_near(stats.median, 0.5, 1e-12);
    assert_near(stats.stdev, sqrt(1.0 / 12), 1e-4);
    assert_true(stats.min == 0 && stats.max == 1);
}

static void test_uncertainty(void **state)
{
    (void)state;
    const double values[] = {1.1, 0.9, 1.1, 0.9}; /* s = 0.2 / sqrt(3), t(3) = 3.1824 */
    assert_near(stats_uncertainty(values, 4), 3.1824 * 0.2 / sqrt(3) / 2, 1e-12);
    const double pair[] = {1, 2}; /* t(1) = 12.7062 */
    assert_near(stats_uncertainty(pair, 2), 12.7062 * sqrt(0.5) / sqrt(2) / 1.5, 1e-12);
    assert_true(isnan(stats_uncertainty(values, 1)));
    const double equal[] = {5, 5, 5};
    assert_true(stats_uncertainty(equal, 3) == 0);
}

/* With deviations of +-d around 1, n even: s = d * sqrt(n / (n - 1)), so the quantile can be read
 * off. */
static void test_student_quantile(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        double quantile;
    } known[] = {{22, 2.0796}, {32, 2.0395}, {62, 1.9996}, {122, 1.9798}, {1002, 1.9623}};
    double values[1002];
    for (size_t i = 0; i < COUNT(values); ++i)
        values[i] = i % 2 ? 1.25 : 0.75;
    for (size_t i = 0; i < COUNT(known); ++i) {
        double n = (double)known[i].count;
        double error_of_mean = 0.25 * sqrt(n / (n - 1)) / sqrt(n);
        double quantile = stats_uncertainty(values, known[i].count) / error_of_mean;
        assert_near(quantile, known[i].quantile, 2e-4);
    }
}

/* Ten times the repetitions, about a third of the uncertainty: what makes the adaptive rule end. */
static void test_uncertainty_shrinks(void **state)
{
    (void)state;
    double values[1000];
    for (size_t i = 0; i < COUNT(values); ++i)
        values[i] = 1 + 0.01 * sin((double)i * 12.9898);
    double few = stats_uncertainty(values, 100), many = stats_uncertainty(values, 1000);
    assert_near(few / many, sqrt(10), 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_values),         cmocka_unit_test(test_odd_even_and_single),
        cmocka_unit_test(test_small_deviation),     cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_uncertainty),         cmocka_unit_test(test_student_quantile),
        cmocka_unit_test(test_uncertainty_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
