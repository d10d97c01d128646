/* What stands in for cuDNN's calls on tensors: descriptors that must be set before they are used and
 * given back, memory that must be as large as they say. */
#include "scripted_streams.h"

#include <cudnn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "scripted_machine.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct cudnnTensorStruct {
    cudnnDataType_t type; /* of what is set */
    int extent[4], stride[4];
    bool set;
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
    bool set;
};
struct cudnnOpTensorStruct {
    cudnnOpTensorOp_t operation;
    cudnnDataType_t compute;
    bool set;
};

struct cudnnPoolingStruct {
    cudnnPoolingMode_t mode;
    int window[2], padding[2], stride[2];
    bool set;
};

static cudnnStatus_t called(const char *name)
{
    if (streamed.refused && strcmp(streamed.refused, name) == 0)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return script_call() == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
}

static cudnnStatus_t create(void *made, size_t bytes)
{
    cudnnStatus_t status = called("create");
    if (status == CUDNN_STATUS_SUCCESS) {
        void *descriptor = calloc(1, bytes);
        assert_non_null(descriptor);
        memcpy(made, &descriptor, sizeof descriptor);
        ++streamed.descriptors;
    }
    return status;
}

static cudnnStatus_t destroy(void *descriptor)
{
    assert_non_null(descriptor);
    free(descriptor);
    --streamed.descriptors;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- tensors ---- */

static const struct {
    cudnnDataType_t type;
    enum precision precision;
} types[] = {{CUDNN_DATA_DOUBLE, PRECISION_FP64},
             {CUDNN_DATA_FLOAT, PRECISION_FP32},
             {CUDNN_DATA_HALF, PRECISION_FP16},
             {CUDNN_DATA_BFLOAT16, PRECISION_BF16}};

static enum precision precision_of(cudnnDataType_t type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (types[i].type == type)
            return types[i].precision;
    fail_msg("type %d", (int)type);
    return PRECISION_COUNT;
}

static int64_t elements_of(cudnnTensorDescriptor_t tensor)
{
    int64_t elements = 1;
    assert_true(tensor->set);
    for (int i = 0; i < 4; ++i)
        elements *= tensor->extent[i];
    return elements;
}

static size_t bytes_of(cudnnTensorDescriptor_t tensor)
{
    return (size_t)elements_of(tensor) * precision_info[precision_of(tensor->type)].bytes;
}

static void assert_input(cudnnTensorDescriptor_t tensor, const void *memory)
{
    script_assert_filled(memory, bytes_of(tensor), precision_of(tensor->type), script.own);
}

/* beta must be 0: nothing of the result is read. */
static void assert_result(cudnnTensorDescriptor_t tensor, const void *memory, const void *beta)
{
    const double wide_zero = 0.0;
    const float zero = 0.0f;
    bool wide = tensor->type == CUDNN_DATA_DOUBLE;
    assert_memory_equal(beta, wide ? (const void *)&wide_zero : &zero,
                        wide ? sizeof wide_zero : sizeof zero);
    script_within(memory, bytes_of(tensor), script.own);
}

static double scalar(cudnnTensorDescriptor_t tensor, const void *alpha)
{
    return tensor->type == CUDNN_DATA_DOUBLE ? *(const double *)alpha : *(const float *)alpha;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int count, const int extent[], const int stride[])
{
    cudnnStatus_t status = called("set-tensor");
    assert_int_equal(count, 4);
    int64_t elements = 1;
    for (int i = 0; i < 4; ++i) {
        assert_true(extent[i] >= 1 && stride[i] >= 1);
        tensor->extent[i] = extent[i];
        tensor->stride[i] = stride[i];
        elements *= extent[i];
    }
    assert_true(elements <= INT_MAX);
    tensor->type = type;
    tensor->set = status == CUDNN_STATUS_SUCCESS;
    (void)precision_of(type);
    return status;
}

static cudnnStatus_t run(const char *what, cudnnTensorDescriptor_t tensor, int choice,
                         const void *alpha, double tensors)
{
    cudnnStatus_t status = called(what);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    streamed.what = what;
    streamed.precision = precision_of(tensor->type);
    streamed.choice = choice;
    streamed.elements = elements_of(tensor);
    streamed.factor = scalar(tensor, alpha);
    ++streamed.launches;
    return script_enqueue(tensors * (double)bytes_of(tensor) / 4e12, script_stream()) == cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
}

/* ---- elementwise ---- */

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient)
{
    cudnnStatus_t status = called("set-activation");
    (void)nan;
    assert_true(coefficient == 0.0);
    activation->mode = mode;
    activation->set = status == CUDNN_STATUS_SUCCESS;
    return status;
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                     const void *alpha, cudnnTensorDescriptor_t x_descriptor,
                                     const void *x, const void *beta,
                                     cudnnTensorDescriptor_t y_descriptor, void *y)
{
    assert_non_null(handle);
    assert_true(activation->set);
    assert_input(x_descriptor, x);
    assert_result(y_descriptor, y, beta);
    assert_memory_equal(x_descriptor->extent, y_descriptor->extent, sizeof x_descriptor->extent);
    return run("activation", x_descriptor, (int)activation->mode, alpha, 2.0);
}

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t sum, cudnnOpTensorOp_t operation,
                                         cudnnDataType_t compute, cudnnNanPropagation_t nan)
{
    cudnnStatus_t status = called("set-op-tensor");
    (void)nan;
    sum->operation = operation;
    sum->compute = compute;
    sum->set = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* The type of the sums: float, or of double tensors double. */
cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t sum, const void *alpha,
                            cudnnTensorDescriptor_t x_descriptor, const void *x,
                            const void *other_alpha, cudnnTensorDescriptor_t w_descriptor,
                            const void *w, const void *beta, cudnnTensorDescriptor_t y_descriptor,
                            void *y)
{
    assert_non_null(handle);
    assert_true(sum->set);
    assert_int_equal(sum->compute == CUDNN_DATA_DOUBLE, x_descriptor->type == CUDNN_DATA_DOUBLE);
    assert_true(scalar(w_descriptor, other_alpha) == 1.0);
    assert_ptr_not_equal(x, w);
    assert_input(x_descriptor, x);
    assert_input(w_descriptor, w);
    assert_result(y_descriptor, y, beta);
    return run("op-tensor", x_descriptor, (int)sum->operation, alpha, 3.0);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha,
                                   cudnnTensorDescriptor_t x_descriptor, const void *x,
                                   const void *beta, cudnnTensorDescriptor_t y_descriptor, void *y)
{
    assert_non_null(handle);
    assert_input(x_descriptor, x);
    assert_result(y_descriptor, y, beta);
    return run("transform-tensor", x_descriptor, 0, alpha, 2.0);
}

