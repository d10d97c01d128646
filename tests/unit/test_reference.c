/* The reference against numbers worked out by hand, and its gradients against central finite
 * differences of forward passes that are written here a second time, in the plainest way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/reference.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"
#include "model/workloads/lstm_reference.h"
#include "parsed.h"

#define ELEMENT              array_element
#define REAL                 double
#define SOURCE               const double *
#define LOAD(source, offset) (source)[offset]
#include "model/workloads/conv2d_element.h"

static const uint64_t seed = 7;

static double *filled(const struct config *config, enum tensor tensor, int64_t count)
{
    struct fill fill = config_fill(config, seed, tensor);
    double *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; ++i)
        data[i] = fill_value(fill, (uint64_t)i);
    return data;
}

/* All elements of the result, with these many multiply-adds at most. */
static struct expectation expect(const struct config *config, double products)
{
    const struct reference_request request = {
        config, seed, products, 1, INT64_MAX, reference_in_turn, NULL, NULL};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config->workload->reference(&request, &expectation, &error))
        fail_msg("%s", error.text);
    return expectation;
}

/* Of the one result tensor, by its index. The caller frees it. */
static double *expect_all(const struct config *config, enum tensor tensor, int64_t size)
{
    struct expectation expectation = expect(config, INFINITY);
    struct slice *slice = expectation.slices;
    while (slice < expectation.slices + expectation.count && slice->tensor != tensor)
        ++slice;
    assert_true(slice < expectation.slices + expectation.count);
    double *expected = slice->expected;
    assert_int_equal(slice->count, size);
    for (int64_t i = 0; i < size; ++i)
        assert_int_equal(slice->offsets[i], i);
    slice->expected = NULL;
    expectation_clear(&expectation);
    return expected;
}

static double *zeros(int64_t count)
{
    double *data = calloc((size_t)count, sizeof *data);
    assert_non_null(data);
    return data;
}

/* x = 1 2 3 / 4 5 6 / 7 8 9, w = 1 2 / 3 4 (no flip): y = 1*1 + 2*2 + 4*3 + 5*4 = 37, ... */
static void conv2d_forward_by_hand(void **state)
{
    (void)state;
    struct config config = parse(
        "conv2d batch=1 height=3 width=3 channels=1 filters=1 kernel=2 stride=1 padding=valid");
    struct conv2d s = conv2d_from(&config);
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4};
    const double y[] = {37, 47, 67, 77};
    assert_int_equal(conv2d_y_size(&s), 4);
    for (int i = 0; i < 4; ++i)
        assert_true(array_element(&s, x, w, i) == y[i]);
}

/* Padding 1, stride 2 of the same: the kernel sees 1 | 2 3 / 4 | 5 6, 7 | 8 9 and zeros around. */
static void conv2d_padding_by_hand(void **state)
{
    (void)state;
    struct config config =
        parse("conv2d batch=1 height=3 width=3 channels=1 filters=1 kernel=2 stride=2 padding=1");
    struct conv2d s = conv2d_from(&config);
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4};
    const double y[] = {4 * 1, 3 * 2 + 4 * 3, 2 * 4 + 4 * 7, 1 * 5 + 2 * 6 + 3 * 8 + 4 * 9};
    assert_int_equal(conv2d_y_size(&s), 4);
    for (int i = 0; i < 4; ++i)
        assert_true(array_element(&s, x, w, i) == y[i]);
}

/* dy = 1 10 / 100 1000 on the first example: each dx sums up what its outputs took from it. */
static void conv2d_backward_by_hand(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4}, dy[] = {1, 10, 100, 1000};
    const double dx[] = {1, 12, 20, 103, 1234, 2040, 300, 3400, 4000};
    const double dw[] = {1 * 1 + 2 * 10 + 4 * 100 + 5 * 1000, 2 * 1 + 3 * 10 + 5 * 100 + 6 * 1000,
                         4 * 1 + 5 * 10 + 7 * 100 + 8 * 1000, 5 * 1 + 6 * 10 + 8 * 100 + 9 * 1000};
    struct config config = parse("conv2d batch=1 height=3 width=3 channels=1 filters=1 kernel=2 "
                                 "stride=1 padding=valid pass=backward-data");
    struct conv2d s = conv2d_from(&config);
    for (int i = 0; i < 9; ++i)
        assert_true(array_element(&s, w, dy, i) == dx[i]);
    s.pass = CONV2D_BACKWARD_FILTER;
    for (int i = 0; i < 4; ++i)
        assert_true(array_element(&s, x, dy, i) == dw[i]);
}

