#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "in_turn.h"
#include "expected.h"

double *filled(const struct config *config, enum tensor tensor, int64_t count)
{
    struct fill fill = config_fill(config, SEED, tensor);
    double *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; ++i)
        data[i] = fill_value(fill, (uint64_t)i);
    return data;
}

struct expectation expect(const struct config *config, double products)
{
    const struct reference_request request = {config,       SEED, products, 1,   INT64_MAX,
                                              loop_in_turn, NULL, NULL,     NULL};
    struct expectation expectation = {.count = 0};
    assert_ok(config->workload->reference(&request, &expectation, &failure));
    return expectation;
}

double *expect_all(const struct config *config, enum tensor tensor, int64_t size)
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

double *zeros(int64_t count)
{
    double *data = calloc((size_t)count, sizeof *data);
    assert_non_null(data);
    return data;
}

double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

double rounded(double value, int significand)
{
    int exponent;
    if (significand == 53)
        return value;
    double mantissa = frexp(value, &exponent);
    return ldexp(rint(ldexp(mantissa, significand)), exponent - significand);
}

double add_product(const struct arithmetic *how, double sum, double a, double b)
{
    return rounded(sum + rounded(a, how->inputs) * rounded(b, how->inputs), how->sums);
}

void conv2d_plain(const struct conv2d *s, const struct arithmetic *how, const double *x,
                  const double *w, double *y)
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
                                int64_t row =
                                    h * s->stride_height + r * s->dilation_height - s->pad_height;
                                int64_t column =
                                    v * s->stride_width + q * s->dilation_width - s->pad_width;
                                double *sum = &y[conv2d_y_at(s, n, h, v, k)];
                                if (row < 0 || row >= s->height || column < 0 || column >= s->width)
                                    continue;
                                *sum = add_product(
                                    how, *sum,
                                    x[conv2d_x_at(s, n, row, column, k / filters * channels + c)],
                                    w[conv2d_w_at(s, k, r, q, c)]);
                            }
}

/* Returns h of a unit, by the formulas on PyTorch's pages. a + b is the sum of each gate. For a GRU
 * `b` is its recurrent part. */
static double cell_plain(enum lstm_kind kind, const struct arithmetic *how, const double a[4],
                         const double b[4], double h, double *c)
{
    if (kind == LSTM_LSTM) {
        *c = rounded(sigmoid(a[1] + b[1]) * *c + sigmoid(a[0] + b[0]) * tanh(a[2] + b[2]),
                     how->result);
        return sigmoid(a[3] + b[3]) * tanh(*c);
    }
    double z = sigmoid(a[0] + b[0]), n = tanh(a[2] + sigmoid(a[1] + b[1]) * b[2]);
    return kind == LSTM_GRU    ? (1.0 - z) * n + z * h
           : kind == LSTM_RELU ? fmax(a[0] + b[0], 0.0)
                               : tanh(a[0] + b[0]);
}

void lstm_plain(const struct lstm *s, const struct arithmetic *how, int64_t layer,
                int64_t direction, const double *w, const double *input, double *output)
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
                    a[u][gate] = add_product(how, a[u][gate], wi[i * width + j],
                                             input[(t * s->batch + n) * width + j]);
                double *sum = s->kind == LSTM_GRU ? &b[u][gate] : &a[u][gate];
                for (int64_t j = 0; j < s->output; ++j)
                    *sum = add_product(how, *sum, wr[i * s->output + j], h[j]);
            }
            for (int64_t u = 0; u < hidden; ++u)
                now[u] = rounded(cell_plain(s->kind, how, a[u], b[u], h[u], &c[u]), how->result);
            for (int64_t u = 0; u < s->output; ++u) {
                h[u] = s->projection ? 0.0 : now[u];
                for (int64_t j = 0; s->projection && j < hidden; ++j)
                    h[u] += projection[u * hidden + j] * now[j];
                output[(t * s->batch + n) * row + direction * s->output + u] = h[u];
            }
        }
    }
}
