#include "worker/cuda/workloads/workloads.h"

#include <float.h>
#include <stdio.h>

#include "model/workloads/attention.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/workloads/graph_work.h"
#include "worker/cuda/workloads/product.h"

struct attention_work {
    struct graph_work graph; /* only the implementation cudnn uses the graph itself */
    struct attention shape;
    float scale, hidden; /* must outlive the graph, which reads both at each run */
    /* plain: scores = q k^T, and o = softmax(scores) v */
    struct product first, second;
};

static double scores_bytes(const struct attention *s)
{
    return (double)s->batch * (double)s->heads * (double)s->sequence * (double)s->keys *
           (double)precision_info[s->precision].bytes;
}

static void attention_shape(const struct config *config, struct work *work, struct tensors *tensors)
{
    struct attention_work *a = (struct attention_work *)work;
    (void)tensors;
    a->shape = attention_from(config);
    if (a->graph.tensors.routine == &attention_plain)
        a->graph.tensors.intermediate_bytes = (size_t)scores_bytes(&a->shape);
}

/* ---- fused, by a graph of cuDNN ----
 *
 * The graph has the operations of "Fused Flash Attention fprop" in cuDNN's documentation, which an
 * engine runs as one kernel: product, scale, mask, softmax, product. */

/* Unique ids of the graph's tensors; tensors with memory come first. */
enum {
    ATTENTION_Q = 1,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_O,
    ATTENTION_SCALE,  /* float in host memory */
    ATTENTION_HIDDEN, /* float in host memory: the score of a masked key; only with a causal mask */
    SCORES,           /* from here on tensors are values within the kernel, without memory */
    SCALED,
    ROW,
    COLUMN,
    SEEN,
    MASKED,
    LARGEST,
    BELOW,
    POWER,
    SUM,
    LOGARITHM,
    STATISTICS,
    WEIGHTS,
    TENSORS
};

struct description {
    struct cudnn_graph *graph;
    const struct attention *shape;
    cudnnBackendDescriptor_t tensors[TENSORS];
};

static struct cudnn_extents lines(const struct attention *s, int64_t count, int64_t width)
{
    return cudnn_extents_nchw(s->batch, s->heads, count, width);
}

static bool is_of_mask(int tensor)
{
    return tensor == ATTENTION_HIDDEN || (tensor >= ROW && tensor <= MASKED);
}

/* The second product takes the weights in the type of the values. */
static enum status tensors_describe(struct description *d, struct error *error)
{
    const struct attention *s = d->shape;
    const cudnnDataType_t data =
        s->precision == PRECISION_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
    const struct cudnn_extents queries = lines(s, s->sequence, s->head_size);
    const struct cudnn_extents pairs = lines(s, s->sequence, s->keys),
                               each = lines(s, s->sequence, 1);
    const struct cudnn_extents one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    const struct cudnn_extents keys = lines(s, s->keys, s->head_size);
    const struct cudnn_extents transposed = {{s->batch, s->heads, s->head_size, s->keys},
                                             {keys.stride[0], keys.stride[1], 1, s->head_size}};
    const struct {
        struct cudnn_extents extents;
        cudnnDataType_t type;
    } rows[TENSORS] = {
        [ATTENTION_Q] = {queries, data},
        [ATTENTION_K] = {transposed, data},
        [ATTENTION_V] = {keys, data},
        [ATTENTION_O] = {queries, data},
        [ATTENTION_SCALE] = {one, CUDNN_DATA_FLOAT},
        [ATTENTION_HIDDEN] = {one, CUDNN_DATA_FLOAT},
        [SCORES] = {pairs, CUDNN_DATA_FLOAT},
        [SCALED] = {pairs, CUDNN_DATA_FLOAT},
        [ROW] = {pairs, CUDNN_DATA_INT32},
        [COLUMN] = {pairs, CUDNN_DATA_INT32},
        [SEEN] = {pairs, CUDNN_DATA_BOOLEAN},
        [MASKED] = {pairs, CUDNN_DATA_FLOAT},
        [LARGEST] = {each, CUDNN_DATA_FLOAT},
        [BELOW] = {pairs, CUDNN_DATA_FLOAT},
        [POWER] = {pairs, CUDNN_DATA_FLOAT},
        [SUM] = {each, CUDNN_DATA_FLOAT},
        [LOGARITHM] = {each, CUDNN_DATA_FLOAT},
        [STATISTICS] = {each, CUDNN_DATA_FLOAT},
        [WEIGHTS] = {pairs, data},
    };
    for (int i = ATTENTION_Q; i < TENSORS; ++i) {
        const struct cudnn_graph_tensor tensor = {
            .uid = i,
            .type = rows[i].type,
            .extents = rows[i].extents,
            .alignment = 16,
            .inner = i > ATTENTION_HIDDEN,
            .by_value = i == ATTENTION_SCALE || i == ATTENTION_HIDDEN,
        };
        if (s->causal || !is_of_mask(i))
            TRY(cudnn_graph_tensor(d->graph, &tensor, &d->tensors[i], error));
    }
    return STATUS_OK;
}

