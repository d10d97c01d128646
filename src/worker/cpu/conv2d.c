/* conv2d on the CPU, by oneDNN or as plain loops. oneDNN runs convolutions, and bias and activation
 * of a fused forward pass. Loops do all other bias, activation, gradient and update work. */
#include <stdio.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL

static void NAME(activate)(enum activation activation, REAL *z, int64_t count)
{
    if (activation == ACTIVATION_RELU) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
            z[i] = z[i] > 0 ? z[i] : 0;
    } else if (activation != ACTIVATION_NONE) {
        for (int64_t i = 0; i < count; ++i)
            z[i] = (REAL)activation_value(activation, z[i]);
    }
}

/* ---- one convolution, by plain loops ----
 * The loops work on nhwc. Inputs in nchw are transposed into scratch memory, and results back. Each
 * pass adds multiples of contiguous rows: rows of filters, or of channels for the gradient of x. */

/* Transposes `count` consecutive matrices: to[column][row] = from[row][column]. */
static void NAME(transpose)(int64_t count, int64_t rows, int64_t columns, const REAL *from,
                            REAL *to)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < count; ++i)
        for (int64_t column = 0; column < columns; ++column)
            for (int64_t row = 0; row < rows; ++row)
                to[(i * columns + column) * rows + row] = from[(i * rows + row) * columns + column];
}

/* Adds `count` rows of `size` values, each times its factor, to `sum`. Inlined, so that `size` is
 * constant and the partial sums stay in registers. */
static inline __attribute__((always_inline)) void
NAME(accumulate_block)(int size, REAL *restrict sum, int64_t count, const REAL *restrict factors,
                       int64_t factor_step, const REAL *restrict rows, int64_t row_step)
{
    REAL part[128 / sizeof(REAL)] = {0};
    for (int64_t j = 0; j < count; ++j) {
        const REAL factor = factors[j * factor_step], *row = rows + j * row_step;
#pragma omp simd
        for (int i = 0; i < size; ++i)
            part[i] += factor * row[i];
    }
    for (int i = 0; i < size; ++i)
        sum[i] += part[i];
}

/* As accumulate_block, for rows of any length. Each call has partial sums, for accuracy. */
static void NAME(accumulate)(int64_t length, REAL *sum, int64_t count, const REAL *factors,
                             int64_t factor_step, const REAL *rows, int64_t row_step)
{
    enum { LARGE = 128 / sizeof(REAL), MIDDLE = 64 / sizeof(REAL), SMALL = 16 / sizeof(REAL) };
    int64_t l = 0;
#define BLOCKS(size)                                                                               \
    for (; l + (size) <= length; l += (size))                                                      \
    NAME(accumulate_block)(size, sum + l, count, factors, factor_step, rows + l, row_step)
    BLOCKS(LARGE);
    BLOCKS(MIDDLE);
    BLOCKS(SMALL);
    BLOCKS(1);
#undef BLOCKS
}

/* w is [group][tap][channel][filter]. */
static void NAME(convolve_forward)(const struct conv2d *s, const REAL *x, const REAL *w, REAL *y)
{
    const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
    const int64_t taps = s->kernel_height * s->kernel_width;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->out_height; ++i) {
        const int64_t n = i / s->out_height,
                      top = i % s->out_height * s->stride_height - s->pad_height;
        REAL *line = y + i * s->out_width * s->filters;
        memset(line, 0, (size_t)(s->out_width * s->filters) * sizeof *line);
        for (int64_t at = 0; at < s->groups * taps; ++at) {
            const int64_t group = at / taps, tap = at % taps;
            const int64_t h = top + tap / s->kernel_width * s->dilation_height;
            const int64_t left = tap % s->kernel_width * s->dilation_width - s->pad_width;
            int64_t begin, end;
            conv2d_outputs(s->stride_width, left, 0, s->width, s->out_width, &begin, &end);
            for (int64_t v = begin; h >= 0 && h < s->height && v < end; ++v)
                NAME(accumulate)
            (filters, line + v * s->filters + group * filters, channels,
             x + conv2d_x_at(s, n, h, v * s->stride_width + left, group * channels), 1,
             w + at * channels * filters, filters);
        }
    }
}

