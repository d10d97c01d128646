/* What is said of a row's times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "results/sampling.h"

static struct record timed(double overhead, int64_t iterations)
{
    struct record record;
    record_init(&record);
    record.time_median = 30e-6;
    record.time_median_low = 29.7e-6;
    record.time_median_high = 30.3e-6;
    record.timer_overhead = overhead;
    record.sample_iterations = iterations;
    return record;
}

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) <= 1e-12 + 1e-9 * fabs(expected));
}

static void shares_of_a_sample(void **state)
{
    (void)state;
    const struct record hot = timed(3e-6, 40), cold = timed(3e-6, 1);
    assert_near(sampling_derive(&hot).uncertainty, 0.01);
    assert_near(sampling_derive(&hot).timer_share, 0.0025);
    assert_int_equal(sampling_derive(&hot).timer_visible, 0);
    assert_near(sampling_derive(&cold).timer_share, 0.1);
    assert_int_equal(sampling_derive(&cold).timer_visible, 1);
}

static void what_is_missing_stays_missing(void **state)
{
    (void)state;
    struct record blank;
    char marks[SAMPLING_MARKS];
    record_init(&blank);
    struct sampling sampling = sampling_derive(&blank);
    assert_true(isnan(sampling.uncertainty) && isnan(sampling.timer_share));
    assert_true(isnan(sampling.idle_share));
    assert_true(sampling.timer_visible == FIELD_MISSING);
    sampling_marks(&blank, marks);
    assert_string_equal(marks, "");
}

static void idle_share_of_the_energy(void **state)
{
    (void)state;
    struct record record = timed(0, 1);
    record.energy = 400 * 30e-6;
    record.energy_time = 30e-6;
    record.idle_power = 100;
    assert_near(sampling_derive(&record).idle_share, 0.25);
}

static void each_mark_has_a_meaning(void **state)
{
    (void)state;
    struct record record = timed(3e-6, 1);
    char marks[SAMPLING_MARKS];
    sampling_marks(&record, marks);
    assert_string_equal(marks, "t");
    record.host_paced = record.bimodal = 1;
    sampling_marks(&record, marks);
    assert_string_equal(marks, "hbt");
    record.time_median_high = 1.2 * record.time_median;
    sampling_marks(&record, marks);
    assert_string_equal(marks, "nhbt");
    for (const char *mark = marks; *mark; ++mark)
        assert_non_null(sampling_mark_text(*mark));
    assert_null(sampling_mark_text('x'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_a_sample),
        cmocka_unit_test(what_is_missing_stays_missing),
        cmocka_unit_test(idle_share_of_the_energy),
        cmocka_unit_test(each_mark_has_a_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
