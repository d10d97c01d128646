/* References of elementwise, pool, norm and softmax, against values by hand. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"
#include "model/reference.h"
#include "model/workloads/elementwise.h"
#include "model/workloads/norm.h"
#include "model/workloads/pool.h"
#include "model/workloads/softmax.h"
#include "parsed.h"

/* Compares a result tensor with these values. */
static void check_all(const struct config *config, enum tensor tensor, const double *expected,
                      int64_t count)
{
    double *values = expect_all(config, tensor, count);
    for (int64_t i = 0; i < count; ++i)
        if (!(fabs(values[i] - expected[i]) <= 1e-12 * fmax(1.0, fabs(expected[i]))))
            fail_msg("element %lld of tensor %d: %.17g, not %.17g", (long long)i, (int)tensor,
                     values[i], expected[i]);
    free(values);
}

/* Returns the sum of dy y, whose gradients a backward pass computes. */
typedef double loss_of(const struct config *config, double *const arrays[TENSOR_COUNT]);

static void check_gradient(const struct config *config, loss_of *loss, enum tensor tensor,
                           double *const arrays[TENSOR_COUNT], int64_t count)
{
    const double step = 1e-7, tolerance = 1e-6;
    double *values = expect_all(config, tensor, count);
    for (int64_t i = 0; i < count; ++i) {
        double *at = &arrays[tensor][i], kept = *at;
        *at = kept + step;
        double above = loss(config, arrays);
        *at = kept - step;
        double slope = (above - loss(config, arrays)) / (2.0 * step);
        *at = kept;
        if (!(fabs(values[i] - slope) <= tolerance * fmax(1.0, fabs(slope))))
            fail_msg("element %lld of tensor %d: %g, not %g", (long long)i, (int)tensor, values[i],
                     slope);
    }
    free(values);
}

TEST(elementwise_by_hand)
{
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
        check_all(&config, TENSOR_OUTPUT, y, COUNT);
        free(x);
        free(w);
    }
}

/* Returns the i-th output. Visits all pixels of the image and skips those outside the window. */
static double pool_output(const struct pool *s, const double *x, int64_t i)
{
    bool last = s->layout == LAYOUT_NHWC;
    int64_t in = s->height * s->width, out = s->out_height * s->out_width;
    int64_t n = i / (s->channels * out), c = last ? i % s->channels : i / out % s->channels;
    int64_t pixel = last ? i / s->channels % out : i % out;
    double largest = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < in; ++j) {
        int64_t r = j / s->width - pixel / s->out_width * s->stride_height + s->pad_height;
        int64_t q = j % s->width - pixel % s->out_width * s->stride_width + s->pad_width;
        if (r < 0 || r >= s->window_height || q < 0 || q >= s->window_width)
            continue;
        double value = x[last ? (n * in + j) * s->channels + c : (n * s->channels + c) * in + j];
        largest = fmax(largest, value);
        sum += value / (double)(s->window_height * s->window_width);
    }
    return s->operation == POOL_MAX ? largest : sum;
}

static double pool_loss(const struct config *config, double *const arrays[TENSOR_COUNT])
{
    struct pool s = pool_from(config);
    double loss = 0.0;
    for (int64_t i = 0; i < pool_y_size(&s); ++i)
        loss += arrays[TENSOR_OUTPUT][i] * pool_output(&s, arrays[TENSOR_INPUT], i);
    return loss;
}

/* Tests each shape with maximum and average, in both layouts, forward and backward. */
TEST(pools_by_hand)
{
    static const char *const shapes[] = {
        "batch=2 height=5 width=7 channels=3",
        "batch=1 height=6 width=4 channels=2 window=2 padding=valid",
        "batch=2 height=7 width=9 channels=1 window=3x4 stride=1 padding=1",
        "batch=1 height=9 width=8 channels=2 window=2 stride=3 padding=1",
        "batch=1 height=9 width=8 channels=2 window=2x3 stride=3x1 padding=0:1x2:0",
        "batch=1 height=2 width=2 channels=1 window=5 stride=4 padding=4",
    };
    for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "pool %s operation=%s layout=%s", shapes[i / 4],
                 i % 2 ? "max" : "average", i / 2 % 2 ? "nhwc" : "nchw");
        struct config forward = parse(text), backward = parse(strcat(text, " pass=backward"));
        struct pool s = pool_from(&forward);
        int64_t x_size = s.batch * s.height * s.width * s.channels, y_size = pool_y_size(&s);
        double *arrays[TENSOR_COUNT] = {[TENSOR_INPUT] = filled(&forward, TENSOR_INPUT, x_size),
                                        [TENSOR_OUTPUT] = zeros(y_size)};
        for (int64_t j = 0; j < y_size; ++j)
            arrays[TENSOR_OUTPUT][j] = pool_output(&s, arrays[TENSOR_INPUT], j);
        check_all(&forward, TENSOR_OUTPUT, arrays[TENSOR_OUTPUT], y_size);
        free(arrays[TENSOR_OUTPUT]);
        arrays[TENSOR_OUTPUT] = filled(&backward, TENSOR_OUTPUT, y_size);
        check_gradient(&backward, pool_loss, TENSOR_INPUT, arrays, x_size);
        free(arrays[TENSOR_OUTPUT]);
        free(arrays[TENSOR_INPUT]);
    }
}