/* ---- operations ---- */

/* cuDNN's names of a kind of operation and of its parts. */
enum kind { PRODUCT, POINTWISE, REDUCTION };
static const struct {
    cudnnBackendDescriptorType_t description, operation;
    cudnnBackendAttributeName_t mode, compute;
    cudnnBackendAttributeType_t mode_type; /* 0: the kind has no modes */
    cudnnBackendAttributeName_t described, x, y, b, t;
} kinds[] = {
    [PRODUCT] = {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 0,
                 CUDNN_ATTR_MATMUL_COMP_TYPE, 0, CUDNN_ATTR_OPERATION_MATMUL_DESC,
                 CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                 CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0},
    [POINTWISE] = {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                   CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC,
                   CUDNN_TYPE_POINTWISE_MODE, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                   CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
    [REDUCTION] = {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                   CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE,
                   CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                   CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 0,
                   0},
};

/* y = mode(x) or mode(x, b); with t, selects x or b for each element. Tensor 0: none.
 *
 * A query sees a key whose column is at most the query's row. Nothing reads the statistics, which
 * a backward pass would need, but cuDNN has no engine for a graph without them. */
static const struct operation {
    enum kind kind;
    int mode; /* cudnnPointwiseMode_t or cudnnReduceTensorOp_t */
    cudnnDataType_t compute;
    int x, b, t, y;
    int64_t axis; /* axis of an index operation */
} operations[] = {
    {PRODUCT, 0, CUDNN_DATA_FLOAT, ATTENTION_Q, ATTENTION_K, 0, SCORES, 0},
    {POINTWISE, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, SCORES, ATTENTION_SCALE, 0, SCALED, 0},
    {POINTWISE, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, SCALED, 0, 0, ROW, 2},
    {POINTWISE, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, SCALED, 0, 0, COLUMN, 3},
    {POINTWISE, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, ROW, COLUMN, 0, SEEN, 0},
    {POINTWISE, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, SCALED, ATTENTION_HIDDEN, SEEN,
     MASKED, 0},
    {REDUCTION, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, MASKED, 0, 0, LARGEST, 0},
    {POINTWISE, CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, MASKED, LARGEST, 0, BELOW, 0},
    {POINTWISE, CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, BELOW, 0, 0, POWER, 0},
    {REDUCTION, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, POWER, 0, 0, SUM, 0},
    {POINTWISE, CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT, SUM, 0, 0, LOGARITHM, 0},
    {POINTWISE, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, LARGEST, LOGARITHM, 0, STATISTICS, 0},
    {POINTWISE, CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, POWER, SUM, 0, WEIGHTS, 0},
    {PRODUCT, 0, CUDNN_DATA_FLOAT, WEIGHTS, ATTENTION_V, 0, ATTENTION_O, 0},
};

static enum status operation_describe(struct description *d, const struct operation *o,
                                      struct error *error)
{
    const bool index = o->kind == POINTWISE && o->mode == CUDNN_POINTWISE_GEN_INDEX;
    const int x = o->x == MASKED && !d->shape->causal ? SCALED : o->x;
    cudnnBackendDescriptor_t described;
    struct cudnn_attribute description[4] = {{0}}, operation[6] = {{0}};
    int count = 0;
    if (kinds[o->kind].mode_type)
        description[count++] =
            (struct cudnn_attribute){kinds[o->kind].mode, kinds[o->kind].mode_type, 1, &o->mode};
    description[count++] =
        (struct cudnn_attribute){kinds[o->kind].compute, CUDNN_TYPE_DATA_TYPE, 1, &o->compute};
    if (index)
        description[count++] =
            (struct cudnn_attribute){CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &o->axis};
    TRY(cudnn_graph_describe(d->graph, kinds[o->kind].description, description, &described, error));
    const struct {
        cudnnBackendAttributeName_t name;
        const cudnnBackendDescriptor_t *descriptor;
    } parts[] = {
        {kinds[o->kind].described, &described},
        {kinds[o->kind].x, &d->tensors[x]},
        {kinds[o->kind].y, &d->tensors[o->y]},
        {kinds[o->kind].b, o->b ? &d->tensors[o->b] : NULL},
        {kinds[o->kind].t, o->t ? &d->tensors[o->t] : NULL},
    };
    count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        if (parts[i].descriptor)
            operation[count++] = (struct cudnn_attribute){
                parts[i].name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, parts[i].descriptor};
    return cudnn_graph_operate(d->graph, kinds[o->kind].operation, operation, error);
}

bool attention_cudnn_takes(const struct config *config)
{
    enum precision precision = config_precision(config);
    return precision == PRECISION_FP16 || precision == PRECISION_BF16;
}

static enum status fused_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    const struct attention s = attention_from(config);
    const int step = 8;
    if (!attention_cudnn_takes(config))
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's fused attention takes fp16 and bf16; in %s use "
                         "implementation=plain",
                         precision_info[s.precision].name);
    TRY(capability_check(gpu, 80, "cuDNN's fused attention", error));
    if (s.head_size % step != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's fused attention needs a head_size that is a multiple of %d",
                         step);
    return STATUS_OK;
}

