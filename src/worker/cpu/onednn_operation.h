/* The description of an operation of oneDNN, in plain numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/workload.h"

enum onednn_argument {
    ONEDNN_SOURCE,
    ONEDNN_SECOND, /* second source of a sum */
    ONEDNN_WEIGHTS,
    ONEDNN_RECURRENT,  /* recurrent weights */
    ONEDNN_PROJECTION, /* weights of an LSTM's projection */
    ONEDNN_BIAS,
    ONEDNN_DESTINATION,
    ONEDNN_STATE, /* h before the first step of a recurrent layer */
    ONEDNN_CELL,  /* c before the first step of an LSTM */
    ONEDNN_DIFF_SOURCE,
    ONEDNN_DIFF_WEIGHTS,
    ONEDNN_DIFF_RECURRENT,
    ONEDNN_DIFF_BIAS,
    ONEDNN_DIFF_DESTINATION,
    ONEDNN_DIFF_STATE,
    ONEDNN_DIFF_CELL,
    ONEDNN_ARGUMENTS
};

/* The layout in which an operation reads or writes a tensor. */
enum onednn_place {
    ONEDNN_PLAIN,     /* the caller's, in the caller's memory */
    ONEDNN_PACKED,    /* the library's; onednn_bind copies the input once */
    ONEDNN_REORDERED, /* the library's; every run copies from or to the caller's memory */
};

enum { ONEDNN_AXES = 12 }; /* the library reads all of them, used or not */
struct onednn_tensor {
    enum onednn_place place;
    enum precision precision;
    int axes;                                           /* 0: no tensor */
    int64_t extents[ONEDNN_AXES], strides[ONEDNN_AXES]; /* elements, of the caller's memory */
};

enum onednn_kind {
    ONEDNN_CONVOLUTION,
    ONEDNN_MATMUL,
    ONEDNN_LINEAR,
    ONEDNN_LSTM,
    ONEDNN_GRU, /* linear before reset */
    ONEDNN_RNN, /* plain; `function` is the activation */
    ONEDNN_ELEMENTWISE,
    ONEDNN_SUM,
    ONEDNN_POOL,
    ONEDNN_SOFTMAX,
    ONEDNN_KINDS
};
/* Elementwise: the function. Pool: maximum or average. Convolution, product, linear: the fused
 * activation. */
enum onednn_function {
    ONEDNN_IDENTITY,
    ONEDNN_RELU,
    ONEDNN_SIGMOID,
    ONEDNN_TANH,
    ONEDNN_GELU,  /* with a hyperbolic tangent */
    ONEDNN_SCALE, /* times `factor` */
    ONEDNN_MAXIMUM,
    ONEDNN_AVERAGE, /* padding counts as zeros */
};
enum onednn_pass {
    ONEDNN_INFERENCE,
    ONEDNN_TRAINING, /* forward, with a workspace for ONEDNN_BACKWARD */
    ONEDNN_BACKWARD, /* all gradients */
    ONEDNN_BACKWARD_DATA,
    ONEDNN_BACKWARD_WEIGHTS,
};

/* Axes, in this order:
 *   convolution: source [n][c][h][w], weights [group][filter][c][h][w], bias [filter],
 *         destination [n][filter][h][w]
 *   matmul: source [m][k], weights [k][n], destination [m][n]; all with a batch in front, or none
 *   linear: source [n][c], weights [output][c], bias [output], destination [n][output]
 *   elementwise, sum: any, the same for all
 *   pool: source and destination [n][c][h][w]
 *   softmax: source and destination [row][column]; over the columns
 *   lstm, gru, rnn, one layer: source and destination [t][n][c], weights and recurrent
 *         [1][direction][input][gate][output], bias [1][direction][gate][output],
 *         projection [1][direction][input][output]; state and cell [1][direction][n][c];
 *         gates of lstm: input, forget, cell, output; of gru: update, reset, new, and a fourth bias
 *         for the recurrent product of new; of rnn: one */
struct onednn_operation {
    enum onednn_kind kind;
    enum onednn_pass pass;
    enum onednn_function function;
    double factor;
    int64_t window[2];             /* window of a pool */
    int64_t stride[2], padding[2]; /* for a pool or a convolution */
    int64_t dilation[2];           /* for a pool or a convolution; 1: dense */
    bool bidirectional;            /* for recurrent layers */
    struct onednn_tensor tensors[ONEDNN_ARGUMENTS];
};