/* ---- pools ---- */

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *descriptor)
{
    return create(descriptor, sizeof **descriptor);
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor)
{
    return destroy(descriptor);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int height, int width,
                                          int pad_height, int pad_width, int stride_height,
                                          int stride_width)
{
    cudnnStatus_t status = called("set-pooling");
    (void)nan;
    *pooling = (struct cudnnPoolingStruct){
        .mode = mode,
        .window = {height, width},
        .padding = {pad_height, pad_width},
        .stride = {stride_height, stride_width},
        .set = status == CUDNN_STATUS_SUCCESS,
    };
    return status;
}

/* The output is as large as cuDNN's documentation says of such a pool. */
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                  const void *alpha, cudnnTensorDescriptor_t x_descriptor,
                                  const void *x, const void *beta,
                                  cudnnTensorDescriptor_t y_descriptor, void *y)
{
    assert_non_null(handle);
    assert_true(pooling->set);
    assert_input(x_descriptor, x);
    assert_result(y_descriptor, y, beta);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(x_descriptor->extent[i], y_descriptor->extent[i]);
        assert_true(pooling->padding[i] < pooling->window[i]);
        assert_int_equal(
            y_descriptor->extent[i + 2],
            1 + (x_descriptor->extent[i + 2] + 2 * pooling->padding[i] - pooling->window[i]) /
                    pooling->stride[i]);
    }
    return run("pooling", x_descriptor, (int)pooling->mode, alpha, 2.0);
}