static void NAME(convolve_data)(const struct conv2d *s, REAL *x, const REAL *w, const REAL *y)
{
    const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
    const int64_t taps = s->kernel_height * s->kernel_width;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->batch * s->height; ++i) {
        const int64_t n = i / s->height, h = i % s->height;
        REAL *line = x + i * s->width * s->channels;
        memset(line, 0, (size_t)(s->width * s->channels) * sizeof *line);
        for (int64_t at = 0; at < s->groups * taps; ++at) {
            const int64_t group = at / taps, tap = at % taps;
            const int64_t above = tap / s->kernel_width * s->dilation_height - s->pad_height;
            const int64_t left = tap % s->kernel_width * s->dilation_width - s->pad_width;
            const int64_t out_h = conv2d_output(s->stride_height, above, h, s->out_height);
            int64_t begin, end;
            conv2d_outputs(s->stride_width, left, 0, s->width, s->out_width, &begin, &end);
            for (int64_t v = begin; out_h >= 0 && v < end; ++v)
                NAME(accumulate)
            (channels, line + (v * s->stride_width + left) * s->channels + group * channels,
             filters, y + conv2d_y_at(s, n, out_h, v, group * filters), 1,
             w + (group * filters * taps + tap) * channels, taps * channels);
        }
    }
}

/* w is [group][tap][channel][filter]. A task is a tap of some channels of a group. */
static void NAME(convolve_filter)(const struct conv2d *s, const REAL *x, REAL *w, const REAL *y)
{
    enum { CHANNELS = 8 };
    const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
    const int64_t taps = s->kernel_height * s->kernel_width;
    const int64_t blocks = (channels + CHANNELS - 1) / CHANNELS;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->groups * taps * blocks; ++i) {
        const int64_t first = i % blocks * CHANNELS, at = i / blocks;
        const int64_t last = first + CHANNELS < channels ? first + CHANNELS : channels;
        const int64_t group = at / taps, tap = at % taps;
        const int64_t left = tap % s->kernel_width * s->dilation_width - s->pad_width;
        int64_t begin, end;
        conv2d_outputs(s->stride_width, left, 0, s->width, s->out_width, &begin, &end);
        memset(w + (at * channels + first) * filters, 0,
               (size_t)((last - first) * filters) * sizeof *w);
        for (int64_t line = 0; line < s->batch * s->out_height; ++line) {
            const int64_t n = line / s->out_height;
            const int64_t h = line % s->out_height * s->stride_height - s->pad_height +
                              tap / s->kernel_width * s->dilation_height;
            for (int64_t c = first; h >= 0 && h < s->height && c < last; ++c)
                NAME(accumulate)
            (filters, w + (at * channels + c) * filters, end - begin,
             x + conv2d_x_at(s, n, h, begin * s->stride_width + left, group * channels + c),
             s->stride_width * s->channels,
             y + (line * s->out_width + begin) * s->filters + group * filters, s->filters);
        }
    }
}

/* A row is all filters of a pixel, or in nchw all pixels of a filter. */
static void NAME(finish)(const struct conv2d *s, REAL *z, const REAL *b)
{
    const bool nhwc = s->layout == LAYOUT_NHWC;
    const int64_t columns = nhwc ? s->filters : s->out_height * s->out_width;
    const int64_t rows = conv2d_y_size(s) / columns;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        REAL *row = z + i * columns;
        if (b)
#pragma omp simd
            for (int64_t j = 0; j < columns; ++j)
                row[j] += b[nhwc ? j : i % s->filters];
        NAME(activate)(s->activation, row, columns);
    }
}

