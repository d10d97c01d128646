#include "worker/cpu/pool_onednn.h"

#include "model/workloads/pool.h"
#include "worker/cpu/onednn_routine.h"
#include "worker/cpu/pool.h"

/* Extents [n][c][h][w], whatever the layout in memory, on which the library works as it is. */
static struct onednn_tensor image(const struct pool *s, int64_t height, int64_t width)
{
    bool nhwc = s->layout == LAYOUT_NHWC;
    return (struct onednn_tensor){
        .precision = s->precision,
        .axes = 4,
        .extents = {s->batch, s->channels, height, width},
        .strides = {s->channels * height * width, nhwc ? 1 : height * width,
                    nhwc ? width * s->channels : width, nhwc ? s->channels : 1},
    };
}

static enum status window_plan(struct work *work, const struct topology *topology,
                               struct error *error)
{
    (void)topology;
    static const struct onednn_roles roles = {
        .inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE},
        .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION},
    };
    struct pool s = pool_from(&work->config);
    if (s.pass != POOL_FORWARD)
        return error_set(error, STATUS_UNSUPPORTED, "only its forward pass");
    const struct onednn_operation operation = {
        .kind = ONEDNN_POOL,
        .function = s.operation == POOL_MAX ? ONEDNN_MAXIMUM : ONEDNN_AVERAGE,
        .window = {s.window_height, s.window_width},
        .stride = {s.stride, s.stride},
        .dilation = {1, 1},
        .padding = {s.pad_height, s.pad_width},
        .tensors = {[ONEDNN_SOURCE] = image(&s, s.height, s.width),
                    [ONEDNN_DESTINATION] = image(&s, s.out_height, s.out_width)},
    };
    pool_tensors(work, &s);
    return onednn_routine_plan(work, &operation, &roles, error);
}

const struct routine pool_onednn = {
    .workload = &pool_workload,
    .implementation = "onednn",
    ONEDNN_ROUTINE(window_plan),
};