/* Its own output and its gradient have the same extents, and so have x and its gradient. */
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                   const void *alpha, cudnnTensorDescriptor_t y_descriptor,
                                   const void *y, cudnnTensorDescriptor_t dy_descriptor,
                                   const void *dy, cudnnTensorDescriptor_t x_descriptor,
                                   const void *x, const void *beta,
                                   cudnnTensorDescriptor_t dx_descriptor, void *dx)
{
    assert_non_null(handle);
    assert_true(pooling->set);
    script_within(y, bytes_of(y_descriptor), script.own);
    assert_input(dy_descriptor, dy);
    assert_input(x_descriptor, x);
    assert_result(dx_descriptor, dx, beta);
    assert_true(y != dy && x != dx);
    assert_memory_equal(x_descriptor->extent, dx_descriptor->extent, sizeof x_descriptor->extent);
    assert_memory_equal(y_descriptor->extent, dy_descriptor->extent, sizeof y_descriptor->extent);
    return run("pooling gradient", x_descriptor, (int)pooling->mode, alpha, 4.0);
}

/* ---- softmax ---- */

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void *alpha,
                                  cudnnTensorDescriptor_t x_descriptor, const void *x,
                                  const void *beta, cudnnTensorDescriptor_t y_descriptor, void *y)
{
    assert_non_null(handle);
    assert_int_equal(algorithm, CUDNN_SOFTMAX_ACCURATE);
    assert_int_equal(mode, CUDNN_SOFTMAX_MODE_INSTANCE);
    assert_input(x_descriptor, x);
    assert_result(y_descriptor, y, beta);
    return run("softmax", x_descriptor, 0, alpha, 2.0);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void *alpha,
                                   cudnnTensorDescriptor_t y_descriptor, const void *y,
                                   cudnnTensorDescriptor_t dy_descriptor, const void *dy,
                                   const void *beta, cudnnTensorDescriptor_t dx_descriptor,
                                   void *dx)
{
    assert_non_null(handle);
    assert_int_equal(algorithm, CUDNN_SOFTMAX_ACCURATE);
    assert_int_equal(mode, CUDNN_SOFTMAX_MODE_INSTANCE);
    assert_ptr_not_equal(y, dy);
    assert_input(y_descriptor, y);
    assert_input(dy_descriptor, dy);
    assert_result(dx_descriptor, dx, beta);
    return run("softmax gradient", y_descriptor, 1, alpha, 3.0);
}

/* ---- batch norms ---- */

static const double epsilon_expected = 1e-5;

/* All that a pass has of channels: of as many as the data has, in fp32, of fp64 in fp64. */
static void norm_check(cudnnBatchNormMode_t mode, cudnnTensorDescriptor_t data,
                       cudnnTensorDescriptor_t parameters, const void *gamma, double epsilon)
{
    bool wide = data->type == CUDNN_DATA_DOUBLE;
    assert_true(mode == (wide ? CUDNN_BATCHNORM_SPATIAL : CUDNN_BATCHNORM_SPATIAL_PERSISTENT));
    assert_int_equal(parameters->type, wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    assert_int_equal(elements_of(parameters), data->extent[1]);
    assert_int_equal(parameters->extent[1], data->extent[1]);
    assert_true(epsilon == epsilon_expected);
    assert_input(parameters, gamma);
}

static void norm_within(cudnnTensorDescriptor_t tensor, const void *memory)
{
    script_within(memory, bytes_of(tensor), script.own);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    cudnnTensorDescriptor_t x_descriptor, const void *x, cudnnTensorDescriptor_t y_descriptor,
    void *y, cudnnTensorDescriptor_t parameters, const void *gamma, const void *bias,
    const void *mean, const void *variance, double epsilon)
{
    assert_non_null(handle);
    norm_check(mode, x_descriptor, parameters, gamma, epsilon);
    assert_input(x_descriptor, x);
    assert_input(parameters, bias);
    norm_within(parameters, mean);
    norm_within(parameters, variance);
    assert_result(y_descriptor, y, beta);
    return run("batch norm", x_descriptor, 0, alpha, 2.0);
}

enum { NORM_WORKSPACE = 4096, NORM_RESERVE = 512 };

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t z, cudnnTensorDescriptor_t y,
    cudnnTensorDescriptor_t parameters, cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)x, (void)z, (void)y, (void)parameters;
    (void)activation;
    *bytes = NORM_WORKSPACE / 2;
    return called("batch-norm-size");
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y, cudnnTensorDescriptor_t dy,
    cudnnTensorDescriptor_t dz, cudnnTensorDescriptor_t dx, cudnnTensorDescriptor_t parameters,
    cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)x, (void)y, (void)dy, (void)dz, (void)dx;
    (void)parameters, (void)activation;
    *bytes = NORM_WORKSPACE;
    return called("batch-norm-size");
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t x, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)activation, (void)x;
    *bytes = NORM_RESERVE;
    return called("batch-norm-size");
}

