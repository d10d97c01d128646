#include "worker/cuda/workloads/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/gpu/memory.h"
#include "model/workloads/matmul.h"
#include "worker/cuda/workloads/search.h"

static const struct format {
    cudaDataType_t data, scale;
    cublasComputeType_t compute;
} formats[PRECISION_COUNT] = {
    [PRECISION_FP64] = {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    [PRECISION_FP32] = {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [PRECISION_TF32] = {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    [PRECISION_FP16] = {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [PRECISION_BF16] = {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
};

enum { CANDIDATES_MAX = 16, NAME = 64 };
static const size_t workspace_most = (size_t)64 << 20; /* bytes */

struct matmul_work {
    struct work base;
    struct matmul shape;
    void *x, *w, *y;
    /* cublaslt only */
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t x_layout, w_layout, y_layout;
    cublasLtMatmulPreference_t preference;
    void *workspace;
    cublasLtMatmulHeuristicResult_t candidates[CANDIDATES_MAX], bound;
    char names[CANDIDATES_MAX][NAME]; /* "algo-66" */
    bool cold;
};

static size_t element_bytes(const struct matmul_work *m)
{
    return precision_info[m->shape.precision].bytes;
}

/* ---- work_ops ---- */

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct matmul *s = &m->shape;
    return CUDA(kernel_matmul(s->precision, m->y, m->x, m->w, s->m, s->n, s->k, gpu->stream));
}

/* The library's matrices are column by column: for it, these are the transposed ones, and y
 * transposed is w transposed times x transposed. */
static enum status cublaslt_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    static const float one_float = 1.0f, zero_float = 0.0f;
    static const double one_double = 1.0, zero_double = 0.0;
    const struct matmul_work *m = (const struct matmul_work *)work;
    bool wide = formats[m->shape.precision].scale == CUDA_R_64F;
    const void *one = wide ? (const void *)&one_double : &one_float;
    const void *zero = wide ? (const void *)&zero_double : &zero_float;
    return CUBLAS(cublasLtMatmul(m->handle, m->operation, one, m->w, m->w_layout, m->x, m->x_layout,
                                 zero, m->y, m->y_layout, m->y, m->y_layout, &m->bound.algo,
                                 m->workspace, m->bound.workspaceSize, gpu->stream));
}

/* All bits set is a NaN in every format. */
static enum status matmul_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    size_t bytes = (size_t)(m->shape.m * m->shape.n) * element_bytes(m);
    (void)samples;
    TRY(CUDA(cudaMemsetAsync(m->y, 0xff, bytes, gpu->stream)));
    return work->ops->iterate(gpu, work, error);
}

static const void *matmul_result(const struct work *work, enum tensor tensor)
{
    (void)tensor;
    return ((const struct matmul_work *)work)->y;
}

static void matmul_release(struct work *work)
{
    struct matmul_work *m = (struct matmul_work *)work;
    cudaFree(m->workspace);
    if (m->preference)
        cublasLtMatmulPreferenceDestroy(m->preference);
    if (m->y_layout)
        cublasLtMatrixLayoutDestroy(m->y_layout);
    if (m->w_layout)
        cublasLtMatrixLayoutDestroy(m->w_layout);
    if (m->x_layout)
        cublasLtMatrixLayoutDestroy(m->x_layout);
    if (m->operation)
        cublasLtMatmulDescDestroy(m->operation);
    if (m->handle)
        cublasLtDestroy(m->handle);
    cudaFree(m->y);
    cudaFree(m->w);
    cudaFree(m->x);
    free(m);
}

static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = matmul_run,
    .result = matmul_result,
    .release = matmul_release,
};
static const struct work_ops cublaslt_ops = {
    .iterate = cublaslt_iterate,
    .run = matmul_run,
    .result = matmul_result,
    .release = matmul_release,
};

/* ---- preparation ---- */

static enum status matrices_create(struct gpu *gpu, struct matmul_work *m,
                                   const struct config *config, uint64_t seed, struct error *error)
{
    const struct matmul *s = &m->shape;
    const double bytes = (double)element_bytes(m);
    struct fill x = config_fill(config, seed, TENSOR_INPUT);
    struct fill w = config_fill(config, seed, TENSOR_WEIGHT);
    TRY(memory_allocate(bytes * (double)(s->m * s->k), "the first matrix", &m->x, error));
    TRY(memory_allocate(bytes * (double)(s->k * s->n), "the second matrix", &m->w, error));
    TRY(memory_allocate(bytes * (double)(s->m * s->n), "the product", &m->y, error));
    TRY(CUDA(kernel_fill(s->precision, m->x, s->m * s->k, x, 0, gpu->stream)));
    return CUDA(kernel_fill(s->precision, m->w, s->k * s->n, w, 0, gpu->stream));
}

/* What both implementations need. */
static enum status matmul_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 const struct work_ops *ops, struct matmul_work **created,
                                 struct error *error)
{
    struct matmul_work *m = calloc(1, sizeof *m);
    if (!m)
        return error_set(error, STATUS_FAILED, "no memory");
    m->base.ops = ops;
    m->shape = matmul_from(config);
    m->base.precision = m->shape.precision;
    m->cold = config_cold(config);
    enum status status = matrices_create(gpu, m, config, seed, error);
    if (status) {
        matmul_release(&m->base);
        return status;
    }
    *created = m;
    return STATUS_OK;
}

