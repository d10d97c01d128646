/* lstm: stacked recurrent layers of LSTM, GRU or plain RNN cells, forward or backward. */
#pragma once

#include "model/workload.h"

extern const struct workload lstm_workload;

enum lstm_pass { LSTM_FORWARD, LSTM_BACKWARD };
enum lstm_kind { LSTM_LSTM, LSTM_GRU, LSTM_RELU, LSTM_TANH, LSTM_KINDS };

/* A cell. A unit computes its state from a few sums. A sum is a bias, plus a row of the input
 * matrix times the input, plus a row of the recurrent matrix times the output of the previous step.
 *   lstm  sums i, f, g, o: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c')
 *         (equation (5) of the time-based Roofline paper)
 *   gru   sums z, r, n, q: n lacks the recurrent product, q lacks the input;
 *         h' = (1 - s(z)) tanh(n + s(r) q) + s(z) h   (as in cuDNN and PyTorch; oneDNN: "linear
 *         before reset")
 *   relu, tanh   one sum a: h' = max(a, 0), h' = tanh(a)
 * with s the sigmoid. */
enum { LSTM_SUMS = 4 };
struct lstm_cell {
    const char *name;                           /* the parameter's word */
    int gates;                                  /* rows of each matrix for each unit */
    int sums;                                   /* sums of a unit; each has a bias */
    int input[LSTM_SUMS], recurrent[LSTM_SUMS]; /* gate whose row each sum uses; -1: none */
    int kept; /* values of each unit and step that a training forward pass keeps */
    double forward_flops, backward_flops; /* for each unit and step, without products */
};
extern const struct lstm_cell lstm_cells[LSTM_KINDS];

/* The shape; initial states are zero. D = directions, G = gates, S = sums, P = projection, R = the
 * output width of a direction, which is P, or `hidden` without a projection. Layer l has the input
 * width I(0) = features, I(l) = R * D:
 *   x [sequence][batch][features]      y [sequence][batch][R * D] (forward, then reverse)
 *   w [layer][direction] { input [G][hidden][I(l)], recurrent [G][hidden][R], bias [S][hidden],
 *                          projection [P][hidden] }
 * Gates are in the order of struct lstm_cell's sums. `forward` computes y as in inference.
 * `backward` computes dx and dw from dy, x, w and the values that a training forward pass has kept;
 * that pass is not timed. */
struct lstm {
    int64_t batch, sequence, features, hidden, layers, directions;
    int64_t projection; /* 0: none */
    int64_t output;     /* R */
    enum lstm_kind kind;
    const struct lstm_cell *cell;
    enum precision precision;
    enum lstm_pass pass;
    const char *algorithm;
};
struct lstm lstm_from(const struct config *config);

enum lstm_part { LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS, LSTM_PROJECTION, LSTM_PARTS };
int64_t lstm_input_width(const struct lstm *s, int64_t layer); /* I(layer) */
int64_t lstm_x_size(const struct lstm *s);
int64_t lstm_w_size(const struct lstm *s);
int64_t lstm_y_size(const struct lstm *s);
/* Number of elements of a part of w in one layer and direction, and the offset of the part in w.
 * Gates of a matrix, and sums of a bias, lie one after another. */
int64_t lstm_part_size(const struct lstm *s, int64_t layer, enum lstm_part part);
int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part);

/* Results for the first `samples` of the batch in fp64, from the definition. forward sets y,
 * backward y, dx and dw. The caller passes NULL for arrays that it does not need. */
struct lstm_results {
    const struct config *config;
    uint64_t seed;
    int64_t samples;
    const double *seen; /* the device's y: zeros are units that a relu switched off; may be NULL */
    double *y, *dx;     /* [sequence][samples][width] */
    double *dw;         /* [dw_count] elements of w's gradient, from these samples alone */
    int64_t dw_count;
    const int64_t *dw_offsets; /* offsets of the elements of `dw` in w; NULL: 0, 1, ... */
};

/* Computes *results, with tasks that request->loop runs. STATUS_SYSTEM: no memory. */
enum status lstm_network_compute(const struct reference_request *request,
                                 const struct lstm_results *results, struct error *error);