/* Two of x, w, y are inputs, the third is the result; all in the layout of s. b NULL: no bias. */
static void NAME(convolve)(const struct work *work, const struct conv2d *s, bool fused, REAL *x,
                           REAL *w, REAL *y, const REAL *b)
{
    const struct plan *plan = work->plan;
    const int64_t pixels = s->height * s->width, out_pixels = s->out_height * s->out_width;
    const int64_t channels = s->channels / s->groups, taps = s->kernel_height * s->kernel_width;
    const bool forward = s->pass == CONV2D_FORWARD, data = s->pass == CONV2D_BACKWARD_DATA;
    const bool moved = s->layout == LAYOUT_NCHW;
    char *scratch = work->scratch;
    REAL *own_x = moved ? (REAL *)(scratch + plan->x) : x;
    REAL *own_w = moved ? (REAL *)(scratch + plan->w) : w;
    REAL *own_y = moved ? (REAL *)(scratch + plan->y) : y;
    struct conv2d nhwc = *s;
    nhwc.layout = LAYOUT_NHWC;
    if (moved && !data)
        NAME(transpose)(s->batch, s->channels, pixels, x, own_x);
    if (moved && (forward || data))
        NAME(transpose)(s->filters, channels, taps, w, own_w);
    if (moved && !forward)
        NAME(transpose)(s->batch, s->filters, out_pixels, y, own_y);
    REAL *packed = (REAL *)(scratch + plan->packed);
    if (forward) {
        NAME(transpose)(s->groups, s->filters / s->groups, taps * channels, own_w, packed);
        NAME(convolve_forward)(&nhwc, own_x, packed, own_y);
        if (fused)
            NAME(finish)(&nhwc, own_y, b);
    } else if (data) {
        NAME(convolve_data)(&nhwc, own_x, own_w, own_y);
    } else {
        NAME(convolve_filter)(&nhwc, own_x, packed, own_y);
        NAME(transpose)(s->groups, taps * channels, s->filters / s->groups, packed, own_w);
    }
    if (moved && forward)
        NAME(transpose)(s->batch, out_pixels, s->filters, own_y, y);
    else if (moved && data)
        NAME(transpose)(s->batch, pixels, s->channels, own_x, x);
    else if (moved)
        NAME(transpose)(s->filters, taps, channels, own_w, w);
}

/* ---- beside the convolutions ---- */

static void NAME(differentiate)(const struct conv2d *s, const REAL *dy, const REAL *y, REAL *dz)
{
    int64_t count = conv2d_y_size(s);
    if (s->activation == ACTIVATION_RELU) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            REAL passed = dy[i]; /* loaded always, so that no branch depends on y */
            dz[i] = y[i] > 0 ? passed : 0;
        }
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i)
        dz[i] = dy[i] * (REAL)activation_slope(s->activation, y[i]);
}

/* Sums are fp64: a filter may have millions of pixels with random signs. */
static void NAME(bias_gradient)(const struct conv2d *s, const REAL *dz, REAL *db)
{
    enum { LINE = 64 / sizeof(REAL) };
    int64_t pixels = s->out_height * s->out_width, step = conv2d_y_at(s, 0, 0, 1, 0);
    int64_t together = s->layout == LAYOUT_NHWC ? LINE : 1; /* filters of a cache line */
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < s->filters; k += together) {
        double sums[LINE] = {0.0};
        int64_t count = k + together < s->filters ? together : s->filters - k;
        for (int64_t n = 0; n < s->batch; ++n) {
            const REAL *image = dz + conv2d_y_at(s, n, 0, 0, k);
            for (int64_t i = 0; i < pixels; ++i)
                for (int64_t j = 0; j < count; ++j)
                    sums[j] += image[i * step + j];
        }
        for (int64_t j = 0; j < count; ++j)
            db[k + j] = (REAL)sums[j];
    }
}

static void NAME(update)(const REAL *w, const REAL *dw, REAL *updated, int64_t count)
{
    const REAL rate = (REAL)CONV2D_LEARNING_RATE;
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; ++i)
        updated[i] = w[i] - rate * dw[i];
}

/* ---- the parts of a pass in their order ---- */

static void NAME(part)(const struct work *work, enum conv2d_pass pass, REAL *x, REAL *w, REAL *y,
                       struct trace *trace)
{
    const struct plan *plan = work->plan;
#ifdef ROOFSWEEP_ONEDNN
    if (plan->library[pass]) {
        onednn_run(plan->library[pass], trace);
        return;
    }
#endif
    bool fused = pass == CONV2D_FORWARD && plan->fused;
    struct conv2d s = *(const struct conv2d *)work->shape;
    s.pass = pass;
    double begin = trace_begin(trace);
    NAME(convolve)(work, &s, fused, x, w, y, fused ? work->input[TENSOR_BIAS] : NULL);
    trace_end(trace, fused ? "conv2d_direct_forward_fused" : names[pass], begin);
}

