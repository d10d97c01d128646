/* Products and convolutions in tiles on tensor units by hand, as trial.h says. */
#include "kernels/kernels.h"
#include "model/workloads/matmul.h"
#include "trial.h"

#include <stdio.h>

/* ---- conv2d ---- */

static const struct conv2d_tile *tile; /* which one launches */

static void conv2d_size(const struct config *config, struct trial_arrays *arrays)
{
    struct conv2d s = conv2d_from(config);
    arrays->reads[TENSOR_INPUT] = conv2d_x_size(&s);
    arrays->reads[TENSOR_WEIGHT] = conv2d_w_size(&s);
    arrays->reads[TENSOR_BIAS] = s.bias ? s.filters : 0;
    arrays->writes[TENSOR_OUTPUT] = conv2d_y_size(&s);
}

static cudaError_t conv2d_launch(const struct config *config, const struct trial_arrays *a)
{
    struct conv2d s = conv2d_from(config);
    const struct conv2d_arrays arrays = {
        .x = a->input[TENSOR_INPUT],
        .w = a->input[TENSOR_WEIGHT],
        .y = a->result[TENSOR_OUTPUT],
        .b = a->input[TENSOR_BIAS],
        .finish = s.fusion != FUSION_SEPARATE,
    };
    cudaError_t code = tile->launch(&s, &arrays, NULL);
    if (code == cudaSuccess && s.fusion == FUSION_SEPARATE)
        code = kernel_conv2d_finish(&s, arrays.y, arrays.b, NULL);
    return code;
}

/* Tails of pixels, of filters and of a patch; a slice of it in several taps, and a tap in several
 * slices; fewer slices than are in flight; outputs that see padding alone. */
static const char *const shapes[] = {
    "batch=2 height=9 width=8 channels=8 filters=5",
    "batch=3 height=13 width=11 channels=64 filters=64",
    "batch=1 height=16 width=16 channels=72 filters=136 stride=1",
    "batch=2 height=7 width=9 channels=40 filters=70 kernel=3x2 dilation=2 stride=1",
    "batch=5 height=4 width=4 channels=128 filters=130 stride=4 padding=valid kernel=1",
    "batch=3 height=6 width=7 channels=48 filters=24 stride=1 groups=2",
    "batch=2 height=12 width=10 channels=32 filters=68 groups=4 kernel=5",
    "batch=1 height=3 width=3 channels=16 filters=8 kernel=1 padding=5 stride=1",
    "batch=1 height=19 width=17 channels=24 filters=200 kernel=7 stride=3",
    "batch=1 height=1 width=1 channels=8 filters=1 kernel=1",
    NULL,
};
static const char *const layers[] = {
    "bias=no",
    "bias=yes activation=relu fusion=fused",
    "activation=sigmoid",
    "bias=yes activation=tanh fusion=separate",
    NULL,
};

static const char *const precisions[] = {"precision=fp16", "precision=bf16", NULL};

static void tiles_check(struct trials *trials)
{
    for (int i = 0; i < CONV2D_TILES; ++i) {
        int before = trials->failures;
        tile = &conv2d_tiles[i];
        trial_cross(trials, "conv2d",
                    (const char *const *const[]){shapes, layers, precisions, NULL});
        printf("%s: %d failures\n", tile->what, trials->failures - before);
    }
}

/* ---- matmul ---- */

static void matmul_size(const struct config *config, struct trial_arrays *a)
{
    struct matmul s = matmul_from(config);
    a->reads[TENSOR_INPUT] = s.m * s.k;
    a->reads[TENSOR_WEIGHT] = s.k * s.n;
    a->writes[TENSOR_OUTPUT] = s.m * s.n;
}

static cudaError_t matmul_launch(const struct config *config, const struct trial_arrays *a)
{
    struct matmul s = matmul_from(config);
    return kernel_matmul_tiled(s.precision, a->result[TENSOR_OUTPUT], a->input[TENSOR_INPUT],
                               a->input[TENSOR_WEIGHT], s.m, s.n, s.k, NULL);
}

/* Less than a tile, tiles and a rest, few pieces and more than are in flight. */
static const char *const products[] = {"m=16 n=16 k=64",  "m=128 n=128 k=128", "m=144 n=272 k=192",
                                       "m=48 n=16 k=704", "m=272 n=400 k=64",  NULL};

static void all_check(struct trials *trials)
{
    trial_cross(trials, "matmul implementation=tiled",
                (const char *const *const[]){products, precisions, NULL});
    tiles_check(trials);
}

int main(int count, char **arguments)
{
    static const struct trial kinds[] = {
        {"conv2d", conv2d_size, conv2d_launch},
        {"matmul", matmul_size, matmul_launch},
        {NULL, NULL, NULL},
    };
    return trial_main(count, arguments, kinds, all_check);
}
