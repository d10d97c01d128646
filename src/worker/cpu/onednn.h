/* Operations of oneDNN, the library of frameworks on CPUs: described in plain numbers, created,
 * bound to memory and run. Only onednn.c includes the library's header. A build without the library
 * lacks onednn.c, ROOFSWEEP_ONEDNN and the routines.
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

enum onednn_place {
    ONEDNN_PLAIN,     /* the caller's layout, in the caller's memory */
    ONEDNN_PACKED,    /* oneDNN's own layout; onednn_bind copies the input once */
    ONEDNN_REORDERED, /* oneDNN's own layout; every run copies from or to the caller's memory */
};

enum { ONEDNN_AXES = 12 }; /* oneDNN reads all these extents, even unused ones */
struct onednn_tensor {
    enum onednn_place place;
    enum precision precision;
    int axes;                                           /* 0: no tensor */
    int64_t extents[ONEDNN_AXES], strides[ONEDNN_AXES]; /* elements, in the caller's memory */
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
/* The function of an elementwise operation or a pool; the activation that a convolution, a product
 * or a linear layer fuses, or that a plain RNN applies. */
enum onednn_function {
    ONEDNN_IDENTITY,
    ONEDNN_RELU,
    ONEDNN_SIGMOID,
    ONEDNN_TANH,
    ONEDNN_GELU,  /* the tanh form of gelu */
    ONEDNN_SCALE, /* product with `factor` */
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
    int64_t window[ONEDNN_AXES];                              /* of a pool */
    int64_t stride[ONEDNN_AXES];                              /* of a pool or a convolution */
    int64_t padding[ONEDNN_AXES], padding_after[ONEDNN_AXES]; /* of a pool or a convolution */
    int64_t dilation[2];                                      /* of a convolution; 1: dense */
    bool bidirectional;                                       /* recurrent layers */
    struct onednn_tensor tensors[ONEDNN_ARGUMENTS];
};

/* Dense tensors: [count], [rows][columns], [count][rows][columns], and images in either layout. */
struct onednn_tensor onednn_vector(enum precision precision, int64_t count);
struct onednn_tensor onednn_matrix(enum precision precision, enum onednn_place place, int64_t rows,
                                   int64_t columns);
struct onednn_tensor onednn_matrices(enum precision precision, int64_t count, int64_t rows,
                                     int64_t columns);
struct onednn_tensor onednn_image(enum precision precision, enum onednn_place place, bool nhwc,
                                  int64_t n, int64_t c, int64_t h, int64_t w);

/* Formats name and version: "oneDNN 2.6.3". */
void onednn_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED: the library has its own threads, or emulates the precision on this CPU. */
enum status onednn_check(enum precision precision, struct error *error);

struct onednn;
/* Compiles the operation's code. forward: for ONEDNN_BACKWARD its ONEDNN_TRAINING operation, which
 * must outlive *made; else NULL. STATUS_UNSUPPORTED: the library lacks the operation. */
enum status onednn_create(const struct onednn_operation *operation, const struct onednn *forward,
                          struct onednn **made, struct error *error);
void onednn_destroy(struct onednn *made); /* takes NULL */
/* Returns the library's name of the code, "jit:avx512_core". */
const char *onednn_name(const struct onednn *made);
/* Returns the bytes that onednn_bind needs: tensors in the library's layout, and its workspace. */
size_t onednn_memory(const struct onednn *made);
/* Binds the operation to the caller's memory, which must outlive it: `data` of each tensor, and
 * `memory` of onednn_memory bytes, aligned to 64. Copies the packed tensors. */
enum status onednn_bind(struct onednn *made, void *const data[ONEDNN_ARGUMENTS], void *memory,
                        struct error *error);
/* Binds a tensor that is not packed to other memory. */
void onednn_move(struct onednn *made, enum onednn_argument argument, void *data);
/* Runs the operation once. If the library fails, the result is unchanged, and work->failed of
 * onednn_create_for is set. */
void onednn_run(const struct onednn *made, struct trace *trace);

/* For the plan of a work: creates an operation, and reserves its memory in the scratch memory, at
 * the offset *memory in bytes. STATUS_UNSUPPORTED also if the implementation is `auto` and the
 * library only has a slow definition of the operation ("ref"). Recurrent layers are exempt, because
 * their "ref" makes the products by fast code. */
enum status onednn_create_for(struct work *work, const struct onednn_operation *operation,
                              const struct onednn *forward, struct onednn **made, size_t *memory,
                              struct error *error);

/* The plan of a routine of one operation: the argument for each input and result of the work. */
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
