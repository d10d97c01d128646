/* Each tile of a conv2d on tensor units by hand (struct conv2d_tile), as trial.h says. */
#include "kernels/kernels.h"
#include "trial.h"

#include <stdio.h>

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

/* Tails of pixels, of filters and of a patch; a slice of it in several taps, and a tap in several slices;
 * fewer slices than are in flight; outputs that see padding alone. */
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
};
static const char *const layers[] = {
    "bias=no",
    "bias=yes activation=relu fusion=fused",
    "activation=sigmoid",
    "bias=yes activation=tanh fusion=separate",
};

static void shapes_check(struct trials *trials)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof layers / sizeof *layers; ++j) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "conv2d precision=%s %s %s", (i + j) % 2 ? "fp16" : "bf16",
                     shapes[i], layers[j]);
            trial_check(trials, text);
        }
}

static void tiles_check(struct trials *trials, const struct conv2d_tile *rows, int capability)
{
    for (tile = rows; tile->what; ++tile) {
        int before = trials->failures;
        if (capability < tile->least || capability > tile->most)
            continue;
        shapes_check(trials);
        printf("%s: %d failures\n", tile->what, trials->failures - before);
    }
}

static void all_check(struct trials *trials)
{
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    tiles_check(trials, conv2d_tiles, 10 * major + minor);
#ifdef ROOFSWEEP_WGMMA
    tiles_check(trials, conv2d_wgmma_tiles, 10 * major + minor);
#endif
}

int main(int count, char **arguments)
{
    static const struct trial kinds[] = {
        {"conv2d", conv2d_size, conv2d_launch},
        {NULL, NULL, NULL},
    };
    return trial_main(count, arguments, kinds, all_check);
}
