#include "model/workloads/conv2d.h"

#include <math.h>
#include <stdlib.h>

#include "model/reference.h"

#define SHAPE struct conv2d
/* clang-format off */
static const char *const layout_words[] = {"nhwc", "nchw", NULL};
static const char *const conv2d_pass_words[] = {"forward", "backward-data", "backward-filter",
                                                "backward", "training", NULL};
static const char *const conv2d_implementation_words[] = {"auto",  "cudnn", "onednn",
                                                          "tiled", "plain", NULL};
static const char *const activation_words[] = {"none", "relu", "sigmoid", "tanh", NULL};
static const char *const fusion_words[] = {"auto", "fused", "separate", NULL};
static const char *const conv2d_algorithm_words[] = {
    "auto", "implicit-gemm", "implicit-precomp-gemm", "gemm",   "direct", "fft", "fft-tiling",
    "winograd", "winograd-nonfused", "algo-0", "algo-1", "algo-3", "graph", NULL};

static const struct parameter conv2d_parameters[] = {
    WORKLOAD_LATER_SERIES("activation", activation_words, "none", "function of the output",
                          INTO(activation)),
    WORKLOAD_ALGORITHM(conv2d_algorithm_words),
    WORKLOAD_INTEGER("batch", 1048576, "16", "images", INTO(batch)),
    WORKLOAD_LATER_SERIES("bias", workload_no_yes, "no",
                          "yes: adds a value for each filter", INTO(bias)),
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("channels", 1048576, "64", "input channels", INTO(channels)),
    WORKLOAD_PIXELS("dilation", PARAMETER_STEP, 1, "1",
                    "pixels from one kernel element to the next, height or heightxwidth",
                    INTO_BOTH(dilation)),
    WORKLOAD_INTEGER("filters", 1048576, "64", "output channels", INTO(filters)),
    WORKLOAD_LATER_SERIES("fusion", fusion_words, "auto",
                          "bias and activation in the kernel of the convolution, or after it",
                          INTO(fusion)),
    WORKLOAD_INTEGER("groups", 1048576, "1", "channel groups; must divide channels and filters",
                     INTO(groups)),
    WORKLOAD_INTEGER("height", 16777216, "112", "input pixels", INTO(height)),
    WORKLOAD_IMPLEMENTATION(conv2d_implementation_words),
    WORKLOAD_PIXELS("kernel", PARAMETER_EXTENT, 1, "3", "pixels, height or heightxwidth",
                    INTO_BOTH(kernel)),
    WORKLOAD_LAUNCH,
    WORKLOAD_SERIES("layout", layout_words, "nhwc", "order of the tensors' dimensions",
                    INTO(layout)),
    WORKLOAD_PIXELS("padding", PARAMETER_PADDING, 0, "same",
                    "pixels on each side, or before:after; height or heightxwidth, as 1:2x0:1; "
                    "same: half the kernel, valid: none", INTO_BOTH(pad)),
    WORKLOAD_PASS(conv2d_pass_words, "what is computed"),
    WORKLOAD_PRECISION_LOW("of the tensors and the multiplications"),
    WORKLOAD_PIXELS("stride", PARAMETER_STEP, 1, "2", "pixels, height or heightxwidth",
                    INTO_BOTH(stride)),
    WORKLOAD_INTEGER("width", 16777216, "112", "input pixels", INTO(width)),
};
/* clang-format on */

const struct conv2d_parts conv2d_parts[CONV2D_PASSES] = {
    [CONV2D_FORWARD] = {.forward = true},
    [CONV2D_BACKWARD_DATA] = {.data = true},
    [CONV2D_BACKWARD_FILTER] = {.filter = true},
    [CONV2D_BACKWARD] = {.data = true, .filter = true},
    [CONV2D_TRAINING] = {true, true, true, true},
};

double activation_value(enum activation activation, double x)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return x > 0.0 ? x : 0.0;
    case ACTIVATION_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case ACTIVATION_TANH:
        return tanh(x);
    case ACTIVATION_NONE:
    default:
        return x;
    }
}

double activation_slope(enum activation activation, double y)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return y > 0.0 ? 1.0 : 0.0;
    case ACTIVATION_SIGMOID:
        return y * (1.0 - y);
    case ACTIVATION_TANH:
        return 1.0 - y * y;
    case ACTIVATION_NONE:
    default:
        return 1.0;
    }
}