/* The whole forward pass, as a scatter over every product that there is. */
static double conv2d_loss(const struct conv2d *s, const double *x, const double *w,
                          const double *dy, double *y)
{
    int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
    memset(y, 0, (size_t)conv2d_y_size(s) * sizeof *y);
    for (int64_t n = 0; n < s->batch; ++n)
        for (int64_t k = 0; k < s->filters; ++k)
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t h = 0; h < s->out_height; ++h)
                    for (int64_t v = 0; v < s->out_width; ++v)
                        for (int64_t r = 0; r < s->kernel_height; ++r)
                            for (int64_t q = 0; q < s->kernel_width; ++q) {
                                int64_t row = h * s->stride + r * s->dilation - s->pad_height;
                                int64_t column = v * s->stride + q * s->dilation - s->pad_width;
                                if (row >= 0 && row < s->height && column >= 0 && column < s->width)
                                    y[conv2d_y_at(s, n, h, v, k)] +=
                                        x[conv2d_x_at(s, n, row, column,
                                                      k / filters * channels + c)] *
                                        w[conv2d_w_at(s, k, r, q, c)];
                            }
    double loss = 0.0;
    for (int64_t i = 0; i < conv2d_y_size(s); ++i)
        loss += dy[i] * y[i];
    return loss;
}

/* The loss is linear in each tensor, so the difference is exact but for rounding. */
static void check_gradient(const struct config *config, double *tensor, int64_t size,
                           const double *x, const double *w, const double *dy, double *y)
{
    struct conv2d s = conv2d_from(config);
    double *expected = expect_all(config, tensor == x ? TENSOR_INPUT : TENSOR_WEIGHT, size);
    for (int64_t i = 0; i < size; ++i) {
        double kept = tensor[i];
        tensor[i] = kept + 0.5;
        double above = conv2d_loss(&s, x, w, dy, y);
        tensor[i] = kept - 0.5;
        double below = conv2d_loss(&s, x, w, dy, y);
        tensor[i] = kept;
        assert_true(fabs(expected[i] - (above - below)) < 1e-11);
    }
    free(expected);
}

static void conv2d_gradients(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "batch=2 height=5 width=4 channels=2 filters=2 kernel=3 stride=2 layout=nhwc",
        "batch=2 height=5 width=4 channels=2 filters=2 kernel=3 stride=2 layout=nchw",
        "batch=1 height=6 width=7 channels=4 filters=6 kernel=2x3 stride=1 groups=2 dilation=2",
        ("batch=1 height=6 width=7 channels=4 filters=6 kernel=3x2 padding=valid groups=2 "
         "layout=nchw"),
        "batch=1 height=3 width=3 channels=1 filters=1 kernel=1 stride=3 padding=2",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "conv2d precision=fp64 %s", shapes[i]);
        struct config forward = parse(text);
        struct conv2d s = conv2d_from(&forward);
        double *x = filled(&forward, TENSOR_INPUT, conv2d_x_size(&s));
        double *w = filled(&forward, TENSOR_WEIGHT, conv2d_w_size(&s));
        double *dy = filled(&forward, TENSOR_OUTPUT, conv2d_y_size(&s));
        double *y = zeros(conv2d_y_size(&s));
        conv2d_loss(&s, x, w, dy, y);
        double *expected = expect_all(&forward, TENSOR_OUTPUT, conv2d_y_size(&s));
        for (int64_t j = 0; j < conv2d_y_size(&s); ++j)
            assert_true(fabs(expected[j] - y[j]) < 1e-13);
        free(expected);
        snprintf(text, sizeof text, "conv2d precision=fp64 pass=backward-data %s", shapes[i]);
        struct config data = parse(text);
        check_gradient(&data, x, conv2d_x_size(&s), x, w, dy, y);
        snprintf(text, sizeof text, "conv2d precision=fp64 pass=backward-filter %s", shapes[i]);
        struct config filter = parse(text);
        check_gradient(&filter, w, conv2d_w_size(&s), x, w, dy, y);
        free(x);
        free(w);
        free(dy);
        free(y);
    }
}

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

