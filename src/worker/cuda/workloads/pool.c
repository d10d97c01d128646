#include "worker/cuda/workloads/workloads.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/pool.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/gpu/tensor_work.h"

struct pool_work {
    struct tensor_work tensors;
    struct pool shape;
    /* cudnn only */
    cudnnTensorDescriptor_t x_descriptor, y_descriptor;
    cudnnPoolingDescriptor_t pooling;
    void *y; /* owned: what the forward pass makes, which the backward pass is given */
};

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

static enum status cudnn_forward(struct gpu *gpu, const struct pool_work *p, void *y,
                                 struct error *error)
{
    return CUDNN(cudnnPoolingForward(gpu->cudnn, p->pooling, cudnn_one(p->shape.precision),
                                     p->x_descriptor, p->tensors.input[TENSOR_INPUT],
                                     cudnn_zero(p->shape.precision), p->y_descriptor, y));
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

static void pool_release(struct work *work)
{
    struct pool_work *p = (struct pool_work *)work;
    arena_give(p->tensors.arena, p->y);
    if (p->pooling)
        cudnnDestroyPoolingDescriptor(p->pooling);
    if (p->y_descriptor)
        cudnnDestroyTensorDescriptor(p->y_descriptor);
    if (p->x_descriptor)
        cudnnDestroyTensorDescriptor(p->x_descriptor);
    tensor_work_clear(&p->tensors);
    free(p);
}

static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = pool_release,
};
static const struct work_ops cudnn_ops = {
    .iterate = cudnn_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = pool_release,
};

/* A NaN is not wanted as the largest value, as in a kernel of our own. */
static enum status cudnn_create(struct pool_work *p, struct error *error)
{
    static const cudnnPoolingMode_t modes[POOL_OPERATIONS] = {
        [POOL_MAX] = CUDNN_POOLING_MAX,
        [POOL_AVERAGE] = CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
    };
    const struct pool *s = &p->shape;
    struct cudnn_extents (*extents)(int64_t n, int64_t c, int64_t h, int64_t w) =
        s->layout == LAYOUT_NHWC ? cudnn_extents_nhwc : cudnn_extents_nchw;
    const struct cudnn_extents x = extents(s->batch, s->channels, s->height, s->width);
    const struct cudnn_extents y = extents(s->batch, s->channels, s->out_height, s->out_width);
    TRY(cudnn_tensor_create(s->precision, &x, &p->x_descriptor, error));
    TRY(cudnn_tensor_create(s->precision, &y, &p->y_descriptor, error));
    TRY(CUDNN(cudnnCreatePoolingDescriptor(&p->pooling)));
    return CUDNN(cudnnSetPooling2dDescriptor(p->pooling, modes[s->operation],
                                             CUDNN_NOT_PROPAGATE_NAN, (int)s->window_height,
                                             (int)s->window_width, (int)s->pad_height,
                                             (int)s->pad_width, (int)s->stride, (int)s->stride));
}

/* A library's backward pass takes x also where it does not need it. */
static struct tensor_sizes pool_sizes(const struct pool *s, bool library)
{
    bool forward = s->pass == POOL_FORWARD;
    bool reads_x = forward || library || s->operation == POOL_MAX;
    int64_t x = pool_x_size(s), y = pool_y_size(s);
    return (struct tensor_sizes){
        .read = {[TENSOR_INPUT] = reads_x ? x : 0, [TENSOR_OUTPUT] = forward ? 0 : y},
        .written = {[TENSOR_INPUT] = forward ? 0 : x, [TENSOR_OUTPUT] = forward ? y : 0},
    };
}

static enum status given_create(struct gpu *gpu, struct pool_work *p, struct error *error)
{
    double element = (double)precision_info[p->shape.precision].bytes;
    if (p->shape.pass == POOL_FORWARD)
        return STATUS_OK;
    TRY(arena_take(gpu->arena, element * (double)pool_y_size(&p->shape),
                   "the forward pass's output", &p->y, error));
    return cudnn_forward(gpu, p, p->y, error);
}

static enum status pool_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct pool_work *p, struct error *error)
{
    bool library = p->tensors.base.ops == &cudnn_ops;
    p->shape = pool_from(config);
    const struct tensor_sizes sizes = pool_sizes(&p->shape, library);
    if (library)
        TRY(cudnn_create(p, error));
    TRY(tensor_work_create(gpu, config, seed, &sizes, &p->tensors, error));
    return library ? given_create(gpu, p, error) : STATUS_OK;
}

static enum status pool_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct work_ops *ops, struct work **work,
                                struct record *record, struct error *error)
{
    struct pool_work *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(error, STATUS_FAILED, "no memory");
    p->tensors.base.ops = ops;
    enum status status = pool_create(gpu, config, seed, p, error);
    if (status) {
        pool_release(&p->tensors.base);
        return status;
    }
    tensor_work_describe(ops == &cudnn_ops ? "pooling" : "thread-per-element", record);
    *work = &p->tensors.base;
    return STATUS_OK;
}

enum status pool_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    return pool_prepare(gpu, config, seed, &plain_ops, work, record, error);
}

enum status pool_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    return pool_prepare(gpu, config, seed, &cudnn_ops, work, record, error);
}