int64_t conv2d_outputs_of(int64_t input, int64_t padding, int64_t extent, int64_t stride,
                          int64_t *before, int64_t *after)
{
    const int64_t same = padding == PADDING_SAME ? extent / 2 : 0;
    *before = padding < 0 ? same : padding_before(padding);
    *after = padding < 0 ? same : padding_after(padding);
    int64_t room = input + *before + *after - extent;
    return room < 0 ? 0 : room / stride + 1;
}

struct conv2d conv2d_from(const struct config *config)
{
    struct conv2d s = {0};
    config_shape(config, &s);
    s.out_height =
        conv2d_outputs_of(s.height, s.pad_height, s.dilation_height * (s.kernel_height - 1) + 1,
                          s.stride_height, &s.pad_height, &s.after_height);
    s.out_width =
        conv2d_outputs_of(s.width, s.pad_width, s.dilation_width * (s.kernel_width - 1) + 1,
                          s.stride_width, &s.pad_width, &s.after_width);
    return s;
}

/* The shape with another pass, and without bias and activation. */
static struct conv2d bare_of(const struct conv2d *s, enum conv2d_pass pass)
{
    struct conv2d bare = *s;
    bare.pass = pass;
    bare.bias = false;
    bare.activation = ACTIVATION_NONE;
    bare.fusion = FUSION_AUTO;
    return bare;
}

int64_t conv2d_x_size(const struct conv2d *s)
{
    return s->batch * s->height * s->width * s->channels;
}

int64_t conv2d_w_size(const struct conv2d *s)
{
    return s->filters * s->kernel_height * s->kernel_width * (s->channels / s->groups);
}

int64_t conv2d_y_size(const struct conv2d *s)
{
    return s->batch * s->out_height * s->out_width * s->filters;
}

/* The filter of an element of y. */
static int64_t filter_of(const struct conv2d *s, int64_t offset)
{
    return s->layout == LAYOUT_NHWC ? offset % s->filters
                                    : offset / (s->out_height * s->out_width) % s->filters;
}

bool conv2d_needs_y(const struct conv2d *s)
{
    return s->activation != ACTIVATION_NONE && conv2d_parts[s->pass].filter;
}

/* In double, because sizes that config_check refuses would overflow int64_t. */
static double image_size(int64_t batch, int64_t height, int64_t width, int64_t channels)
{
    return (double)batch * (double)height * (double)width * (double)channels;
}

