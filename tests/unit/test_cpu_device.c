/* The CPU device through its table of functions: every element of what it computes against the
 * reference, for shapes that reach every branch of its routines. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "opened.h"
#include "parsed.h"
#include "worker/device_ops.h"
#include "model/reference.h"
#include "worker/verify.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/lstm.h"
#include "model/workloads/lstm_network.h"

static const uint64_t seed = 3;

static double *new_doubles(int64_t count)
{
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    return values;
}

static void check_values(const char *text, const struct config *config, const double *values,
                         const double *expected, int64_t count)
{
    double difference = 0.0, norm = 0.0;
    for (int64_t i = 0; i < count; ++i) {
        difference += (values[i] - expected[i]) * (values[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    double error = sqrt(difference / norm);
    if (!(error <= precision_info[config_precision(config)].tolerance) || norm == 0.0)
        fail_msg("%s: relative error %g over %lld elements", text, error, (long long)count);
}

/* Prepares, runs and times (repetitions must not add up). */
static struct work *run_work(struct device_state *state, const char *text,
                             const struct config *config, int64_t samples, int iterations)
{
    struct work *work = NULL;
    struct record record;
    struct error error;
    double seconds[2];
    record_init(&record);
    if (device_ops.prepare(state, config, seed, &work, &record, &error) ||
        device_ops.run(state, work, samples, &error) ||
        device_ops.time(state, work, false, iterations, seconds, &record, &error))
        fail_msg("%s: %s", text, error.text);
    assert_true(record.unit == UNIT_VECTOR);
    assert_true(record.algorithm[0] != '\0' && strcmp(record.implementation, "auto") != 0);
    for (int i = 0; i < iterations; ++i)
        assert_true(seconds[i] > 0.0);
    record_clear(&record);
    return work;
}

static void check_result(struct device_state *state, struct work *work, const char *text,
                         const struct config *config, enum tensor tensor, const int64_t *offsets,
                         const double *expected, int64_t count)
{
    struct error error;
    double *values = new_doubles(count);
    if (device_ops.read(state, work, tensor, offsets, count, values, &error))
        fail_msg("%s: %s", text, error.text);
    check_values(text, config, values, expected, count);
    free(values);
}

static const char *const conv2d_shapes[] = {
    "batch=2 height=9 width=9 channels=3 filters=5",
    "batch=3 height=12 width=7 channels=8 filters=16 stride=1",
    "batch=1 height=20 width=20 channels=16 filters=8 stride=3",
    "batch=1 height=17 width=5 channels=4 filters=4 kernel=5 stride=1",
    "batch=2 height=8 width=8 channels=6 filters=9 kernel=1 stride=1",
    "batch=2 height=8 width=8 channels=6 filters=9 kernel=1 stride=2",
    "batch=2 height=8 width=8 channels=6 filters=9 kernel=1 stride=1 padding=1",
    "batch=1 height=10 width=11 channels=3 filters=4 kernel=2 stride=1",
    "batch=2 height=10 width=11 channels=3 filters=4 kernel=4x2 stride=2",
    "batch=1 height=10 width=14 channels=3 filters=4 kernel=1x7 stride=1 padding=valid",
    "batch=2 height=11 width=13 channels=4 filters=6 kernel=3 stride=1 dilation=2",
    "batch=1 height=15 width=15 channels=4 filters=6 kernel=3x2 stride=2 dilation=3 padding=4",
    "batch=2 height=9 width=8 channels=8 filters=12 kernel=3 stride=1 groups=4",
    "batch=1 height=9 width=8 channels=8 filters=4 kernel=1 stride=1 groups=2",
    "batch=1 height=7 width=7 channels=6 filters=6 kernel=3 stride=1 groups=6",
    "batch=5 height=4 width=4 channels=2 filters=130 kernel=3 stride=4 padding=valid",
    "batch=1 height=40 width=40 channels=64 filters=128 kernel=3 stride=1",
    "batch=1 height=5 width=6 channels=2 filters=3 kernel=5x6 stride=1 padding=valid",
    "batch=3 height=2 width=2 channels=1 filters=1 kernel=3 stride=2 padding=5",
    "batch=1 height=64 width=1 channels=4 filters=2 kernel=7x1 stride=5",
};

