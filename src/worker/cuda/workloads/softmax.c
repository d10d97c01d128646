#include "worker/cuda/workloads/workloads.h"

#include "model/workloads/softmax.h"
#include "worker/cuda/workloads/cudnn_tensor.h"

struct softmax_work {
    struct tensor_work tensors;
    struct softmax shape;
    cudnnTensorDescriptor_t descriptor; /* shape of all tensors; cudnn only */
};

TENSOR_SHAPE(softmax)

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

const struct tensor_routine softmax_plain = {
    .bytes = sizeof(struct softmax_work),
    .algorithm = "block-per-row",
    .shape = softmax_shape,
    .iterate = plain_iterate,
};

/* ---- cuDNN ---- */

/* A row is what cuDNN calls an instance: all values of one batch element. */
static enum status cudnn_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    struct softmax_work *w = (struct softmax_work *)work;
    const struct softmax s = w->shape;
    const struct cudnn_extents extents = cudnn_extents_nchw(s.rows, s.columns, 1, 1);
    (void)gpu, (void)config, (void)record;
    return cudnn_tensor_create(s.precision, &extents, &w->descriptor, error);
}

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

static void cudnn_close(struct work *work)
{
    struct softmax_work *w = (struct softmax_work *)work;
    if (w->descriptor)
        cudnnDestroyTensorDescriptor(w->descriptor);
}

const struct tensor_routine softmax_cudnn = {
    .bytes = sizeof(struct softmax_work),
    .algorithm = "softmax-accurate",
    .shape = softmax_shape,
    .open = cudnn_open,
    .iterate = cudnn_iterate,
    .close = cudnn_close,
};
