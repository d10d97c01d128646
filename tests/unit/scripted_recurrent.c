#include "scripted_recurrent.h"

#include <stdlib.h>
#include <string.h>

#include "scripted_machine.h"

struct script_recurrent recurrent;

struct cudnnTensorStruct {
    int count, extent[4];
    bool set;
};
struct cudnnDropoutStruct {
    bool set;
};
struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    int64_t elements;
    bool set;
};
struct cudnnRNNStruct {
    cudnnRNNAlgo_t algorithm;
    cudnnRNNMode_t mode;
    cudnnDataType_t type;
    int gates, directions, layers;
    int64_t input, hidden, projection;
    bool set, dynamic;
};

/* The one that was set last: what the weight space is of. */
static struct cudnnRNNStruct last;

enum { WORKSPACE = 4096, RESERVE = 8192, PROJECTION_NUMBER = 8 };

static cudnnStatus_t called(void)
{
    return script_call() == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
}

static cudnnStatus_t create(void *made, size_t bytes)
{
    cudnnStatus_t status = called();
    if (status == CUDNN_STATUS_SUCCESS) {
        void *descriptor = calloc(1, bytes);
        assert_non_null(descriptor);
        memcpy(made, &descriptor, sizeof descriptor);
        ++recurrent.descriptors;
    }
    return status;
}

static cudnnStatus_t destroy(void *descriptor)
{
    assert_non_null(descriptor);
    free(descriptor);
    --recurrent.descriptors;
    return CUDNN_STATUS_SUCCESS;
}

static size_t bytes_of(cudnnDataType_t type)
{
    assert_true(type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF ||
                type == CUDNN_DATA_BFLOAT16);
    return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

/* ---- descriptors ---- */

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor)
{
    return destroy(descriptor);
}

static void tensor_set(cudnnTensorDescriptor_t tensor, int a, int64_t b, int64_t c)
{
    *tensor = (struct cudnnTensorStruct){3, {a, (int)b, (int)c}, true};
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int count, const int extent[], const int stride[])
{
    assert_int_equal(count, 3);
    assert_true(bytes_of(type) > 0 && stride[2] == 1 && stride[1] == extent[2]);
    tensor_set(tensor, extent[0], extent[1], extent[2]);
    return called();
}

cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int room,
                                         cudnnDataType_t *type, int *count, int extent[],
                                         int stride[])
{
    assert_true(tensor->set && room >= tensor->count);
    *type = last.type;
    *count = tensor->count;
    for (int i = 0; i < tensor->count; ++i) {
        extent[i] = tensor->extent[i];
        stride[i] = 1;
    }
    return called();
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float share, void *states, size_t bytes,
                                        unsigned long long seed)
{
    (void)handle, (void)states, (void)bytes, (void)seed;
    assert_true(share == 0.0f);
    dropout->set = true;
    return called();
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int width, const int lengths[], void *padding)
{
    (void)layout, (void)padding;
    for (int i = 0; i < batch; ++i)
        assert_int_equal(lengths[i], steps);
    *data = (struct cudnnRNNDataStruct){type, (int64_t)steps * batch * width, true};
    return called();
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t math_precision,
                                       cudnnMathType_t math, int32_t input_size, int32_t hidden,
                                       int32_t projection, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    (void)math_precision, (void)math, (void)flags;
    static const int gates[] = {
        [CUDNN_RNN_RELU] = 1, [CUDNN_RNN_TANH] = 1, [CUDNN_LSTM] = 4, [CUDNN_GRU] = 3};
    assert_int_equal(bias, CUDNN_RNN_DOUBLE_BIAS);
    assert_int_equal(input, CUDNN_LINEAR_INPUT);
    assert_true(dropout->set && projection >= 1 && projection <= hidden);
    assert_true(projection == hidden || mode == CUDNN_LSTM);
    *rnn = (struct cudnnRNNStruct){
        .algorithm = algorithm,
        .mode = mode,
        .type = type,
        .gates = gates[mode],
        .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
        .layers = layers,
        .input = input_size,
        .hidden = hidden,
        .projection = projection,
        .set = true,
    };
    last = *rnn;
    return projection < hidden && algorithm != CUDNN_RNN_ALGO_STANDARD ? CUDNN_STATUS_NOT_SUPPORTED
                                                                       : called();
}

cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int batch)
{
    (void)handle;
    assert_true(rnn->set && batch >= 1);
    rnn->dynamic = true;
    ++recurrent.builds;
    return called();
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t *workspace, size_t *reserve)
{
    (void)handle;
    assert_true(rnn->set && x->set);
    *workspace = WORKSPACE;
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? RESERVE : 0;
    return called();
}

/* ---- weights: for each layer and direction its matrices, the projection, its biases ---- */

static int64_t matrix_columns(int layer, int number)
{
    int64_t below = layer / last.directions == 0 ? last.input : last.projection * last.directions;
    return number == PROJECTION_NUMBER ? last.hidden
           : number < last.gates       ? below
                                       : last.projection;
}

static int64_t matrix_size(int layer, int number)
{
    bool there =
        number < 2 * last.gates || (number == PROJECTION_NUMBER && last.projection < last.hidden);
    int64_t rows = number == PROJECTION_NUMBER ? last.projection : last.hidden;
    return there ? rows * matrix_columns(layer, number) : 0;
}

