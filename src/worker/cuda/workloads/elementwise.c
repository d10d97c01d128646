#include "worker/cuda/workloads/workloads.h"

#include <limits.h>

#include "model/workloads/elementwise.h"
#include "worker/cuda/workloads/cudnn_tensor.h"

struct elementwise_work {
    struct tensor_work tensors;
    struct elementwise shape;
    cudnnTensorDescriptor_t descriptor;     /* shape of all tensors */
    cudnnActivationDescriptor_t activation; /* NULL: another operation */
    cudnnOpTensorDescriptor_t sum;          /* NULL: another operation */
};

TENSOR_SHAPE(elementwise)

/* With more elements every operation except the scaling returns CUDNN_STATUS_EXECUTION_FAILED. */
static enum status elements_check(const struct gpu *gpu, const struct config *config,
                                  struct error *error)
{
    const struct elementwise s = elementwise_from(config);
    const double most = s.operation == ELEMENTWISE_SCALE ? INT_MAX : 2147482624;
    (void)gpu;
    return count_check("cuDNN's kernels count", "elements", (double)s.elements, most,
                       "measure fewer", error);
}

static enum status cudnn_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    static const cudnnActivationMode_t modes[] = {
        [ELEMENTWISE_RELU] = CUDNN_ACTIVATION_RELU,
        [ELEMENTWISE_SIGMOID] = CUDNN_ACTIVATION_SIGMOID,
        [ELEMENTWISE_TANH] = CUDNN_ACTIVATION_TANH,
    };
    struct elementwise_work *e = (struct elementwise_work *)work;
    const struct elementwise s = e->shape;
    const bool add = s.operation == ELEMENTWISE_ADD, scale = s.operation == ELEMENTWISE_SCALE;
    const cudnnDataType_t sums =
        s.precision == PRECISION_FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const struct cudnn_extents extents = cudnn_extents_nchw(1, 1, 1, s.elements);
    (void)gpu, (void)config;
    TRY(cudnn_tensor_create(s.precision, &extents, &e->descriptor, error));
    if (add) {
        TRY(CUDNN(cudnnCreateOpTensorDescriptor(&e->sum)));
        TRY(CUDNN(
            cudnnSetOpTensorDescriptor(e->sum, CUDNN_OP_TENSOR_ADD, sums, CUDNN_PROPAGATE_NAN)));
    } else if (!scale) {
        TRY(CUDNN(cudnnCreateActivationDescriptor(&e->activation)));
        TRY(CUDNN(cudnnSetActivationDescriptor(e->activation, modes[s.operation],
                                               CUDNN_PROPAGATE_NAN, 0.0)));
    }
    tensor_work_describe(add     ? "op-tensor"
                         : scale ? "transform-tensor"
                                 : "activation",
                         UNIT_VECTOR, 0.0, record);
    return STATUS_OK;
}

/* Scaling is a copy with alpha, because cudnnScaleTensor overwrites its input. */
static enum status cudnn_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    static const float factor = ELEMENTWISE_FACTOR;
    static const double wide_factor = ELEMENTWISE_FACTOR;
    const struct elementwise_work *e = (const struct elementwise_work *)work;
    const enum precision precision = e->shape.precision;
    const void *one = cudnn_one(precision), *zero = cudnn_zero(precision);
    const void *x = e->tensors.input[TENSOR_INPUT], *w = e->tensors.input[TENSOR_WEIGHT];
    void *y = e->tensors.result[TENSOR_OUTPUT];
    if (e->activation)
        return CUDNN(cudnnActivationForward(gpu->cudnn, e->activation, one, e->descriptor, x, zero,
                                            e->descriptor, y));
    if (e->sum)
        return CUDNN(cudnnOpTensor(gpu->cudnn, e->sum, one, e->descriptor, x, one, e->descriptor, w,
                                   zero, e->descriptor, y));
    return CUDNN(cudnnTransformTensor(
        gpu->cudnn, precision == PRECISION_FP64 ? (const void *)&wide_factor : &factor,
        e->descriptor, x, zero, e->descriptor, y));
}

static void cudnn_close(struct work *work)
{
    struct elementwise_work *e = (struct elementwise_work *)work;
    if (e->sum)
        cudnnDestroyOpTensorDescriptor(e->sum);
    if (e->activation)
        cudnnDestroyActivationDescriptor(e->activation);
    if (e->descriptor)
        cudnnDestroyTensorDescriptor(e->descriptor);
}

const struct tensor_routine elementwise_cudnn = {
    .bytes = sizeof(struct elementwise_work),
    .check = elements_check,
    .shape = elementwise_shape,
    .open = cudnn_open,
    .iterate = cudnn_iterate,
    .close = cudnn_close,
};

/* ---- plain ---- */

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct elementwise_work *e = (const struct elementwise_work *)work;
    const struct tensor_work *t = &e->tensors;
    return CUDA(kernel_elementwise(&e->shape, t->result[TENSOR_OUTPUT], t->input[TENSOR_INPUT],
                                   t->input[TENSOR_WEIGHT], gpu->stream));
}

const struct tensor_routine elementwise_plain = {
    .bytes = sizeof(struct elementwise_work),
    .algorithm = "packs",
    .shape = elementwise_shape,
    .iterate = plain_iterate,
};