/* A layer's tensors. z is what conv2d_loss leaves in y, y the whole layer's output. */
struct layer {
    struct conv2d shape;
    double *x, *w, *b, *dy, *z, *y;
};

/* The sum of dy y, which is what the gradients are of. */
static double layer_loss(struct layer *l)
{
    const struct conv2d *s = &l->shape;
    double loss = 0.0;
    conv2d_loss(s, l->x, l->w, l->dy, l->z);
    for (int64_t i = 0; i < conv2d_y_size(s); ++i) {
        int64_t pixels = s->out_height * s->out_width;
        int64_t k = s->layout == LAYOUT_NHWC ? i % s->filters : i / pixels % s->filters;
        double z = l->z[i] + (s->bias ? l->b[k] : 0.0);
        l->y[i] = s->activation == ACTIVATION_TANH      ? tanh(z)
                  : s->activation == ACTIVATION_SIGMOID ? sigmoid(z)
                  : s->activation == ACTIVATION_RELU    ? fmax(z, 0.0)
                                                        : z;
        loss += l->dy[i] * l->y[i];
    }
    return loss;
}

static enum status layer_read(void *context, enum tensor tensor, const int64_t *offsets,
                              int64_t count, double *values, struct error *error)
{
    const struct layer *l = context;
    (void)error;
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i)
        values[i] = l->y[offsets[i]];
    return STATUS_OK;
}

/* Of one tensor, by central differences; the updated one follows from it. */
static void check_slice(struct layer *l, const struct slice *slice)
{
    bool bias = slice->tensor == TENSOR_BIAS || slice->tensor == TENSOR_BIAS_UPDATED;
    bool updated = slice->tensor == TENSOR_WEIGHT_UPDATED || slice->tensor == TENSOR_BIAS_UPDATED;
    double *tensor = bias ? l->b : slice->tensor == TENSOR_INPUT ? l->x : l->w;
    const double step = 1e-5;
    for (int64_t i = 0; i < slice->count; ++i) {
        if (slice->tensor == TENSOR_OUTPUT) {
            assert_true(fabs(slice->expected[i] - l->y[slice->offsets[i]]) < 1e-12);
            continue;
        }
        double *at = &tensor[slice->offsets[i]], kept = *at;
        *at = kept + step;
        double above = layer_loss(l);
        *at = kept - step;
        double gradient = (above - layer_loss(l)) / (2.0 * step);
        *at = kept;
        layer_loss(l);
        double expected = updated ? kept - gradient / 1024.0 : gradient;
        assert_true(fabs(slice->expected[i] - expected) < 1e-6);
    }
}

static void check_layer(const char *text, size_t slices)
{
    struct config config = parse(text);
    struct conv2d s = conv2d_from(&config);
    struct layer l = {
        .shape = s,
        .x = filled(&config, TENSOR_INPUT, conv2d_x_size(&s)),
        .w = filled(&config, TENSOR_WEIGHT, conv2d_w_size(&s)),
        .b = filled(&config, TENSOR_BIAS, s.filters),
        .dy = filled(&config, TENSOR_OUTPUT, conv2d_y_size(&s)),
        .z = zeros(conv2d_y_size(&s)),
        .y = zeros(conv2d_y_size(&s)),
    };
    layer_loss(&l);
    const struct reference_request request = {&config,           seed,       INFINITY, 1, INT64_MAX,
                                              reference_in_turn, layer_read, &l};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config.workload->reference(&request, &expectation, &error))
        fail_msg("%s", error.text);
    assert_int_equal(expectation.count, slices);
    for (size_t i = 0; i < expectation.count; ++i)
        check_slice(&l, &expectation.slices[i]);
    expectation_clear(&expectation);
    double *const all[] = {l.x, l.w, l.b, l.dy, l.z, l.y};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        free(all[i]);
}

static void conv2d_layers(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "batch=2 height=5 width=4 channels=2 filters=3 kernel=3 stride=2 layout=nhwc",
        "batch=1 height=4 width=5 channels=4 filters=6 kernel=2x3 stride=1 groups=2 layout=nchw",
    };
    static const struct {
        const char *text;
        size_t slices;
    } steps[] = {
        {"pass=forward bias=yes activation=relu", 1},
        {"pass=backward", 2},
        {"pass=backward bias=yes", 3},
        {"pass=backward bias=yes activation=tanh", 4},
        {"pass=backward activation=relu", 3},
        {"pass=training", 4},
        {"pass=training bias=yes activation=sigmoid", 6},
        {"pass=training bias=yes activation=relu", 6},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; ++j) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "conv2d precision=fp64 %s %s", shapes[i], steps[j].text);
            check_layer(text, steps[j].slices);
        }
}

