#include "model/workloads/pool.h"

#include <math.h>

#include "model/reference.h"

#define SHAPE struct pool
/* clang-format off */
static const char *const pool_implementation_words[] = {"auto", "cudnn", "onednn", "plain", NULL};
static const char *const pool_layout_words[] = {"nhwc", "nchw", NULL};
static const char *const pool_operation_words[] = {"max", "average", NULL};

static const struct parameter pool_parameters[] = {
    WORKLOAD_INTEGER("batch", 1048576, "16", "images", INTO(batch)),
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("channels", 1048576, "64", "input channels", INTO(channels)),
    WORKLOAD_INTEGER("height", 65536, "112", "input pixels", INTO(height)),
    WORKLOAD_IMPLEMENTATION(pool_implementation_words),
    WORKLOAD_LAUNCH,
    WORKLOAD_SERIES("layout", pool_layout_words, "nhwc", "order of the tensors' dimensions",
                    INTO(layout)),
    WORKLOAD_SERIES("operation", pool_operation_words, "max",
                    "value of a window; average: padding counts as zeros", INTO(operation)),
    WORKLOAD_PIXELS("padding", PARAMETER_PADDING, 0, "same",
                    "pixels on each side, or before:after; height or heightxwidth, as 1:2x0:1; "
                    "same: half the window, valid: none", INTO_BOTH(pad)),
    WORKLOAD_LATER_WORDS("pass", workload_directions, "forward", ROLE_PASS, "what is computed",
                         INTO(pass)),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_PIXELS("stride", PARAMETER_STEP, 1, "2", "pixels, height or heightxwidth",
                    INTO_BOTH(stride)),
    WORKLOAD_INTEGER("width", 65536, "112", "input pixels", INTO(width)),
    WORKLOAD_PIXELS("window", PARAMETER_EXTENT, 1, "3", "pixels, height or heightxwidth",
                    INTO_BOTH(window)),
};
/* clang-format on */

struct pool pool_from(const struct config *config)
{
    struct pool s = {0};
    config_shape(config, &s);
    s.out_height = conv2d_outputs_of(s.height, s.pad_height, s.window_height, s.stride_height,
                                     &s.pad_height, &s.after_height);
    s.out_width = conv2d_outputs_of(s.width, s.pad_width, s.window_width, s.stride_width,
                                    &s.pad_width, &s.after_width);
    return s;
}

int64_t pool_y_size(const struct pool *s)
{
    return s->batch * s->out_height * s->out_width * s->channels;
}

static enum status pool_check(const struct config *config, struct error *error)
{
    struct pool s = pool_from(config);
    const int64_t pad_height = int64_larger(s.pad_height, s.after_height);
    const int64_t pad_width = int64_larger(s.pad_width, s.after_width);
    if (pad_height >= s.window_height || pad_width >= s.window_width)
        return error_set(error, STATUS_UNSUPPORTED,
                         "padding of %lld and %lld pixels leaves a window of %lld x %lld without a "
                         "pixel of the input",
                         (long long)pad_height, (long long)pad_width, (long long)s.window_height,
                         (long long)s.window_width);
    if (s.out_height < 1 || s.out_width < 1)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "the output has no pixels: the input of %lld x %lld is smaller than the window",
            (long long)s.height, (long long)s.width);
    return STATUS_OK;
}

/* In double, because sizes that config_check refuses would overflow int64_t. */
static struct tensors pool_tensors(const struct config *config)
{
    const struct pool s = pool_from(config);
    const bool forward = s.pass == POOL_FORWARD;
    const double images = (double)s.batch * (double)s.channels;
    const double x = images * (double)s.height * (double)s.width;
    const double y = images * (double)s.out_height * (double)s.out_width;
    return (struct tensors){
        .read = {[TENSOR_INPUT] = forward || s.operation == POOL_MAX ? x : 0,
                 [TENSOR_OUTPUT] = forward ? 0 : y},
        .written = {[TENSOR_INPUT] = forward ? 0 : x, [TENSOR_OUTPUT] = forward ? y : 0},
    };
}

/* Number of pixels of a line that windows cover. Pixels of several windows count once. */
static double pixels_met(int64_t size, int64_t out, int64_t window, int64_t pad, int64_t stride)
{
    int64_t end = (out - 1) * stride - pad + window, beyond = end > size ? end - size : 0;
    if (stride < window)
        return (double)(end - beyond);
    return (double)(out * window - pad - beyond);
}

static struct cost pool_cost(const struct config *config)
{
    const struct pool s = pool_from(config);
    const struct tensors tensors = pool_tensors(config);
    const double images = (double)s.batch * (double)s.channels;
    const double y = tensors.read[TENSOR_OUTPUT] + tensors.written[TENSOR_OUTPUT];
    const double met =
        pixels_met(s.height, s.out_height, s.window_height, s.pad_height, s.stride_height) *
        pixels_met(s.width, s.out_width, s.window_width, s.pad_width, s.stride_width);
    const double unread = fmax(tensors.read[TENSOR_INPUT] - images * met, 0); /* 0: no x is read */
    return (struct cost){
        .flops = y * (double)s.window_height * (double)s.window_width,
        .bytes = config_tensor_bytes(config) - unread * (double)precision_info[s.precision].bytes,
    };
}

