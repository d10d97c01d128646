/* References of workloads that stream, against numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "expected.h"
#include "model/reference.h"
#include "model/workloads/elementwise.h"
#include "model/workloads/norm.h"
#include "model/workloads/pool.h"
#include "model/workloads/softmax.h"
#include "parsed.h"

/* The slice of a tensor has all its elements, in turn, and these values. */
static void check_slice(const struct slice *slice, enum tensor tensor, const double *expected,
                        int64_t count)
{
    assert_int_equal(slice->tensor, tensor);
    assert_int_equal(slice->count, count);
    for (int64_t i = 0; i < count; ++i) {
        assert_int_equal(slice->offsets[i], i);
        if (!(fabs(slice->expected[i] - expected[i]) <= 1e-12 * fmax(1.0, fabs(expected[i]))))
            fail_msg("element %lld of tensor %d: %.17g, not %.17g", (long long)i, (int)tensor,
                     slice->expected[i], expected[i]);
    }
}

static void elementwise_by_hand(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    static const char *const words[ELEMENTWISE_OPERATIONS] = {"relu", "sigmoid", "tanh", "add",
                                                              "scale"};
    for (int operation = 0; operation < ELEMENTWISE_OPERATIONS; ++operation) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "elementwise elements=%d operation=%s", COUNT,
                 words[operation]);
        struct config config = parse(text);
        double *x = filled(&config, TENSOR_INPUT, COUNT),
               *w = filled(&config, TENSOR_WEIGHT, COUNT);
        double y[COUNT];
        for (int i = 0; i < COUNT; ++i) {
            double e = exp(x[i]);
            const double values[ELEMENTWISE_OPERATIONS] = {x[i] > 0.0 ? x[i] : 0.0, e / (1.0 + e),
                                                           (e * e - 1.0) / (e * e + 1.0),
                                                           x[i] + w[i], -3.0 / 4.0 * x[i]};
            y[i] = values[operation];
        }
        struct expectation expectation = expect(&config, INFINITY);
        assert_int_equal(expectation.count, 1);
        check_slice(&expectation.slices[0], TENSOR_OUTPUT, y, COUNT);
        expectation_clear(&expectation);
        free(x);
        free(w);
    }
}

/* A second time, forwards: each pixel of x goes to all windows that it lies in. */
static void check_pool(const char *text)
{
    struct config config = parse(text);
    struct pool s = pool_from(&config);
    int64_t x_size = pool_x_size(&s), y_size = pool_y_size(&s);
    double *x = filled(&config, TENSOR_INPUT, x_size), *y = malloc((size_t)y_size * sizeof *y);
    bool last = s.layout == LAYOUT_NHWC;
    assert_non_null(y);
    for (int64_t i = 0; i < y_size; ++i)
        y[i] = s.operation == POOL_MAX ? -INFINITY : 0.0;
    for (int64_t i = 0; i < x_size; ++i) {
        int64_t c = last ? i % s.channels : i / (s.height * s.width) % s.channels;
        int64_t pixel = last ? i / s.channels : i;
        int64_t n = i / (s.channels * s.height * s.width);
        int64_t row = pixel / s.width % s.height, column = pixel % s.width;
        for (int64_t h = 0; h < s.out_height; ++h)
            for (int64_t w = 0; w < s.out_width; ++w) {
                int64_t r = row + s.pad_height - h * s.stride,
                        q = column + s.pad_width - w * s.stride;
                int64_t at = last ? ((n * s.out_height + h) * s.out_width + w) * s.channels + c
                                  : ((n * s.channels + c) * s.out_height + h) * s.out_width + w;
                if (r < 0 || r >= s.window_height || q < 0 || q >= s.window_width)
                    continue;
                y[at] = s.operation == POOL_MAX
                            ? fmax(y[at], x[i])
                            : y[at] + x[i] / (double)(s.window_height * s.window_width);
            }
    }
    struct expectation expectation = expect(&config, INFINITY);
    assert_int_equal(expectation.count, 1);
    check_slice(&expectation.slices[0], TENSOR_OUTPUT, y, y_size);
    expectation_clear(&expectation);
    free(x);
    free(y);
}

