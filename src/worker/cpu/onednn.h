/* Operations of oneDNN, which is what frameworks run on CPUs: described in plain numbers, created,
 * bound to memory and run. Nobody else includes the library's header; onednn_primitive.c knows the
 * versions of its interface. A worker that was built without the library has none of these files
 * and no ROOFSWEEP_ONEDNN, and its workloads no such routine.
 *
 * The library's threads are those of the OpenMP team that calls it: with any other it is
 * refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/workload.h"
#include "worker/cpu/routine.h"

/* Of recurrent layers source, weights and destination are those of the layer. */
enum onednn_argument {
    ONEDNN_SOURCE,
    ONEDNN_SECOND, /* source of a sum */
    ONEDNN_WEIGHTS,
    ONEDNN_RECURRENT,  /* weights of a recurrent layer's state */
    ONEDNN_PROJECTION, /* weights of an LSTM's projection */
    ONEDNN_BIAS,
    ONEDNN_DESTINATION,
    ONEDNN_STATE, /* before the first step of a recurrent layer */
    ONEDNN_CELL,  /* an LSTM's */
    ONEDNN_DIFF_SOURCE,
    ONEDNN_DIFF_WEIGHTS,
    ONEDNN_DIFF_RECURRENT,
    ONEDNN_DIFF_BIAS,
    ONEDNN_DIFF_DESTINATION,
    ONEDNN_DIFF_STATE,
    ONEDNN_DIFF_CELL,
    ONEDNN_ARGUMENTS
};

/* In which layout an operation finds a tensor or leaves it. */
enum onednn_place {
    ONEDNN_PLAIN,     /* in the caller's: the library works on the caller's memory */
    ONEDNN_PACKED,    /* in the library's own: an input, which onednn_bind copies once */
    ONEDNN_REORDERED, /* in the library's own: copied from or to the caller's in every run */
};

enum { ONEDNN_AXES = 12 }; /* as many as the library reads, used or not */
struct onednn_tensor {
    enum onednn_place place;
    enum precision precision;
    int axes;                                           /* 0: there is no such tensor */
    int64_t extents[ONEDNN_AXES], strides[ONEDNN_AXES]; /* elements, of the caller's memory */
};

enum onednn_kind {
    ONEDNN_CONVOLUTION,
    ONEDNN_MATMUL,
    ONEDNN_LINEAR,
    ONEDNN_LSTM,
    ONEDNN_GRU, /* linear before reset */
    ONEDNN_RNN, /* plain: its function is the activation */
    ONEDNN_ELEMENTWISE,
    ONEDNN_SUM,
    ONEDNN_POOL,
    ONEDNN_SOFTMAX,
    ONEDNN_KINDS
};
/* Of elementwise work the function, of a pool its kind; of a convolution, a product and a linear
 * layer what is applied to the result before it is written. */
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
    ONEDNN_TRAINING, /* forward, and keeps what ONEDNN_BACKWARD needs */
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
 *         gates input, forget, cell, output; update, reset, new, and a fourth bias, of new's
 *         recurrent product; one */
struct onednn_operation {
    enum onednn_kind kind;
    enum onednn_pass pass;
    enum onednn_function function;
    double factor;
    int64_t window[2], stride[2], padding[2]; /* of a pool and, without the window, a convolution */
    int64_t dilation[2];                      /* of a convolution; a dense kernel's is 1 */
    bool bidirectional;                       /* a recurrent layer */
    struct onednn_tensor tensors[ONEDNN_ARGUMENTS];
};

/* Dense tensors: [count]; [rows][columns]; several matrices, one after the other; images with the
 * extents [n][c][h][w], whatever their layout in memory. */
struct onednn_tensor onednn_vector(enum precision precision, int64_t count);
struct onednn_tensor onednn_matrix(enum precision precision, enum onednn_place place, int64_t rows,
                                   int64_t columns);
struct onednn_tensor onednn_matrices(enum precision precision, int64_t count, int64_t rows,
                                     int64_t columns);
struct onednn_tensor onednn_image(enum precision precision, enum onednn_place place, bool nhwc,
                                  int64_t n, int64_t c, int64_t h, int64_t w);

/* ", oneDNN 2.6.3", or "" where there is none. `text` of `size` bytes is always ended. */
void onednn_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED, with the reason, if the library is not there, has threads of its own, or has
 * no native instructions for the precision on this CPU: what it would emulate is no measurement. */
enum status onednn_check(enum precision precision, struct error *error);

/* One created operation. */
struct onednn;
/* Compiles the operation's code. `forward`: of ONEDNN_BACKWARD the operation that keeps what it
 * needs; it must live longer. Else NULL. STATUS_UNSUPPORTED: the library does not have it. The
 * caller owns *made. */
enum status onednn_create(const struct onednn_operation *operation, const struct onednn *forward,
                          struct onednn **made, struct error *error);
void onednn_destroy(struct onednn *made); /* NULL: nothing */
/* What the library calls its code, "jit:avx512_core". */
const char *onednn_name(const struct onednn *made);
/* Bytes that onednn_bind wants: packed tensors, and what the library needs to work. */
size_t onednn_memory(const struct onednn *made);
/* `data`: the caller's memory of each tensor; `memory`: of onednn_memory bytes, aligned to 64. Both
 * must live longer. Copies the packed tensors. */
enum status onednn_bind(struct onednn *made, void *const data[ONEDNN_ARGUMENTS], void *memory,
                        struct error *error);
/* The caller's memory of a tensor that is not packed, from the next run on. */
void onednn_move(struct onednn *made, enum onednn_argument argument, void *data);
/* One run. A library that fails here leaves its result as it was. */
void onednn_run(const struct onednn *made, struct trace *trace);

/* For the plan of a work: creates an operation and takes its memory from the scratch memory, from
 * *memory on, in bytes. STATUS_UNSUPPORTED also if the work's implementation is `auto` and the
 * library has only a definition of the operation ("ref"), which is slow. Recurrent layers are
 * exempt: their "ref" makes the products by fast code. */
enum status onednn_create_for(struct work *work, const struct onednn_operation *operation,
                              const struct onednn *forward, struct onednn **made, size_t *memory,
                              struct error *error);

/* A routine that is one operation: its plan describes it, and says what each of the work's tensors
 * is to the operation, where it reads it and where it writes it. The rest is the same for all. */
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
