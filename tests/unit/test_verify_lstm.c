/* Verification of an LSTM: right results pass, and computations that are worse on purpose do
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "computed.h"
#include "parsed.h"
#include "model/reference.h"
#include "model/workloads/lstm.h"
#include "model/workloads/lstm_network.h"
#include "worker/verify.h"

enum { LSTM_OUTPUTS_MAX = 4096, LSTM_HIDDEN_MAX = 64, GATES = 4 };

struct computed_lstm {
    struct config config;
    struct way way;
    double y[LSTM_OUTPUTS_MAX];
};

static double sigmoid(double value)
{
    return 1.0 / (1.0 + exp(-value));
}

/* One gate's sum, over the input and the last state, whose sums are rounded as the way says. */
static double gate_sum(const struct computed_lstm *l, const struct lstm *s, int64_t gate,
                       int64_t unit, int64_t row, const double *state)
{
    const struct way *way = &l->way;
    struct fill x = config_fill(&l->config, seed, TENSOR_INPUT);
    struct fill w = config_fill(&l->config, seed, TENSOR_WEIGHT);
    int64_t line = gate * s->hidden + unit;
    int64_t input = lstm_w_at(s, 0, 0, LSTM_INPUT_MATRIX) + line * s->features;
    int64_t recurrent = lstm_w_at(s, 0, 0, LSTM_RECURRENT_MATRIX) + line * s->hidden;
    double sum = fill_value(w, (uint64_t)(lstm_w_at(s, 0, 0, LSTM_BIAS) + line));
    for (int64_t i = 0; i < s->features; ++i)
        sum = rounded(sum + rounded(fill_value(x, (uint64_t)(row * s->features + i)), way->inputs) *
                                rounded(fill_value(w, (uint64_t)(input + i)), way->inputs),
                      way->sums);
    for (int64_t i = 0; i < s->hidden; ++i)
        sum = rounded(sum + rounded(state[i], way->inputs) *
                                rounded(fill_value(w, (uint64_t)(recurrent + i)), way->inputs),
                      way->sums);
    return sum;
}

static void lstm_compute(struct computed_lstm *l)
{
    const struct lstm s = lstm_from(&l->config);
    const int bits = l->way.result;
    for (int64_t n = 0; n < s.batch; ++n) {
        double cell[LSTM_HIDDEN_MAX] = {0}, state[LSTM_HIDDEN_MAX] = {0};
        for (int64_t t = 0; t < s.sequence; ++t) {
            int64_t row = t * s.batch + n;
            double next[LSTM_HIDDEN_MAX] = {0};
            for (int64_t i = 0; i < s.hidden; ++i) {
                double gates[GATES];
                for (int64_t gate = 0; gate < GATES; ++gate)
                    gates[gate] = gate_sum(l, &s, gate, i, row, state);
                cell[i] =
                    rounded(sigmoid(gates[1]) * cell[i] + sigmoid(gates[0]) * tanh(gates[2]), bits);
                next[i] = rounded(sigmoid(gates[3]) * tanh(cell[i]), bits);
            }
            memcpy(state, next, sizeof next);
            for (int64_t i = 0; i < s.hidden; ++i)
                l->y[row * s.hidden + i] = state[i];
        }
    }
}

static enum status lstm_read(struct device_state *state, struct work *work, enum tensor tensor,
                             const int64_t *offsets, int64_t count, double *values,
                             struct error *error)
{
    (void)work, (void)error;
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i)
        values[i] = ((const struct computed_lstm *)state)->y[offsets[i]];
    return STATUS_OK;
}

static void lstm_is(enum status expected, const char *precision, struct way way)
{
    static const struct device_ops ops = {.run = computed_run, .read = lstm_read};
    static struct computed_lstm l;
    char text[WORKLOAD_TEXT];
    struct record record;
    struct error error;
    snprintf(text, sizeof text, "lstm batch=4 sequence=16 features=32 hidden=16 precision=%s",
             precision);
    l = (struct computed_lstm){.config = parse(text), .way = way};
    lstm_compute(&l);
    record_init(&record);
    if (verify_work(&ops, (struct device_state *)&l, NULL, &l.config, seed, &record, &error) !=
        expected)
        fail_msg("%s, inputs of %d bits, sums of %d: error %.3g of %.3g, of an element %.3g", text,
                 way.inputs, way.sums, record.verify_error, record.verify_tolerance,
                 record.verify_element_error);
    record_clear(&record);
}