/* Of the loss whose gradient a backward pass is of: sum of dy y. */
static double pool_loss(const struct pool *s, const double *x, const double *dy)
{
    bool last = s->layout == LAYOUT_NHWC;
    int64_t in = s->height * s->width, out = s->out_height * s->out_width;
    double loss = 0.0;
    for (int64_t i = 0; i < s->batch * s->channels * out; ++i) {
        int64_t n = i / (s->channels * out), c = last ? i % s->channels : i / out % s->channels;
        int64_t pixel = last ? i / s->channels % out : i % out;
        double largest = -INFINITY, sum = 0.0;
        for (int64_t j = 0; j < in; ++j) {
            int64_t r = j / s->width - pixel / s->out_width * s->stride + s->pad_height;
            int64_t q = j % s->width - pixel % s->out_width * s->stride + s->pad_width;
            if (r < 0 || r >= s->window_height || q < 0 || q >= s->window_width)
                continue;
            double value =
                x[last ? (n * in + j) * s->channels + c : (n * s->channels + c) * in + j];
            largest = fmax(largest, value);
            sum += value / (double)(s->window_height * s->window_width);
        }
        loss += dy[i] * (s->operation == POOL_MAX ? largest : sum);
    }
    return loss;
}

static void check_pool_gradient(const char *text)
{
    const double step = 1e-7, tolerance = 1e-6;
    struct config config = parse(text);
    struct pool s = pool_from(&config);
    int64_t size = pool_x_size(&s);
    double *x = filled(&config, TENSOR_INPUT, size);
    double *dy = filled(&config, TENSOR_OUTPUT, pool_y_size(&s));
    struct expectation expectation = expect(&config, INFINITY);
    assert_int_equal(expectation.count, 1);
    assert_int_equal(expectation.slices[0].tensor, TENSOR_INPUT);
    assert_int_equal(expectation.slices[0].count, size);
    for (int64_t i = 0; i < size; ++i) {
        double kept = x[i];
        x[i] = kept + step;
        double above = pool_loss(&s, x, dy);
        x[i] = kept - step;
        double slope = (above - pool_loss(&s, x, dy)) / (2.0 * step);
        x[i] = kept;
        if (!(fabs(expectation.slices[0].expected[i] - slope) <= tolerance))
            fail_msg("%s: element %d is %g, not %g", text, (int)i,
                     expectation.slices[0].expected[i], slope);
    }
    expectation_clear(&expectation);
    free(x);
    free(dy);
}

/* Every shape, largest and average, in both layouts. words: further parameters. */
static void each_pool(const char *words, void (*check)(const char *text))
{
    static const char *const shapes[] = {
        "batch=2 height=5 width=7 channels=3",
        "batch=1 height=6 width=4 channels=2 window=2 padding=valid",
        "batch=2 height=7 width=9 channels=1 window=3x4 stride=1 padding=1",
        "batch=1 height=9 width=8 channels=2 window=2 stride=3 padding=1",
        "batch=1 height=2 width=2 channels=1 window=5 stride=4 padding=4",
    };
    for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "pool %s%s operation=%s layout=%s", shapes[i / 4], words,
                 i % 2 ? "max" : "average", i / 2 % 2 ? "nhwc" : "nchw");
        check(text);
    }
}

static void pool_gradients(void **state)
{
    (void)state;
    each_pool(" pass=backward", check_pool_gradient);
}

/* Elements that depend on which of equal values is the largest are not compared; the others are. */
static void equal_values_are_passed_over(void **state)
{
    (void)state;
    struct config config =
        parse("pool batch=4 channels=8 height=32 width=32 window=7 precision=bf16 pass=backward");
    struct pool s = pool_from(&config);
    struct expectation expectation = expect(&config, INFINITY);
    int64_t compared = expectation.slices[0].count, size = pool_x_size(&s);
    assert_true(compared < size && compared > size * 3 / 4);
    for (int64_t i = 0; i < compared; ++i)
        assert_false(isnan(expectation.slices[0].expected[i]));
    expectation_clear(&expectation);
}

static void pools_by_hand(void **state)
{
    (void)state;
    each_pool("", check_pool);
}