/* Every element of the result. */
static void check_all(struct device_state *state, const char *text)
{
    struct config config = parse(text);
    const struct reference_request request = {&config,           seed, INFINITY, 1, INT64_MAX,
                                              reference_in_turn, NULL, NULL};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config.workload->reference(&request, &expectation, &error))
        fail_msg("%s: %s", text, error.text);
    struct work *work = run_work(state, text, &config, expectation.samples, 2);
    for (size_t i = 0; i < expectation.count; ++i) {
        const struct slice *slice = &expectation.slices[i];
        check_result(state, work, text, &config, slice->tensor, slice->offsets, slice->expected,
                     slice->count);
    }
    device_ops.release(state, work);
    expectation_clear(&expectation);
}

static void conv2d_agrees(void **state)
{
    static const char *const series[][4] = {{"nhwc", "nchw"},
                                            {"fp32", "fp64"},
                                            {"auto", "im2col", "direct"},
                                            {"forward", "backward-data", "backward-filter", NULL}};
    for (size_t i = 0; i < sizeof conv2d_shapes / sizeof *conv2d_shapes; ++i)
        for (int variant = 0; variant < 36; ++variant) {
            char text[WORKLOAD_TEXT];
            if (variant / 2 % 2 == 1 && variant / 4 % 3 == 1)
                continue; /* of fp64, im2col is auto */
            snprintf(text, sizeof text,
                     "conv2d %s layout=%s precision=%s implementation=%s pass=%s", conv2d_shapes[i],
                     series[0][variant % 2], series[1][variant / 2 % 2], series[2][variant / 4 % 3],
                     series[3][variant / 12]);
            check_all(*state, text);
        }
}

/* Passes of several parts, as a sweep verifies them: every result, and gradients behind an activation
 * from the y that was computed. */
static void conv2d_steps_agree(void **state)
{
    static const char *const shapes[] = {
        "batch=2 height=9 width=8 channels=3 filters=5",
        "batch=3 height=6 width=7 channels=8 filters=4 stride=1 groups=2",
        "batch=2 height=8 width=8 channels=6 filters=9 kernel=1 stride=1",
        "batch=1 height=11 width=12 channels=4 filters=70 kernel=3x2 dilation=2",
    };
    static const char *const series[][5] = {
        {"pass=forward", "pass=backward", "pass=training"},
        {"bias=no", "bias=yes", "activation=relu", "bias=yes activation=tanh",
         "bias=yes activation=sigmoid"},
        {"fusion=fused", "fusion=separate"},
        {"layout=nhwc", "layout=nchw"},
        {"implementation=im2col precision=fp32", "implementation=im2col precision=fp64",
         "implementation=direct precision=fp32", "implementation=plain precision=fp64"},
    };
    int verified = 0;
    for (int i = 0; i < 4 * 3 * 5 * 2 * 2 * 4; ++i) {
        char text[WORKLOAD_TEXT];
        int pass = i / 4 % 3, layer = i / 12 % 5;
        const char *fusion = pass == 1 || layer == 0 ? "fusion=auto" : series[2][i / 60 % 2];
        snprintf(text, sizeof text, "conv2d %s %s %s %s %s %s", shapes[i % 4], series[0][pass],
                 series[1][layer], fusion, series[3][i / 120 % 2], series[4][i / 240]);
        struct config config = parse(text);
        struct work *work = run_work(*state, text, &config, 0, 2);
        struct record record;
        struct error error;
        record_init(&record);
        if (verify_work(&device_ops, *state, work, &config, seed, &record, &error))
            fail_msg("%s: %s", text, error.text);
        struct conv2d s = conv2d_from(&config);
        int64_t all = (pass != 1 || s.activation ? conv2d_y_size(&s) : 0) +
                      (pass > 0 ? conv2d_x_size(&s) + conv2d_w_size(&s) : 0) +
                      (pass > 1 ? conv2d_w_size(&s) : 0) + (s.bias ? pass * s.filters : 0);
        assert_int_equal(record.verify_elements, all);
        ++verified;
        record_clear(&record);
        device_ops.release(*state, work);
    }
    assert_int_equal(verified, 960);
}

