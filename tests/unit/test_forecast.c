/* How long configurations will take: from what others took, or assumed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "ranks/forecast.h"

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%g instead of %g", value, expected);
}

static const double timeout = 120;

static struct forecast *make(const char *name, const struct workload **workload)
{
    struct forecast *forecast = forecast_create(&measure_default, timeout);
    assert_non_null(forecast);
    *workload = workload_find(name);
    assert_non_null(*workload);
    return forecast;
}

static struct cost cost_of(double flops)
{
    return (struct cost){.flops = flops, .bytes = 0};
}

static void without_measurements_a_slow_device_is_assumed(void **state)
{
    (void)state;
    const struct workload *conv2d;
    struct forecast *forecast = make("conv2d", &conv2d);
    const struct cost unknown = {NAN, NAN, NAN};
    struct estimate estimate = forecast_estimate(forecast, conv2d, (struct cost){1e8, 1e6, 0});
    int iterations = measure_default.warmup + measure_default.iterations;
    assert_false(estimate.measured);
    assert_near(estimate.seconds, 5 + 2 * iterations * (0.01 + 0.001));
    assert_near(forecast_estimate(forecast, conv2d, cost_of(1e15)).seconds, timeout);
    assert_near(forecast_estimate(forecast, conv2d, unknown).seconds, timeout);
    /* What cannot exist is refused at once. */
    assert_near(forecast_estimate(forecast, conv2d, (struct cost){0}).seconds, 1);
    forecast_destroy(forecast);
}

static void its_like_tell_how_long_a_configuration_takes(void **state)
{
    (void)state;
    const struct workload *conv2d;
    struct forecast *forecast = make("conv2d", &conv2d);
    forecast_learn(forecast, conv2d, cost_of(1.1e12), 8);
    forecast_learn(forecast, conv2d, cost_of(1.2e12), 10);
    forecast_learn(forecast, conv2d, cost_of(1.2e12), 9);
    const struct {
        double flops, seconds;
    } rows[] = {
        {1.2e12, 15}, /* half as much again as the longest */
        {8e8, 9},     /* smaller work no longer, nor than on the slow device */
        {4.8e12, 60}, /* larger work in proportion */
        {1e15, 120},  /* but no longer than an attempt may */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct estimate estimate = forecast_estimate(forecast, conv2d, cost_of(rows[i].flops));
        assert_true(estimate.measured);
        assert_near(estimate.seconds, rows[i].seconds);
    }
    forecast_learn(forecast, conv2d, cost_of(1e9), 0.1);
    assert_near(forecast_estimate(forecast, conv2d, cost_of(1e9)).seconds, 0.15);
    forecast_destroy(forecast);
}

/* Of two bounds the lower one holds. */
static void between_two_the_nearer_bound_holds(void **state)
{
    (void)state;
    const struct workload *conv2d;
    struct forecast *forecast = make("conv2d", &conv2d);
    forecast_learn(forecast, conv2d, cost_of(1e12), 40);
    forecast_learn(forecast, conv2d, cost_of(1e9), 1);
    assert_near(forecast_estimate(forecast, conv2d, cost_of(2e9)).seconds, 3);
    assert_near(forecast_estimate(forecast, conv2d, cost_of(5e11)).seconds, 60);
    forecast_destroy(forecast);
}

static void workloads_are_apart(void **state)
{
    (void)state;
    const struct workload *conv2d;
    struct forecast *forecast = make("conv2d", &conv2d);
    forecast_learn(forecast, conv2d, cost_of(1e9), 1);
    assert_false(forecast_estimate(forecast, workload_find("lstm"), cost_of(1e9)).measured);
    forecast_destroy(forecast);
}

static void without_a_model_the_longest_counts(void **state)
{
    (void)state;
    const struct workload *conv2d;
    struct forecast *forecast = make("conv2d", &conv2d);
    const struct cost unknown = {NAN, NAN, NAN};
    forecast_learn(forecast, conv2d, cost_of(1e9), 1);
    assert_false(forecast_estimate(forecast, conv2d, unknown).measured);
    forecast_learn(forecast, conv2d, unknown, 4);
    forecast_learn(forecast, conv2d, unknown, 2);
    assert_near(forecast_estimate(forecast, conv2d, unknown).seconds, 6);
    forecast_destroy(forecast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_measurements_a_slow_device_is_assumed),
        cmocka_unit_test(its_like_tell_how_long_a_configuration_takes),
        cmocka_unit_test(between_two_the_nearer_bound_holds),
        cmocka_unit_test(workloads_are_apart),
        cmocka_unit_test(without_a_model_the_longest_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
