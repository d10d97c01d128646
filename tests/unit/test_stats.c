#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"

#define assert_near(value, expected, relative)                                                     \
    assert_true(fabs((value) - (expected)) <= (relative)*fabs((double)(expected)))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct stats compute(const double *values, size_t count)
{
    struct stats stats;
    assert_ok(stats_compute(values, count, &stats, &failure));
    return stats;
}

TEST(test_hand_values)
{
    const double values[] = {9, 2, 5, 4, 12, 7, 8, 11, 9, 3, 7, 4, 12, 5, 4, 10, 9, 6, 9, 4};
    struct stats stats = compute(values, COUNT(values));
    assert_near(stats.mean, 7, 1e-15);
    assert_near(stats.stdev, sqrt(178.0 / 19), 1e-14);
    assert_near(stats.median, 7, 1e-15);
    assert_true(stats.min == 2 && stats.max == 12);
    assert_true(values[0] == 9 && values[19] == 4); /* the input keeps its order */
}

TEST(test_rounds)
{
    const double values[] = {1.03, 1, 1.01};
    struct stats stats;
    assert_ok(stats_rounds(values, 3, &stats, &failure));
    assert_near(stats.median, 1.01, 1e-15);
    /* standard deviation 0.01528, variance of a median of three 0.4400 */
    assert_near(stats_uncertainty(&stats), 4.303 * 0.015275 * sqrt(2 * 0.43994) / 1.01, 1e-4);
    assert_ok(stats_rounds(values, 2, &stats, &failure));
    assert_near(stats.median_high - stats.median, 12.706 * 0.021213 * sqrt(2 * 0.61102), 1e-4);
}

TEST(test_odd_even_and_single)
{
    const double values[] = {30, 10, 20, 1000};
    assert_near(compute(values, 3).median, 20, 1e-15);
    assert_near(compute(values, 4).median, 25, 1e-15);
    struct stats one = compute(values, 1);
    assert_true(one.median == 30 && one.mean == 30 && one.min == 30 && one.max == 30);
    assert_true(isnan(one.stdev));
}

/* A deviation of 1 ns in 1000 s, for which a sum of squares fails. */
TEST(test_small_deviation)
{
    const double values[] = {1000 - 1e-9, 1000, 1000 + 1e-9};
    assert_near(compute(values, 3).stdev, 1e-9, 1e-3);
    const double equal[] = {4.2e-6, 4.2e-6, 4.2e-6};
    assert_true(compute(equal, 3).stdev < 1e-20);
}

/* Rows of Le Boudec's table A.1. */
TEST(test_interval_ranks)
{
    static const struct {
        size_t count, rank;
    } known[] = {{1, 0},   {5, 0},   {6, 1},    {8, 1},      {9, 2},           {20, 6},
                 {30, 10}, {70, 27}, {100, 40}, {1000, 469}, {1000000, 499020}};
    for (size_t i = 0; i < COUNT(known); ++i) {
        double *values = malloc(known[i].count * sizeof *values);
        assert_non_null(values);
        for (size_t j = 0; j < known[i].count; ++j)
            values[j] = (double)(j + 1);
        const struct stats stats = compute(values, known[i].count);
        assert_true(known[i].rank ? stats.median_low == (double)known[i].rank
                                  : isnan(stats.median_low));
        free(values);
    }
}

TEST(test_interval)
{
    const double values[] = {9, 2, 5, 4, 12, 7, 8, 11, 9, 3, 7, 4, 12, 5, 4, 10, 9, 6, 9, 4};
    struct stats stats = compute(values, COUNT(values)); /* the 6th and the 15th in order */
    assert_true(stats.median_low == 4 && stats.median_high == 9);
    assert_near(stats_uncertainty(&stats), 2.5 / 7, 1e-15);
    stats = compute(values, 5);
    assert_true(isnan(stats.median_low) && isnan(stats.median_high));
    assert_true(isnan(stats_uncertainty(&stats)));
    const double equal[] = {5, 5, 5, 5, 5, 5};
    stats = compute(equal, 6);
    assert_true(stats_uncertainty(&stats) == 0);
}

/* Ten times as many values have an interval of about a third of the width, so the stopping rule
 * ends. One straggler in a thousand values makes no difference. */
