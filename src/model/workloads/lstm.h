/* lstm: stacked LSTM layers, forward or backward. */
#ifndef ROOFSWEEP_WORKLOADS_LSTM_H
#define ROOFSWEEP_WORKLOADS_LSTM_H

#include "model/workload.h"

extern const struct workload lstm_workload;

enum lstm_pass { LSTM_FORWARD, LSTM_BACKWARD };

/* An LSTM in numbers, after equation (5) of the time-based Roofline paper, one bias per gate, zero
 * initial states. With D = directions, layer l has input width I(0) = features, I(l) = hidden * D:
 *   x [sequence][batch][features]      y [sequence][batch][hidden * D] (forward, then reverse)
 *   w [layer][direction] { input [4][hidden][I(l)], recurrent [4][hidden][hidden], bias [4][hidden] }
 * Gates in the order input, forget, cell, output. `forward` computes y in inference mode;
 * `backward` computes dx and dw from dy, x, w and what a training forward pass has kept; that pass
 * is not timed. */
struct lstm {
    int64_t batch, sequence, features, hidden, layers, directions;
    enum precision precision;
    enum lstm_pass pass;
    const char *implementation, *algorithm;
    bool cold;
};
struct lstm lstm_from(const struct config *config);

enum lstm_part { LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS };
int64_t lstm_input_width(const struct lstm *s, int64_t layer); /* I(layer) */
int64_t lstm_x_size(const struct lstm *s);
int64_t lstm_w_size(const struct lstm *s);
int64_t lstm_y_size(const struct lstm *s);
/* Offset of a part in w, in elements; the four gates follow one another in it. */
int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part);

#endif
