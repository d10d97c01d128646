#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/workloads/conv2d.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/search.h"
#include "worker/gpu/tensor_work.h"

struct tiled_work {
    struct tensor_work tensors;
    struct conv2d shape;
    bool separate; /* bias and activation have a kernel of their own */
    bool layer;    /* there is a bias or an activation */
    const struct conv2d_tile *rows,
        *tile; /* the rows that the device runs; the one that is bound */
};

/* ---- which shapes, which tiles ---- */

static enum status sizes_check(const struct conv2d *s, struct error *error)
{
    const double most = 1 << 30, limit = (double)INT32_MAX;
    double taps = (double)s->kernel_height * (double)s->kernel_width;
    double x = (double)s->batch * (double)s->height * (double)s->width;
    double y = (double)s->batch * (double)s->out_height * (double)s->out_width;
    double depth = taps * ((double)s->channels / (double)s->groups);
    double largest = x > y ? x : y;
    if (largest >= most || depth >= most)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled counts pixels and a filter's weights in 30 bits");
    /* The smallest tile has 64 x 64. */
    double tiles = (y / 64.0 + 1.0) * ((double)s->filters / 64.0 + (double)s->groups);
    if (tiles >= limit)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%.3g tiles are more than one launch has blocks", tiles);
    return STATUS_OK;
}

static enum status shape_check(const struct conv2d *s, struct error *error)
{
    if (s->pass != CONV2D_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled is a forward pass; backward passes are the "
                         "library's, or plain");
    if (s->precision != PRECISION_FP16 && s->precision != PRECISION_BF16)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled multiplies in fp16 and bf16");
    if (s->layout != LAYOUT_NHWC)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled needs layout nhwc, where the channels of a pixel "
                         "are one piece of memory");
    if (s->channels / s->groups % 8 != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled copies 8 channels at a time, and %lld in a group "
                         "are no multiple of that",
                         (long long)(s->channels / s->groups));
    if (strcmp(s->algorithm, "auto") != 0)
        return error_set(error, STATUS_UNSUPPORTED, "algorithm %s is cuDNN's", s->algorithm);
    return sizes_check(s, error);
}

/* How many rows from the table's begin on the device runs. */
static int rows_count(const struct conv2d_tile *rows, int capability)
{
    int count = 0;
    while (rows[count].what && capability >= rows[count].least && capability <= rows[count].most)
        ++count;
    return count;
}

/* Those of the first table that has rows for the device. */
static int rows_find(int capability, const struct conv2d_tile **rows)
{
    static const struct conv2d_tile *const tables[] = {
#ifdef ROOFSWEEP_WGMMA
        conv2d_wgmma_tiles,
#endif
        conv2d_tiles,
    };
    int count = 0;
    for (size_t i = 0; count == 0 && i < sizeof tables / sizeof *tables; ++i) {
        *rows = tables[i];
        count = rows_count(*rows, capability);
    }
    return count;
}

/* ---- work_ops ---- */

static enum status tiled_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct tiled_work *t = (const struct tiled_work *)work;
    void *y = t->tensors.result[TENSOR_OUTPUT], *b = t->tensors.input[TENSOR_BIAS];
    const struct conv2d_arrays arrays = {
        .x = t->tensors.input[TENSOR_INPUT],
        .w = t->tensors.input[TENSOR_WEIGHT],
        .y = y,
        .b = b,
        .finish = t->layer && !t->separate,
    };
    TRY(CUDA(t->tile->launch(&t->shape, &arrays, gpu->stream)));
    return t->separate ? CUDA(kernel_conv2d_finish(&t->shape, y, b, gpu->stream)) : STATUS_OK;
}

static void tiled_release(struct work *work)
{
    tensor_work_clear((struct tensor_work *)work);
    free(work);
}

static const struct work_ops tiled_ops = {
    .iterate = tiled_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .release = tiled_release,
};

/* ---- preparation ---- */

static enum status tile_bind(struct gpu *gpu, struct work *work, int candidate, struct error *error)
{
    struct tiled_work *t = (struct tiled_work *)work;
    (void)gpu, (void)error;
    t->tile = &t->rows[candidate];
    return STATUS_OK;
}

static const char *tile_name(const struct work *work, int candidate)
{
    return ((const struct tiled_work *)work)->rows[candidate].what;
}

/* The fastest tile for the shape, as measured. */
static enum status tile_choose(struct gpu *gpu, struct tiled_work *t, int count,
                               struct record *record, struct error *error)
{
    int chosen = 0;
    const struct search search = {
        .gpu = gpu,
        .work = &t->tensors.base,
        .cold = t->shape.cold,
        .count = count,
        .ordered = count,
        .bind = tile_bind,
        .name = tile_name,
    };
    TRY(search_run(&search, &chosen, record, error));
    tensor_work_describe(t->rows[chosen].what, record);
    snprintf(record->math, sizeof record->math, "tensor-op");
    record->unit = UNIT_TENSOR;
    return STATUS_OK;
}

static enum status tiled_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                struct tiled_work *t, struct record *record, struct error *error)
{
    const struct conv2d *s = &t->shape;
    const struct tensor_sizes sizes = {
        .read = {[TENSOR_INPUT] = conv2d_x_size(s),
                 [TENSOR_WEIGHT] = conv2d_w_size(s),
                 [TENSOR_BIAS] = s->bias ? s->filters : 0},
        .written = {[TENSOR_OUTPUT] = conv2d_y_size(s)},
    };
    int count = rows_find(gpu->capability, &t->rows);
    if (count == 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled needs compute capability 8.0");
    TRY(tensor_work_create(gpu, config, seed, &sizes, &t->tensors, error));
    return tile_choose(gpu, t, count, record, error);
}

enum status conv2d_tiled_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct conv2d s = conv2d_from(config);
    TRY(shape_check(&s, error));
    struct tiled_work *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(error, STATUS_FAILED, "no memory");
    t->tensors.base.ops = &tiled_ops;
    t->shape = s;
    t->layer = s.bias || s.activation != ACTIVATION_NONE;
    t->separate = s.fusion == FUSION_SEPARATE;
    enum status status = tiled_create(gpu, config, seed, t, record, error);
    if (status) {
        tiled_release(&t->tensors.base);
        return status;
    }
    *work = &t->tensors.base;
    return STATUS_OK;
}