int64_t script_weights_at(int layer, int number, bool bias)
{
    int64_t at = 0;
    for (int l = 0; l <= layer; ++l)
        for (int n = 0; n <= PROJECTION_NUMBER && (l < layer || bias || n < number); ++n)
            at += matrix_size(l, n);
    int64_t biases = (int64_t)2 * last.gates * last.hidden;
    return at + layer * biases + (bias ? number * last.hidden : 0);
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t *bytes)
{
    (void)handle;
    assert_true(rnn->set);
    *bytes =
        (size_t)script_weights_at(last.layers * last.directions, 0, false) * bytes_of(last.type);
    return called();
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t layer,
                                      size_t bytes, const void *space, int32_t number,
                                      cudnnTensorDescriptor_t matrix, void **matrix_at,
                                      cudnnTensorDescriptor_t bias, void **bias_at)
{
    (void)handle;
    assert_true(rnn->set && layer >= 0 && layer < rnn->layers * rnn->directions);
    assert_true(matrix_size(layer, number) > 0);
    script_within(space, bytes, script.own);
    char *begin = (char *)(uintptr_t)space;
    bool has_bias = number < 2 * last.gates;
    int64_t element = (int64_t)bytes_of(last.type);
    tensor_set(matrix, 1, matrix_size(layer, number) / matrix_columns(layer, number),
               matrix_columns(layer, number));
    *matrix_at = begin + script_weights_at(layer, number, false) * element;
    tensor_set(bias, 1, has_bias ? last.hidden : 0, 1);
    *bias_at = has_bias ? begin + script_weights_at(layer, number, true) * element : NULL;
    return called();
}

/* ---- running ---- */

cudaError_t cudaMemset2DAsync(void *memory, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    assert_true(value == 0 && width <= pitch && height > 0);
    script_within(memory, (height - 1) * pitch + width, script.own);
    cudaError_t code = script_call();
    return code == cudaSuccess ? script_enqueue(1e-6, stream) : code;
}

static void assert_data(cudnnRNNDataDescriptor_t data, const void *memory)
{
    assert_true(data->set);
    script_within(memory, (size_t)data->elements * bytes_of(data->type), script.own);
}

static cudnnStatus_t run(cudnnRNNDescriptor_t rnn, size_t w_bytes, const void *w,
                         size_t workspace_bytes, void *workspace)
{
    assert_true(rnn->set && rnn->dynamic == (rnn->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC));
    assert_true(workspace_bytes >= WORKSPACE);
    script_within(w, w_bytes, script.own);
    script_within(workspace, workspace_bytes, script.own);
    recurrent.algorithm = rnn->algorithm;
    recurrent.mode = rnn->mode;
    if (recurrent.refused >> rnn->algorithm & 1)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (machine.capturing) {
        ++machine.nodes;
        return called();
    }
    double seconds = rnn->algorithm == CUDNN_RNN_ALGO_STANDARD ? 4e-5 : 2e-5;
    return script_enqueue(seconds, script_stream()) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                   : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t mode, const int32_t lengths[],
                              cudnnRNNDataDescriptor_t x_descriptor, const void *x,
                              cudnnRNNDataDescriptor_t y_descriptor, void *y,
                              cudnnTensorDescriptor_t h, const void *hx, void *hy,
                              cudnnTensorDescriptor_t c, const void *cx, void *cy, size_t w_bytes,
                              const void *w, size_t workspace_bytes, void *workspace,
                              size_t reserve_bytes, void *reserve)
{
    (void)handle, (void)lengths, (void)hx, (void)hy, (void)cx, (void)cy;
    assert_data(x_descriptor, x);
    assert_data(y_descriptor, y);
    assert_int_equal(h->extent[2], rnn->projection);
    assert_int_equal(c->extent[2], rnn->hidden);
    if (mode == CUDNN_FWD_MODE_TRAINING)
        script_within(reserve, reserve_bytes, script.own);
    ++recurrent.forward;
    recurrent.trained = mode == CUDNN_FWD_MODE_TRAINING;
    return run(rnn, w_bytes, w, workspace_bytes, workspace);
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      const int32_t lengths[],
                                      cudnnRNNDataDescriptor_t y_descriptor, const void *y,
                                      const void *dy, cudnnRNNDataDescriptor_t x_descriptor,
                                      void *dx, cudnnTensorDescriptor_t h, const void *hx,
                                      const void *dhy, void *dhx, cudnnTensorDescriptor_t c,
                                      const void *cx, const void *dcy, void *dcx, size_t w_bytes,
                                      const void *w, size_t workspace_bytes, void *workspace,
                                      size_t reserve_bytes, void *reserve)
{
    (void)handle, (void)lengths, (void)hx, (void)dhy, (void)dhx, (void)cx, (void)dcy, (void)dcx;
    assert_data(y_descriptor, y);
    assert_data(y_descriptor, dy);
    assert_data(x_descriptor, dx);
    assert_true(h->extent[2] == rnn->projection && c->extent[2] == rnn->hidden);
    script_within(reserve, reserve_bytes, script.own);
    return run(rnn, w_bytes, w, workspace_bytes, workspace);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         cudnnWgradMode_t mode, const int32_t lengths[],
                                         cudnnRNNDataDescriptor_t x_descriptor, const void *x,
                                         cudnnTensorDescriptor_t h, const void *hx,
                                         cudnnRNNDataDescriptor_t y_descriptor, const void *y,
                                         size_t w_bytes, void *dw, size_t workspace_bytes,
                                         void *workspace, size_t reserve_bytes, void *reserve)
{
    (void)handle, (void)lengths, (void)hx, (void)h, (void)mode;
    assert_data(x_descriptor, x);
    assert_data(y_descriptor, y);
    script_within(reserve, reserve_bytes, script.own);
    ++recurrent.backward;
    return run(rnn, w_bytes, dw, workspace_bytes, workspace);
}
