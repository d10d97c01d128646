#include "worker/cuda/workloads/product.h"

#include <stdio.h>

#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/search.h"

static const struct product_format formats[PRECISION_COUNT] = {
    [PRECISION_FP64] = {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 0},
    [PRECISION_FP32] = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
    [PRECISION_TF32] = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 0},
    [PRECISION_FP16] = {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
    [PRECISION_BF16] = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0},
    /* cuBLASLt uses 1 for scales that are not set. */
    [PRECISION_FP8] = {CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 89},
};

enum status product_run(const struct gpu *gpu, const struct product *p, const void *a,
                        const void *b, void *d, struct error *error)
{
    const cublasLtMatmulHeuristicResult_t *bound = &p->candidates[p->bound];
    static const double zero = 0.0; /* the bytes of zero are also zeros of narrower types */
    const void *scale = p->format->scale == CUDA_R_64F   ? (const void *)&p->scale_double
                        : p->format->scale == CUDA_R_32I ? (const void *)&p->scale_integer
                                                         : &p->scale_float;
    return CUBLAS(cublasLtMatmul(p->handle, p->operation, scale, a, p->a, b, p->b, &zero, d, p->d,
                                 d, p->d, &bound->algo, p->workspace, bound->workspaceSize,
                                 gpu->stream));
}

void product_close(struct product *p)
{
    arena_free(p->arena, p->own_workspace);
    if (p->preference)
        cublasLtMatmulPreferenceDestroy(p->preference);
    if (p->d)
        cublasLtMatrixLayoutDestroy(p->d);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->operation)
        cublasLtMatmulDescDestroy(p->operation);
    *p = (struct product){0};
}

/* ---- description ---- */

static enum status matrix_describe(const struct product_matrix *matrix, int64_t batches,
                                   cudaDataType_t type, cublasLtMatrixLayout_t *layout,
                                   struct error *error)
{
    const int32_t count = (int32_t)batches;
    TRY(CUBLAS(cublasLtMatrixLayoutCreate(layout, type, (uint64_t)matrix->rows,
                                          (uint64_t)matrix->columns, matrix->leading)));
    if (batches == 1)
        return STATUS_OK;
    TRY(CUBLAS(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof count)));
    return CUBLAS(cublasLtMatrixLayoutSetAttribute(*layout,
                                                   CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                   &matrix->stride, sizeof matrix->stride));
}

static enum status operation_describe(struct product *p, const struct product_form *form,
                                      struct error *error)
{
    const int32_t transpose = CUBLAS_OP_T, type = (int32_t)p->format->result;
    const int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    const uint32_t epilogue = (uint32_t)form->epilogue;
    const int8_t fast = 1;
    const bool scaled = form->scales, bias = form->epilogue && form->bias;
    const size_t workspace = PRODUCT_WORKSPACE;
    /* The library may split a product along k. It adds the parts in the type of the sums, or in
     * the narrower type of the result if the form allows that. */
    const uint32_t reductions = form->narrow_sums || p->format->result == p->format->scale
                                    ? CUBLASLT_REDUCTION_SCHEME_MASK
                                    : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        bool set;
        cublasLtMatmulDescAttributes_t name;
        const void *value;
        size_t size;
    } attributes[] = {
        {form->a.transposed, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose},
        {form->b.transposed, CUBLASLT_MATMUL_DESC_TRANSB, &transpose, sizeof transpose},
        {form->fast_sums, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast},
        {scaled, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode},
        {scaled, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &form->scales, sizeof form->scales},
        {scaled, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode},
        {scaled, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &form->scales, sizeof form->scales},
        {form->epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue},
        {bias, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type},
        {bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &form->bias, sizeof form->bias},
    };
    TRY(CUBLAS(cublasLtMatmulDescCreate(&p->operation, p->format->compute, p->format->scale)));
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; ++i)
        if (attributes[i].set)
            TRY(CUBLAS(cublasLtMatmulDescSetAttribute(p->operation, attributes[i].name,
                                                      attributes[i].value, attributes[i].size)));
    TRY(matrix_describe(&form->a, form->batches, p->format->data, &p->a, error));
    TRY(matrix_describe(&form->b, form->batches, p->format->data, &p->b, error));
    TRY(matrix_describe(&form->d, form->batches, p->format->result, &p->d, error));
    TRY(CUBLAS(cublasLtMatmulPreferenceCreate(&p->preference)));
    TRY(CUBLAS(cublasLtMatmulPreferenceSetAttribute(p->preference,
                                                    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                    &reductions, sizeof reductions)));
    return CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
}