/* Offsets of the first samples of the batch in [T][batch][width]. */
static int64_t *sample_offsets(const struct lstm *s, int64_t samples, int64_t width)
{
    int64_t count = s->sequence * samples * width;
    int64_t *offsets = malloc((size_t)count * sizeof *offsets);
    assert_non_null(offsets);
    for (int64_t i = 0; i < count; ++i)
        offsets[i] = i / (samples * width) * s->batch * width + i % (samples * width);
    return offsets;
}

static void check_lstm(struct device_state *state, const char *text, int64_t samples)
{
    struct config config = parse(text);
    struct lstm s = lstm_from(&config);
    struct error error;
    int64_t row = s.output * s.directions;
    bool backward = s.pass == LSTM_BACKWARD;
    int64_t y_size = s.sequence * samples * row, x_size = s.sequence * samples * s.features;
    double *y = new_doubles(y_size), *dx = new_doubles(x_size), *dw = new_doubles(lstm_w_size(&s));
    int64_t *y_offsets = sample_offsets(&s, samples, row);
    int64_t *x_offsets = sample_offsets(&s, samples, s.features);
    int64_t *w_offsets = malloc((size_t)lstm_w_size(&s) * sizeof *w_offsets);
    assert_non_null(w_offsets);
    for (int64_t i = 0; i < lstm_w_size(&s); ++i)
        w_offsets[i] = i;
    assert_int_equal(
        lstm_network_compute(&config, seed, samples, reference_in_turn, NULL, y, dx, dw, &error),
        STATUS_OK);
    /* Repetitions are of the whole batch. */
    struct work *work = run_work(state, text, &config, samples, samples == s.batch ? 2 : 0);
    check_result(state, work, text, &config, TENSOR_OUTPUT, y_offsets, y, y_size);
    if (backward) {
        check_result(state, work, text, &config, TENSOR_INPUT, x_offsets, dx, x_size);
        check_result(state, work, text, &config, TENSOR_WEIGHT, w_offsets, dw, lstm_w_size(&s));
    }
    device_ops.release(state, work);
    free(y);
    free(dx);
    free(dw);
    free(y_offsets);
    free(x_offsets);
    free(w_offsets);
}

static void lstm_agrees(void **state)
{
    static const struct {
        const char *shape;
        int64_t samples;
    } cases[] = {
        {"batch=16 sequence=16 features=32 hidden=16", 16},
        {"batch=1 sequence=1 features=1 hidden=1", 1},
        {"batch=3 sequence=5 features=7 hidden=9", 3},
        {"batch=2 sequence=4 features=5 hidden=200", 2}, /* units are divided */
        {"batch=5 sequence=6 features=4 hidden=20 layers=2", 5},
        {"batch=4 sequence=3 features=6 hidden=5 layers=3 directions=2", 4},
        {"batch=9 sequence=4 features=3 hidden=70 directions=2", 9},
        {"batch=6 sequence=5 features=4 hidden=8 layers=2 directions=2", 2},
    };
    static const char *const cells[] = {"cell=lstm", "cell=gru", "cell=tanh", "cell=relu",
                                        "projection=4"};
    static const char *const kinds[] = {"precision=fp32 implementation=cblas", "precision=fp64",
                                        "precision=fp32"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 5 * 6; ++i) {
        const char *shape = cases[i / 30].shape;
        char text[WORKLOAD_TEXT];
        struct error error;
        snprintf(text, sizeof text, "lstm %s %s %s pass=%s", shape, cells[i % 5], kinds[i / 5 % 3],
                 i / 15 % 2 ? "backward" : "forward");
        struct config config;
        assert_int_equal(config_parse(text, &config, &error), STATUS_OK);
        if (config_check(&config, &error) == STATUS_OK)
            check_lstm(*state, text, cases[i / 30].samples);
    }
}

