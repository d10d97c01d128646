#include "model/workloads/norm.h"

#include <math.h>
#include <stdlib.h>

#include "model/reference.h"

/* clang-format off */
static const char *const norm_implementation_words[] = {"auto", "cudnn", "plain", NULL};
static const char *const norm_operation_words[] = {"batch", "layer", NULL};
static const char *const norm_pass_words[] = {"forward", "training", "backward", NULL};

static const struct parameter norm_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("columns", 16777216, "1024", "channels, or features"),
    WORKLOAD_IMPLEMENTATION(norm_implementation_words, "auto: the device's best library"),
    WORKLOAD_LAUNCH,
    WORKLOAD_SERIES("operation", norm_operation_words, "layer", "whose mean is taken off: batch: each column's, layer: each row's"),
    WORKLOAD_PASS(norm_pass_words, "what is computed"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_INTEGER("rows", 1073741824, "16384", "pixels of a batch, or places of its sequences"),
};
/* clang-format on */

static const char *const norm_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices: not layer norms of fp64",
    "plain: as one would first write it, on CUDA devices and CPUs",
    NULL,
};

struct norm norm_from(const struct config *config)
{
    return (struct norm){
        .rows = config_value(config, "rows").first,
        .columns = config_value(config, "columns").first,
        .operation = (enum norm_operation)config_value(config, "operation").first,
        .pass = (enum norm_pass)config_value(config, "pass").first,
        .precision = config_precision(config),
    };
}

int64_t norm_statistics(const struct norm *s)
{
    return s->operation == NORM_BATCH ? s->columns : s->rows;
}

enum precision norm_wide(enum precision precision)
{
    return precision == PRECISION_FP64 ? PRECISION_FP64 : PRECISION_FP32;
}

static enum status norm_check(const struct config *config, struct error *error)
{
    struct norm s = norm_from(config);
    if (s.precision == PRECISION_TF32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "tf32 is a precision of tensor units, which a norm has no use for");
    if ((s.operation == NORM_BATCH ? s.rows : s.columns) < 2)
        return error_set(error, STATUS_UNSUPPORTED,
                         "one value is its own mean: nothing is left of it");
    return STATUS_OK;
}

/* By operation and pass: FLOPs of an element; tensors as large as x; arrays of gamma's size, and of the
 * mean's, that are read or written. */
static const struct {
    double flops, tensors, parameters, statistics;
} costs[2][3] = {
    [NORM_BATCH] = {{2.0, 2.0, 2.0, 2.0}, {6.0, 2.0, 2.0, 2.0}, {8.0, 3.0, 3.0, 2.0}},
    [NORM_LAYER] = {{7.0, 2.0, 2.0, 0.0}, {7.0, 2.0, 2.0, 2.0}, {13.0, 3.0, 3.0, 2.0}},
};

static struct cost norm_cost(const struct config *config)
{
    struct norm s = norm_from(config);
    double elements = (double)s.rows * (double)s.columns;
    double wide = (double)precision_info[norm_wide(s.precision)].bytes;
    double bytes =
        costs[s.operation][s.pass].tensors * elements * (double)precision_info[s.precision].bytes +
        costs[s.operation][s.pass].parameters * (double)s.columns * wide +
        costs[s.operation][s.pass].statistics * (double)norm_statistics(&s) * wide;
    return (struct cost){
        .flops = costs[s.operation][s.pass].flops * elements, .bytes = bytes, .memory = bytes};
}

/* ---- reference ---- */

/* Values that share a mean lie `apart`, `count` of them. */
struct inputs {
    struct norm shape;
    struct fill x, dy, gamma, beta;
    int64_t count, apart;
    double *mean, *inverse; /* of all rows of a layer norm's backward pass; else NULL */
};

static double x_at(const struct inputs *in, int64_t offset)
{
    return fill_value(in->x, (uint64_t)offset);
}

static double gradient_at(const struct inputs *in, int64_t offset)
{
    return fill_value(in->dy, (uint64_t)offset) *
           fill_value(in->gamma, (uint64_t)(offset % in->shape.columns));
}

/* The first of the values that share the mean of this number. */
static int64_t first_of(const struct inputs *in, int64_t statistic)
{
    return in->shape.operation == NORM_BATCH ? statistic : statistic * in->shape.columns;
}

static int64_t statistic_of(const struct inputs *in, int64_t offset)
{
    return in->shape.operation == NORM_BATCH ? offset % in->shape.columns
                                             : offset / in->shape.columns;
}

static void moments(const struct inputs *in, int64_t statistic, double *mean, double *inverse)
{
    int64_t first = first_of(in, statistic);
    double sum = 0.0, squares = 0.0;
    if (in->mean) {
        *mean = in->mean[statistic];
        *inverse = in->inverse[statistic];
        return;
    }
    for (int64_t i = 0; i < in->count; ++i)
        sum += x_at(in, first + i * in->apart);
    *mean = sum / (double)in->count;
    for (int64_t i = 0; i < in->count; ++i) {
        double difference = x_at(in, first + i * in->apart) - *mean;
        squares += difference * difference;
    }
    *inverse = 1.0 / sqrt(squares / (double)in->count + NORM_EPSILON);
}

static double y_element(const void *inputs, int64_t offset)
{
    const struct inputs *in = inputs;
    double mean, inverse;
    uint64_t column = (uint64_t)(offset % in->shape.columns);
    moments(in, statistic_of(in, offset), &mean, &inverse);
    return (x_at(in, offset) - mean) * inverse * fill_value(in->gamma, column) +
           fill_value(in->beta, column);
}

