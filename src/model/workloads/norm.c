#include "model/workloads/norm.h"

#include <math.h>
#include <stdlib.h>

#include "model/reference.h"

#define SHAPE struct norm
/* clang-format off */
static const char *const norm_implementation_words[] = {"auto", "cudnn", "plain", NULL};
static const char *const norm_operation_words[] = {"batch", "layer", NULL};
static const char *const norm_pass_words[] = {"forward", "training", "backward", NULL};

static const struct parameter norm_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("columns", 16777216, "1024", "channels, or features", INTO(columns)),
    WORKLOAD_IMPLEMENTATION(norm_implementation_words),
    WORKLOAD_LAUNCH,
    WORKLOAD_SERIES("operation", norm_operation_words, "layer",
                    "batch: subtracts the mean of each column, layer: of each row",
                    INTO(operation)),
    WORKLOAD_PASS(norm_pass_words, "what is computed"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_INTEGER("rows", 1073741824, "16384", "pixels of a batch, or tokens of its sequences",
                     INTO(rows)),
};
/* clang-format on */

WORKLOAD_SHAPE(norm)

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
    if ((s.operation == NORM_BATCH ? s.rows : s.columns) < 2)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "the mean of one value is the value itself, so their difference is always 0");
    return STATUS_OK;
}

static struct cost norm_cost(const struct config *config)
{
    /* FLOPs for each element, by operation and pass */
    static const double flops[2][3] = {[NORM_BATCH] = {2, 6, 8}, [NORM_LAYER] = {7, 7, 13}};
    const struct norm s = norm_from(config);
    const double wide = (double)precision_info[norm_wide(s.precision)].bytes;
    double bytes = config_tensor_bytes(config);
    /* These passes also read m and r, which are not among the tensors. */
    if (s.pass == NORM_BACKWARD || (s.pass == NORM_FORWARD && s.operation == NORM_BATCH))
        bytes += 2.0 * (double)norm_statistics(&s) * wide;
    return (struct cost){flops[s.operation][s.pass] * (double)s.rows * (double)s.columns, bytes,
                         bytes};
}

static struct tensors norm_tensors(const struct config *config)
{
    const struct norm s = norm_from(config);
    const bool backward = s.pass == NORM_BACKWARD;
    const double size = (double)s.rows * (double)s.columns, columns = (double)s.columns;
    const double kept = backward                  ? columns
                        : s.pass == NORM_TRAINING ? (double)norm_statistics(&s)
                                                  : 0;
    return (struct tensors){
        .read = {[TENSOR_INPUT] = size,
                 [TENSOR_WEIGHT] = columns,
                 [TENSOR_BIAS] = backward ? 0 : columns,
                 [TENSOR_OUTPUT] = backward ? size : 0},
        .written = {[TENSOR_INPUT] = backward ? size : 0,
                    [TENSOR_WEIGHT] = kept,
                    [TENSOR_BIAS] = kept,
                    [TENSOR_OUTPUT] = backward ? 0 : size},
        .wide = {[TENSOR_WEIGHT] = true, [TENSOR_BIAS] = true},
    };
}

/* ---- reference ---- */

/* A norm whose elements are compared. */
struct compared {
    struct norm norm;
    int64_t count, apart;   /* values that share a mean: number, and distance in elements */
    double *mean, *inverse; /* m and r of all rows, for a layer norm's backward pass; else NULL */
};

static double gradient_at(const struct reference_inputs *in, int64_t offset)
{
    const struct compared *s = in->shape;
    return input_value(in, TENSOR_OUTPUT, offset) *
           input_value(in, TENSOR_WEIGHT, offset % s->norm.columns);
}

/* The offset of the first value of this mean. */
static int64_t first_of(const struct compared *s, int64_t statistic)
{
    return s->norm.operation == NORM_BATCH ? statistic : statistic * s->norm.columns;
}

static int64_t statistic_of(const struct compared *s, int64_t offset)
{
    return s->norm.operation == NORM_BATCH ? offset % s->norm.columns : offset / s->norm.columns;
}

static void moments(const struct reference_inputs *in, int64_t statistic, double *mean,
                    double *inverse)
{
    const struct compared *s = in->shape;
    int64_t first = first_of(s, statistic);
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < s->count; ++i)
        sum += input_value(in, TENSOR_INPUT, first + i * s->apart);
    *mean = sum / (double)s->count;
    for (int64_t i = 0; i < s->count; ++i) {
        double difference = input_value(in, TENSOR_INPUT, first + i * s->apart) - *mean;
        squares += difference * difference;
    }
    *inverse = 1.0 / sqrt(squares / (double)s->count + NORM_EPSILON);
}

/* Takes m and r from s->mean and s->inverse, or computes both if these are NULL. */
static void moments_find(const struct reference_inputs *in, int64_t statistic, double *mean,
                         double *inverse)
{
    const struct compared *s = in->shape;
    if (s->mean) {
        *mean = s->mean[statistic];
        *inverse = s->inverse[statistic];
    } else {
        moments(in, statistic, mean, inverse);
    }
}

static double y_element(const struct reference_inputs *in, int64_t offset)
{
    const struct compared *s = in->shape;
    double mean, inverse;
    int64_t column = offset % s->norm.columns;
    moments(in, statistic_of(s, offset), &mean, &inverse);
    return (input_value(in, TENSOR_INPUT, offset) - mean) * inverse *
               input_value(in, TENSOR_WEIGHT, column) +
           input_value(in, TENSOR_BIAS, column);
}

