/* What stands in for cuBLASLt, and for the words of cuDNN. */
#include "scripted_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cudnn.h>

const char *cublasLtGetStatusString(cublasStatus_t code)
{
    return code == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "some failure";
}

const char *cudnnGetErrorString(cudnnStatus_t code)
{
    (void)code;
    return "";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    (void)size;
    message[0] = '\0';
}

/* No roof and no row of the tests needs cuDNN. */
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    (void)handle;
    fail_msg("cuDNN is not scripted");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    return cudnnCreate(&handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    (void)stream;
    return cudnnCreate(&handle);
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

struct operation {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    bool a_transposed, b_transposed;
    uint32_t epilogue; /* 0: none was asked for */
    void *bias;
    cudaDataType_t bias_type;
    int32_t a_scale_mode, b_scale_mode;
    void *a_scales, *b_scales;
};

struct matrix {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t leading;
    int32_t batches; /* 0: one */
    int64_t stride;
};

struct preference {
    size_t workspace;
    uint32_t reductions;
};

/* What its documentation offers on such a chip; fp4 on 10.0. */
static const struct product_type {
    const char *kind, *what;
    enum precision precision;
    cudaDataType_t data, result, scale;
    cublasComputeType_t compute;
    double pace;
} product_types[] = {
    {"fp64 tensor library", "", PRECISION_FP64, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F,
     CUBLAS_COMPUTE_64F, 1.0},
    {"tf32 tensor library", "", PRECISION_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F_FAST_TF32, 1.0},
    {"fp16 tensor library", "", PRECISION_FP16, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1.0},
    {"bf16 tensor library", "", PRECISION_BF16, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1.0},
    {"fp8 tensor library", "", PRECISION_FP8, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1.0},
    {"fp8 tensor library", "", PRECISION_FP8, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1.0},
    {"fp4 tensor library", "", PRECISION_FP4, CUDA_R_4F_E2M1, CUDA_R_16BF, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1.0},
    {"int8 tensor library", "int32", PRECISION_INT8, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I,
     CUBLAS_COMPUTE_32I, 0.8},
    {"int8 tensor library", "int8", PRECISION_INT8, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F,
     CUBLAS_COMPUTE_32I, 1.0},
};

static size_t element_bits(cudaDataType_t type)
{
    static const struct {
        cudaDataType_t type;
        size_t bits;
    } sizes[] = {{CUDA_R_64F, 64}, {CUDA_R_32F, 32},  {CUDA_R_32I, 32},    {CUDA_R_16F, 16},
                 {CUDA_R_8I, 8},   {CUDA_R_16BF, 16}, {CUDA_R_8F_E4M3, 8}, {CUDA_R_4F_E2M1, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        if (sizes[i].type == type)
            return sizes[i].bits;
    fail_msg("type %d", (int)type);
    return 0;
}

static size_t elements_bytes(uint64_t count, cudaDataType_t type)
{
    return count * element_bits(type) / 8;
}

static size_t layout_bytes(const struct matrix *layout)
{
    uint64_t one = (uint64_t)layout->leading * layout->columns;
    uint64_t others =
        layout->batches > 1 ? (uint64_t)(layout->batches - 1) * (uint64_t)layout->stride : 0;
    return elements_bytes(others + one, layout->type);
}

static cublasStatus_t cublas_call(void)
{
    return script_call() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* A copy of what it is made of, which the library keeps. */
static cublasStatus_t cublas_create(void *made, const void *of, size_t bytes, int *counter)
{
    cublasStatus_t status = cublas_call();
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    void *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, of, bytes);
    memcpy(made, &copy, sizeof copy);
    ++*counter;
    return status;
}

static cublasStatus_t cublas_destroy(void *made, int *counter)
{
    free(made);
    script_give_back(counter);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    return cublas_create(handle, "", 1, &machine.handles);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return cublas_destroy(handle, &machine.handles);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return cublas_create(preference,
                         &(struct preference){.reductions = CUBLASLT_REDUCTION_SCHEME_MASK},
                         sizeof(struct preference), &machine.preferences);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return cublas_destroy(preference, &machine.preferences);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    struct preference *own = (struct preference *)preference;
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
        assert_int_equal(bytes, sizeof own->reductions);
        memcpy(&own->reductions, value, bytes);
    } else {
        assert_int_equal(attribute, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
        assert_int_equal(bytes, sizeof own->workspace);
        memcpy(&own->workspace, value, bytes);
    }
    return cublas_call();
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation,
                                        cublasComputeType_t compute, cudaDataType_t scale)
{
    return cublas_create(operation, &(struct operation){.compute = compute, .scale = scale},
                         sizeof(struct operation), &machine.operations);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation)
{
    return cublas_destroy(operation, &machine.operations);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    struct operation *own = (struct operation *)operation;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
        assert_int_equal(bytes, sizeof(int32_t));
        *(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? &own->a_transposed : &own->b_transposed) =
            *(const int32_t *)value == CUBLAS_OP_T;
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        assert_int_equal(bytes, sizeof own->epilogue);
        memcpy(&own->epilogue, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        assert_int_equal(bytes, sizeof own->bias);
        memcpy(&own->bias, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        assert_int_equal(bytes, sizeof(int32_t));
        own->bias_type = (cudaDataType_t) * (const int32_t *)value;
        break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        assert_int_equal(bytes, sizeof(int32_t));
        *(attribute == CUBLASLT_MATMUL_DESC_A_SCALE_MODE ? &own->a_scale_mode
                                                         : &own->b_scale_mode) =
            *(const int32_t *)value;
        break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        assert_int_equal(bytes, sizeof own->a_scales);
        memcpy(&own->a_scales, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        assert_int_equal(bytes, sizeof own->b_scales);
        memcpy(&own->b_scales, value, bytes);
        break;
    default:
        assert_int_equal(attribute, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
        assert_int_equal(bytes, sizeof(int8_t));
        script.fast_sums = *(const int8_t *)value != 0;
    }
    return cublas_call();
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    return cublas_create(layout, &(struct matrix){type, rows, columns, leading, 0, 0},
                         sizeof(struct matrix), &machine.layouts);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    struct matrix *own = (struct matrix *)layout;
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
        assert_int_equal(bytes, sizeof own->batches);
        memcpy(&own->batches, value, bytes);
    } else {
        assert_int_equal(attribute, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
        assert_int_equal(bytes, sizeof own->stride);
        memcpy(&own->stride, value, bytes);
    }
    return cublas_call();
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return cublas_destroy(layout, &machine.layouts);
}

static uint64_t depth(const struct operation *operation, const struct matrix *a)
{
    return operation->a_transposed ? a->rows : a->columns;
}

/* A bias is a number for each row of D; its gradient, of a product with B, one for each column. */
static void epilogue_check(const struct operation *operation, const struct matrix *d)
{
    bool gradient = operation->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    if (!gradient && !(operation->epilogue & CUBLASLT_EPILOGUE_BIAS))
        return;
    assert_int_equal(operation->bias_type, d->type);
    size_t bytes = elements_bytes(gradient ? d->columns : d->rows, d->type);
    script_within(operation->bias, bytes, script.own);
}

/* One of e4m3 for each 16 of fp4, in tiles of 128 columns by 4, each 1. Of other types there are none. */
static void scales_check(int32_t mode, const void *scales, const struct matrix *of)
{
    const int one = 0x38;
    if (of->type != CUDA_R_4F_E2M1) {
        assert_true(mode == 0 && !scales);
        return;
    }
    assert_int_equal(mode, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
    size_t bytes = (of->columns + 127) / 128 * 128 * ((of->rows + 63) / 64 * 4);
    const struct allocation *allocation = script_within(scales, bytes, script.own);
    assert_true(allocation->address == (uintptr_t)scales && allocation->alike >= bytes);
    assert_int_equal(allocation->value, one);
}

/* A^T B or A B, of the shapes and alignments that the tensor units take. */
static const struct product_type *product_find(const struct operation *operation,
                                               const struct matrix *a, const struct matrix *b,
                                               const struct matrix *d)
{
    const struct matrix *const all[] = {a, b, d};
    uint64_t k = depth(operation, a);
    assert_true(k == (operation->b_transposed ? b->columns : b->rows));
    assert_true(a->rows * a->columns == k * d->rows && b->rows * b->columns == k * d->columns);
    assert_true(a->batches == b->batches && b->batches == d->batches);
    epilogue_check(operation, d);
    assert_int_equal(a->type, b->type);
    if (element_bits(a->type) <= 8) /* along the sums, the one form that 9.0 has */
        assert_true(operation->a_transposed && !operation->b_transposed);
    for (int i = 0; i < 3; ++i) {
        assert_true(all[i]->leading >= (int64_t)all[i]->rows);
        assert_true(elements_bytes((uint64_t)all[i]->leading, all[i]->type) % 16 == 0);
    }
    for (size_t i = 0; i < sizeof product_types / sizeof *product_types; ++i) {
        const struct product_type *type = &product_types[i];
        if (type->data == a->type && type->result == d->type && type->scale == operation->scale &&
            type->compute == operation->compute)
            return type;
    }
    fail_msg("data %d, result %d: no such product", (int)a->type, (int)d->type);
    return NULL;
}

static bool product_refused(const struct product_type *type)
{
    char label[64];
    snprintf(label, sizeof label, "%s: %s", type->kind, type->what);
    return script.refused && strstr(label, script.refused);
}

enum { ALGORITHM_MARK = 4711 }; /* of those that the library gave */

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const struct product_type *type = product_find(
        (struct operation *)operation, (struct matrix *)a, (struct matrix *)b, (struct matrix *)d);
    assert_non_null(handle);
    assert_non_null(preference);
    assert_ptr_equal(c, d);
    cublasStatus_t status = cublas_call();
    script.epilogue = ((struct operation *)operation)->epilogue;
    if (status == CUBLAS_STATUS_SUCCESS &&
        ((script.not_offered && product_refused(type)) ||
         (script.no_epilogues && script.epilogue > CUBLASLT_EPILOGUE_DEFAULT)))
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    script.reductions = ((struct preference *)preference)->reductions;
    *found = wanted < SCRIPT_ALGORITHMS ? wanted : SCRIPT_ALGORITHMS;
    for (int i = 0; i < *found; ++i)
        results[i] = (cublasLtMatmulHeuristicResult_t){
            .algo.data = {(uint64_t)i, ALGORITHM_MARK},
            .workspaceSize = ((struct preference *)preference)->workspace};
    return status;
}

static void assert_number(const void *number, cudaDataType_t type, double value)
{
    if (type == CUDA_R_64F)
        assert_true(*(const double *)number == value);
    else if (type == CUDA_R_32F)
        assert_true((double)*(const float *)number == value);
    else
        assert_true(*(const int32_t *)number == (int32_t)value);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    const struct operation *own = (struct operation *)operation;
    const struct matrix *of_a = (struct matrix *)a_layout, *of_b = (struct matrix *)b_layout,
                        *of_d = (struct matrix *)d_layout;
    const struct product_type *type = product_find(own, of_a, of_b, of_d);
    double flops = 2.0 * (double)of_d->rows * (double)of_d->columns * (double)depth(own, of_a);
    int choice = (int)algorithm->data[0];
    assert_non_null(handle);
    assert_ptr_equal(c, d);
    assert_ptr_equal(c_layout, d_layout);
    assert_int_equal(algorithm->data[1], ALGORITHM_MARK);
    assert_number(alpha, own->scale, script.alpha);
    script.alpha = 1.0;
    assert_number(beta, own->scale, 0.0);
    /* each byte is a pair of fp4 */
    enum precision filled = type->precision == PRECISION_FP4 ? PRECISION_INT8 : type->precision;
    script_assert_filled(a, layout_bytes(of_a), filled, script.own);
    script_assert_filled(b, layout_bytes(of_b), filled, script.own);
    scales_check(own->a_scale_mode, own->a_scales, of_a);
    scales_check(own->b_scale_mode, own->b_scales, of_b);
    assert_ptr_not_equal(a, b);
    script_within(d, layout_bytes(of_d), script.own);
    ++script.products;
    script_within(workspace, workspace_bytes, script.own);
    if (product_refused(type) && script.refusal == cudaSuccess)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    machine.counts[script_tensor_quantities[type->precision]] += flops;
    cudaError_t code = script_run(
        &(struct work_done){.kind = type->kind,
                            .what = type->what,
                            .row = type,
                            .choice = (int)of_d->rows * SCRIPT_ALGORITHMS + choice,
                            .amount = flops,
                            .pace = type->pace * (choice == script.best.algorithm ? 1.0 : 0.9)},
        stream);
    return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* ---- what an algorithm says of itself ---- */

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute,
                                                 void *value, size_t bytes, size_t *written)
{
    const uint64_t flags = script.numerics ? script.numerics : CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA;
    assert_int_equal(algorithm->data[1], ALGORITHM_MARK);
    assert_int_equal(attribute, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS);
    assert_int_equal(bytes, sizeof flags);
    memcpy(value, &flags, bytes);
    *written = bytes;
    return cublas_call();
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t bytes, size_t *written)
{
    const int32_t number = (int32_t)algorithm->data[0];
    assert_int_equal(attribute, CUBLASLT_ALGO_CONFIG_ID);
    assert_int_equal(bytes, sizeof number);
    memcpy(value, &number, bytes);
    *written = bytes;
    return cublas_call();
}

size_t cublasLtGetVersion(void)
{
    return 130100;
}