/* A backward pass that needs y starts from the y of a forward pass. */
static struct tensors conv2d_tensors(const struct config *config)
{
    const struct conv2d s = conv2d_from(config);
    const struct conv2d_parts parts = conv2d_parts[s.pass];
    const bool output = parts.forward || conv2d_needs_y(&s), gradients = parts.data && parts.filter;
    const double x = image_size(s.batch, s.height, s.width, s.channels);
    const double y = image_size(s.batch, s.out_height, s.out_width, s.filters);
    const double w = (double)conv2d_w_size(&s), b = s.bias ? (double)s.filters : 0;
    return (struct tensors){
        .read = {[TENSOR_INPUT] = output || parts.filter ? x : 0,
                 [TENSOR_WEIGHT] = output || parts.data ? w : 0,
                 [TENSOR_OUTPUT] = parts.data || parts.filter ? y : 0,
                 [TENSOR_BIAS] = output ? b : 0},
        .written = {[TENSOR_INPUT] = parts.data ? x : 0,
                    [TENSOR_WEIGHT] = parts.filter ? w : 0,
                    [TENSOR_OUTPUT] = output ? y : 0,
                    [TENSOR_BIAS] = gradients ? b : 0,
                    [TENSOR_WEIGHT_UPDATED] = parts.update ? w : 0,
                    [TENSOR_BIAS_UPDATED] = parts.update ? b : 0},
    };
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Counts the pixels of a line of `size` that `out` outputs read. A tap reads every `stride`-th
 * pixel. Tap t - `period` reads the pixels of tap t, `shift` outputs later, so only the last
 * `shift` pixels of tap t are new. */
static int64_t touched(int64_t size, int64_t out, int64_t kernel, int64_t pad, int64_t stride,
                       int64_t dilation)
{
    int64_t period = stride / common_divisor(stride, dilation), count = 0;
    int64_t shift = period * dilation / stride;
    for (int64_t tap = 0; tap < kernel; ++tap) {
        int64_t begin = tap * dilation - pad; /* pixel that output 0 reads; < 0: padding */
        int64_t first = tap < period ? 0 : int64_larger(0, out - shift), last = out - 1;
        if (begin < 0)
            first = int64_larger(first, (-begin + stride - 1) / stride);
        if (begin < size)
            count += int64_larger(0, int64_smaller(last, (size - 1 - begin) / stride) - first + 1);
    }
    return count;
}

/* Elements of x that the pass reads or writes: a 1x1 kernel with stride 2 reads a quarter of x, and
 * backward-data writes all of it. */
static double x_touched(const struct conv2d *s)
{
    struct conv2d_parts parts = conv2d_parts[s->pass];
    double images = (double)s->batch * (double)s->channels;
    double read = images *
                  (double)touched(s->height, s->out_height, s->kernel_height, s->pad_height,
                                  s->stride_height, s->dilation_height) *
                  (double)touched(s->width, s->out_width, s->kernel_width, s->pad_width,
                                  s->stride_width, s->dilation_width);
    return (parts.forward || parts.filter ? read : 0.0) +
           (parts.data ? images * (double)s->height * (double)s->width : 0.0);
}

static double taps_met(int64_t size, int64_t out, int64_t kernel, int64_t pad, int64_t stride,
                       int64_t dilation)
{
    double count = 0;
    for (int64_t tap = 0, begin, end; tap < kernel; ++tap) {
        conv2d_outputs(stride, tap * dilation - pad, 0, size, out, &begin, &end);
        count += begin < end;
    }
    return count;
}

/* Returns the number of weights that multiply input, not only padding. */
static double weights_met(const struct conv2d *s)
{
    return (double)s->filters * ((double)s->channels / (double)s->groups) *
           taps_met(s->height, s->out_height, s->kernel_height, s->pad_height, s->stride_height,
                    s->dilation_height) *
           taps_met(s->width, s->out_width, s->kernel_width, s->pad_width, s->stride_width,
                    s->dilation_width);
}

static enum status layer_check(const struct conv2d *s, struct error *error)
{
    bool layer = conv2d_has_layer(s);
    if (layer && (s->pass == CONV2D_BACKWARD_DATA || s->pass == CONV2D_BACKWARD_FILTER))
        return error_set(error, STATUS_UNSUPPORTED,
                         "pass %s is one convolution; forward, backward and training have bias and "
                         "activation",
                         conv2d_pass_words[s->pass]);
    if (s->fusion != FUSION_AUTO && (!layer || !conv2d_parts[s->pass].forward))
        return error_set(error, STATUS_UNSUPPORTED, "fusion %s: %s", fusion_words[s->fusion],
                         layer ? "this pass has no forward part, the only part with fusion"
                               : "there is nothing to fuse without bias and activation");
    return STATUS_OK;
}

/* Refuses 8-bit convolutions that no library offers. */
static enum status low_check(const struct config *config, const struct conv2d *s,
                             struct error *error)
{
    if (s->pass != CONV2D_FORWARD || conv2d_has_layer(s))
        return error_set(error, STATUS_UNSUPPORTED,
                         "fp8 needs pass=forward without bias and activation");
    if (s->layout == LAYOUT_NCHW || s->groups != 1)
        return error_set(error, STATUS_UNSUPPORTED, "fp8 needs layout=nhwc and groups=1");
    return config_check_multiples(config, "channels", "filters", error);
}

static enum status conv2d_check(const struct config *config, struct error *error)
{
    struct conv2d s = conv2d_from(config);
    if (s.channels % s.groups != 0 || s.filters % s.groups != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%lld groups do not divide %lld channels and %lld filters",
                         (long long)s.groups, (long long)s.channels, (long long)s.filters);
    if (s.out_height < 1 || s.out_width < 1)
        return error_set(error, STATUS_UNSUPPORTED,
                         "the output has no pixels: the kernel is larger than the padded input");
    enum status status = s.precision == PRECISION_FP8 ? low_check(config, &s, error) : STATUS_OK;
    return status ? status : layer_check(&s, error);
}

/* FLOPs of bias, activation and update. */
static double layer_flops(const struct conv2d *s, double w, double y)
{
    struct conv2d_parts parts = conv2d_parts[s->pass];
    double bias = s->bias ? 1.0 : 0.0, activation = s->activation != ACTIVATION_NONE ? 1.0 : 0.0;
    double each = (bias + activation) * y;
    return (parts.forward ? each : 0.0) + (parts.data && parts.filter ? each : 0.0) +
           (parts.update ? 2.0 * (w + bias * (double)s->filters) : 0.0);
}

/* Counts multiplications with padding, as is usual; a library may skip them. */
static struct cost conv2d_cost(const struct config *config)
{
    const struct conv2d s = conv2d_from(config);
    const struct conv2d_parts parts = conv2d_parts[s.pass];
    const struct tensors tensors = conv2d_tensors(config);
    const double element = (double)precision_info[s.precision].bytes;
    const double bytes = config_tensor_bytes(config), w = (double)conv2d_w_size(&s);
    const double y = image_size(s.batch, s.out_height, s.out_width, s.filters);
    const double products = parts.forward + parts.data + parts.filter;
    double unread = tensors.read[TENSOR_INPUT] + tensors.written[TENSOR_INPUT] - x_touched(&s);
    if ((parts.forward || parts.data) && !parts.update) /* an update reads all weights */
        unread += w - weights_met(&s);
    unread += parts.forward ? 0 : tensors.read[TENSOR_BIAS]; /* it made y, which is not timed */
    return (struct cost){
        .flops = products * 2.0 * y / (double)s.filters * w + layer_flops(&s, w, y),
        .bytes = bytes - unread * element,
        .memory = bytes + (conv2d_needs_y(&s) ? y : 0.0) * element, /* dz */
    };
}

/* ---- the reference ---- */

/* An input tensor, or dz, the product of dy and the slopes. */
struct source {
    struct fill fill;
    const double *slopes; /* slopes of all elements; NULL: without slopes */
};

static double source_value(struct source source, int64_t offset)
{
    double value = fill_value(source.fill, (uint64_t)offset);
    return source.slopes ? value * source.slopes[offset] : value;
}

/* The loop without slopes and with steps of 1 becomes vector code. */
static double dot(struct source a, int64_t a_first, int64_t a_step, struct source b,
                  int64_t b_first, int64_t b_step, int64_t count)
{
    double sum = 0;
    if (a_step == 1 && b_step == 1 && !b.slopes) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < count; ++i)
            sum += fill_value(a.fill, (uint64_t)(a_first + i)) *
                   fill_value(b.fill, (uint64_t)(b_first + i));
    } else {
        for (int64_t i = 0; i < count; ++i)
            sum += source_value(a, a_first + i * a_step) * source_value(b, b_first + i * b_step);
    }
    return sum;
}