/* What a unit becomes, by the formulas that PyTorch's pages have for these cells. `a`: input product and
 * bias of each gate, `b`: the recurrent one. */
static double cell_plain(enum lstm_kind kind, const double a[4], const double b[4], double h,
                         double *c)
{
    if (kind == LSTM_LSTM) {
        *c = sigmoid(a[1] + b[1]) * *c + sigmoid(a[0] + b[0]) * tanh(a[2] + b[2]);
        return sigmoid(a[3] + b[3]) * tanh(*c);
    }
    double z = sigmoid(a[0] + b[0]), n = tanh(a[2] + sigmoid(a[1] + b[1]) * b[2]);
    return kind == LSTM_GRU    ? (1.0 - z) * n + z * h
           : kind == LSTM_RELU ? fmax(a[0] + b[0], 0.0)
                               : tanh(a[0] + b[0]);
}

/* One layer of one direction: `input` [T][N][width] to the direction's part of `output`
 * [T][N][row]. */
static void lstm_plain(const struct lstm *s, int64_t layer, int64_t direction, const double *w,
                       const double *input, double *output)
{
    int64_t width = lstm_input_width(s, layer), hidden = s->hidden, row = s->output * s->directions;
    int64_t gates = s->cell->gates;
    const double *wi = w + lstm_w_at(s, layer, direction, LSTM_INPUT_MATRIX);
    const double *wr = w + lstm_w_at(s, layer, direction, LSTM_RECURRENT_MATRIX);
    const double *bias = w + lstm_w_at(s, layer, direction, LSTM_BIAS);
    const double *projection = w + lstm_w_at(s, layer, direction, LSTM_PROJECTION);
    for (int64_t n = 0; n < s->batch; ++n) {
        double h[16] = {0}, c[16] = {0}, now[16], a[16][4], b[16][4];
        for (int64_t step = 0; step < s->sequence; ++step) {
            int64_t t = direction == 0 ? step : s->sequence - 1 - step;
            for (int64_t i = 0; i < gates * hidden; ++i) {
                int64_t gate = i / hidden, u = i % hidden;
                a[u][gate] = bias[i];
                b[u][gate] = s->kind == LSTM_GRU && gate == 2 ? bias[3 * hidden + u] : 0.0;
                for (int64_t j = 0; j < width; ++j)
                    a[u][gate] += wi[i * width + j] * input[(t * s->batch + n) * width + j];
                for (int64_t j = 0; j < s->output; ++j)
                    b[u][gate] += wr[i * s->output + j] * h[j];
            }
            for (int64_t u = 0; u < hidden; ++u)
                now[u] = cell_plain(s->kind, a[u], b[u], h[u], &c[u]);
            for (int64_t u = 0; u < s->output; ++u) {
                h[u] = s->projection ? 0.0 : now[u];
                for (int64_t j = 0; s->projection && j < hidden; ++j)
                    h[u] += projection[u * hidden + j] * now[j];
                output[(t * s->batch + n) * row + direction * s->output + u] = h[u];
            }
        }
    }
}

/* The loss of the first `samples`; y takes the output of the last layer. */
static double lstm_loss(const struct lstm *s, const double *x, const double *w, const double *dy,
                        int64_t samples, double *y)
{
    double *below = zeros(lstm_y_size(s)), loss = 0.0;
    for (int64_t layer = 0; layer < s->layers; ++layer) {
        memcpy(below, y, (size_t)lstm_y_size(s) * sizeof *y);
        for (int64_t direction = 0; direction < s->directions; ++direction)
            lstm_plain(s, layer, direction, w, layer == 0 ? x : below, y);
    }
    int64_t row = s->output * s->directions;
    for (int64_t i = 0; i < lstm_y_size(s); ++i)
        if (i / row % s->batch < samples)
            loss += dy[i] * y[i];
    free(below);
    return loss;
}