/* ---- algorithms ---- */

static enum status candidates_find(struct product *p, const char *suffix, struct error *error)
{
    TRY(CUBLAS(cublasLtMatmulAlgoGetHeuristic(p->handle, p->operation, p->a, p->b, p->d, p->d,
                                              p->preference, PRODUCT_CANDIDATES, p->candidates,
                                              &p->count)));
    if (p->count == 0)
        return error_set(error, STATUS_UNSUPPORTED, "cuBLASLt has no algorithm for it");
    for (int i = 0; i < p->count; ++i) {
        int32_t number;
        size_t written;
        TRY(CUBLAS(cublasLtMatmulAlgoConfigGetAttribute(
            &p->candidates[i].algo, CUBLASLT_ALGO_CONFIG_ID, &number, sizeof number, &written)));
        snprintf(p->names[i], PRODUCT_NAME, "algo-%d%s", (int)number, suffix ? suffix : "");
    }
    if (p->workspace)
        return STATUS_OK;
    enum status status =
        arena_allocate(p->arena, PRODUCT_WORKSPACE, "the workspace", &p->own_workspace, error);
    p->workspace = p->own_workspace;
    return status;
}

enum status product_offered(const struct gpu *gpu, enum precision precision, double batches,
                            struct error *error)
{
    TRY(capability_check(gpu, formats[precision].least, precision_info[precision].name, error));
    return count_check("cuBLASLt counts", "products at once", batches, INT32_MAX,
                       "choose a smaller batch", error);
}

enum status product_open(const struct gpu *gpu, const struct product_form *form,
                         struct product *product, struct error *error)
{
    TRY(product_offered(gpu, form->precision, (double)form->batches, error));
    product->handle = gpu->cublas;
    product->arena = gpu->arena;
    product->format = form->format ? form->format : &formats[form->precision];
    product->workspace = form->workspace;
    product->scale_double = form->scale;
    product->scale_float = (float)form->scale;
    product->scale_integer = (int32_t)form->scale;
    TRY(operation_describe(product, form, error));
    return candidates_find(product, form->suffix, error);
}

static enum status candidate_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct product *product = &((struct product_work *)work)->product;
    (void)gpu;
    product->bound = candidate;
    return CUBLAS(product->candidates[candidate].state);
}

static const char *candidate_name(const struct work *work, int candidate)
{
    return ((const struct product_work *)work)->product.names[candidate];
}

/* Some algorithms with tf32 inputs report FMA (algo-43 of cuBLAS 13.0 on an H200), but only tensor
 * units multiply tf32. */
enum status product_describe(const struct product *p, struct record *record, struct error *error)
{
    const cublasLtMatmulHeuristicResult_t *bound = &p->candidates[p->bound];
    uint64_t numerics;
    size_t written;
    TRY(CUBLAS(cublasLtMatmulAlgoCapGetAttribute(&bound->algo,
                                                 CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &numerics,
                                                 sizeof numerics, &written)));
    const uint64_t of_tensor_units =
        CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
    bool tensor = (numerics & of_tensor_units) != 0;
    tensor_work_describe(p->names[p->bound], tensor ? UNIT_TENSOR : UNIT_VECTOR,
                         (double)bound->workspaceSize, record);
    return STATUS_OK;
}

enum status product_choose(struct gpu *gpu, struct product_work *work, struct record *record,
                           struct error *error)
{
    int chosen = 0;
    const struct search search = {
        .gpu = gpu,
        .work = &work->tensors.base,
        .count = work->product.count,
        .bind = candidate_bind,
        .name = candidate_name,
    };
    TRY(search_run(&search, &chosen, record, error));
    return product_describe(&work->product, record, error);
}

enum status product_work_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    return product_offered(gpu, config_precision(config), 1.0, error);
}

void product_work_close(struct work *work)
{
    product_close(&((struct product_work *)work)->product);
}