static void NAME(forward)(const struct work *work, struct trace *trace)
{
    REAL *y = work->result[TENSOR_OUTPUT];
    NAME(part)
    (work, CONV2D_FORWARD, work->input[TENSOR_INPUT], work->input[TENSOR_WEIGHT], y, trace);
    if (((const struct plan *)work->plan)->fused || !conv2d_has_layer(work->shape))
        return;
    double begin = trace_begin(trace);
    NAME(finish)(work->shape, y, work->input[TENSOR_BIAS]);
    trace_end(trace, "conv2d_bias_activation", begin);
}

static void NAME(backward)(const struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    const struct conv2d *s = work->shape;
    REAL *dz = work->input[TENSOR_OUTPUT];
    double begin = trace_begin(trace);
    if (conv2d_needs_y(s)) {
        dz = (REAL *)((char *)work->scratch + ((const struct plan *)work->plan)->dz);
        NAME(differentiate)(s, work->input[TENSOR_OUTPUT], work->result[TENSOR_OUTPUT], dz);
        trace_end(trace, "conv2d_activation_gradient", begin);
        begin = trace_begin(trace);
    }
    if (work->writes[TENSOR_BIAS]) {
        NAME(bias_gradient)(s, dz, work->result[TENSOR_BIAS]);
        trace_end(trace, "conv2d_bias_gradient", begin);
    }
    if (parts.data)
        NAME(part)
    (work, CONV2D_BACKWARD_DATA, work->result[TENSOR_INPUT], work->input[TENSOR_WEIGHT], dz, trace);
    if (parts.filter)
        NAME(part)
    (work, CONV2D_BACKWARD_FILTER, work->input[TENSOR_INPUT], work->result[TENSOR_WEIGHT], dz,
     trace);
}

static void NAME(step)(const struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    if (parts.forward)
        NAME(forward)(work, trace);
    if (parts.data || parts.filter)
        NAME(backward)(work, parts, trace);
    if (!parts.update)
        return;
    double begin = trace_begin(trace);
    for (int i = 0; i < 2; ++i) {
        enum tensor tensor = i ? TENSOR_BIAS : TENSOR_WEIGHT;
        enum tensor updated = i ? TENSOR_BIAS_UPDATED : TENSOR_WEIGHT_UPDATED;
        if (work->writes[updated])
            NAME(update)
        (work->input[tensor], work->result[tensor], work->result[updated], work->size[tensor]);
    }
    trace_end(trace, "conv2d_update", begin);
}

#else

enum { CONVOLUTIONS = CONV2D_BACKWARD_FILTER + 1 };
struct plan {
    bool fused; /* the forward convolution adds the bias and applies the activation */
    /* Offsets in the scratch memory, byte. dz: gradient before the activation, if conv2d_needs_y.
     * For plain loops: weights as [group][tap][channel][filter] (packed); x, w and y in nhwc. */
    size_t dz, packed, x, w, y;
    /* oneDNN's convolutions of the pass; owned. NULL: no such convolution, or plain loops. */
    struct onednn *library[CONVOLUTIONS];
    size_t memory[CONVOLUTIONS]; /* offsets of their memory in the scratch memory, byte */
    char name[128];              /* names of the library's code */
};

/* Names of plain convolutions in traces. */
static const char *const names[CONVOLUTIONS] = {
    "conv2d_direct_forward", "conv2d_direct_backward_data", "conv2d_direct_backward_filter"};

#define REAL_TEMPLATE "worker/cpu/conv2d.c"
#include "worker/cpu/real.h"

CPU_SHAPE(conv2d)

static void common_plan(struct work *work)
{
    struct plan *plan = work->plan;
    const struct conv2d *s = work->shape;
    plan->fused = conv2d_has_layer(s) && s->fusion != FUSION_SEPARATE;
    if (conv2d_needs_y(s))
        plan->dz = scratch_take(work, (size_t)conv2d_y_size(s) * work->element);
}

