/* Each kernel of the workloads that stream, and of conv2d, as trial.h says: odd sizes and tails. */
#include "kernels/kernels.h"
#include "model/workloads/pool.h"
#include "model/workloads/softmax.h"
#include "trial.h"

#include <stdio.h>

/* ---- the workloads ---- */

static void elementwise_size(const struct config *config, struct trial_arrays *arrays)
{
    struct elementwise s = elementwise_from(config);
    arrays->reads[TENSOR_INPUT] = arrays->writes[TENSOR_OUTPUT] = s.elements;
    arrays->reads[TENSOR_WEIGHT] = elementwise_inputs(s.operation) == 2 ? s.elements : 0;
}

static cudaError_t elementwise_launch(const struct config *config,
                                      const struct trial_arrays *arrays)
{
    struct elementwise s = elementwise_from(config);
    return kernel_elementwise(s.precision, s.operation, arrays->result[TENSOR_OUTPUT],
                              arrays->input[TENSOR_INPUT], arrays->input[TENSOR_WEIGHT], s.elements,
                              NULL);
}

/* Every part of a pass, in its order; of a forward pass alone fused or not, as it says. */
static void conv2d_size(const struct config *config, struct trial_arrays *arrays)
{
    struct conv2d s = conv2d_from(config);
    struct conv2d_parts parts = conv2d_parts[s.pass];
    bool output = parts.forward || conv2d_needs_y(&s), backward = parts.data || parts.filter;
    int64_t b = s.bias ? s.filters : 0;
    arrays->reads[TENSOR_INPUT] = output || parts.filter ? conv2d_x_size(&s) : 0;
    arrays->reads[TENSOR_WEIGHT] = output || parts.data ? conv2d_w_size(&s) : 0;
    arrays->reads[TENSOR_OUTPUT] = backward ? conv2d_y_size(&s) : 0;
    arrays->reads[TENSOR_BIAS] = output ? b : 0;
    arrays->writes[TENSOR_OUTPUT] = output ? conv2d_y_size(&s) : 0;
    arrays->writes[TENSOR_INPUT] = parts.data ? conv2d_x_size(&s) : 0;
    arrays->writes[TENSOR_WEIGHT] = parts.filter ? conv2d_w_size(&s) : 0;
    arrays->writes[TENSOR_BIAS] = parts.data && parts.filter ? b : 0;
    arrays->writes[TENSOR_WEIGHT_UPDATED] = parts.update ? conv2d_w_size(&s) : 0;
    arrays->writes[TENSOR_BIAS_UPDATED] = parts.update ? b : 0;
    arrays->between = conv2d_has_dz(&s) ? conv2d_y_size(&s) : 0;
}

static cudaError_t convolve(const struct conv2d *s, enum conv2d_pass pass, void *x, void *w,
                            void *y, const void *b, bool finish)
{
    struct conv2d one = *s;
    one.pass = pass;
    const struct conv2d_arrays arrays = {x, w, y, b, finish};
    return kernel_conv2d(&one, &arrays, NULL);
}

static cudaError_t conv2d_forward(const struct conv2d *s, const struct trial_arrays *a)
{
    bool layer = s->bias || s->activation != ACTIVATION_NONE;
    bool fused = layer && s->fusion != FUSION_SEPARATE;
    void *y = a->result[TENSOR_OUTPUT], *b = a->input[TENSOR_BIAS];
    cudaError_t code =
        convolve(s, CONV2D_FORWARD, a->input[TENSOR_INPUT], a->input[TENSOR_WEIGHT], y, b, fused);
    return code == cudaSuccess && layer && !fused ? kernel_conv2d_finish(s, y, b, NULL) : code;
}

static cudaError_t conv2d_backward(const struct conv2d *s, const struct trial_arrays *a, void *dz)
{
    struct conv2d_parts parts = conv2d_parts[s->pass];
    void *gradient = conv2d_has_dz(s) ? dz : a->input[TENSOR_OUTPUT];
    cudaError_t code = cudaSuccess;
    if (conv2d_has_dz(s))
        code = kernel_conv2d_slope(s, dz, a->input[TENSOR_OUTPUT], a->result[TENSOR_OUTPUT], NULL);
    if (code == cudaSuccess && a->result[TENSOR_BIAS])
        code = kernel_conv2d_bias_gradient(s, a->result[TENSOR_BIAS], gradient, NULL);
    if (code == cudaSuccess && parts.data)
        code = convolve(s, CONV2D_BACKWARD_DATA, a->result[TENSOR_INPUT], a->input[TENSOR_WEIGHT],
                        gradient, NULL, false);
    if (code == cudaSuccess && parts.filter)
        code = convolve(s, CONV2D_BACKWARD_FILTER, a->input[TENSOR_INPUT], a->result[TENSOR_WEIGHT],
                        gradient, NULL, false);
    return code;
}

