#include "model/workloads/conv2d_reference.h"

#include <stdlib.h>

#include "model/workloads/conv2d.h"

#define ELEMENT              element_of
#define REAL                 double
#define SOURCE               struct fill
#define LOAD(source, offset) fill_value(source, (uint64_t)(offset))
#include "model/workloads/conv2d_element.h"

/* A tensor times the activation's slope: dz. `slopes` is NULL for tensors that are taken as they are. */
struct source {
    struct fill fill;
    const double *slopes;
};

static inline double source_value(struct source source, int64_t offset)
{
    double value = fill_value(source.fill, (uint64_t)offset);
    return source.slopes ? value * source.slopes[offset] : value;
}

#define ELEMENT              element_through
#define REAL                 double
#define SOURCE               struct source
#define LOAD(source, offset) source_value(source, offset)
#include "model/workloads/conv2d_element.h"

struct inputs {
    struct conv2d shape;                 /* as asked for */
    struct conv2d forward, data, filter; /* its convolutions by themselves */
    struct fill x, w, dy, b;
    double *slopes; /* of all y; NULL: dz is dy */
};

static double y_element(const void *inputs, int64_t offset)
{
    const struct inputs *in = inputs;
    double z = element_of(&in->forward, in->x, in->w, offset);
    if (in->shape.bias)
        z += fill_value(in->b, (uint64_t)conv2d_filter_of(&in->shape, offset));
    return activation_value(in->shape.activation, z);
}

static double dx_element(const void *inputs, int64_t offset)
{
    const struct inputs *in = inputs;
    const struct source w = {in->w, NULL}, dz = {in->dy, in->slopes};
    return in->slopes ? element_through(&in->data, w, dz, offset)
                      : element_of(&in->data, in->w, in->dy, offset);
}

static double dw_element(const void *inputs, int64_t offset)
{
    const struct inputs *in = inputs;
    const struct source x = {in->x, NULL}, dz = {in->dy, in->slopes};
    return in->slopes ? element_through(&in->filter, x, dz, offset)
                      : element_of(&in->filter, in->x, in->dy, offset);
}

static double db_element(const void *inputs, int64_t k)
{
    const struct inputs *in = inputs;
    const struct conv2d *s = &in->shape;
    const struct source dz = {in->dy, in->slopes};
    double sum = 0.0;
    for (int64_t n = 0; n < s->batch; ++n)
        for (int64_t h = 0; h < s->out_height; ++h)
            for (int64_t v = 0; v < s->out_width; ++v)
                sum += source_value(dz, conv2d_y_at(s, n, h, v, k));
    return sum;
}

static double updated_w(const void *inputs, int64_t offset)
{
    const struct inputs *in = inputs;
    return fill_value(in->w, (uint64_t)offset) - CONV2D_LEARNING_RATE * dw_element(inputs, offset);
}

static double updated_b(const void *inputs, int64_t k)
{
    const struct inputs *in = inputs;
    return fill_value(in->b, (uint64_t)k) - CONV2D_LEARNING_RATE * db_element(inputs, k);
}

/* Of all elements of y, as the device has computed them. */
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

/* A result, by the tensor that it is. */
struct result {
    bool there;
    enum tensor tensor;
    int64_t size;
    double products;
    double (*element)(const void *inputs, int64_t offset);
};

static enum status results_expect(const struct reference_request *request, struct inputs *in,
                                  struct expectation *expectation, struct error *error)
{
    const struct conv2d *s = &in->shape;
    struct conv2d_parts parts = conv2d_parts[s->pass];
    double taps = (double)(s->kernel_height * s->kernel_width);
    double pixels = (double)s->batch * (double)s->out_height * (double)s->out_width;
    double channels = (double)(s->channels / s->groups), filters = (double)(s->filters / s->groups);
    int64_t w_size = conv2d_w_size(s);
    bool gradient = s->bias && parts.data && parts.filter;
    const struct result results[] = {
        {parts.forward || conv2d_needs_y(s), TENSOR_OUTPUT, conv2d_y_size(s), taps * channels,
         y_element},
        {parts.data, TENSOR_INPUT, conv2d_x_size(s), taps * filters, dx_element},
        {parts.filter, TENSOR_WEIGHT, w_size, pixels, dw_element},
        {gradient, TENSOR_BIAS, s->filters, pixels, db_element},
        {parts.update, TENSOR_WEIGHT_UPDATED, w_size, pixels, updated_w},
        {parts.update && s->bias, TENSOR_BIAS_UPDATED, s->filters, pixels, updated_b},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof results / sizeof *results && status == STATUS_OK; ++i) {
        const struct elements elements = {results[i].tensor, results[i].size, results[i].products,
                                          results[i].element, in};
        if (results[i].there)
            status = reference_elements(request, &elements, expectation, error);
    }
    return status;
}

enum status conv2d_reference(const struct reference_request *request,
                             struct expectation *expectation, struct error *error)
{
    const struct config *config = request->config;
    struct conv2d s = conv2d_from(config);
    struct inputs in = {
        .shape = s,
        .forward = conv2d_bare(&s, CONV2D_FORWARD),
        .data = conv2d_bare(&s, CONV2D_BACKWARD_DATA),
        .filter = conv2d_bare(&s, CONV2D_BACKWARD_FILTER),
        .x = config_fill(config, request->seed, TENSOR_INPUT),
        .w = config_fill(config, request->seed, TENSOR_WEIGHT),
        .dy = config_fill(config, request->seed, TENSOR_OUTPUT),
        .b = config_fill(config, request->seed, TENSOR_BIAS),
    };
    enum status status = STATUS_OK;
    if (conv2d_needs_y(&s))
        status = slopes_read(request, &s, &in.slopes, error);
    if (status == STATUS_OK)
        status = results_expect(request, &in, expectation, error);
    free(in.slopes);
    return status;
}
