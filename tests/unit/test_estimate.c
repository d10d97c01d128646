/* How long configurations take: from what others took, or assumed; and a whole plan, as --dry-run
 * says it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/estimate.h"

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%g instead of %g", value, expected);
}

static const double timeout = 120;

static struct plan_item item_of(const char *workload, struct cost cost)
{
    return (struct plan_item){.config.workload = workload_find(workload), .cost = cost};
}

static struct plan_item conv2d_of(double flops)
{
    return item_of("conv2d", (struct cost){.flops = flops, .bytes = 0});
}

static void learn(struct estimator *estimator, struct plan_item item, double seconds)
{
    estimator_learn(estimator, &item, seconds);
}

static struct estimate estimate_of(const struct estimator *estimator, struct plan_item item)
{
    return estimator_of(estimator, &item);
}

static void without_measurements_a_slow_device_is_assumed(void **state)
{
    (void)state;
    struct estimator *estimator = estimator_create(&measure_default, timeout);
    const struct plan_item unknown = item_of("conv2d", (struct cost){NAN, NAN, NAN});
    struct estimate estimate =
        estimate_of(estimator, item_of("conv2d", (struct cost){1e8, 1e6, 0}));
    int iterations = measure_default.warmup + measure_default.iterations;
    assert_false(estimate.measured);
    assert_near(estimate.seconds, 5 + 2 * iterations * (0.01 + 0.001));
    assert_near(estimate_of(estimator, conv2d_of(1e15)).seconds, timeout);
    assert_near(estimate_of(estimator, unknown).seconds, timeout);
    /* What cannot exist is refused at once. */
    assert_near(estimate_of(estimator, conv2d_of(0)).seconds, 1);
    estimator_destroy(estimator);
}

static void its_like_tell_how_long_a_configuration_takes(void **state)
{
    (void)state;
    struct estimator *estimator = estimator_create(&measure_default, timeout);
    learn(estimator, conv2d_of(1.1e12), 8);
    learn(estimator, conv2d_of(1.2e12), 10);
    learn(estimator, conv2d_of(1.2e12), 9);
    const struct {
        double flops, seconds;
    } rows[] = {
        {1.2e12, 15}, /* half as much again as the longest */
        {8e8, 9},     /* smaller work no longer, nor than on the slow device */
        {4.8e12, 60}, /* larger work in proportion */
        {1e15, 120},  /* but no longer than an attempt may */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct estimate estimate = estimate_of(estimator, conv2d_of(rows[i].flops));
        assert_true(estimate.measured);
        assert_near(estimate.seconds, rows[i].seconds);
    }
    learn(estimator, conv2d_of(1e9), 0.1);
    assert_near(estimate_of(estimator, conv2d_of(1e9)).seconds, 0.15);
    estimator_destroy(estimator);
}

/* Of two bounds the lower one holds. */
static void between_two_the_nearer_bound_holds(void **state)
{
    (void)state;
    struct estimator *estimator = estimator_create(&measure_default, timeout);
    learn(estimator, conv2d_of(1e12), 40);
    learn(estimator, conv2d_of(1e9), 1);
    assert_near(estimate_of(estimator, conv2d_of(2e9)).seconds, 3);
    assert_near(estimate_of(estimator, conv2d_of(5e11)).seconds, 60);
    estimator_destroy(estimator);
}

static void workloads_are_apart(void **state)
{
    (void)state;
    struct estimator *estimator = estimator_create(&measure_default, timeout);
    learn(estimator, conv2d_of(1e9), 1);
    assert_false(estimate_of(estimator, item_of("lstm", (struct cost){.flops = 1e9})).measured);
    estimator_destroy(estimator);
}

static void without_a_model_the_longest_counts(void **state)
{
    (void)state;
    struct estimator *estimator = estimator_create(&measure_default, timeout);
    const struct plan_item unknown = item_of("conv2d", (struct cost){NAN, NAN, NAN});
    learn(estimator, conv2d_of(1e9), 1);
    assert_false(estimate_of(estimator, unknown).measured);
    learn(estimator, unknown, 4);
    learn(estimator, unknown, 2);
    assert_near(estimate_of(estimator, unknown).seconds, 6);
    estimator_destroy(estimator);
}

static const char manifest_text[] = "[conv2d]\nbatch = 1, 2, 3, 4\n[lstm]\nbatch = 1\n";

static char *printed(const struct estimate_total *total)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    estimate_print(total, stream);
    fclose(stream);
    return text;
}

static void rows_that_are_there_tell_of_others(void **state)
{
    (void)state;
    struct manifest *manifest;
    struct plan *plan;
    struct results *earlier = results_create();
    struct record record;
    struct estimate_total total;
    struct error error;
    assert_int_equal(
        manifest_parse("test.ini", manifest_text, strlen(manifest_text), &manifest, &error),
        STATUS_OK);
    assert_int_equal(plan_create(manifest, &plan, &error), STATUS_OK);
    assert_int_equal(estimate_make(manifest, plan, NULL, &total, &error), STATUS_OK);
    assert_int_equal(total.left, 5);
    assert_int_equal(total.judged, 0);
    assert_true(total.at_most > 5 * 5 && total.at_most < 5 * 120);
    char *text = printed(&total);
    assert_non_null(strstr(text, "on one slow device: at most "));
    assert_null(strstr(text, "judged"));
    free(text);

    record_init(&record);
    record_set_config(&record, &plan->items[3].config);
    record.status = RECORD_MEASURED;
    record.attempts = 1;
    record.wall_time = 0.2;
    assert_int_equal(results_add_record(earlier, &record, &error), STATUS_OK);
    assert_int_equal(estimate_make(manifest, plan, earlier, &total, &error), STATUS_OK);
    assert_int_equal(total.left, 4);
    assert_int_equal(total.judged, 3);
    assert_true(fabs(total.seconds - 3 * 0.3) < 1e-9); /* half as much again, each */
    text = printed(&total);
    assert_non_null(strstr(text, "judged by the rows that are there: at most 1 s for 3 config"));
    free(text);
    results_destroy(earlier);
    plan_destroy(plan);
    manifest_destroy(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_measurements_a_slow_device_is_assumed),
        cmocka_unit_test(its_like_tell_how_long_a_configuration_takes),
        cmocka_unit_test(between_two_the_nearer_bound_holds),
        cmocka_unit_test(workloads_are_apart),
        cmocka_unit_test(without_a_model_the_longest_counts),
        cmocka_unit_test(rows_that_are_there_tell_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
