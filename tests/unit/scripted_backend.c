#include "scripted_backend.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "scripted_machine.h"

struct scripted_backend scripted_backend;

enum { ATTRIBUTES = 16, BYTES = 160, NODES = 24, EXTENTS = 4 };

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized;
    struct {
        cudnnBackendAttributeName_t name;
        int64_t count;
        unsigned char bytes[BYTES];
    } attributes[ATTRIBUTES];
    int count;
    int64_t engine;
};

static struct descriptor *own(cudnnBackendDescriptor_t descriptor)
{
    return (struct descriptor *)descriptor;
}

static cudnnStatus_t called(void)
{
    return ++scripted_backend.calls == scripted_backend.fail_at ? CUDNN_STATUS_NOT_SUPPORTED
                                                                : CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_NORM_MODE:
    case CUDNN_TYPE_NORM_FWD_PHASE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_KNOB_TYPE:
        return sizeof(int);
    case CUDNN_TYPE_FLOAT:
        return sizeof(float);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(int64_t);
    default:
        fail_msg("attribute of type %d", (int)type);
        return 0;
    }
}

/* NULL if it was not set. */
static const void *get(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < d->count; ++i)
        if (d->attributes[i].name == name)
            return d->attributes[i].bytes;
    return NULL;
}

static const void *need(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    const void *value = get(d, name);
    if (!value)
        fail_msg("descriptor of type %d lacks attribute %d", (int)d->type, (int)name);
    return value;
}

static struct descriptor *need_descriptor(const struct descriptor *d,
                                          cudnnBackendAttributeName_t name)
{
    struct descriptor *found = *(struct descriptor *const *)need(d, name);
    assert_true(found->finalized);
    return found;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor)
{
    cudnnStatus_t status = called();
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    struct descriptor *made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->type = type;
    *descriptor = (cudnnBackendDescriptor_t)made;
    ++scripted_backend.alive;
    return status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    free(descriptor);
    --scripted_backend.alive;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    struct descriptor *d = own(descriptor);
    assert_true(!d->finalized && d->count < ATTRIBUTES && (size_t)count * size_of(type) <= BYTES);
    d->attributes[d->count].name = name;
    d->attributes[d->count].count = count;
    memcpy(d->attributes[d->count++].bytes, values, (size_t)count * size_of(type));
    return called();
}

/* The graph that was described last is the one that runs: one at a time is enough. */
static const struct descriptor *last_graph;

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = own(descriptor);
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
        last_graph = d;
    if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        for (int name = CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT; name <= CUDNN_ATTR_TENSOR_STRIDES; ++name)
            need(d, (cudnnBackendAttributeName_t)name);
    d->finalized = true;
    return called();
}

/* Of a configuration that was made by hand, or of one that a heuristic has named. */
static int64_t engine_of(const struct descriptor *config)
{
    return get(config, CUDNN_ATTR_ENGINECFG_ENGINE)
               ? *(const int64_t *)need(need_descriptor(config, CUDNN_ATTR_ENGINECFG_ENGINE),
                                        CUDNN_ATTR_ENGINE_GLOBAL_INDEX)
               : config->engine;
}