enum status matmul_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct matmul_work *m;
    if (config_precision(config) == PRECISION_TF32)
        return error_set(
            error, STATUS_UNSUPPORTED,
            "tf32 is a precision of tensor units, which the plain product does not use");
    TRY(matmul_create(gpu, config, seed, &plain_ops, &m, error));
    snprintf(record->algorithm, sizeof record->algorithm, "thread-per-element");
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = UNIT_VECTOR;
    record->workspace = 0.0;
    *work = &m->base;
    return STATUS_OK;
}

/* Where a product is split along k, its pieces are added in the type of the sums, not in the narrower
 * type of the result. */
static enum status operation_describe(struct matmul_work *m, struct error *error)
{
    const struct format *format = &formats[m->shape.precision];
    const uint32_t reductions = format->data == format->scale
                                    ? CUBLASLT_REDUCTION_SCHEME_MASK
                                    : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint64_t rows = (uint64_t)m->shape.m, columns = (uint64_t)m->shape.n;
    uint64_t inner = (uint64_t)m->shape.k;
    TRY(CUBLAS(cublasLtCreate(&m->handle)));
    TRY(CUBLAS(cublasLtMatmulDescCreate(&m->operation, format->compute, format->scale)));
    TRY(CUBLAS(
        cublasLtMatrixLayoutCreate(&m->x_layout, format->data, inner, rows, (int64_t)inner)));
    TRY(CUBLAS(
        cublasLtMatrixLayoutCreate(&m->w_layout, format->data, columns, inner, (int64_t)columns)));
    TRY(CUBLAS(
        cublasLtMatrixLayoutCreate(&m->y_layout, format->data, columns, rows, (int64_t)columns)));
    TRY(CUBLAS(cublasLtMatmulPreferenceCreate(&m->preference)));
    TRY(CUBLAS(cublasLtMatmulPreferenceSetAttribute(m->preference,
                                                    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                    &reductions, sizeof reductions)));
    return CUBLAS(cublasLtMatmulPreferenceSetAttribute(m->preference,
                                                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &workspace_most, sizeof workspace_most));
}

static enum status candidate_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct matmul_work *m = (struct matmul_work *)work;
    (void)gpu;
    m->bound = m->candidates[candidate];
    return CUBLAS(m->bound.state);
}

static const char *candidate_name(const struct work *work, int candidate)
{
    return ((const struct matmul_work *)work)->names[candidate];
}

static enum status candidate_describe(const cublasLtMatmulAlgo_t *algorithm, char name[NAME],
                                      struct error *error)
{
    int32_t number;
    size_t written;
    TRY(CUBLAS(cublasLtMatmulAlgoConfigGetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_ID, &number,
                                                    sizeof number, &written)));
    snprintf(name, NAME, "algo-%d", (int)number);
    return STATUS_OK;
}

/* The fastest of what the library proposes; the likely fastest comes first. */
static enum status algorithm_choose(struct gpu *gpu, struct matmul_work *m, int *chosen,
                                    struct record *record, struct error *error)
{
    struct search search = {
        .gpu = gpu,
        .work = &m->base,
        .cold = m->cold,
        .bind = candidate_bind,
        .name = candidate_name,
    };
    TRY(CUBLAS(cublasLtMatmulAlgoGetHeuristic(m->handle, m->operation, m->w_layout, m->x_layout,
                                              m->y_layout, m->y_layout, m->preference,
                                              CANDIDATES_MAX, m->candidates, &search.count)));
    if (search.count == 0)
        return error_set(error, STATUS_UNSUPPORTED, "cuBLASLt has no algorithm for it");
    for (int i = 0; i < search.count; ++i)
        TRY(candidate_describe(&m->candidates[i].algo, m->names[i], error));
    TRY(memory_allocate((double)workspace_most, "the workspace", &m->workspace, error));
    return search_run(&search, chosen, record, error);
}

/* The algorithm itself says which unit it runs on. For fp64 that depends on the chip. */
static enum status algorithm_describe(const struct matmul_work *m, int chosen,
                                      struct record *record, struct error *error)
{
    const cublasLtMatmulAlgo_t *algorithm = &m->bound.algo;
    uint64_t numerics;
    size_t written;
    TRY(CUBLAS(cublasLtMatmulAlgoCapGetAttribute(algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS,
                                                 &numerics, sizeof numerics, &written)));
    bool tensor = (numerics & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0;
    snprintf(record->algorithm, sizeof record->algorithm, "%s", m->names[chosen]);
    snprintf(record->math, sizeof record->math, "%s", tensor ? "tensor-op" : "fma");
    record->unit = tensor ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = (double)m->bound.workspaceSize;
    return STATUS_OK;
}

enum status matmul_cublaslt_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    struct matmul_work *m;
    int chosen = 0;
    TRY(matmul_create(gpu, config, seed, &cublaslt_ops, &m, error));
    enum status status = operation_describe(m, error);
    if (status == STATUS_OK)
        status = algorithm_choose(gpu, m, &chosen, record, error);
    if (status == STATUS_OK)
        status = algorithm_describe(m, chosen, record, error);
    if (status) {
        matmul_release(&m->base);
        return status;
    }
    *work = &m->base;
    return STATUS_OK;
}
