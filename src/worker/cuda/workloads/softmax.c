#include "worker/cuda/workloads/workloads.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/softmax.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/gpu/tensor_work.h"

struct softmax_work {
    struct tensor_work tensors;
    struct softmax shape;
    cudnnTensorDescriptor_t descriptor; /* cudnn only, of all tensors */
};

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct softmax_work *w = (const struct softmax_work *)work;
    const struct tensor_work *t = &w->tensors;
    const struct softmax *s = &w->shape;
    if (s->pass == SOFTMAX_FORWARD)
        return CUDA(kernel_softmax(s->precision, t->result[TENSOR_OUTPUT], t->input[TENSOR_INPUT],
                                   s->rows, s->columns, 0, gpu->stream));
    return CUDA(kernel_softmax_gradient(s->precision, t->result[TENSOR_INPUT],
                                        t->input[TENSOR_INPUT], t->input[TENSOR_OUTPUT], s->rows,
                                        s->columns, gpu->stream));
}

/* A row is an instance: all values of one of the batch. */
static enum status cudnn_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct softmax_work *w = (const struct softmax_work *)work;
    const struct tensor_work *t = &w->tensors;
    const void *one = cudnn_one(w->shape.precision), *zero = cudnn_zero(w->shape.precision);
    if (w->shape.pass == SOFTMAX_FORWARD)
        return CUDNN(cudnnSoftmaxForward(
            gpu->cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, one, w->descriptor,
            t->input[TENSOR_INPUT], zero, w->descriptor, t->result[TENSOR_OUTPUT]));
    return CUDNN(cudnnSoftmaxBackward(
        gpu->cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, one, w->descriptor,
        t->input[TENSOR_INPUT], w->descriptor, t->input[TENSOR_OUTPUT], zero, w->descriptor,
        t->result[TENSOR_INPUT]));
}

static void softmax_release(struct work *work)
{
    struct softmax_work *w = (struct softmax_work *)work;
    if (w->descriptor)
        cudnnDestroyTensorDescriptor(w->descriptor);
    tensor_work_clear(&w->tensors);
    free(w);
}

static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = softmax_release,
};
static const struct work_ops cudnn_ops = {
    .iterate = cudnn_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = softmax_release,
};

static struct tensor_sizes softmax_sizes(const struct softmax *s)
{
    bool forward = s->pass == SOFTMAX_FORWARD;
    int64_t size = s->rows * s->columns;
    return (struct tensor_sizes){
        .read = {[TENSOR_INPUT] = size, [TENSOR_OUTPUT] = forward ? 0 : size},
        .written = {[TENSOR_INPUT] = forward ? 0 : size, [TENSOR_OUTPUT] = forward ? size : 0},
    };
}

static enum status softmax_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                   const struct work_ops *ops, struct work **work,
                                   struct record *record, struct error *error)
{
    bool library = ops == &cudnn_ops;
    struct softmax_work *w = calloc(1, sizeof *w);
    if (!w)
        return error_set(error, STATUS_FAILED, "no memory");
    w->tensors.base.ops = ops;
    w->shape = softmax_from(config);
    const struct tensor_sizes sizes = softmax_sizes(&w->shape);
    const struct cudnn_extents extents = cudnn_extents_nchw(w->shape.rows, w->shape.columns, 1, 1);
    enum status status =
        library ? cudnn_tensor_create(w->shape.precision, &extents, &w->descriptor, error)
                : STATUS_OK;
    if (status == STATUS_OK)
        status = tensor_work_create(gpu, config, seed, &sizes, &w->tensors, error);
    if (status) {
        softmax_release(&w->tensors.base);
        return status;
    }
    tensor_work_describe(library ? "softmax-accurate" : "rows", record);
    *work = &w->tensors.base;
    return STATUS_OK;
}

enum status softmax_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                  struct work **work, struct record *record, struct error *error)
{
    return softmax_prepare(gpu, config, seed, &plain_ops, work, record, error);
}

enum status softmax_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                  struct work **work, struct record *record, struct error *error)
{
    return softmax_prepare(gpu, config, seed, &cudnn_ops, work, record, error);
}