/* Copies of the knobs that were set. */
static int64_t knobs_of(const struct descriptor *config, struct descriptor **found)
{
    struct descriptor *const *set = get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    int64_t count = 0;
    for (int i = 0; set && i < config->count; ++i)
        if (config->attributes[i].name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)
            count = config->attributes[i].count;
    for (int64_t i = 0; i < count; ++i)
        *found[i] = *set[i];
    return count;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *count, void *values)
{
    struct descriptor *d = own(descriptor), **found = values;
    (void)type;
    *count = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        ++scripted_backend.heuristics;
        *count = *(const int *)need(d, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A
                     ? scripted_backend.engines
                     : 0;
        for (int64_t i = 0; i < *count && i < wanted; ++i)
            found[i]->engine = i + 1;
        break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        found[0]->engine = engine_of(d);
        break;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        *count = knobs_of(d, found);
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *(int *)values = *(const int *)need(d, name);
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        *(int64_t *)values = *(const int64_t *)need(d, name);
        break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *count = 0;
        break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = d->engine;
        break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *(cudnnBackendNumericalNote_t *)values = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        break;
    default:
        assert_int_equal(name, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        *(int64_t *)values = scripted_backend.workspace;
    }
    return called();
}

/* ---- a graph that runs ---- */

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
    return need(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
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
    const int64_t *stride = need(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t at[EXTENTS], sum = 0;
    place(tensor, i, at);
    for (int e = 0; e < EXTENTS; ++e)
        sum += at[e] * stride[e];
    return sum;
}

/* The host's or the device's memory of a tensor that is not within the kernel. */
static void *memory_of(const struct run *run, int64_t uid)
{
    const int64_t *uids = need(run->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *memory = need(run->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (int64_t i = 0; i < run->pack->attributes[0].count; ++i)
        if (uids[i] == uid)
            return memory[i];
    fail_msg("no memory of tensor %d", (int)uid);
    return NULL;
}

static bool flag(const struct descriptor *tensor, cudnnBackendAttributeName_t name)
{
    const bool *value = get(tensor, name);
    return value && *value;
}

static int64_t uid_of(const struct descriptor *tensor)
{
    return *(const int64_t *)need(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID);
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
    const struct descriptor *a = need_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    const struct descriptor *b = need_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    const struct descriptor *c = need_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    const double *x = values_of(run, a), *w = values_of(run, b);
    double *y = node_add(run, c);
    int64_t inner = size_at(a)[3];
    need_descriptor(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC);
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
        need_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const struct descriptor *y = need_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    static const cudnnBackendAttributeName_t names[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                        CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                        CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    const struct descriptor *inputs[3] = {NULL, NULL, NULL};
    const double *values[3] = {NULL, NULL, NULL};
    const int64_t *axis = get(kind, CUDNN_ATTR_POINTWISE_AXIS);
    for (int i = 0; i < 3; ++i)
        if (get(operation, names[i])) {
            inputs[i] = need_descriptor(operation, names[i]);
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
        result[i] = point(*(const cudnnPointwiseMode_t *)need(kind, CUDNN_ATTR_POINTWISE_MODE),
                          given[0], given[1], given[2], axis ? at[*axis] : -1);
    }
}

static void run_reduction(struct run *run, const struct descriptor *operation)
{
    const struct descriptor *kind = need_descriptor(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const struct descriptor *x = need_descriptor(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const struct descriptor *y = need_descriptor(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const double *values = values_of(run, x);
    double *result = node_add(run, y);
    bool largest =
        *(const int *)need(kind, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
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
    const struct descriptor *x = need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
    const struct descriptor *y = need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
    const double *values = values_of(run, x);
    const double *gamma =
        values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC));
    const double *beta =
        values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC));
    double epsilon =
        values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC))[0];
    bool training =
        *(const int *)need(o, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_TRAINING;
    int64_t columns = size_at(x)[1];
    double *result = node_add(run, y);
    assert_int_equal(*(const int *)need(o, CUDNN_ATTR_OPERATION_NORM_FWD_MODE), CUDNN_LAYER_NORM);
    assert_int_equal(get(o, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC) != NULL, training);
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
            norm_result(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC), row,
                        mean);
            norm_result(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC),
                        row, inverse);
        }
    }
}

static void run_norm_backward(struct run *run, const struct descriptor *o)
{
    const struct descriptor *x = need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
    const double *values = values_of(run, x);
    const double *dy = values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC));
    const double *gamma =
        values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC));
    const double *mean =
        values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC));
    const double *inverse =
        values_of(run, need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC));
    const struct descriptor *dgamma = need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
    const struct descriptor *dbeta = need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
    const struct descriptor *dx = need_descriptor(o, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC);
    int64_t rows = size_at(x)[0], columns = size_at(x)[1];
    double *gamma_sums = node_add(run, dgamma), *beta_sums = node_add(run, dbeta);
    double *result = node_add(run, dx);
    assert_int_equal(*(const int *)need(o, CUDNN_ATTR_OPERATION_NORM_BWD_MODE), CUDNN_LAYER_NORM);
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
    struct run run = {.pack = own(pack)};
    (void)handle;
    assert_true(own(plan)->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    assert_true(own(plan)->finalized && own(pack)->finalized);
    ++scripted_backend.ran;
    if (scripted_backend.value) {
        struct descriptor *const *operations = need(last_graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
        scripted_backend.operations = (int)last_graph->attributes[0].count;
        for (int i = 0; i < scripted_backend.operations; ++i)
            operation_run(&run, operations[i]);
        output_keep(&run);
        for (int i = 0; i < run.count; ++i)
            free(run.nodes[i].values);
    }
    return script_enqueue(1e-5, script_stream()) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                : CUDNN_STATUS_EXECUTION_FAILED;
}
