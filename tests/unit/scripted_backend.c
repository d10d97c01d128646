#include "scripted_backend.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "scripted_descriptors.h"
#include "scripted_machine.h"

enum { NODES = 24, EXTENTS = 4 };

/* What a tensor holds, by its extents and not by its strides. */
struct node {
    const struct descriptor *tensor;
    double *values; /* owned */
};

struct run {
    struct node nodes[NODES];
    int count;
    const struct descriptor *pack;
};

static const int64_t *size_at(const struct descriptor *tensor)
{
    return attribute_need(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
}

static int64_t elements(const struct descriptor *tensor)
{
    const int64_t *size = size_at(tensor);
    return size[0] * size[1] * size[2] * size[3];
}

static void place(const struct descriptor *tensor, int64_t i, int64_t at[EXTENTS])
{
    for (int e = EXTENTS - 1; e >= 0; --e) {
        at[e] = i % size_at(tensor)[e];
        i /= size_at(tensor)[e];
    }
}

static int64_t memory_at(const struct descriptor *tensor, int64_t i)
{
    const int64_t *stride = attribute_need(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t at[EXTENTS], sum = 0;
    place(tensor, i, at);
    for (int e = 0; e < EXTENTS; ++e)
        sum += at[e] * stride[e];
    return sum;
}

/* The host's or the device's memory of a tensor that is not within the kernel. */
static void *memory_of(const struct run *run, int64_t uid)
{
    const int64_t *uids = attribute_need(run->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *memory = attribute_need(run->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (int64_t i = 0; i < run->pack->attributes[0].count; ++i)
        if (uids[i] == uid)
            return memory[i];
    fail_msg("no memory of tensor %d", (int)uid);
    return NULL;
}

static bool flag(const struct descriptor *tensor, cudnnBackendAttributeName_t name)
{
    const bool *value = attribute_get(tensor, name);
    return value && *value;
}

static int64_t uid_of(const struct descriptor *tensor)
{
    return *(const int64_t *)attribute_need(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID);
}

static double *node_add(struct run *run, const struct descriptor *tensor)
{
    assert_true(run->count < NODES);
    struct node *node = &run->nodes[run->count++];
    node->tensor = tensor;
    node->values = calloc((size_t)elements(tensor), sizeof *node->values);
    assert_non_null(node->values);
    return node->values;
}

/* Its elements: of what was computed before, or of an input. */
static const double *values_of(struct run *run, const struct descriptor *tensor)
{
    for (int i = 0; i < run->count; ++i)
        if (run->nodes[i].tensor == tensor)
            return run->nodes[i].values;
    assert_false(flag(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL));
    double *values = node_add(run, tensor);
    void *memory = memory_of(run, uid_of(tensor));
    if (flag(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {
        values[0] = (double)*(const float *)memory;
        return values;
    }
    script_within(memory, (size_t)elements(tensor) * 2, script.own);
    for (int64_t i = 0; i < elements(tensor); ++i)
        values[i] = scripted_backend.value(uid_of(tensor), memory_at(tensor, i));
    return values;
}

/* Of a factor that may have extents of 1 where the result has more. */
static double broadcast(const struct descriptor *tensor, const double *values,
                        const int64_t at[EXTENTS])
{
    int64_t i = 0;
    for (int e = 0; e < EXTENTS; ++e)
        i = i * size_at(tensor)[e] + (size_at(tensor)[e] == 1 ? 0 : at[e]);
    return values[i];
}

static void run_product(struct run *run, const struct descriptor *operation)
{
    const struct descriptor *a = descriptor_need(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    const struct descriptor *b = descriptor_need(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    const struct descriptor *c = descriptor_need(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    const double *x = values_of(run, a), *w = values_of(run, b);
    double *y = node_add(run, c);
    int64_t inner = size_at(a)[3];
    descriptor_need(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC);
    assert_int_equal(inner, size_at(b)[2]);
    for (int64_t i = 0; i < elements(c); ++i) {
        int64_t at[EXTENTS];
        place(c, i, at);
        for (int64_t k = 0; k < inner; ++k) {
            const int64_t in_a[] = {at[0], at[1], at[2], k}, in_b[] = {at[0], at[1], k, at[3]};
            y[i] += broadcast(a, x, in_a) * broadcast(b, w, in_b);
        }
    }
}

static double point(cudnnPointwiseMode_t mode, double x, double b, double t, int64_t index)
{
    switch (mode) {
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_GEN_INDEX:
        return (double)index;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0.0 ? x : b;
    default:
        fail_msg("pointwise mode %d", (int)mode);
        return NAN;
    }
}

static void run_pointwise(struct run *run, const struct descriptor *operation)
{
    const struct descriptor *kind =
        descriptor_need(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const struct descriptor *y = descriptor_need(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    static const cudnnBackendAttributeName_t names[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                        CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                        CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    const struct descriptor *inputs[3] = {NULL, NULL, NULL};
    const double *values[3] = {NULL, NULL, NULL};
    const int64_t *axis = attribute_get(kind, CUDNN_ATTR_POINTWISE_AXIS);
    for (int i = 0; i < 3; ++i)
        if (attribute_get(operation, names[i])) {
            inputs[i] = descriptor_need(operation, names[i]);
            values[i] = values_of(run, inputs[i]);
        }
    double *result = node_add(run, y);
    for (int64_t i = 0; i < elements(y); ++i) {
        int64_t at[EXTENTS];
        double given[3] = {NAN, NAN, NAN};
        place(y, i, at);
        for (int j = 0; j < 3; ++j)
            if (inputs[j])
                given[j] = broadcast(inputs[j], values[j], at);
        result[i] =
            point(*(const cudnnPointwiseMode_t *)attribute_need(kind, CUDNN_ATTR_POINTWISE_MODE),
                  given[0], given[1], given[2], axis ? at[*axis] : -1);
    }
}

static void run_reduction(struct run *run, const struct descriptor *operation)
{
    const struct descriptor *kind = descriptor_need(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const struct descriptor *x = descriptor_need(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const struct descriptor *y = descriptor_need(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const double *values = values_of(run, x);
    double *result = node_add(run, y);
    bool largest = *(const int *)attribute_need(kind, CUDNN_ATTR_REDUCTION_OPERATOR) ==
                   CUDNN_REDUCE_TENSOR_MAX;
    int64_t width = size_at(x)[3];
    assert_true(size_at(y)[3] == 1 && elements(y) * width == elements(x));
    for (int64_t i = 0; i < elements(y); ++i) {
        result[i] = largest ? -INFINITY : 0.0;
        for (int64_t j = 0; j < width; ++j)
            result[i] = largest ? fmax(result[i], values[i * width + j])
                                : result[i] + values[i * width + j];
    }
}

/* ---- layer norms: tensors are [rows][columns][1][1] ---- */

static double norm_result(const struct run *run, const struct descriptor *tensor, int64_t i,
                          double value)
{
    assert_false(flag(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL));
    (void)memory_of(run, uid_of(tensor));
    if (scripted_backend.result)
        scripted_backend.result(uid_of(tensor), memory_at(tensor, i), value);
    return value;
}

static void run_norm_forward(struct run *run, const struct descriptor *o)
{
    const struct descriptor *x = descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
    const struct descriptor *y = descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
    const double *values = values_of(run, x);
    const double *gamma =
        values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC));
    const double *beta =
        values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC));
    double epsilon =
        values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC))[0];
    bool training = *(const int *)attribute_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) ==
                    CUDNN_NORM_FWD_TRAINING;
    int64_t columns = size_at(x)[1];
    double *result = node_add(run, y);
    assert_int_equal(*(const int *)attribute_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_MODE),
                     CUDNN_LAYER_NORM);
    assert_int_equal(attribute_get(o, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC) != NULL, training);
    for (int64_t row = 0; row < size_at(x)[0]; ++row) {
        double mean = 0.0, variance = 0.0;
        for (int64_t i = 0; i < columns; ++i)
            mean += values[row * columns + i] / (double)columns;
        for (int64_t i = 0; i < columns; ++i)
            variance += pow(values[row * columns + i] - mean, 2.0) / (double)columns;
        double inverse = 1.0 / sqrt(variance + epsilon);
        for (int64_t i = 0; i < columns; ++i)
            result[row * columns + i] =
                norm_result(run, y, row * columns + i,
                            (values[row * columns + i] - mean) * inverse * gamma[i] + beta[i]);
        if (training) {
            norm_result(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC), row,
                        mean);
            norm_result(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC),
                        row, inverse);
        }
    }
}

static void run_norm_backward(struct run *run, const struct descriptor *o)
{
    const struct descriptor *x = descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
    const double *values = values_of(run, x);
    const double *dy = values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC));
    const double *gamma =
        values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC));
    const double *mean =
        values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC));
    const double *inverse =
        values_of(run, descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC));
    const struct descriptor *dgamma = descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
    const struct descriptor *dbeta = descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
    const struct descriptor *dx = descriptor_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC);
    int64_t rows = size_at(x)[0], columns = size_at(x)[1];
    double *gamma_sums = node_add(run, dgamma), *beta_sums = node_add(run, dbeta);
    double *result = node_add(run, dx);
    assert_int_equal(*(const int *)attribute_need(o, CUDNN_ATTR_OPERATION_NORM_BWD_MODE),
                     CUDNN_LAYER_NORM);
    for (int64_t row = 0; row < rows; ++row) {
        double sum = 0.0, products = 0.0;
        for (int64_t i = 0; i < columns; ++i) {
            int64_t at = row * columns + i;
            double h = (values[at] - mean[row]) * inverse[row];
            sum += dy[at] * gamma[i] / (double)columns;
            products += dy[at] * gamma[i] * h / (double)columns;
            gamma_sums[i] += dy[at] * h;
            beta_sums[i] += dy[at];
        }
        for (int64_t i = 0; i < columns; ++i) {
            int64_t at = row * columns + i;
            double h = (values[at] - mean[row]) * inverse[row];
            result[at] =
                norm_result(run, dx, at, inverse[row] * (dy[at] * gamma[i] - sum - h * products));
        }
    }
    for (int64_t i = 0; i < columns; ++i) {
        norm_result(run, dgamma, i, gamma_sums[i]);
        norm_result(run, dbeta, i, beta_sums[i]);
    }
}