static enum status fused_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    struct attention_work *a = (struct attention_work *)work;
    const struct tensor_work *t = &a->graph.tensors;
    a->scale = (float)attention_scale(&a->shape);
    a->hidden = -FLT_MAX;
    (void)config;
    TRY(graph_work_create(gpu, &a->graph, error));
    struct description d = {.graph = a->graph.graph, .shape = &a->shape};
    TRY(tensors_describe(&d, error));
    for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i)
        if (a->shape.causal || !is_of_mask(operations[i].y))
            TRY(operation_describe(&d, &operations[i], error));
    graph_work_bind(&a->graph, ATTENTION_Q, t->input[TENSOR_INPUT]);
    graph_work_bind(&a->graph, ATTENTION_K, t->input[TENSOR_WEIGHT]);
    graph_work_bind(&a->graph, ATTENTION_V, t->input[TENSOR_VALUE]);
    graph_work_bind(&a->graph, ATTENTION_O, t->result[TENSOR_OUTPUT]);
    graph_work_bind(&a->graph, ATTENTION_SCALE, &a->scale);
    if (a->shape.causal)
        graph_work_bind(&a->graph, ATTENTION_HIDDEN, &a->hidden);
    return graph_work_choose(gpu, &a->graph, record, error);
}

const struct tensor_routine attention_cudnn = {
    .bytes = sizeof(struct attention_work),
    .shape = attention_shape,
    .check = fused_check,
    .open = fused_open,
    .iterate = graph_work_iterate,
    .close = graph_work_close,
};

/* ---- three steps ---- */

/* cuBLASLt reads matrices by columns: scores^T = k q^T, and o^T = v^T scores^T. */
static enum status products_open(struct gpu *gpu, struct attention_work *a, struct error *error)
{
    const struct attention *s = &a->shape;
    const int64_t size = s->head_size, keys = s->keys, batches = s->batch * s->heads;
    const struct product_matrix q = {size, s->sequence, size, s->sequence * size, false};
    const struct product_matrix k = {size, keys, size, keys * size, true};
    const struct product_matrix v = {size, keys, size, keys * size, false};
    const struct product_matrix scores = {keys, s->sequence, keys, keys * s->sequence, false};
    const struct product_form first = {.precision = s->precision,
                                       .scale = attention_scale(s),
                                       .batches = batches,
                                       .a = k,
                                       .b = q,
                                       .d = scores};
    const struct product_form second = {
        .precision = s->precision, .scale = 1.0, .batches = batches, .a = v, .b = scores, .d = q};
    TRY(product_open(gpu, &first, &a->first, error));
    return product_open(gpu, &second, &a->second, error);
}

static enum status steps_open(struct gpu *gpu, const struct config *config, struct work *work,
                              struct record *record, struct error *error)
{
    struct attention_work *a = (struct attention_work *)work;
    (void)config;
    TRY(products_open(gpu, a, error));
    TRY(product_describe(&a->first, record, error));
    snprintf(record->algorithm, sizeof record->algorithm, "three-steps %.50s %.50s",
             a->first.names[0], a->second.names[0]);
    record->workspace += scores_bytes(&a->shape) + (double)a->second.candidates[0].workspaceSize;
    return STATUS_OK;
}

static enum status steps_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct attention_work *a = (const struct attention_work *)work;
    const struct tensor_work *t = &a->graph.tensors;
    const struct attention *s = &a->shape;
    void *scores = t->intermediate;
    TRY(product_run(gpu, &a->first, t->input[TENSOR_WEIGHT], t->input[TENSOR_INPUT], scores,
                    error));
    TRY(CUDA(kernel_softmax(s->precision, scores, scores, s->batch * s->heads * s->sequence,
                            s->keys, s->causal ? s->sequence : 0, gpu->stream)));
    return product_run(gpu, &a->second, t->input[TENSOR_VALUE], scores, t->result[TENSOR_OUTPUT],
                       error);
}

static enum status steps_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    const struct attention s = attention_from(config);
    return product_offered(gpu, s.precision, (double)s.batch * (double)s.heads, error);
}

static void steps_close(struct work *work)
{
    struct attention_work *a = (struct attention_work *)work;
    product_close(&a->second);
    product_close(&a->first);
}

const struct tensor_routine attention_plain = {
    .bytes = sizeof(struct attention_work),
    .shape = attention_shape,
    .check = steps_check,
    .open = steps_open,
    .iterate = steps_iterate,
    .close = steps_close,
};