static double mean_element(const struct reference_inputs *in, int64_t offset)
{
    double mean, inverse;
    moments(in, offset, &mean, &inverse);
    return mean;
}

static double inverse_element(const struct reference_inputs *in, int64_t offset)
{
    double mean, inverse;
    moments(in, offset, &mean, &inverse);
    return inverse;
}

static void dx_terms(const struct reference_inputs *in, int64_t offset, double terms[3])
{
    const struct compared *s = in->shape;
    double mean, inverse, sum = 0.0, products = 0.0;
    int64_t first = first_of(s, statistic_of(s, offset));
    moments_find(in, statistic_of(s, offset), &mean, &inverse);
    for (int64_t i = 0; i < s->count; ++i) {
        int64_t at = first + i * s->apart;
        double g = gradient_at(in, at);
        sum += g;
        products += g * (input_value(in, TENSOR_INPUT, at) - mean) * inverse;
    }
    double h = (input_value(in, TENSOR_INPUT, offset) - mean) * inverse, n = (double)s->count;
    terms[0] = inverse * gradient_at(in, offset);
    terms[1] = -inverse * sum / n;
    terms[2] = -inverse * h * products / n;
}

static double dx_element(const struct reference_inputs *in, int64_t offset)
{
    double terms[3];
    dx_terms(in, offset, terms);
    return terms[0] + terms[1] + terms[2];
}

/* With two values for each mean the terms of dx cancel, except for the effect of NORM_EPSILON. */
static double dx_largest_term(const struct reference_inputs *in, int64_t offset)
{
    double terms[3];
    dx_terms(in, offset, terms);
    return fmax(fabs(terms[0]), fmax(fabs(terms[1]), fabs(terms[2])));
}

static double dgamma_element(const struct reference_inputs *in, int64_t column)
{
    const struct compared *s = in->shape;
    double mean, inverse, sum = 0.0;
    moments_find(in, s->norm.operation == NORM_BATCH ? column : 0, &mean, &inverse);
    for (int64_t row = 0; row < s->norm.rows; ++row) {
        int64_t at = row * s->norm.columns + column;
        if (s->norm.operation == NORM_LAYER)
            moments_find(in, row, &mean, &inverse);
        sum += input_value(in, TENSOR_OUTPUT, at) * (input_value(in, TENSOR_INPUT, at) - mean) *
               inverse;
    }
    return sum;
}

static double dbeta_element(const struct reference_inputs *in, int64_t column)
{
    const struct norm *s = &((const struct compared *)in->shape)->norm;
    double sum = 0.0;
    for (int64_t row = 0; row < s->rows; ++row)
        sum += input_value(in, TENSOR_OUTPUT, row * s->columns + column);
    return sum;
}

static void row_moments(void *context, int64_t row)
{
    const struct reference_inputs *in = context;
    const struct compared *s = in->shape;
    moments(in, row, &s->mean[row], &s->inverse[row]);
}

/* Computes m and r of all rows once, for the gradient of gamma. */
static enum status rows_prepare(const struct reference_request *request, struct compared *s,
                                struct error *error)
{
    int64_t rows = s->norm.rows;
    if (s->norm.operation != NORM_LAYER || s->norm.pass != NORM_BACKWARD)
        return STATUS_OK;
    s->mean = malloc(2 * (size_t)rows * sizeof *s->mean);
    if (!s->mean)
        return error_set(error, STATUS_FAILED, "no memory for the means of %lld rows",
                         (long long)rows);
    s->inverse = s->mean + rows;
    struct reference_inputs in = reference_inputs(request, s);
    request->loop(rows, row_moments, &in);
    return STATUS_OK;
}

static enum status norm_reference(const struct reference_request *request,
                                  struct expectation *expectation, struct error *error)
{
    struct norm s = norm_from(request->config);
    bool batch = s.operation == NORM_BATCH;
    struct compared compared = {
        .norm = s,
        .count = batch ? s.rows : s.columns,
        .apart = batch ? s.columns : 1,
    };
    double row = 4.0 * (double)compared.count, column = 4.0 * (double)s.rows;
    const struct elements results[3][3] = {
        [NORM_FORWARD] = {{TENSOR_OUTPUT, row, y_element, NULL}},
        [NORM_TRAINING] = {{TENSOR_OUTPUT, row, y_element, NULL},
                           {TENSOR_WEIGHT, row, mean_element, NULL},
                           {TENSOR_BIAS, row, inverse_element, NULL}},
        [NORM_BACKWARD] = {{TENSOR_INPUT, 2.0 * row, dx_element, dx_largest_term},
                           {TENSOR_WEIGHT, column, dgamma_element, NULL},
                           {TENSOR_BIAS, column, dbeta_element, NULL}},
    };
    enum status status = rows_prepare(request, &compared, error);
    for (int i = 0; i < 3 && status == STATUS_OK && results[s.pass][i].element; ++i)
        status = reference_elements(request, &compared, &results[s.pass][i], expectation, error);
    free(compared.mean);
    return status;
}

const struct workload norm_workload = {
    .name = "norm",
    WORKLOAD_TABLE(norm_parameters),
    .without_tensors = "a norm",
    .check = norm_check,
    .cost = norm_cost,
    .tensors = norm_tensors,
    .reference = norm_reference,
};
