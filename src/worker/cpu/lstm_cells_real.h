/* The cells of recurrent layers in one precision, some units of one sample at a time: a template, see
 * real.h. struct lstm_cell (model/workloads/lstm.h) has the formulas. Sums, gates and gradients of a
 * unit's sums lie `hidden` apart. */
#include "worker/cpu/functions_real.h"

/* Forward: gates holds the matrix products and takes what the gates make of them. */
struct NAME(units) {
    int64_t count, hidden;
    const REAL *bias;
    REAL *gates;
    const REAL *before; /* states of the step before */
    REAL *state;        /* an LSTM's */
    REAL *h;
};

static void NAME(activate_lstm)(const struct NAME(units) * units)
{
    int64_t hidden = units->hidden;
    const REAL *restrict bias = units->bias, *c_before = units->before;
    REAL *restrict gates = units->gates, *c = units->state, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u) {
        REAL i = NAME(sigmoid)(gates[u] + bias[u]);
        REAL f = NAME(sigmoid)(gates[hidden + u] + bias[hidden + u]);
        REAL g = NAME(hyperbolic_tangent)(gates[2 * hidden + u] + bias[2 * hidden + u]);
        REAL o = NAME(sigmoid)(gates[3 * hidden + u] + bias[3 * hidden + u]);
        REAL now = f * c_before[u] + i * g;
        c[u] = now;
        h[u] = o * NAME(hyperbolic_tangent)(now);
        gates[u] = i;
        gates[hidden + u] = f;
        gates[2 * hidden + u] = g;
        gates[3 * hidden + u] = o;
    }
}

static void NAME(activate_gru)(const struct NAME(units) * units)
{
    int64_t hidden = units->hidden;
    const REAL *restrict bias = units->bias, *restrict before = units->before;
    REAL *restrict gates = units->gates, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u) {
        REAL z = NAME(sigmoid)(gates[u] + bias[u]);
        REAL r = NAME(sigmoid)(gates[hidden + u] + bias[hidden + u]);
        REAL q = gates[3 * hidden + u] + bias[3 * hidden + u];
        REAL n = NAME(hyperbolic_tangent)(gates[2 * hidden + u] + bias[2 * hidden + u] + r * q);
        h[u] = (1 - z) * n + z * before[u];
        gates[u] = z;
        gates[hidden + u] = r;
        gates[2 * hidden + u] = n;
        gates[3 * hidden + u] = q;
    }
}

static void NAME(activate_relu)(const struct NAME(units) * units)
{
    const REAL *restrict bias = units->bias;
    REAL *restrict gates = units->gates, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u) {
        REAL sum = gates[u] + bias[u];
        gates[u] = h[u] = sum > 0 ? sum : 0;
    }
}

static void NAME(activate_tanh)(const struct NAME(units) * units)
{
    const REAL *restrict bias = units->bias;
    REAL *restrict gates = units->gates, *restrict h = units->h;
#pragma omp simd
    for (int64_t u = 0; u < units->count; ++u)
        gates[u] = h[u] = NAME(hyperbolic_tangent)(gates[u] + bias[u]);
}

static void (*const NAME(activate)[LSTM_KINDS])(const struct NAME(units) *) = {
    [LSTM_LSTM] = NAME(activate_lstm),
    [LSTM_GRU] = NAME(activate_gru),
    [LSTM_RELU] = NAME(activate_relu),
    [LSTM_TANH] = NAME(activate_tanh),
};

/* The way back. */
struct NAME(gradients) {
    int64_t count, hidden;
    const REAL *gates, *before, *state; /* as they were kept */
    const REAL *d;                      /* of the outputs */
    REAL *carried; /* of the states, from the later step; replaced by what the one before gets */
    REAL *dgates;
};

static void NAME(differentiate_lstm)(const struct NAME(gradients) * g)
{
    int64_t hidden = g->hidden;
    const REAL *gates = g->gates, *c_before = g->before, *c = g->state, *dh = g->d;
    REAL *dc = g->carried, *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u) {
        REAL i = gates[u], f = gates[hidden + u], n = gates[2 * hidden + u];
        REAL o = gates[3 * hidden + u];
        REAL t = NAME(hyperbolic_tangent)(c[u]), d = dh[u];
        REAL dc_now = dc[u] + d * o * (1 - t * t);
        dc[u] = dc_now * f;
        dgates[u] = dc_now * n * i * (1 - i);
        dgates[hidden + u] = dc_now * c_before[u] * f * (1 - f);
        dgates[2 * hidden + u] = dc_now * i * (1 - n * n);
        dgates[3 * hidden + u] = d * t * o * (1 - o);
    }
}

static void NAME(differentiate_gru)(const struct NAME(gradients) * g)
{
    int64_t hidden = g->hidden;
    const REAL *gates = g->gates, *before = g->before, *dh = g->d;
    REAL *carried = g->carried, *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u) {
        REAL z = gates[u], r = gates[hidden + u], n = gates[2 * hidden + u];
        REAL q = gates[3 * hidden + u], d = dh[u] + carried[u];
        REAL dn = d * (1 - z) * (1 - n * n);
        carried[u] = d * z;
        dgates[u] = d * (before[u] - n) * z * (1 - z);
        dgates[hidden + u] = dn * q * r * (1 - r);
        dgates[2 * hidden + u] = dn;
        dgates[3 * hidden + u] = dn * r;
    }
}

static void NAME(differentiate_relu)(const struct NAME(gradients) * g)
{
    const REAL *h = g->gates, *d = g->d;
    REAL *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u)
        dgates[u] = h[u] > 0 ? d[u] : 0;
}

static void NAME(differentiate_tanh)(const struct NAME(gradients) * g)
{
    const REAL *h = g->gates, *d = g->d;
    REAL *dgates = g->dgates;
#pragma omp simd
    for (int64_t u = 0; u < g->count; ++u)
        dgates[u] = d[u] * (1 - h[u] * h[u]);
}

static void (*const NAME(differentiate)[LSTM_KINDS])(const struct NAME(gradients) *) = {
    [LSTM_LSTM] = NAME(differentiate_lstm),
    [LSTM_GRU] = NAME(differentiate_gru),
    [LSTM_RELU] = NAME(differentiate_relu),
    [LSTM_TANH] = NAME(differentiate_tanh),
};