static void softmax_by_hand(void **state)
{
    (void)state;
    enum { COLUMNS = 4 };
    struct config config = parse("softmax rows=3 columns=4");
    double *x = filled(&config, TENSOR_INPUT, 3 * COLUMNS), y[3 * COLUMNS];
    for (int i = 0; i < 3 * COLUMNS; ++i) {
        const double *row = x + i / COLUMNS * COLUMNS;
        y[i] = exp(x[i]) / (exp(row[0]) + exp(row[1]) + exp(row[2]) + exp(row[3]));
    }
    struct expectation expectation = expect(&config, INFINITY);
    assert_int_equal(expectation.count, 1);
    check_slice(&expectation.slices[0], TENSOR_OUTPUT, y, 3 * COLUMNS);
    expectation_clear(&expectation);
    free(x);
}

/* The Jacobian of a softmax, dy_j/dx_i = y_j ((i == j) - y_i), times dy. */
static void softmax_gradient_by_hand(void **state)
{
    (void)state;
    enum { COLUMNS = 5 };
    struct config config = parse("softmax rows=2 columns=5 pass=backward");
    double *y = filled(&config, TENSOR_INPUT, 2 * COLUMNS);
    double *dy = filled(&config, TENSOR_OUTPUT, 2 * COLUMNS), dx[2 * COLUMNS] = {0};
    for (int i = 0; i < 2 * COLUMNS; ++i)
        for (int j = 0; j < COLUMNS; ++j) {
            int other = i / COLUMNS * COLUMNS + j;
            dx[i] += dy[other] * y[other] * ((other == i) - y[i]);
        }
    struct expectation expectation = expect(&config, INFINITY);
    assert_int_equal(expectation.count, 1);
    check_slice(&expectation.slices[0], TENSOR_INPUT, dx, 2 * COLUMNS);
    expectation_clear(&expectation);
    free(y);
    free(dy);
}

/* The loss whose gradients a backward pass is of: sum of dy y, after the definition. */
static double norm_loss(const struct norm *s, const double *x, const double *gamma,
                        const double *beta, const double *dy)
{
    bool batch = s->operation == NORM_BATCH;
    int64_t statistics = norm_statistics(s), count = batch ? s->rows : s->columns;
    double loss = 0.0;
    for (int64_t i = 0; i < statistics; ++i) {
        double mean = 0.0, variance = 0.0;
        for (int64_t j = 0; j < count; ++j)
            mean += x[batch ? j * s->columns + i : i * s->columns + j] / (double)count;
        for (int64_t j = 0; j < count; ++j)
            variance +=
                pow(x[batch ? j * s->columns + i : i * s->columns + j] - mean, 2.0) / (double)count;
        for (int64_t j = 0; j < count; ++j) {
            int64_t at = batch ? j * s->columns + i : i * s->columns + j, column = at % s->columns;
            double h = (x[at] - mean) / sqrt(variance + NORM_EPSILON);
            loss += dy[at] * (h * gamma[column] + beta[column]);
        }
    }
    return loss;
}

/* The change of the loss with one value of an array. */
static double slope(const struct norm *s, double *x, double *gamma, double *beta, const double *dy,
                    double *value)
{
    const double step = 1e-5, kept = *value;
    *value = kept + step;
    double above = norm_loss(s, x, gamma, beta, dy);
    *value = kept - step;
    double below = norm_loss(s, x, gamma, beta, dy);
    *value = kept;
    return (above - below) / (2.0 * step);
}

static void slopes_check(const struct slice *slice, enum tensor tensor, const struct norm *s,
                         double *const arrays[TENSOR_COUNT], int64_t count)
{
    const double tolerance = 1e-6;
    assert_int_equal(slice->tensor, tensor);
    assert_int_equal(slice->count, count);
    for (int64_t i = 0; i < count; ++i) {
        double expected = slope(s, arrays[TENSOR_INPUT], arrays[TENSOR_WEIGHT], arrays[TENSOR_BIAS],
                                arrays[TENSOR_OUTPUT], &arrays[tensor][i]);
        if (!(fabs(slice->expected[i] - expected) <= tolerance * fmax(1.0, fabs(expected))))
            fail_msg("element %lld of tensor %d: %g, not %g", (long long)i, (int)tensor,
                     slice->expected[i], expected);
    }
}