static void operation_run(struct run *run, const struct descriptor *operation)
{
    assert_true(operation->finalized);
    if (operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        run_product(run, operation);
    else if (operation->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        run_pointwise(run, operation);
    else if (operation->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        run_reduction(run, operation);
    else if (operation->type == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR)
        run_norm_forward(run, operation);
    else if (operation->type == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)
        run_norm_backward(run, operation);
    else
        fail_msg("operation of type %d", (int)operation->type);
}

/* What the last operation makes. */
static void output_keep(const struct run *run)
{
    const struct node *last = &run->nodes[run->count - 1];
    assert_false(flag(last->tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL));
    assert_true(elements(last->tensor) <= SCRIPTED_OUTPUTS);
    script_within(memory_of(run, uid_of(last->tensor)), (size_t)elements(last->tensor) * 2,
                  script.own);
    for (int64_t i = 0; i < elements(last->tensor); ++i)
        scripted_backend.output[memory_at(last->tensor, i)] = last->values[i];
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    struct run run = {.pack = descriptor_own(pack)};
    (void)handle;
    assert_true(descriptor_own(plan)->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    assert_true(descriptor_own(plan)->finalized && descriptor_own(pack)->finalized);
    ++scripted_backend.ran;
    if (scripted_backend.value) {
        const struct descriptor *graph = descriptor_last_graph();
        struct descriptor *const *operations = attribute_need(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
        scripted_backend.operations = (int)graph->attributes[0].count;
        for (int i = 0; i < scripted_backend.operations; ++i)
            operation_run(&run, operations[i]);
        output_keep(&run);
        for (int i = 0; i < run.count; ++i)
            free(run.nodes[i].values);
    }
    return script_enqueue(1e-5, script_stream()) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                : CUDNN_STATUS_EXECUTION_FAILED;
}