static void matmul_agrees(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},   {5, 3, 7},   {3, 50, 4},   {64, 64, 64},
                                        {129, 7, 1}, {1, 200, 9}, {33, 65, 130}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 6; ++variant) {
            static const char *const implementations[] = {"auto", "cblas", "plain"};
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "matmul m=%d n=%d k=%d precision=%s implementation=%s",
                     (int)shapes[i][0], (int)shapes[i][1], (int)shapes[i][2],
                     variant % 2 ? "fp64" : "fp32", implementations[variant / 2]);
            check_all(*state, text);
        }
}

/* Both ways of dividing the result among the threads, and fewer rows than threads. */
static void linear_agrees(void **state)
{
    static const int64_t shapes[][3] = {{2, 1, 3},   {5, 3, 7},   {3, 50, 4},
                                        {129, 7, 1}, {1, 9, 200}, {33, 130, 65}};
    static const char *const variants[] = {
        "bias=no activation=none fusion=auto pass=forward",
        "bias=yes activation=none fusion=auto pass=forward",
        "bias=yes activation=relu fusion=separate pass=forward",
        "bias=no activation=gelu fusion=auto pass=forward",
        "bias=yes activation=none fusion=auto pass=backward-data",
        "bias=yes activation=none fusion=auto pass=backward-weights",
        "bias=no activation=none fusion=auto pass=backward-weights",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof variants / sizeof *variants; ++j)
            for (int variant = 0; variant < 4; ++variant) {
                char text[WORKLOAD_TEXT];
                snprintf(text, sizeof text,
                         "linear batch=%d inputs=%d outputs=%d precision=%s %s %s",
                         (int)shapes[i][0], (int)shapes[i][1], (int)shapes[i][2],
                         variant % 2 ? "fp64" : "fp32",
                         variant / 2 ? "implementation=plain" : "implementation=auto", variants[j]);
                check_all(*state, text);
            }
}

/* One block of queries and several, the last one not full; fewer and more keys than queries. */
static void attention_agrees(void **state)
{
    static const int64_t shapes[][5] = {{1, 1, 1, 1, 1},
                                        {2, 3, 5, 7, 8},
                                        {1, 2, 130, 65, 16},
                                        {1, 1, 64, 200, 3},
                                        {3, 1, 65, 65, 4}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 4; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text,
                     "attention batch=%d heads=%d sequence=%d keys=%d head_size=%d precision=%s "
                     "causal=%s",
                     (int)shapes[i][0], (int)shapes[i][1], (int)shapes[i][2], (int)shapes[i][3],
                     (int)shapes[i][4], variant % 2 ? "fp64" : "fp32", variant / 2 ? "yes" : "no");
            check_all(*state, text);
        }
}

/* Few and many steps, odd and even; counts around those of vectors and blocks. */
static void loops_agree(void **state)
{
    static const int steps[] = {1, 2, 3, 8, 33, 1024};
    static const int shapes[][2] = {{1, 1},  {1, 3},   {2, 16},   {3, 17},  {1, 191},
                                    {5, 64}, {1, 385}, {2, 2048}, {9, 100}, {2, 2047}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 12; ++variant) {
            const char *precision = variant % 2 ? "fp64" : "fp32";
            int tiles = shapes[i][0], tile = shapes[i][1];
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "compute-loop elements=%d steps=%d precision=%s",
                     tiles * tile, steps[variant / 2], precision);
            check_all(*state, text);
            snprintf(text, sizeof text, "shared-loop tiles=%d tile=%d steps=%d precision=%s", tiles,
                     tile, steps[variant / 2], precision);
            check_all(*state, text);
        }
}

/* Counts around those of vectors, and one for each thread of many. */
static void elementwise_agrees(void **state)
{
    static const char *const operations[] = {"relu", "sigmoid", "tanh", "add", "scale"};
    static const int counts[] = {1, 3, 8, 17, 1000, 4099};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
        for (int variant = 0; variant < 10; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "elementwise elements=%d operation=%s precision=%s",
                     counts[i], operations[variant / 2], variant % 2 ? "fp64" : "fp32");
            check_all(*state, text);
        }
}