static void norm_gradients(void **state)
{
    (void)state;
    static const char *const words[] = {"batch", "layer"};
    for (int i = 0; i < 2; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "norm rows=5 columns=4 pass=backward operation=%s", words[i]);
        struct config config = parse(text);
        struct norm s = norm_from(&config);
        double *arrays[TENSOR_COUNT] = {
            [TENSOR_INPUT] = filled(&config, TENSOR_INPUT, 20),
            [TENSOR_WEIGHT] = filled(&config, TENSOR_WEIGHT, 4),
            [TENSOR_OUTPUT] = filled(&config, TENSOR_OUTPUT, 20),
            [TENSOR_BIAS] = filled(&config, TENSOR_BIAS, 4),
        };
        struct expectation expectation = expect(&config, INFINITY);
        assert_int_equal(expectation.count, 3);
        slopes_check(&expectation.slices[0], TENSOR_INPUT, &s, arrays, 20);
        slopes_check(&expectation.slices[1], TENSOR_WEIGHT, &s, arrays, 4);
        slopes_check(&expectation.slices[2], TENSOR_BIAS, &s, arrays, 4);
        expectation_clear(&expectation);
        for (int j = 0; j < TENSOR_COUNT; ++j)
            free(arrays[j]);
    }
}

/* Of two values of a mean next to nothing is left of the terms: their rounding passes, a lost one
 * does not. */
static void norm_terms_that_cancel(void **state)
{
    (void)state;
    static const char *const texts[] = {"norm rows=64 columns=2 pass=backward operation=layer",
                                        "norm rows=2 columns=64 pass=backward operation=batch"};
    for (int i = 0; i < 2; ++i) {
        struct config config = parse(texts[i]);
        struct expectation expectation = expect(&config, INFINITY);
        const struct slice *dx = &expectation.slices[0];
        struct slice_errors rounding = {0}, lost = {0};
        double values[128];
        assert_int_equal(dx->count, 128);
        for (int j = 0; j < 128; ++j)
            values[j] = dx->expected[j] + 6e-8 * dx->terms[j];
        slice_compare(dx, values, PRECISION_FP32, &rounding);
        assert_true(rounding.norm > 5e-8 && rounding.norm < 7e-8 && rounding.element < 7e-8);
        for (int j = 0; j < 128; ++j)
            values[j] = dx->expected[j] - dx->terms[j];
        slice_compare(dx, values, PRECISION_FP32, &lost);
        assert_true(lost.norm > 0.9);
        expectation_clear(&expectation);
    }
}

/* Two rows and columns: half of a difference is the standard deviation. */
static void norms_by_hand(void **state)
{
    (void)state;
    for (int layer = 0; layer < 2; ++layer) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "norm rows=2 columns=2 pass=training operation=%s",
                 layer ? "layer" : "batch");
        struct config config = parse(text);
        double *x = filled(&config, TENSOR_INPUT, 4), *gamma = filled(&config, TENSOR_WEIGHT, 2);
        double *beta = filled(&config, TENSOR_BIAS, 2), y[4], mean[2], inverse[2];
        for (int i = 0; i < 2; ++i) {
            int first = layer ? 2 * i : i, second = layer ? 2 * i + 1 : i + 2;
            double half = (x[second] - x[first]) / 2.0;
            mean[i] = (x[first] + x[second]) / 2.0;
            inverse[i] = 1.0 / sqrt(half * half + 1e-5);
            y[first] = -half * inverse[i] * gamma[first % 2] + beta[first % 2];
            y[second] = half * inverse[i] * gamma[second % 2] + beta[second % 2];
        }
        struct expectation expectation = expect(&config, INFINITY);
        assert_int_equal(expectation.count, 3);
        check_slice(&expectation.slices[0], TENSOR_OUTPUT, y, 4);
        check_slice(&expectation.slices[1], TENSOR_WEIGHT, mean, 2);
        check_slice(&expectation.slices[2], TENSOR_BIAS, inverse, 2);
        expectation_clear(&expectation);
        free(x);
        free(gamma);
        free(beta);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise_by_hand),
        cmocka_unit_test(pools_by_hand),
        cmocka_unit_test(pool_gradients),
        cmocka_unit_test(equal_values_are_passed_over),
        cmocka_unit_test(norm_gradients),
        cmocka_unit_test(norm_terms_that_cancel),
        cmocka_unit_test(norms_by_hand),
        cmocka_unit_test(softmax_by_hand),
        cmocka_unit_test(softmax_gradient_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
