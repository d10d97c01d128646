/* One mode or two: known samples, and how often each is taken for the other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/modes.h"

static bool two_modes(const double *values, size_t count)
{
    bool two = false;
    struct error error;
    assert_int_equal(modes_test(values, count, &two, &error), STATUS_OK);
    return two;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - drand48())) * cos(6.283185307179586 * drand48());
}

/* 9 of 20 samples of one row were three times the others. */
static void a_host_s_pace_in_half_of_the_samples(void **state)
{
    (void)state;
    double values[20];
    srand48(1);
    for (int i = 0; i < 20; ++i)
        values[i] = (i % 20 < 9 ? 90e-6 : 30e-6) * (1 + 0.01 * normal());
    assert_true(two_modes(values, 20));
}

static void stragglers_are_no_mode(void **state)
{
    (void)state;
    double values[100];
    srand48(1);
    for (int i = 0; i < 100; ++i)
        values[i] = 30e-6 * (1 + 0.002 * normal()) + (i % 20 == 0 ? 60e-6 : 0);
    assert_false(two_modes(values, 100));
}

/* Times come in steps of 32 ns: modes, but a tenth of a per cent apart. Nor does a straggler make
 * them matter. */
static void a_clock_s_steps_do_not_matter(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; ++i)
        values[i] = i % 2 ? 31.520e-6 : 31.488e-6;
    assert_false(two_modes(values, 100));
    values[7] = 130e-6;
    assert_false(two_modes(values, 100));
}

static void few_and_equal_values_have_one(void **state)
{
    (void)state;
    const double few[] = {1, 1, 1, 1, 3, 3, 3, 3, 3}, equal[12] = {0};
    assert_false(two_modes(few, 9));
    assert_false(two_modes(equal, 12));
    assert_false(two_modes(few, 1));
}

/* At most one of a hundred, whatever the one mode's shape. */
static void one_mode_is_rarely_taken_for_two(void **state)
{
    (void)state;
    enum { CASES = 2000 };
    static const int counts[] = {10, 20, 50, 200, 1000};
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
            assert_in_range(taken[shape], 0, 0.02 * cases);
    }
}

/* Modes six deviations apart are seen in 50 samples, in nearly all cases. */
static void two_modes_are_found(void **state)
{
    (void)state;
    enum { CASES = 200, N = 50 };
    int found = 0;
    double values[N];
    srand48(1);
    for (int i = 0; i < CASES; ++i) {
        for (int j = 0; j < N; ++j)
            values[j] = 100 + (j % 2 ? 6 : 0) + normal();
        found += two_modes(values, N);
    }
    assert_in_range(found, 0.9 * CASES, CASES);
}

/* By hand: of two equal heaps, one mode can be no nearer than a quarter of the whole; n equally
 * spaced values fit a uniform one as closely as stairs can, half a step. */
static void dips_by_hand(void **state)
{
    (void)state;
    size_t scratch[4 * 101];
    double values[100];
    for (int i = 0; i < 100; ++i)
        values[i] = i < 50 ? 1 : 2;
    assert_true(fabs(modes_dip(values, 100, scratch) - 0.25) < 1e-12);
    for (int i = 0; i < 100; ++i)
        values[i] = i;
    assert_true(fabs(modes_dip(values, 100, scratch) - 0.005) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_s_pace_in_half_of_the_samples),
        cmocka_unit_test(stragglers_are_no_mode),
        cmocka_unit_test(a_clock_s_steps_do_not_matter),
        cmocka_unit_test(few_and_equal_values_have_one),
        cmocka_unit_test(one_mode_is_rarely_taken_for_two),
        cmocka_unit_test(two_modes_are_found),
        cmocka_unit_test(dips_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
