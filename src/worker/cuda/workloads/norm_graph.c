#include "worker/cuda/workloads/norm_graph.h"

#include "worker/cuda/workloads/cudnn_tensor.h"

/* N is the rows, C the columns, as cuDNN's documentation has it of layer norms. */
static enum status tensor_describe(struct cudnn_graph *graph, const struct norm *s, int tensor,
                                   cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    const bool data =
        tensor == NORM_X || tensor == NORM_Y || tensor == NORM_DX || tensor == NORM_DY;
    const bool of_rows = data || tensor == NORM_MEAN || tensor == NORM_INVERSE;
    const bool by_value = tensor == NORM_EPSILON_VALUE, inner = false;
    const int64_t uid = tensor, alignment = 16, rows = of_rows ? s->rows : 1;
    const int64_t columns = by_value || (of_rows && !data) ? 1 : s->columns;
    const int64_t size[] = {rows, columns, 1, 1}, stride[] = {columns, 1, columns, columns};
    const cudnnDataType_t type = cudnn_data_type(data ? s->precision : norm_wide(s->precision));
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value},
        {0},
    };
    return cudnn_graph_describe(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, descriptor,
                                error);
}

/* What each pass has, and as what the operation knows it; a list ends with tensor 0. */
struct part {
    int tensor;
    cudnnBackendAttributeName_t name;
};
static const struct part parts[3][9] = {
    [NORM_FORWARD] = {{NORM_X, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
                      {NORM_GAMMA, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
                      {NORM_BETA, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
                      {NORM_EPSILON_VALUE, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
                      {NORM_Y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}},
    [NORM_TRAINING] = {{NORM_X, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
                       {NORM_GAMMA, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
                       {NORM_BETA, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
                       {NORM_EPSILON_VALUE, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
                       {NORM_MEAN, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC},
                       {NORM_INVERSE, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC},
                       {NORM_Y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}},
    [NORM_BACKWARD] = {{NORM_X, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC},
                       {NORM_DY, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC},
                       {NORM_GAMMA, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC},
                       {NORM_MEAN, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC},
                       {NORM_INVERSE, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC},
                       {NORM_DX, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC},
                       {NORM_DGAMMA, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC},
                       {NORM_DBETA, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC}},
};

enum status norm_graph_describe(struct cudnn_graph *graph, const struct norm *shape,
                                bool has[NORM_TENSORS], struct error *error)
{
    const bool backward = shape->pass == NORM_BACKWARD;
    const cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
    const cudnnBackendNormFwdPhase_t phase =
        shape->pass == NORM_TRAINING ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE;
    cudnnBackendDescriptor_t tensors[NORM_TENSORS];
    struct cudnn_attribute attributes[NORM_TENSORS + 3] = {
        {backward ? CUDNN_ATTR_OPERATION_NORM_BWD_MODE : CUDNN_ATTR_OPERATION_NORM_FWD_MODE,
         CUDNN_TYPE_NORM_MODE, 1, &mode},
        {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase},
    };
    int count = backward ? 1 : 2;
    for (int i = 0; i < NORM_TENSORS; ++i)
        has[i] = false;
    for (const struct part *part = parts[shape->pass]; part->tensor; ++part) {
        TRY(tensor_describe(graph, shape, part->tensor, &tensors[part->tensor], error));
        attributes[count++] = (struct cudnn_attribute){part->name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                       &tensors[part->tensor]};
        has[part->tensor] = true;
    }
    attributes[count] = (struct cudnn_attribute){0};
    return cudnn_graph_operate(graph,
                               backward ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                                        : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
                               attributes, error);
}
