/* lstm: stacked recurrent layers, forward or backward. Their cell is an LSTM, a GRU or a plain
 * one. */
#pragma once

#include "model/workload.h"

extern const struct workload lstm_workload;

enum lstm_pass { LSTM_FORWARD, LSTM_BACKWARD };
enum lstm_kind { LSTM_LSTM, LSTM_GRU, LSTM_RELU, LSTM_TANH, LSTM_KINDS };

/* What a cell is. A unit makes its state from a few sums; each is a bias, and a row of the input
 * matrix times the input, and a row of the recurrent matrix times the output of the step before.
 *   lstm  sums i, f, g, o: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c')
 *         (equation (5) of the time-based Roofline paper)
 *   gru   sums z, r, n, q: n is of the input alone, q of the recurrent product alone;
 *         h' = (1 - s(z)) tanh(n + s(r) q) + s(z) h   (cuDNN's, PyTorch's; oneDNN's "linear before
 *         reset")
 *   relu, tanh   one sum a: h' = max(a, 0), h' = tanh(a)
 * with s the sigmoid. */
enum { LSTM_SUMS = 4 };
struct lstm_cell {
    const char *name;                           /* the parameter's word */
    int gates;                                  /* rows of both matrices for each unit */
    int sums;                                   /* of a unit; each has a bias */
    int input[LSTM_SUMS], recurrent[LSTM_SUMS]; /* of each sum: which gate's row; -1: none */
    int kept;                                   /* values of a unit and step that backward needs */
    double forward_flops, backward_flops;       /* beside the products, of a unit and step */
};
extern const struct lstm_cell lstm_cells[LSTM_KINDS];

/* Recurrent layers in numbers, zero initial states. With D = directions, G gates, S sums, P =
 * projection and R the width of one direction's output, P or without a projection `hidden`, layer l
 * has input width I(0) = features, I(l) = R * D:
 *   x [sequence][batch][features]      y [sequence][batch][R * D] (forward, then reverse)
 *   w [layer][direction] { input [G][hidden][I(l)], recurrent [G][hidden][R], bias [S][hidden],
 *                          projection [P][hidden] }
 * Gates are in the order of struct lstm_cell's sums. `forward` computes y in inference mode;
 * `backward` computes dx and dw from dy, x, w and what a training forward pass has kept; that pass
 * is not timed. */
struct lstm {
    int64_t batch, sequence, features, hidden, layers, directions;
    int64_t projection; /* 0: none */
    int64_t output;     /* R */
    enum lstm_kind kind;
    const struct lstm_cell *cell;
    enum precision precision;
    enum lstm_pass pass;
    const char *implementation, *algorithm;
};
struct lstm lstm_from(const struct config *config);

enum lstm_part { LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS, LSTM_PROJECTION, LSTM_PARTS };
int64_t lstm_input_width(const struct lstm *s, int64_t layer); /* I(layer) */
int64_t lstm_x_size(const struct lstm *s);
int64_t lstm_w_size(const struct lstm *s);
int64_t lstm_y_size(const struct lstm *s);
/* Elements of a part of one layer's direction, and where it begins in w; the gates, or sums, follow
 * one another in it. */
int64_t lstm_part_size(const struct lstm *s, int64_t layer, enum lstm_part part);
int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part);

/* In fp64, from the definition: results for the first `samples` of the batch. y, dx:
 * [sequence][samples][width]; dw: the whole of w, from these samples' output gradient alone.
 * forward sets y; backward sets y, dx and dw. `seen`: an output as y that decides which units of a
 * relu were off, on the way back; NULL: the own one. The caller owns the arrays (NULL: not wanted).
 * STATUS_SYSTEM without memory. */
enum status lstm_network_compute(const struct reference_request *request, int64_t samples,
                                 const double *seen, double *y, double *dx, double *dw,
                                 struct error *error);