static double element_forward(const struct conv2d *s, struct source x, struct source w, int64_t n,
                              int64_t out_h, int64_t out_w, int64_t k)
{
    int64_t group_channels = s->channels / s->groups;
    int64_t channel = k / (s->filters / s->groups) * group_channels;
    int64_t x_step = conv2d_x_at(s, 0, 0, 0, 1), w_step = conv2d_w_at(s, 0, 0, 0, 1);
    double sum = 0;
    for (int64_t r = 0; r < s->kernel_height; ++r) {
        int64_t h = out_h * s->stride_height - s->pad_height + r * s->dilation_height;
        if (h < 0 || h >= s->height)
            continue;
        for (int64_t q = 0; q < s->kernel_width; ++q) {
            int64_t v = out_w * s->stride_width - s->pad_width + q * s->dilation_width;
            if (v >= 0 && v < s->width)
                sum += dot(x, conv2d_x_at(s, n, h, v, channel), x_step, w,
                           conv2d_w_at(s, k, r, q, 0), w_step, group_channels);
        }
    }
    return sum;
}

static double element_backward_data(const struct conv2d *s, struct source w, struct source y,
                                    int64_t n, int64_t h, int64_t v, int64_t c)
{
    int64_t group_channels = s->channels / s->groups, group_filters = s->filters / s->groups;
    int64_t filter = c / group_channels * group_filters;
    int64_t w_step = conv2d_w_at(s, 1, 0, 0, 0), y_step = conv2d_y_at(s, 0, 0, 0, 1);
    double sum = 0;
    for (int64_t r = 0; r < s->kernel_height; ++r) {
        int64_t out_h = conv2d_output(s->stride_height, r * s->dilation_height - s->pad_height, h,
                                      s->out_height);
        for (int64_t q = 0; out_h >= 0 && q < s->kernel_width; ++q) {
            int64_t out_w = conv2d_output(s->stride_width, q * s->dilation_width - s->pad_width, v,
                                          s->out_width);
            if (out_w >= 0)
                sum += dot(w, conv2d_w_at(s, filter, r, q, c % group_channels), w_step, y,
                           conv2d_y_at(s, n, out_h, out_w, filter), y_step, group_filters);
        }
    }
    return sum;
}