static enum status plain_plan(struct work *work, struct error *error)
{
    struct plan *plan = work->plan;
    const struct conv2d *s = work->shape;
    const size_t moved = s->layout == LAYOUT_NCHW ? work->element : 0;
    (void)error;
    common_plan(work);
    plan->packed = scratch_take(work, (size_t)conv2d_w_size(s) * work->element);
    plan->x = scratch_take(work, (size_t)conv2d_x_size(s) * moved);
    plan->w = scratch_take(work, (size_t)conv2d_w_size(s) * moved);
    plan->y = scratch_take(work, (size_t)conv2d_y_size(s) * moved);
    return STATUS_OK;
}

static void parts_run(struct work *work, struct conv2d_parts parts, struct trace *trace)
{
    (work->precision == PRECISION_FP64 ? step_fp64 : step_fp32)(work, parts, trace);
}

/* Computes the y that the activation's gradient needs. */
static void step_before(struct work *work)
{
    const struct conv2d *s = work->shape;
    if (conv2d_needs_y(s) && !conv2d_parts[s->pass].forward)
        parts_run(work, (struct conv2d_parts){.forward = true}, NULL);
}

static void step_run(struct work *work, struct trace *trace)
{
    parts_run(work, conv2d_parts[((const struct conv2d *)work->shape)->pass], trace);
}

#ifdef ROOFSWEEP_ONEDNN
/* Weights of forward and backward-data are packed before the timed run (`kept`), as in frameworks
 * that keep a model. A training step packs the updated weights in each run. The gradient of
 * backward-filter is reordered to the user's layout during the timed run. */
static struct onednn_tensor filter_tensor(const struct conv2d *s, bool kept)
{
    int64_t filters = s->filters / s->groups, channels = s->channels / s->groups;
    int64_t taps = s->kernel_height * s->kernel_width;
    bool nhwc = s->layout == LAYOUT_NHWC;
    return (struct onednn_tensor){
        .place = kept ? ONEDNN_PACKED : ONEDNN_REORDERED,
        .precision = s->precision,
        .axes = 5,
        .extents = {s->groups, filters, channels, s->kernel_height, s->kernel_width},
        .strides = {filters * channels * taps, channels * taps, nhwc ? 1 : taps,
                    nhwc ? s->kernel_width * channels : s->kernel_width, nhwc ? channels : 1},
    };
}

/* The library's arguments for x, w and y. */
static const struct {
    enum onednn_pass pass;
    enum onednn_argument x, w, y;
} passes[CONVOLUTIONS] = {
    [CONV2D_FORWARD] = {ONEDNN_INFERENCE, ONEDNN_SOURCE, ONEDNN_WEIGHTS, ONEDNN_DESTINATION},
    [CONV2D_BACKWARD_DATA] = {ONEDNN_BACKWARD_DATA, ONEDNN_DIFF_SOURCE, ONEDNN_WEIGHTS,
                              ONEDNN_DIFF_DESTINATION},
    [CONV2D_BACKWARD_FILTER] = {ONEDNN_BACKWARD_WEIGHTS, ONEDNN_SOURCE, ONEDNN_DIFF_WEIGHTS,
                                ONEDNN_DIFF_DESTINATION},
};

/* In nhwc the library works on the user's tensors as they are. In nchw every iteration copies them
 * to blocks of channels and back, as in PyTorch. */
