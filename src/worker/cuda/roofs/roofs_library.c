/* Tensor units by the library: the best large matrix product of cuBLASLt. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/roofs/family.h"
#include "worker/gpu/arena.h"

/* Of each number of bits so many elements that a column of an operand is as long. */
#define DEPTH(element_bits) (16384 * 8 / (element_bits))

/* D = A^T B: the one orientation that all types are offered in. Sums are of 32 bits or more. */
static const struct format {
    enum roof_id roof;
    cudaDataType_t data, result, scale;
    cublasComputeType_t compute;
    int depth; /* k */
    int8_t
        fast_sums; /* fp8: sums are not widened in between, as the tensor units do by themselves */
    int block;     /* so many neighbours along k share a scale; 0: there are no scales */
    int least;     /* compute capability */
    const char *what;
} formats[] = {
    {ROOF_FP64_TENSOR_LIBRARY, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, DEPTH(64), 0,
     0, 80, "to fp64"},
    {ROOF_TF32_TENSOR_LIBRARY, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
     DEPTH(32), 0, 0, 80, "to fp32"},
    {ROOF_FP16_TENSOR_LIBRARY, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, DEPTH(16), 0,
     0, 70, "to fp16"},
    {ROOF_BF16_TENSOR_LIBRARY, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, DEPTH(16),
     0, 0, 80, "to bf16"},
    {ROOF_FP8_TENSOR_LIBRARY, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, DEPTH(8),
     1, 0, 89, "e4m3 to bf16, fast sums"},
    {ROOF_FP4_TENSOR_LIBRARY, CUDA_R_4F_E2M1, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, DEPTH(4),
     0, 16, 100, "e2m1 to bf16, scales of 16"},
    {ROOF_INT8_TENSOR_LIBRARY, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, DEPTH(8), 0,
     0, 75, "to int32"},
    {ROOF_INT8_TENSOR_LIBRARY, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32I, DEPTH(8), 0, 0,
     75, "to int8"},
};

static enum precision precision_of(const struct format *format)
{
    return roof_kinds[format->roof].precision;
}

/* A square one, and one that gives every multiprocessor the same number of tiles, also of those
 * with 192 columns: half a tile too many would be counted as 3 % more FLOPs than there are. */
static const struct size {
    int per_multiprocessor, rows; /* m, either way */
    int columns;                  /* n */
} sizes[] = {{0, 8192, 8192}, {128, 0, 3072}};

enum {
    FORMATS = sizeof formats / sizeof *formats,
    SIZES = sizeof sizes / sizeof *sizes,
    ALGORITHMS = 5,
    COLUMN_BYTES = DEPTH(8),
    RESULT_BYTES = 8 /* an element at most */
};
static const size_t workspace_bytes = (size_t)64 << 20;

/* All owned. */
struct product {
    const struct format *format;
    int64_t m, n, k;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    int count; /* of what was found */
};

struct library {
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    void *a, *b, *d, *workspace;
    void *scales;                 /* of a and of b, all 1; NULL: nothing has needed them */
    int64_t a_columns, b_columns; /* of COLUMN_BYTES each */
    enum precision filled;        /* what a and b hold; PRECISION_COUNT: nothing yet */
    struct product products[FORMATS][SIZES];
};

static int64_t size_rows(const struct size *size, const struct roofs *roofs)
{
    return size->rows + (int64_t)size->per_multiprocessor * roofs->gpu->multiprocessors;
}

/* ---- what is needed ---- */

static enum status library_allocate(struct roofs *roofs, struct library *library,
                                    struct error *error)
{
    const char *what = "matrix products";
    double elements = 0.0;
    for (int i = 0; i < SIZES; ++i) {
        int64_t m = size_rows(&sizes[i], roofs), n = sizes[i].columns;
        library->a_columns = m > library->a_columns ? m : library->a_columns;
        library->b_columns = n > library->b_columns ? n : library->b_columns;
        elements = fmax(elements, (double)m * (double)n);
    }
    TRY(memory_allocate((double)library->a_columns * COLUMN_BYTES, what, &library->a, error));
    TRY(memory_allocate((double)library->b_columns * COLUMN_BYTES, what, &library->b, error));
    TRY(memory_allocate(elements * RESULT_BYTES, what, &library->d, error));
    return memory_allocate((double)workspace_bytes, what, &library->workspace, error);
}

static enum status library_open(struct roofs *roofs, struct library *library, struct error *error)
{
    library->filled = PRECISION_COUNT;
    TRY(CUBLAS(cublasLtCreate(&library->handle)));
    TRY(CUBLAS(cublasLtMatmulPreferenceCreate(&library->preference)));
    TRY(CUBLAS(cublasLtMatmulPreferenceSetAttribute(library->preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes)));
    return library_allocate(roofs, library, error);
}

