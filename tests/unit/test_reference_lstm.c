/* The reference of recurrent layers, against a step-by-step computation by the cells' formulas. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in_turn.h"
#include "expected.h"
#include "parsed.h"

static const struct arithmetic exact = {53, 53, 53};

/* Returns the loss of the first `samples`, and writes the output of the last layer to y. */
static double lstm_loss(const struct lstm *s, const double *x, const double *w, const double *dy,
                        int64_t samples, double *y)
{
    double *below = zeros(lstm_y_size(s)), loss = 0.0;
    for (int64_t layer = 0; layer < s->layers; ++layer) {
        memcpy(below, y, (size_t)lstm_y_size(s) * sizeof *y);
        for (int64_t direction = 0; direction < s->directions; ++direction)
            lstm_plain(s, &exact, layer, direction, w, layer == 0 ? x : below, y);
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
    int64_t row = s.output * s.directions;
    double *x = filled(&config, TENSOR_INPUT, lstm_x_size(&s));
    double *w = filled(&config, TENSOR_WEIGHT, lstm_w_size(&s));
    double *dy = filled(&config, TENSOR_OUTPUT, lstm_y_size(&s));
    const struct reference_request request = {.loop = loop_in_turn};
    double *plain = zeros(lstm_y_size(&s)), *y = zeros(s.sequence * samples * row);
    double *dx = zeros(s.sequence * samples * s.features), *dw = zeros(lstm_w_size(&s));
    const struct lstm_results results = {&config, SEED, samples,         NULL, y,
                                         dx,      dw,   lstm_w_size(&s), NULL};
    assert_ok(lstm_network_compute(&request, &results, &failure));
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

TEST(lstm_gradients)
{
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
            snprintf(text, sizeof text, "lstm %s %s pass=backward precision=fp64", shapes[i].shape,
                     cells[j]);
            struct config config;
            assert_ok(config_parse(text, &config, &failure));
            if (config_check(&config, &failure) == STATUS_OK)
                check_lstm(text, shapes[i].samples);
        }
    check_lstm("lstm batch=2 sequence=3 features=2 hidden=5 projection=3 layers=2 directions=2 "
               "pass=backward precision=fp64",
               2);
}

/* A zero of the device's output switches its relu off. If all are zero, no gradient passes. */
TEST(lstm_switched_by_the_device)
{
    struct config config =
        parse("lstm cell=relu batch=2 sequence=3 features=2 hidden=3 pass=backward precision=fp64");
    const struct reference_request request = {.loop = loop_in_turn};
    double *off = zeros(2 * 3 * 3), *dx = filled(&config, TENSOR_INPUT, 2 * 3 * 2);
    const struct lstm_results results = {
        .config = &config, .seed = SEED, .samples = 2, .seen = off, .dx = dx};
    assert_ok(lstm_network_compute(&request, &results, &failure));
    for (int i = 0; i < 2 * 3 * 2; ++i)
        assert_true(dx[i] == 0.0);
    free(off);
    free(dx);
}

/* Samples are whole: at least one, at most the batch. */
TEST(lstm_takes_samples)
{
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