static enum status convolution_plan(struct work *work, enum conv2d_pass pass, struct error *error)
{
    static const enum onednn_function functions[] = {
        [ACTIVATION_NONE] = ONEDNN_IDENTITY,
        [ACTIVATION_RELU] = ONEDNN_RELU,
        [ACTIVATION_SIGMOID] = ONEDNN_SIGMOID,
        [ACTIVATION_TANH] = ONEDNN_TANH,
    };
    struct plan *plan = work->plan;
    const struct conv2d *s = work->shape;
    bool nhwc = s->layout == LAYOUT_NHWC, fused = pass == CONV2D_FORWARD && plan->fused;
    enum onednn_place place = nhwc ? ONEDNN_PLAIN : ONEDNN_REORDERED;
    bool kept = pass != CONV2D_BACKWARD_FILTER && !conv2d_parts[s->pass].update;
    struct onednn_operation operation = {
        .kind = ONEDNN_CONVOLUTION,
        .pass = passes[pass].pass,
        .function = fused ? functions[s->activation] : ONEDNN_IDENTITY,
        .stride = {s->stride_height, s->stride_width},
        .dilation = {s->dilation_height, s->dilation_width},
        .padding = {s->pad_height, s->pad_width},
        .padding_after = {s->after_height, s->after_width},
    };
    operation.tensors[passes[pass].x] =
        onednn_image(s->precision, place, nhwc, s->batch, s->channels, s->height, s->width);
    operation.tensors[passes[pass].w] = filter_tensor(s, kept);
    operation.tensors[passes[pass].y] =
        onednn_image(s->precision, place, nhwc, s->batch, s->filters, s->out_height, s->out_width);
    if (fused && s->bias)
        operation.tensors[ONEDNN_BIAS] = onednn_vector(s->precision, s->filters);
    TRY(onednn_create_for(work, &operation, NULL, &plan->library[pass], &plan->memory[pass],
                          error));
    const char *name = onednn_name(plan->library[pass]);
    size_t used = strlen(plan->name);
    if (!strstr(plan->name, name))
        snprintf(plan->name + used, sizeof plan->name - used, "%s%s", used ? "; " : "", name);
    return STATUS_OK;
}

static enum status onednn_plan(struct work *work, struct error *error)
{
    const struct conv2d *s = work->shape;
    const struct conv2d_parts parts = conv2d_parts[s->pass];
    bool forward = parts.forward || conv2d_needs_y(s), backward = parts.data || parts.filter;
    bool loops =
        parts.update || (conv2d_has_layer(s) && (backward || s->fusion == FUSION_SEPARATE));
    if (loops && s->precision != PRECISION_FP32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "bias, activation and update outside of the convolution are in fp32");
    common_plan(work);
    if (forward)
        TRY(convolution_plan(work, CONV2D_FORWARD, error));
    if (parts.data)
        TRY(convolution_plan(work, CONV2D_BACKWARD_DATA, error));
    return parts.filter ? convolution_plan(work, CONV2D_BACKWARD_FILTER, error) : STATUS_OK;
}

static enum status onednn_ready(struct work *work, struct error *error)
{
    const struct plan *plan = work->plan;
    char *scratch = work->scratch;
    for (int pass = 0; pass < CONVOLUTIONS; ++pass) {
        bool forward = pass == CONV2D_FORWARD;
        bool dz = !forward && conv2d_needs_y(work->shape);
        void *const *x = pass == CONV2D_BACKWARD_DATA ? work->result : work->input;
        void *const *w = pass == CONV2D_BACKWARD_FILTER ? work->result : work->input;
        void *const *y = forward ? work->result : work->input;
        void *data[ONEDNN_ARGUMENTS] = {
            [ONEDNN_BIAS] = forward && plan->fused ? work->input[TENSOR_BIAS] : NULL};
        data[passes[pass].x] = x[TENSOR_INPUT];
        data[passes[pass].w] = w[TENSOR_WEIGHT];
        data[passes[pass].y] = dz ? scratch + plan->dz : y[TENSOR_OUTPUT];
        if (plan->library[pass])
            TRY(onednn_bind(plan->library[pass], data, scratch + plan->memory[pass], error));
    }
    return STATUS_OK;
}

static void onednn_release(struct work *work)
{
    const struct plan *plan = work->plan;
    for (int pass = 0; pass < CONVOLUTIONS; ++pass)
        onednn_destroy(plan->library[pass]);
}

static const char *onednn_names(const struct work *work)
{
    return ((const struct plan *)work->plan)->name;
}
#endif

const struct cpu_workload conv2d_routines = {
    CPU_WORKLOAD(conv2d),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn",
             .plan_size = sizeof(struct plan),
             .own_regions = true,
             .check = onednn_check,
             .plan = onednn_plan,
             .ready = onednn_ready,
             .before = step_before,
             .run = step_run,
             .release = onednn_release,
             .name = onednn_names},
#endif
            {.implementation = "plain",
             .algorithm = "direct",
             .plan_size = sizeof(struct plan),
             .plan = plain_plan,
             .before = step_before,
             .run = step_run},
        },
};
#endif
