#include "worker/cuda/workloads/workloads.h"

#include "model/workloads/pool.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/workloads/cudnn_tensor.h"

struct pool_work {
    struct tensor_work tensors;
    struct pool shape;
    cudnnTensorDescriptor_t x_descriptor, y_descriptor;
    cudnnPoolingDescriptor_t pooling;
    void *y; /* output of the forward pass, for the backward pass; owned */
};

/* cuDNN's backward pass demands x, although the average does not need x. */
static void pool_shape(const struct config *config, struct work *work, struct tensors *tensors)
{
    struct pool_work *p = (struct pool_work *)work;
    p->shape = pool_from(config);
    if (p->shape.pass == POOL_BACKWARD)
        tensors->read[TENSOR_INPUT] = tensors->written[TENSOR_INPUT];
}

static enum status cudnn_forward(struct gpu *gpu, const struct pool_work *p, void *y,
                                 struct error *error)
{
    return CUDNN(cudnnPoolingForward(gpu->cudnn, p->pooling, cudnn_one(p->shape.precision),
                                     p->x_descriptor, p->tensors.input[TENSOR_INPUT],
                                     cudnn_zero(p->shape.precision), p->y_descriptor, y));
}

static enum status cudnn_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    static const cudnnPoolingMode_t modes[POOL_OPERATIONS] = {
        [POOL_MAX] = CUDNN_POOLING_MAX,
        [POOL_AVERAGE] = CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
    };
    struct pool_work *p = (struct pool_work *)work;
    const struct pool *s = &p->shape;
    struct cudnn_extents (*extents)(int64_t n, int64_t c, int64_t h, int64_t w) =
        s->layout == LAYOUT_NHWC ? cudnn_extents_nhwc : cudnn_extents_nchw;
    const struct cudnn_extents x = extents(s->batch, s->channels, s->height, s->width);
    const struct cudnn_extents y = extents(s->batch, s->channels, s->out_height, s->out_width);
    const double y_bytes = (double)precision_info[s->precision].bytes * (double)pool_y_size(s);
    (void)config, (void)record;
    if (s->pad_height != s->after_height || s->pad_width != s->after_width)
        return error_set(error, STATUS_UNSUPPORTED, "cuDNN pads both sides alike");
    TRY(cudnn_tensor_create(s->precision, &x, &p->x_descriptor, error));
    TRY(cudnn_tensor_create(s->precision, &y, &p->y_descriptor, error));
    TRY(CUDNN(cudnnCreatePoolingDescriptor(&p->pooling)));
    TRY(CUDNN(cudnnSetPooling2dDescriptor(p->pooling, modes[s->operation], CUDNN_NOT_PROPAGATE_NAN,
                                          (int)s->window_height, (int)s->window_width,
                                          (int)s->pad_height, (int)s->pad_width,
                                          (int)s->stride_height, (int)s->stride_width)));
    if (s->pass == POOL_FORWARD)
        return STATUS_OK;
    TRY(arena_allocate(p->tensors.arena, y_bytes, "the forward pass's output", &p->y, error));
    return cudnn_forward(gpu, p, p->y, error);
}

static enum status cudnn_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct pool_work *p = (const struct pool_work *)work;
    const struct tensor_work *t = &p->tensors;
    if (p->shape.pass == POOL_FORWARD)
        return cudnn_forward(gpu, p, t->result[TENSOR_OUTPUT], error);
    return CUDNN(cudnnPoolingBackward(
        gpu->cudnn, p->pooling, cudnn_one(p->shape.precision), p->y_descriptor, p->y,
        p->y_descriptor, t->input[TENSOR_OUTPUT], p->x_descriptor, t->input[TENSOR_INPUT],
        cudnn_zero(p->shape.precision), p->x_descriptor, t->result[TENSOR_INPUT]));
}

static void cudnn_close(struct work *work)
{
    struct pool_work *p = (struct pool_work *)work;
    arena_free(p->tensors.arena, p->y);
    if (p->pooling)
        cudnnDestroyPoolingDescriptor(p->pooling);
    if (p->y_descriptor)
        cudnnDestroyTensorDescriptor(p->y_descriptor);
    if (p->x_descriptor)
        cudnnDestroyTensorDescriptor(p->x_descriptor);
}

const struct tensor_routine pool_cudnn = {
    .bytes = sizeof(struct pool_work),
    .algorithm = "pooling",
    .shape = pool_shape,
    .open = cudnn_open,
    .iterate = cudnn_iterate,
    .close = cudnn_close,
};