static void product_close(struct product *product)
{
    if (product->d)
        cublasLtMatrixLayoutDestroy(product->d);
    if (product->b)
        cublasLtMatrixLayoutDestroy(product->b);
    if (product->a)
        cublasLtMatrixLayoutDestroy(product->a);
    if (product->operation)
        cublasLtMatmulDescDestroy(product->operation);
    *product = (struct product){0};
}

static void library_free(struct library *library)
{
    if (!library)
        return;
    for (int i = 0; i < FORMATS * SIZES; ++i)
        product_close(&library->products[i / SIZES][i % SIZES]);
    cudaFree(library->scales);
    cudaFree(library->workspace);
    cudaFree(library->d);
    cudaFree(library->b);
    cudaFree(library->a);
    if (library->preference)
        cublasLtMatmulPreferenceDestroy(library->preference);
    if (library->handle)
        cublasLtDestroy(library->handle);
    free(library);
}

/* roofs->library is there, or the reason why not. */
static enum status library_ready(struct roofs *roofs, struct error *error)
{
    if (roofs->library)
        return STATUS_OK;
    struct library *library = calloc(1, sizeof *library);
    if (!library)
        return error_set(error, STATUS_FAILED, "no memory");
    enum status status = library_open(roofs, library, error);
    if (status)
        library_free(library);
    else
        roofs->library = library;
    return status;
}

/* ---- one product ---- */

/* e4m3 numbers without a sign, in tiles of 128 columns. Where in them a scale lies does not matter, since all
 * are alike. */
static enum status scales_make(const struct roofs *roofs, struct library *library, int block,
                               struct error *error)
{
    const int one = 0x38, tile = 128;
    int64_t columns =
        library->a_columns > library->b_columns ? library->a_columns : library->b_columns;
    size_t bytes = (size_t)((columns + tile - 1) / tile * tile) * (size_t)(DEPTH(4) / block);
    void *scales;
    TRY(memory_allocate((double)bytes, "scales of matrix products", &scales, error));
    enum status status = CUDA(cudaMemsetAsync(scales, one, bytes, roofs->gpu->stream));
    if (status)
        cudaFree(scales);
    else
        library->scales = scales;
    return status;
}

static enum status product_scale(const struct roofs *roofs, struct product *p, struct error *error)
{
    static const struct {
        cublasLtMatmulDescAttributes_t mode, place;
    } of[] = {{CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER},
              {CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER}};
    const int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    struct library *library = roofs->library;
    if (!library->scales)
        TRY(scales_make(roofs, library, p->format->block, error));
    for (int i = 0; i < 2; ++i) {
        TRY(CUBLAS(cublasLtMatmulDescSetAttribute(p->operation, of[i].mode, &mode, sizeof mode)));
        TRY(CUBLAS(cublasLtMatmulDescSetAttribute(p->operation, of[i].place, &library->scales,
                                                  sizeof library->scales)));
    }
    return STATUS_OK;
}

static enum status product_describe(const struct roofs *roofs, struct product *p,
                                    struct error *error)
{
    const struct format *format = p->format;
    const cublasOperation_t transpose = CUBLAS_OP_T;
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    TRY(CUBLAS(cublasLtMatmulDescCreate(&p->operation, format->compute, format->scale)));
    TRY(CUBLAS(cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                              sizeof transpose)));
    if (format->fast_sums)
        TRY(CUBLAS(cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                  &format->fast_sums, sizeof format->fast_sums)));
    if (format->block)
        TRY(product_scale(roofs, p, error));
    TRY(CUBLAS(cublasLtMatrixLayoutCreate(&p->a, format->data, k, m, p->k)));
    TRY(CUBLAS(cublasLtMatrixLayoutCreate(&p->b, format->data, k, n, p->k)));
    return CUBLAS(cublasLtMatrixLayoutCreate(&p->d, format->result, m, n, p->m));
}

static enum status product_find(const struct roofs *roofs, struct product *p, struct error *error)
{
    const struct library *library = roofs->library;
    TRY(product_describe(roofs, p, error));
    return CUBLAS(cublasLtMatmulAlgoGetHeuristic(library->handle, p->operation, p->a, p->b, p->d,
                                                 p->d, library->preference, ALGORITHMS, p->found,
                                                 &p->count));
}

/* Without success it is asked for again, and refused again. */
static enum status product_ready(struct roofs *roofs, int format, int size, struct error *error)
{
    struct product *p = &roofs->library->products[format][size];
    if (p->format)
        return STATUS_OK;
    *p = (struct product){.format = &formats[format],
                          .m = size_rows(&sizes[size], roofs),
                          .n = sizes[size].columns,
                          .k = formats[format].depth};
    enum status status = product_find(roofs, p, error);
    if (status)
        product_close(p);
    return status;
}