static void check_lstm(const char *text, int64_t samples)
{
    struct config config = parse(text);
    struct lstm s = lstm_from(&config);
    struct error error;
    int64_t row = s.output * s.directions;
    double *x = filled(&config, TENSOR_INPUT, lstm_x_size(&s));
    double *w = filled(&config, TENSOR_WEIGHT, lstm_w_size(&s));
    double *dy = filled(&config, TENSOR_OUTPUT, lstm_y_size(&s));
    double *plain = zeros(lstm_y_size(&s)), *y = zeros(s.sequence * samples * row);
    double *dx = zeros(s.sequence * samples * s.features), *dw = zeros(lstm_w_size(&s));
    assert_int_equal(
        lstm_reference_compute(&config, seed, samples, reference_in_turn, NULL, y, dx, dw, &error),
        STATUS_OK);
    lstm_loss(&s, x, w, dy, samples, plain);
    for (int64_t t = 0; t < s.sequence; ++t)
        for (int64_t i = 0; i < samples * row; ++i)
            assert_true(fabs(y[t * samples * row + i] - plain[t * s.batch * row + i]) < 1e-13);
    const double h = 1e-5,
                 tolerance = 1e-8; /* the difference's own error is of the order of h * h */
    for (int64_t i = 0; i < lstm_w_size(&s) + lstm_x_size(&s); ++i) {
        double *at = i < lstm_w_size(&s) ? &w[i] : &x[i - lstm_w_size(&s)], kept = *at;
        *at = kept + h;
        double above = lstm_loss(&s, x, w, dy, samples, plain);
        *at = kept - h;
        double below = lstm_loss(&s, x, w, dy, samples, plain);
        *at = kept;
        double slope = (above - below) / (2.0 * h);
        int64_t j = i - lstm_w_size(&s), n = j / s.features % s.batch;
        if (j < 0)
            assert_true(fabs(dw[i] - slope) < tolerance);
        else if (n < samples)
            assert_true(
                fabs(dx[(j / s.features / s.batch * samples + n) * s.features + j % s.features] -
                     slope) < tolerance);
        else
            assert_true(slope == 0.0);
    }
    free(x);
    free(w);
    free(dy);
    free(plain);
    free(y);
    free(dx);
    free(dw);
}