static double element_backward_filter(const struct conv2d *s, struct source x, struct source y,
                                      int64_t k, int64_t r, int64_t q, int64_t c)
{
    int64_t channel = k / (s->filters / s->groups) * (s->channels / s->groups) + c;
    int64_t x_step = s->stride_width * conv2d_x_at(s, 0, 0, 1, 0),
            y_step = conv2d_y_at(s, 0, 0, 1, 0);
    int64_t begin, end, offset = q * s->dilation_width - s->pad_width;
    conv2d_outputs(s->stride_width, offset, 0, s->width, s->out_width, &begin, &end);
    int64_t v = begin * s->stride_width + offset;
    double sum = 0;
    for (int64_t n = 0; begin < end && n < s->batch; ++n) {
        double image = 0;
        for (int64_t out_h = 0; out_h < s->out_height; ++out_h) {
            int64_t h = out_h * s->stride_height - s->pad_height + r * s->dilation_height;
            if (h >= 0 && h < s->height)
                image += dot(x, conv2d_x_at(s, n, h, v, channel), x_step, y,
                             conv2d_y_at(s, n, out_h, begin, k), y_step, end - begin);
        }
        sum += image;
    }
    return sum;
}

static double element_of(const struct conv2d *s, struct source first, struct source second,
                         int64_t offset)
{
    bool filter = s->pass == CONV2D_BACKWARD_FILTER, data = s->pass == CONV2D_BACKWARD_DATA;
    int64_t height = filter ? s->kernel_height : data ? s->height : s->out_height;
    int64_t width = filter ? s->kernel_width : data ? s->width : s->out_width;
    int64_t channels = filter ? s->channels / s->groups : data ? s->channels : s->filters;
    int64_t outer = offset / (height * width * channels),
            rest = offset % (height * width * channels);
    bool nhwc = s->layout == LAYOUT_NHWC;
    int64_t c = nhwc ? rest % channels : rest / (height * width);
    int64_t pixel = nhwc ? rest / channels : rest % (height * width);
    int64_t h = pixel / width, v = pixel % width;
    return filter ? element_backward_filter(s, first, second, outer, h, v, c)
           : data ? element_backward_data(s, first, second, outer, h, v, c)
                  : element_forward(s, first, second, outer, h, v, c);
}

/* A conv2d whose elements are compared. */
struct compared {
    struct conv2d shape;
    struct conv2d forward, data, filter; /* the layer's convolutions */
    double *slopes;                      /* slopes of all elements of y; NULL: dz is dy */
};

static double y_element(const struct reference_inputs *in, int64_t offset)
{
    const struct compared *s = in->shape;
    double z = element_of(&s->forward, (struct source){in->fill[TENSOR_INPUT], NULL},
                          (struct source){in->fill[TENSOR_WEIGHT], NULL}, offset);
    if (s->shape.bias)
        z += input_value(in, TENSOR_BIAS, filter_of(&s->shape, offset));
    return activation_value(s->shape.activation, z);
}

/* `other`: x or w, which the gradient multiplies with dz. */
static double gradient_element(const struct reference_inputs *in, const struct conv2d *convolution,
                               enum tensor other, int64_t offset)
{
    const double *slopes = ((const struct compared *)in->shape)->slopes;
    return element_of(convolution, (struct source){in->fill[other], NULL},
                      (struct source){in->fill[TENSOR_OUTPUT], slopes}, offset);
}

static double dx_element(const struct reference_inputs *in, int64_t offset)
{
    return gradient_element(in, &((const struct compared *)in->shape)->data, TENSOR_WEIGHT, offset);
}

static double dw_element(const struct reference_inputs *in, int64_t offset)
{
    return gradient_element(in, &((const struct compared *)in->shape)->filter, TENSOR_INPUT,
                            offset);
}

