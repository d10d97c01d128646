#include "model/workloads/lstm_unit.h"

#include <math.h>

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

static double lstm_forward(struct lstm_unit *unit, double before)
{
    double *v = unit->sums;
    v[0] = sigmoid(v[0]);
    v[1] = sigmoid(v[1]);
    v[2] = tanh(v[2]);
    v[3] = sigmoid(v[3]);
    unit->state = v[1] * before + v[0] * v[2];
    return v[3] * tanh(unit->state);
}

static void lstm_backward(const struct lstm_unit *unit, double before, double d, double *carried,
                          double dsums[LSTM_SUMS])
{
    double i = unit->sums[0], f = unit->sums[1], g = unit->sums[2], o = unit->sums[3];
    double t = tanh(unit->state), dc = *carried + d * o * (1.0 - t * t);
    *carried = dc * f;
    dsums[0] = dc * g * i * (1.0 - i);
    dsums[1] = dc * before * f * (1.0 - f);
    dsums[2] = dc * i * (1.0 - g * g);
    dsums[3] = d * t * o * (1.0 - o);
}

static double gru_forward(struct lstm_unit *unit, double before)
{
    double *v = unit->sums;
    v[0] = sigmoid(v[0]);
    v[1] = sigmoid(v[1]);
    v[2] = tanh(v[2] + v[1] * v[3]);
    unit->state = (1.0 - v[0]) * v[2] + v[0] * before;
    return unit->state;
}

static void gru_backward(const struct lstm_unit *unit, double before, double d, double *carried,
                         double dsums[LSTM_SUMS])
{
    double z = unit->sums[0], r = unit->sums[1], n = unit->sums[2], q = unit->sums[3];
    double dh = d + *carried;
    *carried = dh * z;
    dsums[0] = dh * (before - n) * z * (1.0 - z);
    dsums[2] = dh * (1.0 - z) * (1.0 - n * n);
    dsums[1] = dsums[2] * q * r * (1.0 - r);
    dsums[3] = dsums[2] * r;
}

static double relu_forward(struct lstm_unit *unit, double before)
{
    (void)before;
    return unit->state = unit->sums[0] = fmax(unit->sums[0], 0.0);
}

static void relu_backward(const struct lstm_unit *unit, double before, double d, double *carried,
                          double dsums[LSTM_SUMS])
{
    (void)before, (void)carried;
    dsums[0] = unit->sums[0] > 0.0 ? d : 0.0;
}

static double tanh_forward(struct lstm_unit *unit, double before)
{
    (void)before;
    return unit->state = unit->sums[0] = tanh(unit->sums[0]);
}

static void tanh_backward(const struct lstm_unit *unit, double before, double d, double *carried,
                          double dsums[LSTM_SUMS])
{
    (void)before, (void)carried;
    dsums[0] = d * (1.0 - unit->sums[0] * unit->sums[0]);
}

static const struct {
    double (*forward)(struct lstm_unit *unit, double before);
    void (*backward)(const struct lstm_unit *unit, double before, double d, double *carried,
                     double dsums[LSTM_SUMS]);
} functions[LSTM_KINDS] = {
    [LSTM_LSTM] = {lstm_forward, lstm_backward},
    [LSTM_GRU] = {gru_forward, gru_backward},
    [LSTM_RELU] = {relu_forward, relu_backward},
    [LSTM_TANH] = {tanh_forward, tanh_backward},
};

double lstm_unit_forward(enum lstm_kind kind, struct lstm_unit *unit, double before)
{
    return functions[kind].forward(unit, before);
}

void lstm_unit_backward(enum lstm_kind kind, const struct lstm_unit *unit, double before, double d,
                        double *carried, double dsums[LSTM_SUMS])
{
    functions[kind].backward(unit, before, d, carried, dsums);
}