static void pools_agree(void **state)
{
    static const char *const shapes[] = {
        "batch=2 height=9 width=9 channels=3",
        "batch=3 height=12 width=7 channels=8 stride=1",
        "batch=1 height=8 width=10 channels=17 window=2 padding=valid",
        "batch=2 height=7 width=9 channels=1 window=3x4 stride=1 padding=1",
        "batch=1 height=9 width=8 channels=2 window=2 stride=3 padding=1",
        "batch=1 height=2 width=2 channels=5 window=5 stride=4 padding=4",
        "batch=1 height=3 width=30 channels=1 window=1x7 stride=2",
        "batch=4 height=1 width=1 channels=6 window=1 stride=1",
        "batch=1 height=3 width=6 channels=2 window=3x9 stride=7 padding=2",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 16; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "pool %s operation=%s layout=%s precision=%s pass=%s",
                     shapes[i], variant % 2 ? "max" : "average", variant / 2 % 2 ? "nhwc" : "nchw",
                     variant / 4 % 2 ? "fp64" : "fp32", variant / 8 ? "backward" : "forward");
            check_all(*state, text);
        }
}

static void norms_agree(void **state)
{
    static const int shapes[][2] = {{4, 5}, {6, 7}, {64, 8}, {9, 64}, {130, 33}, {1000, 6}};
    static const char *const passes[] = {"forward", "training", "backward"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 12; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "norm rows=%d columns=%d operation=%s pass=%s precision=%s",
                     shapes[i][0], shapes[i][1], variant % 2 ? "batch" : "layer",
                     passes[variant / 4], variant / 2 % 2 ? "fp64" : "fp32");
            check_all(*state, text);
        }
}

static void softmax_agrees(void **state)
{
    static const int shapes[][2] = {{1, 1}, {3, 1}, {1, 7}, {5, 64}, {130, 33}, {2, 5000}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 4; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "softmax rows=%d columns=%d pass=%s precision=%s",
                     shapes[i][0], shapes[i][1], variant % 2 ? "forward" : "backward",
                     variant / 2 ? "fp64" : "fp32");
            check_all(*state, text);
        }
}

/* What was prepared is not what is asked for: one step too few, another product. */
static void wrong_results_are_caught(void **state)
{
    static const char *const cases[][2] = {
        {"compute-loop elements=1000 steps=20", "compute-loop elements=1000 steps=21"},
        {"compute-loop elements=1000 steps=4095", "compute-loop elements=1000 steps=4096"},
        {"shared-loop tiles=10 tile=100 steps=20", "shared-loop tiles=10 tile=100 steps=21"},
        {"shared-loop tiles=10 tile=100 steps=9", "shared-loop tiles=5 tile=200 steps=9"},
        {"matmul m=64 n=32 k=16 implementation=plain", "matmul m=32 n=64 k=16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct config config = parse(cases[i][0]), other = parse(cases[i][1]);
        struct work *work = run_work(*state, cases[i][0], &config, 0, 1);
        struct record record;
        struct error error;
        record_init(&record);
        assert_int_equal(verify_work(&device_ops, *state, work, &config, seed, &record, &error),
                         STATUS_OK);
        assert_true(record.verify_error >= 0.0 && record.verify_error < 1e-6);
        assert_true(record.verify_elements == 1000 || record.verify_elements == 2048);
        assert_int_equal(verify_work(&device_ops, *state, work, &other, seed, &record, &error),
                         STATUS_FAILED);
        assert_non_null(strstr(error.text, "wrong result"));
        device_ops.release(*state, work);
        record_clear(&record);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(conv2d_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(conv2d_steps_agree, open_device, close_device),
        cmocka_unit_test_setup_teardown(lstm_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(elementwise_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(pools_agree, open_device, close_device),
        cmocka_unit_test_setup_teardown(norms_agree, open_device, close_device),
        cmocka_unit_test_setup_teardown(softmax_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(matmul_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(linear_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(attention_agrees, open_device, close_device),
        cmocka_unit_test_setup_teardown(loops_agree, open_device, close_device),
        cmocka_unit_test_setup_teardown(wrong_results_are_caught, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