static cudaError_t updated(const struct conv2d *s, const struct trial_arrays *a, enum tensor to,
                           enum tensor from, int64_t count)
{
    return a->result[to] ? kernel_update(s->precision, a->result[to], a->input[from],
                                         a->result[from], CONV2D_LEARNING_RATE, count, NULL)
                         : cudaSuccess;
}

static cudaError_t conv2d_launch(const struct config *config, const struct trial_arrays *a)
{
    struct conv2d s = conv2d_from(config);
    cudaError_t code = a->result[TENSOR_OUTPUT] ? conv2d_forward(&s, a) : cudaSuccess;
    if (code == cudaSuccess && a->reads[TENSOR_OUTPUT] > 0)
        code = conv2d_backward(&s, a, a->scratch);
    if (code == cudaSuccess)
        code = updated(&s, a, TENSOR_WEIGHT_UPDATED, TENSOR_WEIGHT, conv2d_w_size(&s));
    if (code == cudaSuccess)
        code = updated(&s, a, TENSOR_BIAS_UPDATED, TENSOR_BIAS, s.filters);
    return code;
}

static void pool_size(const struct config *config, struct trial_arrays *arrays)
{
    struct pool s = pool_from(config);
    bool forward = s.pass == POOL_FORWARD;
    arrays->reads[TENSOR_INPUT] = forward || s.operation == POOL_MAX ? pool_x_size(&s) : 0;
    arrays->reads[TENSOR_OUTPUT] = forward ? 0 : pool_y_size(&s);
    arrays->writes[TENSOR_INPUT] = forward ? 0 : pool_x_size(&s);
    arrays->writes[TENSOR_OUTPUT] = forward ? pool_y_size(&s) : 0;
}

static cudaError_t pool_launch(const struct config *config, const struct trial_arrays *arrays)
{
    struct pool s = pool_from(config);
    if (s.pass == POOL_FORWARD)
        return kernel_pool(&s, arrays->result[TENSOR_OUTPUT], arrays->input[TENSOR_INPUT], NULL);
    return kernel_pool_gradient(&s, arrays->result[TENSOR_INPUT], arrays->input[TENSOR_INPUT],
                                arrays->input[TENSOR_OUTPUT], NULL);
}

static void softmax_size(const struct config *config, struct trial_arrays *arrays)
{
    struct softmax s = softmax_from(config);
    bool forward = s.pass == SOFTMAX_FORWARD;
    arrays->reads[TENSOR_INPUT] = s.rows * s.columns;
    arrays->reads[TENSOR_OUTPUT] = forward ? 0 : s.rows * s.columns;
    arrays->writes[forward ? TENSOR_OUTPUT : TENSOR_INPUT] = s.rows * s.columns;
}

static cudaError_t softmax_launch(const struct config *config, const struct trial_arrays *arrays)
{
    struct softmax s = softmax_from(config);
    if (s.pass == SOFTMAX_FORWARD)
        return kernel_softmax(s.precision, arrays->result[TENSOR_OUTPUT],
                              arrays->input[TENSOR_INPUT], s.rows, s.columns, NULL);
    return kernel_softmax_gradient(s.precision, arrays->result[TENSOR_INPUT],
                                   arrays->input[TENSOR_INPUT], arrays->input[TENSOR_OUTPUT],
                                   s.rows, s.columns, NULL);
}

static const struct trial kinds[] = {
    {"conv2d", conv2d_size, conv2d_launch},
    {"elementwise", elementwise_size, elementwise_launch},
    {"pool", pool_size, pool_launch},
    {"softmax", softmax_size, softmax_launch},
    {NULL, NULL, NULL},
};

/* ---- shapes ---- */