/* Elements that depend on the choice among equal values are not compared. */
TEST(equal_values_are_not_compared)
{
    struct config config =
        parse("pool batch=4 channels=8 height=32 width=32 window=7 precision=bf16 pass=backward");
    struct pool s = pool_from(&config);
    struct expectation expectation = expect(&config, INFINITY);
    int64_t compared = expectation.slices[0].count,
            size = s.batch * s.height * s.width * s.channels;
    assert_true(compared < size && compared > size * 3 / 4);
    for (int64_t i = 0; i < compared; ++i)
        assert_false(isnan(expectation.slices[0].expected[i]));
    expectation_clear(&expectation);
}

TEST(softmax_by_hand)
{
    enum { COLUMNS = 4 };
    struct config config = parse("softmax rows=3 columns=4");
    double *x = filled(&config, TENSOR_INPUT, 3 * COLUMNS), y[3 * COLUMNS];
    for (int i = 0; i < 3 * COLUMNS; ++i) {
        const double *row = x + i / COLUMNS * COLUMNS;
        y[i] = exp(x[i]) / (exp(row[0]) + exp(row[1]) + exp(row[2]) + exp(row[3]));
    }
    check_all(&config, TENSOR_OUTPUT, y, 3 * COLUMNS);
    free(x);
}

/* The Jacobian of a softmax, dy_j/dx_i = y_j ((i == j) - y_i), times dy. */
TEST(softmax_gradient_by_hand)
{
    enum { COLUMNS = 5 };
    struct config config = parse("softmax rows=2 columns=5 pass=backward");
    double *y = filled(&config, TENSOR_INPUT, 2 * COLUMNS);
    double *dy = filled(&config, TENSOR_OUTPUT, 2 * COLUMNS), dx[2 * COLUMNS] = {0};
    for (int i = 0; i < 2 * COLUMNS; ++i)
        for (int j = 0; j < COLUMNS; ++j) {
            int other = i / COLUMNS * COLUMNS + j;
            dx[i] += dy[other] * y[other] * ((other == i) - y[i]);
        }
    check_all(&config, TENSOR_INPUT, dx, 2 * COLUMNS);
    free(y);
    free(dy);
}

static double norm_loss(const struct config *config, double *const arrays[TENSOR_COUNT])
{
    const double *x = arrays[TENSOR_INPUT], *gamma = arrays[TENSOR_WEIGHT];
    const double *beta = arrays[TENSOR_BIAS], *dy = arrays[TENSOR_OUTPUT];
    const struct norm norm = norm_from(config), *s = &norm;
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

TEST(norm_gradients)
{
    static const char *const words[] = {"batch", "layer"};
    for (int i = 0; i < 2; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "norm rows=5 columns=4 pass=backward operation=%s", words[i]);
        struct config config = parse(text);
        double *arrays[TENSOR_COUNT] = {
            [TENSOR_INPUT] = filled(&config, TENSOR_INPUT, 20),
            [TENSOR_WEIGHT] = filled(&config, TENSOR_WEIGHT, 4),
            [TENSOR_OUTPUT] = filled(&config, TENSOR_OUTPUT, 20),
            [TENSOR_BIAS] = filled(&config, TENSOR_BIAS, 4),
        };
        check_gradient(&config, norm_loss, TENSOR_INPUT, arrays, 20);
        check_gradient(&config, norm_loss, TENSOR_WEIGHT, arrays, 4);
        check_gradient(&config, norm_loss, TENSOR_BIAS, arrays, 4);
        for (int j = 0; j < TENSOR_COUNT; ++j)
            free(arrays[j]);
    }
}

/* With two values for each mean the terms cancel. Rounding is accepted, a lost term is not. */
TEST(norm_terms_that_cancel)
{
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

/* Two rows and columns: half the difference is the standard deviation. */
TEST(norms_by_hand)
{
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
        check_all(&config, TENSOR_OUTPUT, y, 4);
        check_all(&config, TENSOR_WEIGHT, mean, 2);
        check_all(&config, TENSOR_BIAS, inverse, 2);
        free(x);
        free(gamma);
        free(beta);
    }
}