static void lstm_gradients(void **state)
{
    (void)state;
    static const char *const cells[] = {"cell=lstm", "cell=gru", "cell=tanh", "cell=relu",
                                        "projection=1"};
    static const struct {
        const char *shape;
        int64_t samples;
    } shapes[] = {{"batch=2 sequence=3 features=2 hidden=3", 2},
                  {"batch=3 sequence=4 features=3 hidden=2", 1},
                  {"batch=2 sequence=3 features=3 hidden=4 directions=2", 2},
                  {"batch=2 sequence=3 features=2 hidden=3 layers=2 directions=2", 2},
                  {"batch=2 sequence=2 features=5 hidden=2 layers=3 directions=2", 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof cells / sizeof *cells; ++j) {
            char text[WORKLOAD_TEXT];
            struct error error;
            snprintf(text, sizeof text, "lstm %s %s pass=backward precision=fp64", shapes[i].shape,
                     cells[j]);
            struct config config;
            assert_int_equal(config_parse(text, &config, &error), STATUS_OK);
            if (config_check(&config, &error) == STATUS_OK)
                check_lstm(text, shapes[i].samples);
        }
    check_lstm("lstm batch=2 sequence=3 features=2 hidden=5 projection=3 layers=2 directions=2 "
               "pass=backward precision=fp64",
               2);
}

/* The device's zeros decide which units of a relu were off: without any, nothing comes through. */
static void lstm_switched_by_the_device(void **state)
{
    (void)state;
    struct config config =
        parse("lstm cell=relu batch=2 sequence=3 features=2 hidden=3 pass=backward precision=fp64");
    struct error error;
    double *off = zeros(2 * 3 * 3), *dx = filled(&config, TENSOR_INPUT, 2 * 3 * 2);
    assert_int_equal(
        lstm_reference_compute(&config, seed, 2, reference_in_turn, off, NULL, dx, NULL, &error),
        STATUS_OK);
    for (int i = 0; i < 2 * 3 * 2; ++i)
        assert_true(dx[i] == 0.0);
    free(off);
    free(dx);
}

/* One unit, one step, weights as they come: the formula itself, written out. */
static void lstm_forward_by_hand(void **state)
{
    (void)state;
    struct config config = parse("lstm batch=1 sequence=1 features=1 hidden=1 precision=fp64");
    double *x = filled(&config, TENSOR_INPUT, 1), *w = filled(&config, TENSOR_WEIGHT, 12);
    double i = sigmoid(w[0] * x[0] + w[8]), g = tanh(w[2] * x[0] + w[10]);
    double o = sigmoid(w[3] * x[0] + w[11]);
    double *y = expect_all(&config, TENSOR_OUTPUT, 1);
    assert_true(fabs(*y - o * tanh(i * g)) < 1e-15);
    free(x);
    free(y);
    free(w);
}

static void matmul_by_hand(void **state)
{
    (void)state;
    struct config config = parse("matmul m=2 n=3 k=4 precision=fp64");
    double *x = filled(&config, TENSOR_INPUT, 2 * 4), *w = filled(&config, TENSOR_WEIGHT, 4 * 3);
    double *y = expect_all(&config, TENSOR_OUTPUT, 2 * 3);
    for (int64_t i = 0; i < 2 * 3; ++i) {
        const double *row = x + i / 3 * 4, *column = w + i % 3;
        double sum =
            row[0] * column[0] + row[1] * column[3] + row[2] * column[6] + row[3] * column[9];
        assert_true(fabs(y[i] - sum) < 1e-15);
    }
    free(y);
    free(x);
    free(w);
}

/* In fp8 the second matrix lies column by column. All inputs are exact in e4m3: multiples of 2^-9, of
 * four bits. */
static void matmul_of_fp8_by_hand(void **state)
{
    (void)state;
    struct config config = parse("matmul m=2 n=16 k=16 precision=fp8");
    double *x = filled(&config, TENSOR_INPUT, 2 * 16), *w = filled(&config, TENSOR_WEIGHT, 16 * 16);
    double *y = expect_all(&config, TENSOR_OUTPUT, 2 * 16);
    for (int64_t i = 0; i < 2 * 16; ++i) {
        double sum = 0.0;
        for (int64_t k = 0; k < 16; ++k)
            sum += x[i / 16 * 16 + k] * w[i % 16 * 16 + k];
        assert_true(fabs(y[i] - sum) < 1e-15);
        assert_true(x[i] * 8.0 == round(x[i] * 8.0) && fabs(x[i]) <= 1.0);
    }
    free(y);
    free(x);
    free(w);
}

/* Of four neighbours the two largest are left, of equal ones the first. */
static void sparse_matmul_by_hand(void **state)
{
    (void)state;
    static const struct {
        double values[4];
        int places[2];
    } cases[] = {
        {{1, 2, 3, 4}, {2, 3}},  {{-4, 1, 3, -2}, {0, 2}}, {{1, 1, 1, 1}, {0, 1}},
        {{0, 0, 0, -1}, {0, 3}}, {{1, -2, 2, -2}, {1, 2}}, {{0, 5, 0, 5}, {1, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        int places[2] = {-1, -1};
        matmul_prune(cases[i].values, places);
        assert_memory_equal(places, cases[i].places, sizeof places);
    }
    struct config config = parse("matmul m=16 n=16 k=64 precision=fp16 sparsity=2:4");
    double *x = filled(&config, TENSOR_INPUT, 16 * 64),
           *w = filled(&config, TENSOR_WEIGHT, 64 * 16);
    double *y = expect_all(&config, TENSOR_OUTPUT, 16 * 16);
    for (int64_t i = 0; i < 16 * 64; i += 4) {
        int places[2];
        matmul_prune(x + i, places);
        for (int j = 0; j < 4; ++j)
            x[i + j] = j == places[0] || j == places[1] ? x[i + j] : 0.0;
    }
    for (int64_t i = 0; i < 16 * 16; ++i) {
        double sum = 0.0;
        for (int64_t k = 0; k < 64; ++k)
            sum += x[i / 16 * 64 + k] * w[k * 16 + i % 16];
        assert_true(fabs(y[i] - sum) < 1e-14);
    }
    free(y);
    free(x);
    free(w);
}

static void weights_of_fp8_are_exact(void **state)
{
    (void)state;
    for (int64_t inputs = 16; inputs <= 1048576; inputs *= 4) {
        char text[80];
        snprintf(text, sizeof text, "linear precision=fp8 inputs=%lld", (long long)inputs);
        struct config config = parse(text);
        struct fill fill = config_fill(&config, 1, TENSOR_WEIGHT);
        assert_true(fill.unit >= ldexp(1.0, -9));
    }
}

static void check_linear(const char *text, enum tensor tensor, int64_t count,
                         const double *expected)
{
    struct config config = parse(text);
    double *values = expect_all(&config, tensor, count);
    for (int64_t i = 0; i < count; ++i)
        assert_true(fabs(values[i] - expected[i]) < 1e-14);
    free(values);
}

/* Two samples of two numbers, one output. */
static void linear_by_hand(void **state)
{
    (void)state;
#define LAYER "linear batch=2 inputs=2 outputs=1 precision=fp64"
    struct config config = parse(LAYER);
    double *x = filled(&config, TENSOR_INPUT, 4), *w = filled(&config, TENSOR_WEIGHT, 2);
    double *b = filled(&config, TENSOR_BIAS, 1), *dy = filled(&config, TENSOR_OUTPUT, 2);
    double y[2], relu[2], gelu[2], dx[4], dw[2], db = dy[0] + dy[1];
    for (int i = 0; i < 2; ++i) {
        y[i] = x[2 * i] * w[0] + x[2 * i + 1] * w[1] + b[0];
        relu[i] = fmax(y[i], 0);
        gelu[i] = y[i] / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (y[i] + 0.044715 * pow(y[i], 3))));
        dx[2 * i] = dy[i] * w[0];
        dx[2 * i + 1] = dy[i] * w[1];
        dw[i] = dy[0] * x[i] + dy[1] * x[2 + i];
    }
    check_linear(LAYER, TENSOR_OUTPUT, 2, y);
    check_linear(LAYER " activation=relu", TENSOR_OUTPUT, 2, relu);
    check_linear(LAYER " activation=gelu", TENSOR_OUTPUT, 2, gelu);
    check_linear(LAYER " pass=backward-data", TENSOR_INPUT, 4, dx);
    check_linear(LAYER " pass=backward-weights", TENSOR_WEIGHT, 2, dw);
    check_linear(LAYER " pass=backward-weights", TENSOR_BIAS, 1, &db);
#undef LAYER
    free(x);
    free(w);
    free(b);
    free(dy);
}

/* The softmax as it is defined, of small scores; a query sees two keys, with a mask the first sees one. */
static void attention_by_hand(void **state)
{
    (void)state;
#define ATTENTION "attention batch=1 heads=1 sequence=2 keys=2 head_size=1 precision=fp64"
    struct config config = parse(ATTENTION), causal = parse(ATTENTION " causal=yes");
#undef ATTENTION
    double *q = filled(&config, TENSOR_INPUT, 2), *k = filled(&config, TENSOR_WEIGHT, 2);
    double *v = filled(&config, TENSOR_VALUE, 2);
    double *o = expect_all(&config, TENSOR_OUTPUT, 2);
    double *masked = expect_all(&causal, TENSOR_OUTPUT, 2);
    for (int i = 0; i < 2; ++i) {
        double first = exp(q[i] * k[0]), second = exp(q[i] * k[1]);
        assert_true(fabs(o[i] - (first * v[0] + second * v[1]) / (first + second)) < 1e-14);
    }
    assert_true(fabs(masked[0] - v[0]) < 1e-14 && fabs(masked[1] - o[1]) < 1e-14);
    free(q);
    free(k);
    free(v);
    free(o);
    free(masked);
}

/* Forwards, all values of a tile at once, as the definition says it. */
static void check_loop(const char *text)
{
    struct config config = parse(text);
    struct loop s = loop_from(&config);
    int64_t size = s.tiles * s.tile;
    double *x = filled(&config, TENSOR_INPUT, size), *v = filled(&config, TENSOR_INPUT, size);
    double *next = zeros(size);
    for (int64_t step = 0; step < s.steps; ++step) {
        for (int64_t i = 0; i < size; ++i) {
            int64_t first = i / s.tile * s.tile, neighbour = first + (i - first + 1) % s.tile;
            next[i] = loop_factor(s.precision, step) * v[neighbour] + x[i];
        }
        memcpy(v, next, (size_t)size * sizeof *v);
    }
    double *y = expect_all(&config, TENSOR_OUTPUT, size);
    for (int64_t i = 0; i < size; ++i)
        assert_true(fabs(y[i] - v[i]) < 1e-14);
    free(x);
    free(y);
    free(v);
    free(next);
}

static void loops_as_defined(void **state)
{
    (void)state;
    check_loop("compute-loop elements=3 steps=1 precision=fp64");
    check_loop("compute-loop elements=5 steps=100 precision=bf16");
    check_loop("shared-loop tiles=3 tile=1 steps=4");
    check_loop("shared-loop tiles=2 tile=5 steps=3 precision=fp64");
    check_loop("shared-loop tiles=3 tile=4 steps=4");
    check_loop("shared-loop tiles=2 tile=7 steps=50");
}

/* One value, two steps: a2 (a1 x + x) + x. */
static void compute_loop_by_hand(void **state)
{
    (void)state;
    struct config config = parse("compute-loop elements=1 steps=2 precision=fp64");
    double *x = filled(&config, TENSOR_INPUT, 1), *y = expect_all(&config, TENSOR_OUTPUT, 1);
    assert_true(fabs(*y - (0.91372318 * (-0.57168429 * x[0] + x[0]) + x[0])) < 1e-15);
    free(x);
    free(y);
}

static void cost_counts_products(void **state)
{
    (void)state;
    const char *shape =
        "batch=2 height=8 width=8 channels=6 filters=4 kernel=3x5 stride=1 groups=2";
    static const struct {
        const char *pass;
        double products;
    } cases[] = {{"forward", 15 * 3}, {"backward-data", 15 * 2}, {"backward-filter", 2 * 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "conv2d %s pass=%s", shape, cases[i].pass);
        struct config config = parse(text);
        struct expectation seven = expect(&config, 7.5 * cases[i].products);
        assert_int_equal(seven.slices[0].count, 7);
        expectation_clear(&seven);
    }
}

/* The two ends are always among them, and each lies in a stretch of its own. */
static void places_are_spread(void **state)
{
    (void)state;
    struct config config = parse("matmul m=100 n=100 k=2");
    struct expectation expectation = expect(&config, 2.0 * 50);
    const struct slice *slice = &expectation.slices[0];
    assert_int_equal(slice->count, 50);
    assert_int_equal(slice->offsets[0], 0);
    assert_int_equal(slice->offsets[49], 100 * 100 - 1);
    for (int64_t i = 0; i < 50; ++i)
        assert_int_equal(slice->offsets[i] / 200, i);
    expectation_clear(&expectation);
}

/* Samples are whole: at least one, at most the batch. */
static void lstm_takes_samples(void **state)
{
    (void)state;
    struct config config = parse("lstm batch=4 sequence=3 features=2 hidden=5 pass=backward");
    double sample = config_cost(&config).flops / 2.0 / 4;
    static const struct {
        double samples;
        int64_t taken;
    } cases[] = {{0.1, 1}, {2.5, 2}, {100.0, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct expectation expectation = expect(&config, cases[i].samples * sample);
        assert_int_equal(expectation.samples, cases[i].taken);
        assert_int_equal(expectation.count, 2);
        assert_int_equal(expectation.slices[0].tensor, TENSOR_INPUT);
        assert_int_equal(expectation.slices[0].count, 3 * cases[i].taken * 2);
        assert_int_equal(expectation.slices[0].offsets[cases[i].taken * 2], 4 * 2);
        assert_int_equal(expectation.slices[1].tensor, TENSOR_WEIGHT);
        assert_int_equal(expectation.slices[1].count, 4 * 5 * (2 + 5 + 1));
        expectation_clear(&expectation);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_forward_by_hand),
        cmocka_unit_test(conv2d_padding_by_hand),
        cmocka_unit_test(conv2d_backward_by_hand),
        cmocka_unit_test(conv2d_gradients),
        cmocka_unit_test(conv2d_layers),
        cmocka_unit_test(lstm_forward_by_hand),
        cmocka_unit_test(lstm_switched_by_the_device),
        cmocka_unit_test(lstm_gradients),
        cmocka_unit_test(matmul_by_hand),
        cmocka_unit_test(sparse_matmul_by_hand),
        cmocka_unit_test(matmul_of_fp8_by_hand),
        cmocka_unit_test(weights_of_fp8_are_exact),
        cmocka_unit_test(linear_by_hand),
        cmocka_unit_test(attention_by_hand),
        cmocka_unit_test(loops_as_defined),
        cmocka_unit_test(compute_loop_by_hand),
        cmocka_unit_test(cost_counts_products),
        cmocka_unit_test(places_are_spread),
        cmocka_unit_test(lstm_takes_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
