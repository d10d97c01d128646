/* One of cuDNN's algorithms for recurrent layers, ready to run: its descriptors, weights and work
 * memory. */
#ifndef ROOFSWEEP_LSTM_BINDING_H
#define ROOFSWEEP_LSTM_BINDING_H

#include "model/workloads/lstm.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/lstm_weights.h"

enum { LSTM_ALGORITHMS = 8 };
extern const char *const lstm_algorithm_name[LSTM_ALGORITHMS];
/* Its kernels stay on the device for all steps: those of small widths, or compiled for each shape. */
bool lstm_algorithm_is_small(int algorithm);
bool lstm_algorithm_is_compiled(int algorithm);
/* The same on packed data, which comes before it on padded ones; itself, if it is that. */
int lstm_algorithm_packed(int algorithm);

/* Of a precision. */
struct lstm_format {
    bool offered;
    cudnnDataType_t data, compute;
    cudnnMathType_t math;
    enum unit unit;
};

/* What all algorithms of a configuration share; it must live longer. */
struct lstm_setting {
    struct gpu *gpu;
    const struct lstm *shape;
    const struct lstm_format *format;
    cudnnDropoutDescriptor_t dropout;
    struct fill fill; /* of w */
};

/* Owned by lstm_binding_build's caller; lstm_binding_release frees. */
struct lstm_binding {
    bool built;
    bool runs; /* cuDNN has taken it: it may refuse only what is to run */
    cudnnRNNDataDescriptor_t x_descriptor, y_descriptor;
    cudnnRNNDescriptor_t rnn;
    void *w, *dw, *workspace, *reserve; /* on the device; dw in a backward pass only */
    size_t w_bytes, workspace_bytes, reserve_bytes;
    struct lstm_weights weights;
    char name[128]; /* with what it runs, "standard: KERNELS"; "": not known */
};

/* Builds *binding, zero until then, and fills its weights. A failure, STATUS_UNSUPPORTED or
 * STATUS_FAILED where cuDNN refuses the algorithm, leaves it zero. */
enum status lstm_binding_build(const struct lstm_setting *setting, int algorithm,
                               struct lstm_binding *binding, struct error *error);
void lstm_binding_release(struct arena *arena, struct lstm_binding *binding); /* zero: nothing */

#endif
