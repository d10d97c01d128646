/* Tensor units through the library: the best large matrix product of cuBLASLt. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/product.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/roof_family.h"

/* Elements of a column of an operand. A column always has 16 KiB. */
#define DEPTH(element_bits) (16384 * 8 / (element_bits))

static const struct product_format fp8 = {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F,
                                          CUBLAS_COMPUTE_32F, 0};
static const struct product_format fp4 = {CUDA_R_4F_E2M1, CUDA_R_16BF, CUDA_R_32F,
                                          CUBLAS_COMPUTE_32F, 0};
static const struct product_format int8 = {CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32I, 0};
static const struct product_format int32 = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I,
                                            0};

/* D = A^T B, the only orientation that cuBLASLt offers for all types. Sums have 32 bits or more,
 * or for fp8 the tensor units' own format. fp4 has a scale for each 16 neighbours along k. */
static const struct library_format {
    enum roof_id roof;
    const struct product_format *types; /* NULL: the types that belong to the precision */
    int depth;                          /* k */
    int least;                          /* least compute capability */
    const char *what;
} formats[] = {
    {ROOF_FP64_TENSOR_LIBRARY, NULL, DEPTH(64), 80, "to fp64"},
    {ROOF_TF32_TENSOR_LIBRARY, NULL, DEPTH(32), 80, "to fp32"},
    {ROOF_FP16_TENSOR_LIBRARY, NULL, DEPTH(16), 70, "to fp16"},
    {ROOF_BF16_TENSOR_LIBRARY, NULL, DEPTH(16), 80, "to bf16"},
    {ROOF_FP8_TENSOR_LIBRARY, &fp8, DEPTH(8), 89, "e4m3 to bf16, fast sums"},
    {ROOF_FP4_TENSOR_LIBRARY, &fp4, DEPTH(4), 100, "e2m1 to bf16, scales of 16"},
    {ROOF_INT8_TENSOR_LIBRARY, &int32, DEPTH(8), 75, "to int32"},
    {ROOF_INT8_TENSOR_LIBRARY, &int8, DEPTH(8), 75, "to int8"},
};

/* The second size gives every multiprocessor the same number of tiles. 3072 columns are 16 tiles of
 * 192: if half a tile were padding, the counters would see 3 % more FLOPs than the product has. */
static const struct size {
    int per_multiprocessor,
        rows;    /* the product's m is multiprocessors x per_multiprocessor + rows */
    int columns; /* n */
} sizes[] = {{0, 8192, 8192}, {128, 0, 3072}};

enum {
    FORMATS = sizeof formats / sizeof *formats,
    SIZES = sizeof sizes / sizeof *sizes,
    ALGORITHMS = 5,
    COLUMN_BYTES = DEPTH(8),
    RESULT_BYTES = 8 /* size of the largest element, byte */
};

/* All pointers are owned. */
struct library {
    void *a, *b, *d, *workspace;
    void *scales;                 /* scales of a and of b, all 1; NULL: not allocated */
    int64_t a_columns, b_columns; /* numbers of columns of a and b, each of COLUMN_BYTES */
    enum precision filled;        /* content of a and b; PRECISION_COUNT: none */
    struct product products[FORMATS][SIZES]; /* all zero: not opened */
};

static enum precision precision_of(const struct library_format *format)
{
    return roof_kinds[format->roof].precision;
}

static int64_t size_rows(const struct size *size, const struct roofs *roofs)
{
    return size->rows + (int64_t)size->per_multiprocessor * roofs->gpu->multiprocessors;
}

static void library_close(struct roofs *roofs)
{
    struct library *library = roofs->library;
    if (!library)
        return;
    for (int i = 0; i < FORMATS * SIZES; ++i)
        product_close(&library->products[i / SIZES][i % SIZES]);
    cudaFree(library->scales);
    cudaFree(library->workspace);
    cudaFree(library->d);
    cudaFree(library->b);
    cudaFree(library->a);
    free(library);
    roofs->library = NULL;
}

static enum status library_ready(struct roofs *roofs, struct error *error)
{
    const char *what = "matrix products";
    double elements = 0.0;
    if (roofs->library)
        return STATUS_OK;
    struct library *library = calloc(1, sizeof *library);
    if (!library)
        return error_set(error, STATUS_FAILED, "no memory");
    roofs->library = library;
    for (int i = 0; i < SIZES; ++i) {
        int64_t m = size_rows(&sizes[i], roofs), n = sizes[i].columns;
        library->a_columns = m > library->a_columns ? m : library->a_columns;
        library->b_columns = n > library->b_columns ? n : library->b_columns;
        elements = fmax(elements, (double)m * (double)n);
    }
    library->filled = PRECISION_COUNT;
    const struct {
        double bytes;
        void **memory;
    } parts[] = {{(double)library->a_columns * COLUMN_BYTES, &library->a},
                 {(double)library->b_columns * COLUMN_BYTES, &library->b},
                 {elements * RESULT_BYTES, &library->d},
                 {PRODUCT_WORKSPACE, &library->workspace}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == STATUS_OK; ++i)
        status = memory_allocate(parts[i].bytes, what, parts[i].memory, error);
    if (status)
        library_close(roofs);
    return status;
}

/* Scales are e4m3 numbers without a sign, in tiles of 128 columns. All are 1, so their order does
 * not matter. */