TEST(test_uncertainty_shrinks)
{
    double values[1000];
    for (size_t i = 0; i < COUNT(values); ++i)
        values[i] = 1 + 0.01 * sin((double)i * 12.9898);
    struct stats few = compute(values, 100), many = compute(values, 1000);
    assert_near(stats_uncertainty(&few) / stats_uncertainty(&many), sqrt(10), 0.1);
    values[500] = 1000;
    struct stats disturbed = compute(values, 1000);
    assert_near(stats_uncertainty(&disturbed), stats_uncertainty(&many), 0.05);
}

/* The interval contains the true median in 95 of 100 cases, for a distribution with a long tail. */
TEST(test_interval_contains_the_median)
{
    enum { CASES = 2000, N = 20 };
    int held = 0;
    srand48(1);
    for (int c = 0; c < CASES; ++c) {
        double values[N];
        for (int i = 0; i < N; ++i)
            values[i] = 1 / (1 - drand48()); /* Pareto: median 2 */
        struct stats stats = compute(values, N);
        held += stats.median_low <= 2 && 2 <= stats.median_high;
    }
    assert_in_range(held, 0.945 * CASES, 0.975 * CASES);
}

/* ---- one mode or two ---- */

static bool two_modes(const double *values, size_t count)
{
    bool two = false;
    assert_ok(stats_two_modes(values, count, &two, &failure));
    return two;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - drand48())) * cos(6.283185307179586 * drand48());
}

TEST(stragglers_are_no_mode)
{
    double values[100];
    srand48(1);
    for (int i = 0; i < 100; ++i)
        values[i] = 30e-6 * (1 + 0.002 * normal()) + (i % 20 == 0 ? 60e-6 : 0);
    assert_false(two_modes(values, 100));
}

/* Two neighbouring values of a timer differ by 0.1 %. They are no modes, also with a straggler. */
TEST(timer_steps_are_no_modes)
{
    double values[100];
    for (int i = 0; i < 100; ++i)
        values[i] = i % 2 ? 31.520e-6 : 31.488e-6;
    assert_false(two_modes(values, 100));
    values[7] = 130e-6;
    assert_false(two_modes(values, 100));
}

TEST(few_and_equal_values_have_one_mode)
{
    double values[20], equal[20] = {0};
    for (int i = 0; i < 20; ++i)
        values[i] = i % 2 ? 1 : 3;
    assert_true(two_modes(values, 20));
    assert_false(two_modes(values, 19));
    assert_false(two_modes(values, 1));
    assert_false(two_modes(equal, 20));
}

/* At most 3 of 100 samples of a uniform, a normal or a one-sided distribution have two modes. */
TEST(one_mode_is_rarely_taken_for_two)
{
    enum { CASES = 2000 };
    static const int counts[] = {20, 50, 200, 1000};
    double values[1000];
    srand48(1);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
        int cases = CASES * 10 / counts[c] + 200, taken[3] = {0};
        for (int i = 0; i < cases; ++i) {
            for (int j = 0; j < counts[c]; ++j)
                values[j] = 1 + drand48();
            taken[0] += two_modes(values, (size_t)counts[c]);
            for (int j = 0; j < counts[c]; ++j)
                values[j] = 10 + normal();
            taken[1] += two_modes(values, (size_t)counts[c]);
            for (int j = 0; j < counts[c]; ++j)
                values[j] = 1 - log(1 - drand48()); /* a long tail */
            taken[2] += two_modes(values, (size_t)counts[c]);
        }
        for (int shape = 0; shape < 3; ++shape)
            assert_in_range(taken[shape], 0, 0.03 * cases);
    }
}

/* Modes that differ by eight deviations are found in most cases, also with a straggler. */
TEST(two_modes_are_found)
{
    enum { CASES = 200, N = 20 };
    int found = 0;
    double values[N];
    srand48(1);
    for (int i = 0; i < CASES; ++i) {
        for (int j = 0; j < N; ++j)
            values[j] = 100 + (j % 2 ? 8 : 0) + normal();
        values[0] = 1000;
        found += two_modes(values, N);
    }
    assert_in_range(found, 0.9 * CASES, CASES);
}