struct place {
    int64_t n, c, h, w;
};

static struct place place_of(const struct pool *s, int64_t height, int64_t width, int64_t offset)
{
    bool last = s->layout == LAYOUT_NHWC;
    int64_t pixel = last ? offset / s->channels : offset;
    return (struct place){
        .n = offset / (height * width * s->channels),
        .c = last ? offset % s->channels : offset / (width * height) % s->channels,
        .h = pixel / width % height,
        .w = pixel % width,
    };
}

static double x_value(const struct reference_inputs *in, const struct place *at, int64_t h,
                      int64_t w)
{
    const struct pool *s = in->shape;
    return input_value(in, TENSOR_INPUT,
                       image_at(s->layout, s->height, s->width, s->channels, at->n, h, w, at->c));
}

static double element(const struct reference_inputs *in, int64_t offset)
{
    const struct pool *s = in->shape;
    struct place at = place_of(s, s->out_height, s->out_width, offset);
    double sum = 0.0, largest = -INFINITY;
    for (int64_t r = 0; r < s->window_height; ++r)
        for (int64_t q = 0; q < s->window_width; ++q) {
            int64_t row = at.h * s->stride_height - s->pad_height + r;
            int64_t column = at.w * s->stride_width - s->pad_width + q;
            if (row < 0 || row >= s->height || column < 0 || column >= s->width)
                continue;
            double value = x_value(in, &at, row, column);
            sum += value;
            largest = fmax(largest, value);
        }
    double pixels = (double)s->window_height * (double)s->window_width;
    return s->operation == POOL_MAX ? largest : sum / pixels;
}

/* ---- backward ---- */

/* For the window that begins at row `top` and column `left`: 1 if the place has the largest value,
 * 0 if not, NaN if another place has the same value. */
static double part_of_largest(const struct reference_inputs *in, const struct place *at,
                              int64_t top, int64_t left)
{
    const struct pool *s = in->shape;
    double own = x_value(in, at, at->h, at->w), part = 1.0;
    for (int64_t h = int64_larger(top, 0); h < int64_smaller(top + s->window_height, s->height);
         ++h)
        for (int64_t w = int64_larger(left, 0); w < int64_smaller(left + s->window_width, s->width);
             ++w) {
            double value = x_value(in, at, h, w);
            if (value > own)
                return 0.0;
            if (value == own && (h != at->h || w != at->w))
                part = NAN;
        }
    return part;
}

/* The first output whose window reaches a pixel. */
static int64_t first_reaching(int64_t pixel, int64_t pad, int64_t window, int64_t stride)
{
    int64_t beyond = pixel + pad - window + 1;
    return beyond <= 0 ? 0 : (beyond + stride - 1) / stride;
}

/* NaN if the gradient depends on which of several equal values gets it. */
static double gradient(const struct reference_inputs *in, int64_t offset)
{
    const struct pool *s = in->shape;
    struct place at = place_of(s, s->height, s->width, offset), from = at;
    double sum = 0.0, share = 1.0 / ((double)s->window_height * (double)s->window_width);
    int64_t last_h = int64_smaller(s->out_height - 1, (at.h + s->pad_height) / s->stride_height);
    int64_t last_w = int64_smaller(s->out_width - 1, (at.w + s->pad_width) / s->stride_width);
    for (from.h = first_reaching(at.h, s->pad_height, s->window_height, s->stride_height);
         from.h <= last_h; ++from.h)
        for (from.w = first_reaching(at.w, s->pad_width, s->window_width, s->stride_width);
             from.w <= last_w; ++from.w) {
            double part = s->operation == POOL_MAX
                              ? part_of_largest(in, &at, from.h * s->stride_height - s->pad_height,
                                                from.w * s->stride_width - s->pad_width)
                              : share;
            if (part != 0.0)
                sum += part * input_value(in, TENSOR_OUTPUT,
                                          image_at(s->layout, s->out_height, s->out_width,
                                                   s->channels, at.n, from.h, from.w, at.c));
        }
    return sum;
}

static enum status pool_reference(const struct reference_request *request,
                                  struct expectation *expectation, struct error *error)
{
    const struct pool s = pool_from(request->config);
    bool forward = s.pass == POOL_FORWARD;
    const struct elements results = {
        .tensor = forward ? TENSOR_OUTPUT : TENSOR_INPUT,
        .products = (double)s.window_height * (double)s.window_width,
        .element = forward ? element : gradient,
    };
    TRY(reference_elements(request, &s, &results, expectation, error));
    /* Drops elements whose value is ambiguous. */
    struct slice *slice = &expectation->slices[expectation->count - 1];
    int64_t kept = 0;
    for (int64_t i = 0; i < slice->count; ++i)
        if (!isnan(slice->expected[i])) {
            slice->offsets[kept] = slice->offsets[i];
            slice->expected[kept++] = slice->expected[i];
        }
    slice->count = kept;
    return STATUS_OK;
}

const struct workload pool_workload = {
    .name = "pool",
    WORKLOAD_TABLE(pool_parameters),
    .without_tensors = "a pool",
    .check = pool_check,
    .cost = pool_cost,
    .tensors = pool_tensors,
    .reference = pool_reference,
};
