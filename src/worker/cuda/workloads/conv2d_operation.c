#include "worker/cuda/workloads/conv2d_operation.h"

static const struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t convolution, tensor[TENSOR_BASIC_COUNT], alpha, beta;
} names_of[] = {
    /* clang-format off */
    [CONV2D_FORWARD] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CONV2D_BACKWARD_DATA] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CONV2D_BACKWARD_FILTER] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    /* clang-format on */
};

int64_t conv2d_operation_uid(enum tensor tensor)
{
    return 1 + (int64_t)tensor;
}

/* Dimensions are in the order N, C, H, W whatever the layout; the strides tell that. The groups
 * follow from the channels of the input and of the weights. */
static enum status tensor_build(struct cudnn_descriptors *stack, const struct conv2d *s,
                                cudnnDataType_t data, enum tensor tensor,
                                cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    const struct {
        int64_t size[4], stride[4];
    } shapes[TENSOR_BASIC_COUNT] = {
        [TENSOR_INPUT] = {{s->batch, s->channels, s->height, s->width},
                          {conv2d_x_at(s, 1, 0, 0, 0), conv2d_x_at(s, 0, 0, 0, 1),
                           conv2d_x_at(s, 0, 1, 0, 0), conv2d_x_at(s, 0, 0, 1, 0)}},
        [TENSOR_WEIGHT] = {{s->filters, s->channels / s->groups, s->kernel_height, s->kernel_width},
                           {conv2d_w_at(s, 1, 0, 0, 0), conv2d_w_at(s, 0, 0, 0, 1),
                            conv2d_w_at(s, 0, 1, 0, 0), conv2d_w_at(s, 0, 0, 1, 0)}},
        [TENSOR_OUTPUT] = {{s->batch, s->filters, s->out_height, s->out_width},
                           {conv2d_y_at(s, 1, 0, 0, 0), conv2d_y_at(s, 0, 0, 0, 1),
                            conv2d_y_at(s, 0, 1, 0, 0), conv2d_y_at(s, 0, 0, 1, 0)}},
    };
    const int64_t uid = conv2d_operation_uid(tensor), alignment = 128;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &data},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shapes[tensor].size},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shapes[tensor].stride},
        {0},
    };
    return cudnn_descriptor_build(stack, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, descriptor,
                                  error);
}

static enum status convolution_build(struct cudnn_descriptors *stack, const struct conv2d *s,
                                     cudnnDataType_t compute, cudnnBackendDescriptor_t *descriptor,
                                     struct error *error)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2, paddings[] = {s->pad_height, s->pad_width};
    const int64_t strides[] = {s->stride, s->stride}, dilations[] = {s->dilation, s->dilation};
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, paddings},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, paddings},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations},
        {0},
    };
    return cudnn_descriptor_build(stack, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes,
                                  descriptor, error);
}

static enum status operation_build(struct cudnn_descriptors *stack,
                                   const struct conv2d_operation *operation,
                                   cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    static const float one_float = 1.0f, zero_float = 0.0f;
    static const double one_double = 1.0, zero_double = 0.0;
    const struct names *names = &names_of[operation->shape->pass];
    bool wide = operation->compute == CUDNN_DATA_DOUBLE;
    cudnnBackendAttributeType_t scale = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    const void *alpha = wide ? (const void *)&one_double : &one_float;
    const void *beta = wide ? (const void *)&zero_double : &zero_float;
    cudnnBackendDescriptor_t convolution, tensor[TENSOR_BASIC_COUNT];
    TRY(convolution_build(stack, operation->shape, operation->compute, &convolution, error));
    for (int i = 0; i < TENSOR_BASIC_COUNT; ++i)
        TRY(tensor_build(stack, operation->shape,
                         i == TENSOR_OUTPUT ? operation->result : operation->data, (enum tensor)i,
                         &tensor[i], error));
    const struct cudnn_attribute attributes[] = {
        {names->convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution},
        {names->tensor[TENSOR_INPUT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[TENSOR_INPUT]},
        {names->tensor[TENSOR_WEIGHT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[TENSOR_WEIGHT]},
        {names->tensor[TENSOR_OUTPUT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[TENSOR_OUTPUT]},
        {names->alpha, scale, 1, alpha},
        {names->beta, scale, 1, beta},
        {0},
    };
    return cudnn_descriptor_build(stack, names->type, attributes, descriptor, error);
}

enum status conv2d_operation_describe(const struct conv2d_operation *operation, cudnnHandle_t cudnn,
                                      struct cudnn_descriptors *stack,
                                      cudnnBackendDescriptor_t *graph, struct error *error)
{
    cudnnBackendDescriptor_t node;
    TRY(operation_build(stack, operation, &node, error));
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &node},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn},
        {0},
    };
    return cudnn_descriptor_build(stack, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, graph,
                                  error);
}