static double mean_element(const void *inputs, int64_t offset)
{
    double mean, inverse;
    moments(inputs, offset, &mean, &inverse);
    return mean;
}

static double inverse_element(const void *inputs, int64_t offset)
{
    double mean, inverse;
    moments(inputs, offset, &mean, &inverse);
    return inverse;
}

static double dx_element(const void *inputs, int64_t offset)
{
    const struct inputs *in = inputs;
    double mean, inverse, sum = 0.0, products = 0.0;
    int64_t first = first_of(in, statistic_of(in, offset));
    moments(in, statistic_of(in, offset), &mean, &inverse);
    for (int64_t i = 0; i < in->count; ++i) {
        int64_t at = first + i * in->apart;
        double g = gradient_at(in, at);
        sum += g;
        products += g * (x_at(in, at) - mean) * inverse;
    }
    double h = (x_at(in, offset) - mean) * inverse, n = (double)in->count;
    return inverse * (gradient_at(in, offset) - sum / n - h * products / n);
}

static double dgamma_element(const void *inputs, int64_t column)
{
    const struct inputs *in = inputs;
    double mean, inverse, sum = 0.0;
    moments(in, in->shape.operation == NORM_BATCH ? column : 0, &mean, &inverse);
    for (int64_t row = 0; row < in->shape.rows; ++row) {
        int64_t at = row * in->shape.columns + column;
        if (in->shape.operation == NORM_LAYER)
            moments(in, row, &mean, &inverse);
        sum += fill_value(in->dy, (uint64_t)at) * (x_at(in, at) - mean) * inverse;
    }
    return sum;
}

static double dbeta_element(const void *inputs, int64_t column)
{
    const struct inputs *in = inputs;
    double sum = 0.0;
    for (int64_t row = 0; row < in->shape.rows; ++row)
        sum += fill_value(in->dy, (uint64_t)(row * in->shape.columns + column));
    return sum;
}

/* What each pass leaves: y alone; y, m, r; dx, dgamma, dbeta. */
static const struct result {
    enum tensor tensor;
    bool of_statistics; /* as many as means; else as x */
    bool of_columns;
    double (*element)(const void *inputs, int64_t offset);
} results[3][3] = {
    [NORM_FORWARD] = {{TENSOR_OUTPUT, false, false, y_element}},
    [NORM_TRAINING] = {{TENSOR_OUTPUT, false, false, y_element},
                       {TENSOR_WEIGHT, true, false, mean_element},
                       {TENSOR_BIAS, true, false, inverse_element}},
    [NORM_BACKWARD] = {{TENSOR_INPUT, false, false, dx_element},
                       {TENSOR_WEIGHT, false, true, dgamma_element},
                       {TENSOR_BIAS, false, true, dbeta_element}},
};

static enum status result_expect(const struct reference_request *request, const struct inputs *in,
                                 const struct result *result, struct expectation *expectation,
                                 struct error *error)
{
    const struct norm *s = &in->shape;
    const struct elements elements = {
        .tensor = result->tensor,
        .size = result->of_statistics ? norm_statistics(s)
                : result->of_columns  ? s->columns
                                      : s->rows * s->columns,
        .products = 4.0 * (double)(result->of_columns ? s->rows : in->count),
        .element = result->element,
        .inputs = in,
    };
    return reference_elements(request, &elements, expectation, error);
}

static void row_moments(void *context, int64_t row)
{
    const struct inputs *in = context;
    struct inputs other = *in;
    other.mean = NULL;
    moments(&other, row, &in->mean[row], &in->inverse[row]);
}

/* A gradient of gamma needs the moments of all rows: they are computed once. */
static enum status rows_prepare(const struct reference_request *request, struct inputs *in,
                                struct error *error)
{
    if (in->shape.operation != NORM_LAYER || in->shape.pass != NORM_BACKWARD)
        return STATUS_OK;
    in->mean = malloc(2 * (size_t)in->shape.rows * sizeof *in->mean);
    if (!in->mean)
        return error_set(error, STATUS_FAILED, "no memory for the means of %lld rows",
                         (long long)in->shape.rows);
    in->inverse = in->mean + in->shape.rows;
    request->loop(in->shape.rows, row_moments, in);
    return STATUS_OK;
}

static enum status norm_reference(const struct reference_request *request,
                                  struct expectation *expectation, struct error *error)
{
    struct norm s = norm_from(request->config);
    bool batch = s.operation == NORM_BATCH;
    struct inputs in = {
        .shape = s,
        .x = config_fill(request->config, request->seed, TENSOR_INPUT),
        .dy = config_fill(request->config, request->seed, TENSOR_OUTPUT),
        .gamma = config_fill(request->config, request->seed, TENSOR_WEIGHT),
        .beta = config_fill(request->config, request->seed, TENSOR_BIAS),
        .count = batch ? s.rows : s.columns,
        .apart = batch ? s.columns : 1,
    };
    enum status status = rows_prepare(request, &in, error);
    for (int i = 0; i < 3 && status == STATUS_OK && results[s.pass][i].element; ++i)
        status = result_expect(request, &in, &results[s.pass][i], expectation, error);
    free(in.mean);
    return status;
}

const struct workload norm_workload = {
    .name = "norm",
    WORKLOAD_TABLE(norm_parameters),
    .implementations = norm_implementations,
    .check = norm_check,
    .cost = norm_cost,
    .reference = norm_reference,
};
