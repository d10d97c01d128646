/* Estimates from measured rows and assumptions; totals of a plan for --dry-run. */

#include "unit.h"

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

/* FLOPs of NaN: no model. */
static struct plan_item item_of(const char *workload, double flops, double bytes)
{
    return (struct plan_item){.config.workload = workload_find(workload),
                              .cost = {.flops = flops, .bytes = isnan(flops) ? NAN : bytes}};
}

/* Measured conv2d rows and the resulting estimate. The first rows assume a slow device. */
TEST(similar_rows_determine_the_estimate)
{
    enum { MOST = 4 };
    const int iterations = measure_default.warmup + measure_default.iterations;
    const struct {
        struct {
            double flops, seconds;
        } measured[MOST];
        const char *workload;
        double flops, bytes, seconds;
        bool by_others;
    } rows[] = {
        {{{0, 0}}, "conv2d", 1e8, 1e6, 5 + 2 * iterations * (0.01 + 0.001), false},
        {{{0, 0}}, "conv2d", 1e15, 0, timeout, false},
        {{{0, 0}}, "conv2d", NAN, 0, timeout, false},
        {{{0, 0}}, "conv2d", 0, 0, 1, false}, /* impossible configurations are refused at once */
        /* the longest row plus 50 % */
        {{{1.1e12, 8}, {1.2e12, 10}, {1.2e12, 9}}, "conv2d", 1.2e12, 0, 15, true},
        /* smaller work: at most the measured time, and at most that of the slow device */
        {{{1.1e12, 8}, {1.2e12, 10}, {1.2e12, 9}}, "conv2d", 8e8, 0, 9, true},
        /* larger work: in proportion, up to the timeout */
        {{{1.1e12, 8}, {1.2e12, 10}, {1.2e12, 9}}, "conv2d", 4.8e12, 0, 60, true},
        {{{1.1e12, 8}, {1.2e12, 10}, {1.2e12, 9}}, "conv2d", 1e15, 0, timeout, true},
        {{{1.1e12, 8}, {1.2e12, 10}, {1.2e12, 9}, {1e9, 0.1}}, "conv2d", 1e9, 0, 0.15, true},
        /* the lower of two bounds */
        {{{1e12, 40}, {1e9, 1}}, "conv2d", 2e9, 0, 3, true},
        {{{1e12, 40}, {1e9, 1}}, "conv2d", 5e11, 0, 60, true},
        /* without a model: the longest row without a model */
        {{{1e9, 1}}, "conv2d", NAN, 0, timeout, false},
        {{{1e9, 1}, {NAN, 4}, {NAN, 2}}, "conv2d", NAN, 0, 6, true},
        {{{1e9, 1}}, "lstm", 1e9, 0, 5 + 2 * iterations * 0.1, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct estimator *estimator = estimator_create(&measure_default, timeout);
        struct plan_item item = item_of(rows[i].workload, rows[i].flops, rows[i].bytes);
        for (int j = 0; j < MOST && rows[i].measured[j].seconds > 0; ++j) {
            struct plan_item measured = item_of("conv2d", rows[i].measured[j].flops, 0);
            estimator_add(estimator, &measured, rows[i].measured[j].seconds);
        }
        struct estimate estimate = estimator_estimate(estimator, &item);
        assert_near(estimate.seconds, rows[i].seconds);
        assert_int_equal(estimate.measured, rows[i].by_others);
        estimator_destroy(estimator);
    }
}

/* With roofs, a convolution of 24 GFLOP does not take 120 s. */
TEST(roofs_make_assumed_times_shorter)
{
    const int iterations = measure_default.warmup + measure_default.iterations;
    struct estimator *estimator = estimator_create(&measure_default, timeout);
    struct device devices[2];
    struct plan_item item = item_of("conv2d", 2.4e10, 1e8);
    assert_true(estimator_estimate(estimator, &item).seconds > 100);
    for (int i = 0; i < 2; ++i) {
        device_init(&devices[i]);
        devices[i].peak_vector[PRECISION_FP32] = i ? 6e13 : 1.2e14;
        devices[i].peak_bandwidth[LEVEL_DRAM] = 2.5e12;
        estimator_set_peaks(estimator, &devices[i]);
    }
    assert_near(estimator_estimate(estimator, &item).seconds, 5 + 2 * iterations * (0.2 + 0.002));
    device_init(&devices[0]); /* without roofs */
    estimator_set_peaks(estimator, &devices[0]);
    assert_true(estimator_estimate(estimator, &item).seconds > 100);
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

TEST(journal_rows_determine_the_total)
{
    struct manifest *manifest;
    struct plan *plan;
    struct results *earlier = results_create();
    struct record record;
    struct estimate_total total;
    assert_ok(
        manifest_parse("test.ini", manifest_text, strlen(manifest_text), &manifest, &failure));
    assert_ok(plan_create(manifest, &plan, &failure));
    assert_ok(estimate_make(manifest, plan, NULL, &total, &failure));
    assert_int_equal(total.left, 5);
    assert_int_equal(total.judged, 0);
    const double once = total.at_most;
    manifest->sweep.rounds = 3;
    assert_ok(estimate_make(manifest, plan, NULL, &total, &failure));
    assert_true(fabs(total.at_most / once - 3) < 1e-9);
    char *in_rounds = printed(&total);
    assert_says(in_rounds, " configurations in 3 rounds");
    free(in_rounds);
    manifest->sweep.rounds = 1;
    assert_ok(estimate_make(manifest, plan, NULL, &total, &failure));
    assert_true(total.at_most > 5 * 5 && total.at_most < 5 * 120);
    char *text = printed(&total);
    assert_says(text, "on one slow device: at most ");
    assert_null(strstr(text, "judged"));
    free(text);

    record_init(&record);
    record_set_config(&record, &plan->items[3].config);
    record.status = RECORD_MEASURED;
    record.attempts = 1;
    record.wall_time = 0.2;
    assert_ok(results_add_record(earlier, &record, (struct place){.line = 1}, &failure));
    assert_ok(estimate_make(manifest, plan, earlier, &total, &failure));
    assert_int_equal(total.left, 4);
    assert_int_equal(total.judged, 3);
    assert_true(fabs(total.seconds - 3 * 0.3) < 1e-9); /* each with 50 % added */
    text = printed(&total);
    assert_says(text, "judged by the rows that are there: at most 1 s for 3 config");
    free(text);
    results_destroy(earlier);
    plan_destroy(plan);
    manifest_destroy(manifest);
}