/* Around a piece, a block and several blocks. */
static void elementwise_check(struct trials *trials)
{
    static const char *const operations[] = {"relu", "sigmoid", "tanh", "add", "scale"};
    static const int counts[] = {1, 2, 7, 8, 9, 255, 4096, 8191, 8192, 8193, 100003};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
        for (int variant = 0; variant < 5 * TRIAL_PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "elementwise elements=%d operation=%s precision=%s",
                     counts[i], operations[variant / TRIAL_PRECISIONS],
                     trial_precisions[variant % TRIAL_PRECISIONS]);
            trial_check(trials, text);
        }
}

static void conv2d_check(struct trials *trials)
{
    static const char *const shapes[] = {
        "batch=2 height=9 width=8 channels=3 filters=5",
        "batch=3 height=6 width=7 channels=8 filters=4 stride=1 groups=2 layout=nchw",
        "batch=1 height=11 width=12 channels=4 filters=70 kernel=3x2 dilation=2",
        "batch=5 height=4 width=4 channels=2 filters=130 stride=4 padding=valid layout=nchw",
    };
    static const char *const steps[] = {
        "pass=forward",
        "pass=backward-data",
        "pass=backward-filter",
        "pass=forward bias=yes activation=relu fusion=fused",
        "pass=forward bias=yes activation=tanh fusion=separate",
        "pass=backward bias=yes activation=sigmoid",
        "pass=training bias=yes activation=relu fusion=separate",
        "pass=training",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; ++j)
            for (int precision = 0; precision < TRIAL_PRECISIONS; ++precision) {
                char text[WORKLOAD_TEXT];
                snprintf(text, sizeof text, "conv2d precision=%s %s %s",
                         trial_precisions[precision], shapes[i], steps[j]);
                trial_check(trials, text);
            }
}

/* Small squares, which go in strips: several chunks and blocks, and less than one; other windows. */
static void pool_check(struct trials *trials)
{
    static const char *const shapes[] = {
        "batch=2 height=9 width=9 channels=3",
        "batch=3 height=12 width=7 channels=8 stride=1",
        "batch=1 height=8 width=10 channels=17 window=2 padding=valid",
        "batch=2 height=7 width=9 channels=16 window=3x4 stride=1 padding=1",
        "batch=1 height=9 width=8 channels=72 window=2 stride=3 padding=1",
        "batch=1 height=2 width=2 channels=64 window=5 stride=4 padding=4",
        "batch=1 height=37 width=41 channels=24 stride=1",
        "batch=4 height=1 width=1 channels=6 window=1 stride=1",
        "batch=1 height=40 width=21 channels=8 window=30x17 stride=9",
        "batch=2 height=23 width=35 channels=72",
        "batch=3 height=18 width=19 channels=8 window=2 stride=1 padding=1",
        "batch=1 height=15 width=300 channels=16 padding=2",
        "batch=2 height=33 width=140 channels=8 window=2 stride=2",
        "batch=1 height=2 width=1 channels=64 stride=1 padding=2",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 8 * TRIAL_PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "pool %s operation=%s layout=%s precision=%s pass=%s",
                     shapes[i], variant % 2 ? "max" : "average", variant / 2 % 2 ? "nhwc" : "nchw",
                     trial_precisions[variant / 8], variant / 4 % 2 ? "backward" : "forward");
            trial_check(trials, text);
        }
}

/* A warp and a group for a row, rows in registers and longer ones, with and without whole pieces. */
static void softmax_check(struct trials *trials)
{
    static const int shapes[][2] = {{1, 1},    {3, 1},     {9, 8},     {17, 33},   {5, 256},
                                    {8, 257},  {3, 1024},  {2, 4096},  {2, 4095},  {3, 8192},
                                    {2, 8200}, {2, 16384}, {1, 16385}, {1, 40000}, {1, 40001}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 2 * TRIAL_PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "softmax rows=%d columns=%d pass=%s precision=%s",
                     shapes[i][0], shapes[i][1], variant % 2 ? "forward" : "backward",
                     trial_precisions[variant / 2]);
            trial_check(trials, text);
        }
}

static void all_check(struct trials *trials)
{
    elementwise_check(trials);
    conv2d_check(trials);
    pool_check(trials);
    softmax_check(trials);
}

int main(int count, char **arguments)
{
    return trial_main(count, arguments, kinds, all_check);
}