static void rooms_check(const void *workspace, size_t workspace_bytes, const void *reserve,
                        size_t reserve_bytes)
{
    assert_true(workspace_bytes >= NORM_WORKSPACE && reserve_bytes == NORM_RESERVE);
    script_within(workspace, workspace_bytes, script.own);
    script_within(reserve, reserve_bytes, script.own);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const void *alpha, const void *beta, cudnnTensorDescriptor_t x_descriptor, const void *x,
    cudnnTensorDescriptor_t z_descriptor, const void *z, cudnnTensorDescriptor_t y_descriptor,
    void *y, cudnnTensorDescriptor_t parameters, const void *gamma, const void *bias, double factor,
    void *running_mean, void *running_variance, double epsilon, void *mean, void *inverse,
    cudnnActivationDescriptor_t activation, void *workspace, size_t workspace_bytes, void *reserve,
    size_t reserve_bytes)
{
    assert_non_null(handle);
    assert_int_equal(operations, CUDNN_BATCHNORM_OPS_BN);
    assert_true(!z_descriptor && !z && !activation && !running_mean && !running_variance);
    assert_true(factor == 1.0);
    norm_check(mode, x_descriptor, parameters, gamma, epsilon);
    assert_input(x_descriptor, x);
    assert_input(parameters, bias);
    assert_result(y_descriptor, y, beta);
    norm_within(parameters, mean);
    norm_within(parameters, inverse);
    rooms_check(workspace, workspace_bytes, reserve, reserve_bytes);
    return run("batch norm training", x_descriptor, 1, alpha, 3.0);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const void *alpha, const void *beta, const void *alpha_parameters, const void *beta_parameters,
    cudnnTensorDescriptor_t x_descriptor, const void *x, cudnnTensorDescriptor_t y_descriptor,
    const void *y, cudnnTensorDescriptor_t dy_descriptor, const void *dy,
    cudnnTensorDescriptor_t dz_descriptor, void *dz, cudnnTensorDescriptor_t dx_descriptor,
    void *dx, cudnnTensorDescriptor_t parameters, const void *gamma, const void *bias, void *dgamma,
    void *dbeta, double epsilon, const void *mean, const void *inverse,
    cudnnActivationDescriptor_t activation, void *workspace, size_t workspace_bytes, void *reserve,
    size_t reserve_bytes)
{
    assert_non_null(handle);
    assert_int_equal(operations, CUDNN_BATCHNORM_OPS_BN);
    assert_true(!y_descriptor && !y && !dz_descriptor && !dz && !activation && !bias);
    assert_true(scalar(x_descriptor, alpha_parameters) == 1.0);
    norm_check(mode, x_descriptor, parameters, gamma, epsilon);
    assert_input(x_descriptor, x);
    assert_input(dy_descriptor, dy);
    assert_result(dx_descriptor, dx, beta);
    assert_result(parameters, dgamma, beta_parameters);
    assert_result(parameters, dbeta, beta_parameters);
    norm_within(parameters, mean);
    norm_within(parameters, inverse);
    rooms_check(workspace, workspace_bytes, reserve, reserve_bytes);
    return run("batch norm gradient", x_descriptor, 2, alpha, 5.0);
}