static double db_element(const struct reference_inputs *in, int64_t k)
{
    const struct compared *compared = in->shape;
    const struct conv2d *s = &compared->shape;
    const struct source dz = {in->fill[TENSOR_OUTPUT], compared->slopes};
    double sum = 0.0;
    for (int64_t n = 0; n < s->batch; ++n)
        for (int64_t h = 0; h < s->out_height; ++h)
            for (int64_t v = 0; v < s->out_width; ++v)
                sum += source_value(dz, conv2d_y_at(s, n, h, v, k));
    return sum;
}

static double updated_w(const struct reference_inputs *in, int64_t offset)
{
    return input_value(in, TENSOR_WEIGHT, offset) - CONV2D_LEARNING_RATE * dw_element(in, offset);
}

static double updated_b(const struct reference_inputs *in, int64_t k)
{
    return input_value(in, TENSOR_BIAS, k) - CONV2D_LEARNING_RATE * db_element(in, k);
}

/* Sets *slopes, owned by the caller, to the slopes of the activation at the device's y. */
static enum status slopes_read(const struct reference_request *request, const struct conv2d *s,
                               double **slopes, struct error *error)
{
    enum { CHUNK = 65536 };
    int64_t size = conv2d_y_size(s);
    double *values = malloc((size_t)size * sizeof *values);
    int64_t *offsets = malloc(CHUNK * sizeof *offsets);
    enum status status = STATUS_OK;
    if (!values || !offsets)
        status =
            error_set(error, STATUS_FAILED, "no memory to verify %lld elements", (long long)size);
    for (int64_t begin = 0; begin < size && status == STATUS_OK; begin += CHUNK) {
        int64_t count = size - begin < CHUNK ? size - begin : CHUNK;
        for (int64_t i = 0; i < count; ++i)
            offsets[i] = begin + i;
        status =
            request->read(request->context, TENSOR_OUTPUT, offsets, count, values + begin, error);
        for (int64_t i = 0; i < count && status == STATUS_OK; ++i)
            values[begin + i] = activation_slope(s->activation, values[begin + i]);
    }
    free(offsets);
    if (status)
        free(values);
    else
        *slopes = values;
    return status;
}

/* Gradients of a layer with an activation depend on y. The reference reads the device's y (and
 * compares it, too), because the rounding of a y close to 0 decides whether a ReLU passes a
 * gradient. */
static enum status conv2d_reference(const struct reference_request *request,
                                    struct expectation *expectation, struct error *error)
{
    const struct conv2d s = conv2d_from(request->config);
    struct compared compared = {
        .shape = s,
        .forward = bare_of(&s, CONV2D_FORWARD),
        .data = bare_of(&s, CONV2D_BACKWARD_DATA),
        .filter = bare_of(&s, CONV2D_BACKWARD_FILTER),
    };
    struct conv2d_parts parts = conv2d_parts[s.pass];
    double taps = (double)(s.kernel_height * s.kernel_width);
    double pixels = (double)s.batch * (double)s.out_height * (double)s.out_width;
    double channels = (double)(s.channels / s.groups), filters = (double)(s.filters / s.groups);
    const struct {
        bool there;
        struct elements elements;
    } results[] = {
        {parts.forward || conv2d_needs_y(&s), {TENSOR_OUTPUT, taps * channels, y_element, NULL}},
        {parts.data, {TENSOR_INPUT, taps * filters, dx_element, NULL}},
        {parts.filter, {TENSOR_WEIGHT, pixels, dw_element, NULL}},
        {s.bias && parts.data && parts.filter, {TENSOR_BIAS, pixels, db_element, NULL}},
        {parts.update, {TENSOR_WEIGHT_UPDATED, pixels, updated_w, NULL}},
        {parts.update && s.bias, {TENSOR_BIAS_UPDATED, pixels, updated_b, NULL}},
    };
    enum status status =
        conv2d_needs_y(&s) ? slopes_read(request, &s, &compared.slopes, error) : STATUS_OK;
    for (size_t i = 0; i < sizeof results / sizeof *results && status == STATUS_OK; ++i)
        if (results[i].there)
            status =
                reference_elements(request, &compared, &results[i].elements, expectation, error);
    free(compared.slopes);
    return status;
}

const struct workload conv2d_workload = {
    .name = "conv2d",
    WORKLOAD_TABLE(conv2d_parameters),
    .check = conv2d_check,
    .cost = conv2d_cost,
    .tensors = conv2d_tensors,
    .reference = conv2d_reference,
};