/* ---- the family ---- */

/* Where the rate is not known, fp64 is left out: such chips do it on their vector units. */
static bool format_offered(const struct roofs *roofs, int kind, const struct format *format)
{
    double known = roofs->gpu->chip->tensor[precision_of(format)];
    bool unit = known > 0.0 || (isnan(known) && precision_of(format) != PRECISION_FP64);
    return unit && roofs->gpu->capability >= format->least && format->roof == (enum roof_id)kind;
}

/* The n-th format of the kind; FORMATS after the last. */
static int format_find(const struct roofs *roofs, int kind, int n)
{
    for (int i = 0; i < FORMATS; ++i)
        if (format_offered(roofs, kind, &formats[i]) && n-- == 0)
            return i;
    return FORMATS;
}

static int library_count(const struct roofs *roofs, int kind)
{
    int count = 0;
    while (format_find(roofs, kind, count) < FORMATS)
        ++count;
    return count * SIZES * ALGORITHMS;
}

static enum status library_prepare(struct roofs *roofs, int kind, int number, struct method *method,
                                   struct error *error)
{
    int choice = number_split(&number, ALGORITHMS);
    int size = number_split(&number, SIZES);
    int format = format_find(roofs, kind, number);
    TRY(library_ready(roofs, error));
    TRY(product_ready(roofs, format, size, error));
    const struct product *p = &roofs->library->products[format][size];
    if (choice >= p->count || p->found[choice].state != CUBLAS_STATUS_SUCCESS)
        return error_set(error, STATUS_UNSUPPORTED, "cuBLASLt has no more than %d ways", p->count);
    *method = (struct method){.row = p, .choice = choice, .iterations = 1};
    method->work = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    snprintf(method->text, sizeof method->text, "cuBLASLt, m = %lld, n = %lld, k = %lld, %s",
             (long long)p->m, (long long)p->n, (long long)p->k, p->format->what);
    return STATUS_OK;
}

/* What the operands are filled as: random bytes are random pairs of fp4, in which every pattern is a number. */
static enum precision filled_as(const struct format *format)
{
    enum precision precision = precision_of(format);
    return precision == PRECISION_FP4 ? PRECISION_INT8 : precision;
}

/* Random operands: zeros would draw less power and so run faster than real data. Integers are
 * random bytes. */
static enum status operands_fill(struct library *library, enum precision precision,
                                 cudaStream_t stream, struct error *error)
{
    const struct precision_info *info = &precision_info[precision];
    const int exponent = precision == PRECISION_INT8 ? info->significand - 1 : 0;
    void *const data[] = {library->a, library->b};
    const int64_t columns[] = {library->a_columns, library->b_columns};
    library->filled = PRECISION_COUNT;
    for (int i = 0; i < 2; ++i) {
        struct fill fill = fill_make(1, (enum tensor)i, info->significand, exponent);
        int64_t elements = columns[i] * (int64_t)(COLUMN_BYTES / info->bytes);
        TRY(CUDA(kernel_fill(precision, data[i], elements, fill, 0, stream)));
    }
    library->filled = precision;
    return STATUS_OK;
}

static enum status product_run(struct library *library, const struct product *p, int choice,
                               cudaStream_t stream, struct error *error)
{
    static const double one_double = 1.0, zero_double = 0.0;
    static const float one_float = 1.0f, zero_float = 0.0f;
    static const int32_t one_integer = 1, zero_integer = 0;
    const void *one = &one_float, *zero = &zero_float;
    if (p->format->scale == CUDA_R_64F) {
        one = &one_double;
        zero = &zero_double;
    } else if (p->format->scale == CUDA_R_32I) {
        one = &one_integer;
        zero = &zero_integer;
    }
    return CUBLAS(cublasLtMatmul(library->handle, p->operation, one, library->a, p->a, library->b,
                                 p->b, zero, library->d, p->d, library->d, p->d,
                                 &p->found[choice].algo, library->workspace, workspace_bytes,
                                 stream));
}

/* The first run with another type, always a warm-up, fills the operands. */
static enum status library_run(struct roofs *roofs, const struct method *method,
                               struct error *error)
{
    struct library *library = roofs->library;
    const struct product *p = method->row;
    if (library->filled != filled_as(p->format))
        TRY(operands_fill(library, filled_as(p->format), roofs->gpu->stream, error));
    return product_run(library, p, method->choice, roofs->gpu->stream, error);
}

static void library_close(struct roofs *roofs)
{
    library_free(roofs->library);
    roofs->library = NULL;
}

const struct roof_family roofs_library = {
    .count = library_count,
    .prepare = library_prepare,
    .run = library_run,
    .close = library_close,
    .counted = true,
};