static void lstms_are_told_apart(void **state)
{
    (void)state;
    lstm_is(STATUS_OK, "fp32", (struct way){24, 24, 24, false, 0, 0.0});
    lstm_is(STATUS_FAILED, "fp32", (struct way){11, 24, 24, false, 0, 0.0});
    lstm_is(STATUS_FAILED, "fp32", (struct way){24, 11, 24, false, 0, 0.0});
    lstm_is(STATUS_OK, "fp16", (struct way){11, 24, 11, false, 0, 0.0});
    lstm_is(STATUS_FAILED, "fp16", (struct way){11, 11, 11, false, 0, 0.0});
    lstm_is(STATUS_FAILED, "fp16", (struct way){8, 24, 11, false, 0, 0.0});
}

/* A backward pass whose weights' gradient is right but for some elements of one gate in one
 * part. */
struct gradient {
    struct config config;
    int64_t layer;
    enum lstm_part part;
    int64_t gate, every; /* each so many of the gate's elements is off */
    double off;          /* by this share of the gate's root mean square */
};

static enum status gradient_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    const struct gradient *g = (const struct gradient *)state;
    const struct lstm s = lstm_from(&g->config);
    const int64_t size = lstm_part_size(&s, g->layer, g->part) / s.cell->gates;
    const int64_t begin = lstm_w_at(&s, g->layer, 0, g->part) + g->gate * size;
    double *dx = test_calloc((size_t)lstm_x_size(&s), sizeof *dx), squares = 0.0;
    double *dw = test_calloc((size_t)lstm_w_size(&s), sizeof *dw);
    (void)work;
    assert_int_equal(lstm_network_compute(&g->config, seed, s.batch, reference_in_turn, NULL, NULL,
                                          dx, dw, error),
                     STATUS_OK);
    for (int64_t i = begin; i < begin + size; ++i)
        squares += dw[i] * dw[i];
    for (int64_t i = begin; i < begin + size; i += g->every)
        dw[i] += g->off * sqrt(squares / (double)size);
    for (int64_t i = 0; i < count; ++i)
        values[i] = tensor == TENSOR_WEIGHT ? dw[offsets[i]] : dx[offsets[i]];
    test_free(dx);
    test_free(dw);
    return STATUS_OK;
}

static void gradient_is(enum status expected, const char *text, struct gradient g)
{
    static const struct device_ops ops = {.run = computed_run, .read = gradient_read};
    struct record record;
    struct error error;
    g.config = parse(text);
    record_init(&record);
    if (verify_work(&ops, (struct device_state *)&g, NULL, &g.config, seed, &record, &error) !=
        expected)
        fail_msg("%s, part %d, gate %d: error %.3g of %.3g, of an element %.3g", text, (int)g.part,
                 (int)g.gate, record.verify_error, record.verify_tolerance,
                 record.verify_element_error);
    record_clear(&record);
}

/* Gradients of the gates differ by up to two hundred times here, and those of the matrices and the
 * bias. */
static void each_gate_has_its_own_size(void **state)
{
    (void)state;
    static const char text[] = "lstm batch=4 pass=backward precision=fp16";
    static const enum lstm_part parts[] = {LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        for (int64_t gate = 0; gate < GATES; ++gate) {
            struct gradient g = {.part = parts[i], .gate = gate, .every = 1, .off = 5e-4};
            gradient_is(STATUS_OK, text, g);
            g.off = 2e-3;
            gradient_is(STATUS_FAILED, text, g);
            g.off = 0.2;
            g.every = LSTM_OUTPUTS_MAX; /* the first element alone */
            gradient_is(STATUS_FAILED, text, g);
        }
    for (int64_t gate = 0; gate < GATES; ++gate)
        gradient_is(STATUS_OK, text, (struct gradient){.gate = gate, .every = 100, .off = 8e-3});
}

/* What reaches the first of six layers is 1e-7, less than fp16 can say. */
static void gradients_may_vanish_in_fp16(void **state)
{
    (void)state;
    const struct gradient lost = {.part = LSTM_RECURRENT_MATRIX, .every = 1, .off = 1.0};
    struct gradient last = lost;
    last.layer = 5;
    gradient_is(STATUS_OK, "lstm layers=6 batch=4 pass=backward precision=fp16", lost);
    gradient_is(STATUS_FAILED, "lstm layers=6 batch=4 pass=backward precision=fp16", last);
    gradient_is(STATUS_FAILED, "lstm layers=6 batch=4 pass=backward precision=bf16", lost);
    gradient_is(STATUS_FAILED, "lstm layers=6 batch=4 pass=backward precision=fp32", lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstms_are_told_apart),
        cmocka_unit_test(each_gate_has_its_own_size),
        cmocka_unit_test(gradients_may_vanish_in_fp16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
