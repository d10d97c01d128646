#include "worker/cuda/workloads/workloads.h"

#include <string.h>

#include "worker/gpu/search.h"

struct conv2d_work {
    struct tensor_work tensors;
    struct conv2d shape;
    const struct conv2d_tile *tile; /* bound */
};

TENSOR_SHAPE(conv2d)

static enum status tiled_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    const struct conv2d s = conv2d_from(config);
    static const char counter[] = "implementation tiled counts",
                      instead[] = "implementation = plain has no such bound";
    const double most = (1 << 30) - 1;
    double taps = (double)s.kernel_height * (double)s.kernel_width;
    double x = (double)s.batch * (double)s.height * (double)s.width;
    double y = (double)s.batch * (double)s.out_height * (double)s.out_width;
    double depth = taps * ((double)s.channels / (double)s.groups);
    /* The smallest tile has 64 x 64 elements. */
    double tiles = (y / 64.0 + 1.0) * ((double)s.filters / 64.0 + (double)s.groups);
    if (s.pass != CONV2D_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled is a forward pass; backward passes are the "
                         "library's, or plain");
    if (s.precision != PRECISION_FP16 && s.precision != PRECISION_BF16)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled multiplies in fp16 and bf16");
    if (s.layout != LAYOUT_NHWC)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled needs layout nhwc, where the channels of a pixel "
                         "are one piece of memory");
    if (s.channels / s.groups % 8 != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled copies 8 channels at a time, and %lld in a group "
                         "are no multiple of that",
                         (long long)(s.channels / s.groups));
    /* With two dilations the kernel would spill registers. */
    if (s.dilation_height != s.dilation_width)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled has one dilation for rows and columns");
    if (strcmp(s.algorithm, "auto") != 0)
        return error_set(error, STATUS_UNSUPPORTED, "algorithm %s is cuDNN's", s.algorithm);
    TRY(count_check(counter, "pixels", x > y ? x : y, most, instead, error));
    TRY(count_check(counter, "weights of a filter", depth, most, instead, error));
    TRY(count_check(counter, "tiles, blocks of one launch", tiles, INT32_MAX, instead, error));
    return capability_check(gpu, 80, "implementation tiled", error);
}

static enum status tiled_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct conv2d_work *t = (const struct conv2d_work *)work;
    const struct conv2d *s = &t->shape;
    const bool separate = s->fusion == FUSION_SEPARATE;
    void *y = t->tensors.result[TENSOR_OUTPUT], *b = t->tensors.input[TENSOR_BIAS];
    const struct conv2d_arrays arrays = {
        .x = t->tensors.input[TENSOR_INPUT],
        .w = t->tensors.input[TENSOR_WEIGHT],
        .y = y,
        .b = b,
        .finish = conv2d_has_layer(s) && !separate,
    };
    TRY(CUDA(t->tile->launch(s, &arrays, gpu->stream)));
    return separate ? CUDA(kernel_conv2d_finish(s, y, b, gpu->stream)) : STATUS_OK;
}

/* ---- the fastest tile ---- */

static enum status tile_bind(struct gpu *gpu, struct work *work, int candidate, struct error *error)
{
    (void)gpu, (void)error;
    ((struct conv2d_work *)work)->tile = &conv2d_tiles[candidate];
    return STATUS_OK;
}

static const char *tile_name(const struct work *work, int candidate)
{
    (void)work;
    return conv2d_tiles[candidate].what;
}

static enum status tiled_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    int chosen = 0;
    (void)config;
    const struct search search = {
        .gpu = gpu,
        .work = work,
        .count = CONV2D_TILES,
        .ordered = CONV2D_TILES,
        .bind = tile_bind,
        .name = tile_name,
    };
    TRY(search_run(&search, &chosen, record, error));
    tensor_work_describe(conv2d_tiles[chosen].what, UNIT_TENSOR, 0.0, record);
    return STATUS_OK;
}

const struct tensor_routine conv2d_tiled = {
    .bytes = sizeof(struct conv2d_work),
    .shape = conv2d_shape,
    .check = tiled_check,
    .open = tiled_open,
    .iterate = tiled_iterate,
};
