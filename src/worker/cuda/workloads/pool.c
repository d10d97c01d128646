#include "worker/cuda/workloads/pool.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/pool.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/cuda/workloads/tensor_work.h"

struct pool_work {
    struct tensor_work tensors;
    struct pool shape;
    /* cudnn only */
    cudnnTensorDescriptor_t x_descriptor, y_descriptor;
    cudnnPoolingDescriptor_t pooling;
};

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct pool_work *p = (const struct pool_work *)work;
    return CUDA(kernel_pool(&p->shape, p->tensors.result[TENSOR_OUTPUT],
                            p->tensors.input[TENSOR_INPUT], gpu->stream));
}

static enum status cudnn_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct pool_work *p = (const struct pool_work *)work;
    return CUDNN(cudnnPoolingForward(gpu->cudnn, p->pooling, cudnn_one(p->shape.precision),
                                     p->x_descriptor, p->tensors.input[TENSOR_INPUT],
                                     cudnn_zero(p->shape.precision), p->y_descriptor,
                                     p->tensors.result[TENSOR_OUTPUT]));
}

static void pool_release(struct work *work)
{
    struct pool_work *p = (struct pool_work *)work;
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

static enum status pool_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct work_ops *ops, struct work **work,
                                struct record *record, struct error *error)
{
    bool library = ops == &cudnn_ops;
    struct pool_work *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(error, STATUS_FAILED, "no memory");
    p->tensors.base.ops = ops;
    p->shape = pool_from(config);
    const struct tensor_sizes sizes = {
        .read = {[TENSOR_INPUT] = pool_x_size(&p->shape)},
        .written = {[TENSOR_OUTPUT] = pool_y_size(&p->shape)},
    };
    enum status status = library ? cudnn_create(p, error) : STATUS_OK;
    if (status == STATUS_OK)
        status = tensor_work_create(gpu, config, seed, &sizes, &p->tensors, error);
    if (status) {
        pool_release(&p->tensors.base);
        return status;
    }
    tensor_work_describe(library ? "pooling" : "tiles", record);
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