static enum status scales_ready(const struct roofs *roofs, struct error *error)
{
    const int one = 0x38, tile = 128, block = 16;
    struct library *library = roofs->library;
    if (library->scales)
        return STATUS_OK;
    int64_t columns =
        library->a_columns > library->b_columns ? library->a_columns : library->b_columns;
    size_t bytes = (size_t)((columns + tile - 1) / tile * tile) * (size_t)(DEPTH(4) / block);
    TRY(memory_allocate((double)bytes, "scales of matrix products", &library->scales, error));
    enum status status = CUDA(cudaMemsetAsync(library->scales, one, bytes, roofs->gpu->stream));
    if (status) {
        cudaFree(library->scales);
        library->scales = NULL;
    }
    return status;
}

static enum status product_ready(const struct roofs *roofs, const struct library_format *format,
                                 int size, struct error *error)
{
    struct library *library = roofs->library;
    struct product *product = &library->products[format - formats][size];
    const int64_t m = size_rows(&sizes[size], roofs), n = sizes[size].columns, k = format->depth;
    const enum precision precision = precision_of(format);
    if (product->count > 0)
        return STATUS_OK;
    if (precision == PRECISION_FP4)
        TRY(scales_ready(roofs, error));
    const struct product_form form = {
        .precision = precision,
        .scale = 1.0,
        .batches = 1,
        .a = {.rows = k, .columns = m, .leading = k, .transposed = true},
        .b = {.rows = k, .columns = n, .leading = k},
        .d = {.rows = m, .columns = n, .leading = m},
        .fast_sums = precision == PRECISION_FP8,
        .narrow_sums = true,
        .format = format->types,
        .scales = precision == PRECISION_FP4 ? library->scales : NULL,
        .workspace = library->workspace,
    };
    enum status status = product_open(roofs->gpu, &form, product, error);
    if (status)
        product_close(product);
    return status;
}

/* ---- the family ---- */

/* fp64 has no row on chips with unknown rates, because most chips have no tensor units for it. */
static const void *library_row(struct roofs *roofs, int kind, int n)
{
    for (int i = 0; i < FORMATS; ++i) {
        const struct library_format *format = &formats[i];
        double known = roofs->gpu->chip->tensor[precision_of(format)];
        bool unit = known > 0.0 || (isnan(known) && precision_of(format) != PRECISION_FP64);
        if (unit && roofs->gpu->capability >= format->least && format->roof == (enum roof_id)kind &&
            n-- == 0)
            return format;
    }
    return NULL;
}

static enum status library_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                   struct variant *variant, struct error *error)
{
    const struct library_format *format = row;
    const int algorithm = choice % ALGORITHMS, size = choice / ALGORITHMS;
    const long long m = size_rows(&sizes[size], roofs), n = sizes[size].columns, k = format->depth;
    (void)kind;
    TRY(library_ready(roofs, error));
    TRY(product_ready(roofs, format, size, error));
    const struct product *product = &roofs->library->products[format - formats][size];
    if (algorithm >= product->count ||
        product->candidates[algorithm].state != CUBLAS_STATUS_SUCCESS)
        return error_set(error, STATUS_UNSUPPORTED, "cuBLASLt has no more than %d algorithms",
                         product->count);
    *variant = (struct variant){.row = format, .code = choice, .iterations = 1};
    variant->work = 2.0 * (double)m * (double)n * (double)k;
    snprintf(variant->text, sizeof variant->text, "cuBLASLt, m = %lld, n = %lld, k = %lld, %s", m,
             n, k, format->what);
    return STATUS_OK;
}

/* Fills A and B with random operands, because zeros draw less power and so run faster than real
 * data. Integers and fp4 are random bytes: each pattern of bits is a number. */
static enum status operands_fill(struct library *library, enum precision precision,
                                 cudaStream_t stream, struct error *error)
{
    const enum precision as = precision == PRECISION_FP4 ? PRECISION_INT8 : precision;
    const struct precision_info *info = &precision_info[as];
    const int exponent = as == PRECISION_INT8 ? info->significand - 1 : 0;
    void *const data[] = {library->a, library->b};
    const int64_t columns[] = {library->a_columns, library->b_columns};
    if (library->filled == as)
        return STATUS_OK;
    library->filled = PRECISION_COUNT;
    for (int i = 0; i < 2; ++i) {
        struct fill fill = fill_make(1, (enum tensor)i, info->significand, exponent);
        int64_t elements = columns[i] * (int64_t)(COLUMN_BYTES / info->bytes);
        TRY(CUDA(kernel_fill(as, data[i], elements, fill, 0, stream)));
    }
    library->filled = as;
    return STATUS_OK;
}

/* The first run of a type fills the operands; that run is always a warm-up. */
static enum status library_run(struct roofs *roofs, const struct variant *variant,
                               struct error *error)
{
    struct library *library = roofs->library;
    const struct library_format *format = variant->row;
    struct product *product = &library->products[format - formats][variant->code / ALGORITHMS];
    TRY(operands_fill(library, precision_of(format), roofs->gpu->stream, error));
    product->bound = variant->code % ALGORITHMS;
    return product_run(roofs->gpu, product, library->a, library->b, library->d, error);
}

const struct roof_family roofs_library = {
    .row = library_row,
    .choices = SIZES * ALGORITHMS,
    .prepare = library_prepare,
    .run = library_run,
    .close = library_close,
    .counted = true,
};
