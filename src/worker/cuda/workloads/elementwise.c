#include "worker/cuda/workloads/workloads.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/elementwise.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/gpu/tensor_work.h"

struct elementwise_work {
    struct tensor_work tensors;
    struct elementwise shape;
    /* cudnn only; NULL where the operation has none */
    cudnnTensorDescriptor_t descriptor; /* of all tensors */
    cudnnActivationDescriptor_t activation;
    cudnnOpTensorDescriptor_t sum;
};

/* ---- a kernel of our own ---- */

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct elementwise_work *e = (const struct elementwise_work *)work;
    const struct tensor_work *t = &e->tensors;
    return CUDA(kernel_elementwise(e->shape.precision, e->shape.operation, t->result[TENSOR_OUTPUT],
                                   t->input[TENSOR_INPUT], t->input[TENSOR_WEIGHT],
                                   e->shape.elements, gpu->stream));
}

/* ---- cuDNN ---- */

static enum status activation_run(struct gpu *gpu, const struct elementwise_work *e,
                                  struct error *error)
{
    enum precision precision = e->shape.precision;
    return CUDNN(cudnnActivationForward(gpu->cudnn, e->activation, cudnn_one(precision),
                                        e->descriptor, e->tensors.input[TENSOR_INPUT],
                                        cudnn_zero(precision), e->descriptor,
                                        e->tensors.result[TENSOR_OUTPUT]));
}

static enum status sum_run(struct gpu *gpu, const struct elementwise_work *e, struct error *error)
{
    const void *one = cudnn_one(e->shape.precision), *zero = cudnn_zero(e->shape.precision);
    return CUDNN(cudnnOpTensor(
        gpu->cudnn, e->sum, one, e->descriptor, e->tensors.input[TENSOR_INPUT], one, e->descriptor,
        e->tensors.input[TENSOR_WEIGHT], zero, e->descriptor, e->tensors.result[TENSOR_OUTPUT]));
}

/* A copy with a factor; the call named after scaling overwrites its input. */
static enum status scale_run(struct gpu *gpu, const struct elementwise_work *e, struct error *error)
{
    static const float factor = ELEMENTWISE_FACTOR;
    static const double wide_factor = ELEMENTWISE_FACTOR;
    bool wide = e->shape.precision == PRECISION_FP64;
    return CUDNN(cudnnTransformTensor(gpu->cudnn, wide ? (const void *)&wide_factor : &factor,
                                      e->descriptor, e->tensors.input[TENSOR_INPUT],
                                      cudnn_zero(e->shape.precision), e->descriptor,
                                      e->tensors.result[TENSOR_OUTPUT]));
}

static enum status activation_create(struct elementwise_work *e, cudnnActivationMode_t mode,
                                     struct error *error)
{
    TRY(CUDNN(cudnnCreateActivationDescriptor(&e->activation)));
    return CUDNN(cudnnSetActivationDescriptor(e->activation, mode, CUDNN_PROPAGATE_NAN, 0.0));
}

static enum status relu_create(struct elementwise_work *e, struct error *error)
{
    return activation_create(e, CUDNN_ACTIVATION_RELU, error);
}

static enum status sigmoid_create(struct elementwise_work *e, struct error *error)
{
    return activation_create(e, CUDNN_ACTIVATION_SIGMOID, error);
}

static enum status tanh_create(struct elementwise_work *e, struct error *error)
{
    return activation_create(e, CUDNN_ACTIVATION_TANH, error);
}

static enum status sum_create(struct elementwise_work *e, struct error *error)
{
    cudnnDataType_t compute =
        e->shape.precision == PRECISION_FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    TRY(CUDNN(cudnnCreateOpTensorDescriptor(&e->sum)));
    return CUDNN(
        cudnnSetOpTensorDescriptor(e->sum, CUDNN_OP_TENSOR_ADD, compute, CUDNN_PROPAGATE_NAN));
}

static enum status scale_create(struct elementwise_work *e, struct error *error)
{
    (void)e;
    (void)error;
    return STATUS_OK;
}

static const struct call {
    const char *name;
    enum status (*create)(struct elementwise_work *e, struct error *error);
    enum status (*run)(struct gpu *gpu, const struct elementwise_work *e, struct error *error);
} calls[ELEMENTWISE_OPERATIONS] = {
    [ELEMENTWISE_RELU] = {"activation", relu_create, activation_run},
    [ELEMENTWISE_SIGMOID] = {"activation", sigmoid_create, activation_run},
    [ELEMENTWISE_TANH] = {"activation", tanh_create, activation_run},
    [ELEMENTWISE_ADD] = {"op-tensor", sum_create, sum_run},
    [ELEMENTWISE_SCALE] = {"transform-tensor", scale_create, scale_run},
};

static enum status cudnn_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct elementwise_work *e = (const struct elementwise_work *)work;
    return calls[e->shape.operation].run(gpu, e, error);
}

/* ---- preparation ---- */

static void elementwise_release(struct work *work)
{
    struct elementwise_work *e = (struct elementwise_work *)work;
    if (e->sum)
        cudnnDestroyOpTensorDescriptor(e->sum);
    if (e->activation)
        cudnnDestroyActivationDescriptor(e->activation);
    if (e->descriptor)
        cudnnDestroyTensorDescriptor(e->descriptor);
    tensor_work_clear(&e->tensors);
    free(e);
}

static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = elementwise_release,
};
static const struct work_ops cudnn_ops = {
    .iterate = cudnn_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = elementwise_release,
};

static enum status elementwise_fill(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct elementwise_work *e, struct error *error)
{
    int64_t elements = e->shape.elements;
    bool two = elementwise_inputs(e->shape.operation) == 2;
    const struct tensor_sizes sizes = {
        .read = {[TENSOR_INPUT] = elements, [TENSOR_WEIGHT] = two ? elements : 0},
        .written = {[TENSOR_OUTPUT] = elements},
    };
    return tensor_work_create(gpu, config, seed, &sizes, &e->tensors, error);
}

static enum status cudnn_create(struct elementwise_work *e, struct error *error)
{
    const struct cudnn_extents extents = cudnn_extents_nchw(1, 1, 1, e->shape.elements);
    TRY(cudnn_tensor_create(e->shape.precision, &extents, &e->descriptor, error));
    return calls[e->shape.operation].create(e, error);
}

static enum status elementwise_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                       const struct work_ops *ops, struct work **work,
                                       struct record *record, struct error *error)
{
    bool library = ops == &cudnn_ops;
    struct elementwise_work *e = calloc(1, sizeof *e);
    if (!e)
        return error_set(error, STATUS_FAILED, "no memory");
    e->tensors.base.ops = ops;
    e->shape = elementwise_from(config);
    enum status status = library ? cudnn_create(e, error) : STATUS_OK;
    if (status == STATUS_OK)
        status = elementwise_fill(gpu, config, seed, e, error);
    if (status) {
        elementwise_release(&e->tensors.base);
        return status;
    }
    tensor_work_describe(library ? calls[e->shape.operation].name : "thread-per-element", record);
    *work = &e->tensors.base;
    return STATUS_OK;
}

enum status elementwise_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                      struct work **work, struct record *record,
                                      struct error *error)
{
    return elementwise_prepare(gpu, config, seed, &plain_ops, work, record, error);
}

enum status elementwise_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                      struct work **work, struct record *record,
                                      struct error *error)
{
    return elementwise_prepare(gpu, config, seed, &cudnn_ops, work, record, error);
}
