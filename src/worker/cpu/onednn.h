/* Operations of oneDNN, the library of frameworks on CPUs: described in plain numbers, created,
 * bound to memory and run. Only onednn.c includes the library's header. A build without the library
 * lacks these files, ROOFSWEEP_ONEDNN and the routines.
 *
 * The library must run in the threads of the calling OpenMP team. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/workload.h"
#include "worker/cpu/routine.h"

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

/* The layout in which an operation reads or writes a tensor: the caller's or oneDNN's own. */
enum onednn_place {
    ONEDNN_PLAIN,     /* the caller's layout, in the caller's memory */
    ONEDNN_PACKED,    /* oneDNN's layout; onednn_bind copies the input once */
    ONEDNN_REORDERED, /* oneDNN's layout; every run copies from or to the caller's memory */
};

enum { ONEDNN_AXES = 12 }; /* oneDNN reads this number of extents, used or not */
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
    ONEDNN_RNN, /* plain RNN; `function` is the activation */
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
    ONEDNN_GELU,  /* the tanh form of gelu */
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
    int64_t window[ONEDNN_AXES]; /* window of a pool */
    /* for a pool or a convolution */
    int64_t stride[ONEDNN_AXES], padding[ONEDNN_AXES], padding_after[ONEDNN_AXES];
    int64_t dilation[2]; /* dilation of a convolution; 1: dense */
    bool bidirectional;  /* for recurrent layers */
    struct onednn_tensor tensors[ONEDNN_ARGUMENTS];
};

/* Dense tensors: [count]; [rows][columns]; [count][rows][columns]; images with the extents
 * [n][c][h][w] in either layout. */
struct onednn_tensor onednn_vector(enum precision precision, int64_t count);
struct onednn_tensor onednn_matrix(enum precision precision, enum onednn_place place, int64_t rows,
                                   int64_t columns);
struct onednn_tensor onednn_matrices(enum precision precision, int64_t count, int64_t rows,
                                     int64_t columns);
struct onednn_tensor onednn_image(enum precision precision, enum onednn_place place, bool nhwc,
                                  int64_t n, int64_t c, int64_t h, int64_t w);

/* "oneDNN 2.6.3". Terminates `text` of `size` bytes. */
void onednn_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED, with the reason, if the library has its own threads, or this CPU has no
 * native instructions for the precision, which the library would emulate. */
enum status onednn_check(enum precision precision, struct error *error);

/* One created operation. */
struct onednn;
/* Compiles the operation's code. `forward`: the ONEDNN_TRAINING operation of an ONEDNN_BACKWARD
 * one, which must outlive it; else NULL. STATUS_UNSUPPORTED: the library lacks the operation. The
 * caller owns *made. */
enum status onednn_create(const struct onednn_operation *operation, const struct onednn *forward,
                          struct onednn **made, struct error *error);
void onednn_destroy(struct onednn *made); /* takes NULL */
/* The library's name of the code, "jit:avx512_core". */
const char *onednn_name(const struct onednn *made);
/* Bytes of memory for onednn_bind: tensors in the library's layout, and its workspace. */
size_t onednn_memory(const struct onednn *made);
/* Binds the operation to the caller's memory: `data` of each tensor, and `memory` of onednn_memory
 * bytes, aligned to 64. Both must live longer. Copies the packed tensors. */
enum status onednn_bind(struct onednn *made, void *const data[ONEDNN_ARGUMENTS], void *memory,
                        struct error *error);
/* Changes the caller's memory of a tensor that is not packed. */
void onednn_move(struct onednn *made, enum onednn_argument argument, void *data);
/* Runs the operation once. If the library fails, the result is unchanged. */
void onednn_run(const struct onednn *made, struct trace *trace);

/* For the plan of a work: creates an operation and reserves its memory in the scratch memory, at
 * the offset *memory in bytes. STATUS_UNSUPPORTED also if the work's implementation is `auto` and
 * the library has only a definition of the operation ("ref"), which is slow. Recurrent layers are
 * exempt: their "ref" makes the products by fast code. */
enum status onednn_create_for(struct work *work, const struct onednn_operation *operation,
                              const struct onednn *forward, struct onednn **made, size_t *memory,
                              struct error *error);

/* A routine of one operation. Its plan holds the operation, and the argument of each tensor of the
 * work, as an input and as a result. */
struct onednn_roles {
    enum onednn_argument inputs[TENSOR_COUNT], results[TENSOR_COUNT];
};
struct onednn_plan {
    struct onednn *made;
    struct onednn_roles roles;
};
enum status onednn_plan_operation(struct work *work, const struct onednn_operation *operation,
                                  const struct onednn_roles *roles, struct error *error);
enum status onednn_plan_ready(struct work *work, struct error *error);
void onednn_plan_run(struct work *work, struct trace *trace);
void onednn_plan_release(struct work *work);
const char *onednn_plan_name(const struct work *work);
#define ONEDNN_ROUTINE(plan_function)                                                              \
    .plan_size = sizeof(struct onednn_plan), .own_regions = true, .check = onednn_check,           \
    .plan = plan_function, .ready = onednn_plan_ready, .run = onednn_plan_run,                     \
    .release = onednn_plan_release, .name = onednn_plan_name
