#include "worker/cuda/workloads/workloads.h"

#include "model/workloads/pool.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/workloads/cudnn_tensor.h"

struct pool_work {
    struct tensor_work tensors;
    struct pool shape;
    /* members of implementation cudnn only */
    cudnnTensorDescriptor_t x_descriptor, y_descriptor;
    cudnnPoolingDescriptor_t pooling;
    void *y; /* output of the forward pass, for the backward pass; owned */
};

static const struct tensor_routine cudnn;

/* cuDNN's backward pass takes x even if it does not need x. */
static struct tensor_sizes pool_describe(const struct config *config, struct work *work)
{
    struct pool_work *p = (struct pool_work *)work;
    const struct pool s = p->shape = pool_from(config);
    const bool forward = s.pass == POOL_FORWARD;
    const bool reads_x = forward || s.operation == POOL_MAX || p->tensors.routine == &cudnn;
    const int64_t x = pool_x_size(&s), y = pool_y_size(&s);
    return (struct tensor_sizes){
        .read = {[TENSOR_INPUT] = reads_x ? x : 0, [TENSOR_OUTPUT] = forward ? 0 : y},
        .written = {[TENSOR_INPUT] = forward ? 0 : x, [TENSOR_OUTPUT] = forward ? y : 0},
    };
}

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct pool_work *p = (const struct pool_work *)work;
    const struct tensor_work *t = &p->tensors;
    if (p->shape.pass == POOL_FORWARD)
        return CUDA(
            kernel_pool(&p->shape, t->result[TENSOR_OUTPUT], t->input[TENSOR_INPUT], gpu->stream));
    return CUDA(kernel_pool_gradient(&p->shape, t->result[TENSOR_INPUT], t->input[TENSOR_INPUT],
                                     t->input[TENSOR_OUTPUT], gpu->stream));
}

static const struct tensor_routine plain = {
    .bytes = sizeof(struct pool_work),
    .algorithm = "thread-per-element",
    .describe = pool_describe,
    .iterate = plain_iterate,
};
TENSOR_WORK_PREPARE(pool_plain_prepare, plain)

/* ---- cuDNN ---- */

static enum status cudnn_forward(struct gpu *gpu, const struct pool_work *p, void *y,
                                 struct error *error)
{
    return CUDNN(cudnnPoolingForward(gpu->cudnn, p->pooling, cudnn_one(p->shape.precision),
                                     p->x_descriptor, p->tensors.input[TENSOR_INPUT],
                                     cudnn_zero(p->shape.precision), p->y_descriptor, y));
}

/* NaNs do not propagate, as in the plain kernel. */
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
    TRY(cudnn_tensor_create(s->precision, &x, &p->x_descriptor, error));
    TRY(cudnn_tensor_create(s->precision, &y, &p->y_descriptor, error));
    TRY(CUDNN(cudnnCreatePoolingDescriptor(&p->pooling)));
    TRY(CUDNN(cudnnSetPooling2dDescriptor(p->pooling, modes[s->operation], CUDNN_NOT_PROPAGATE_NAN,
                                          (int)s->window_height, (int)s->window_width,
                                          (int)s->pad_height, (int)s->pad_width, (int)s->stride,
                                          (int)s->stride)));
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

static const struct tensor_routine cudnn = {
    .bytes = sizeof(struct pool_work),
    .algorithm = "pooling",
    .describe = pool_describe,
    .open = cudnn_open,
    .iterate = cudnn_iterate,
    .close = cudnn_close,
};
TENSOR_WORK_PREPARE(pool_cudnn_prepare, cudnn)
