#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/matmul.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/workloads/product.h"

struct matmul_work {
    struct product_work work; /* its product: cublaslt only */
    struct matmul shape;
    struct arena *arena; /* whose memory it has */
    void *x, *w, *y;     /* x: what is kept of it, if it is sparse */
    void *places;        /* uint32_t; NULL: it is dense */
};

static size_t result_bytes(const struct matmul_work *m)
{
    return (size_t)(m->shape.m * m->shape.n) * precision_result(m->shape.precision)->bytes;
}

/* ---- work_ops ---- */

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct matmul *s = &m->shape;
    return CUDA(kernel_matmul(s->precision, m->y, m->x, m->w, s->m, s->n, s->k, gpu->stream));
}

static enum status tiled_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct matmul *s = &m->shape;
    return CUDA(kernel_matmul_tiled(s->precision, m->y, m->x, m->places, m->w, s->m, s->n, s->k,
                                    gpu->stream));
}

static enum status cublaslt_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    return product_run(gpu, &m->work.product, m->w, m->x, m->y, error);
}

/* All bits set is a NaN in every format. */
static enum status matmul_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    (void)samples;
    TRY(CUDA(cudaMemsetAsync(m->y, 0xff, result_bytes(m), gpu->stream)));
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
    product_close(&m->work.product);
    arena_give(m->arena, m->places);
    arena_give(m->arena, m->y);
    arena_give(m->arena, m->w);
    arena_give(m->arena, m->x);
    free(m);
}

static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = matmul_run,
    .result = matmul_result,
    .release = matmul_release,
};
static const struct work_ops tiled_ops = {
    .iterate = tiled_iterate,
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
    const double bytes = (double)precision_info[s->precision].bytes;
    struct fill x = config_fill(config, seed, TENSOR_INPUT);
    struct fill w = config_fill(config, seed, TENSOR_WEIGHT);
    TRY(arena_take(m->arena, bytes * (double)(s->m * s->k), "the first matrix", &m->x, error));
    TRY(arena_take(m->arena, bytes * (double)(s->k * s->n), "the second matrix", &m->w, error));
    TRY(arena_take(m->arena, (double)result_bytes(m), "the product", &m->y, error));
    TRY(CUDA(kernel_fill(s->precision, m->x, s->m * s->k, x, 0, gpu->stream)));
    return CUDA(kernel_fill(s->precision, m->w, s->k * s->n, w, 0, gpu->stream));
}

/* x becomes what is kept of it. */
static enum status matmul_thin(struct gpu *gpu, struct matmul_work *m, struct error *error)
{
    const struct matmul *s = &m->shape;
    const double kept = (double)(s->m * s->k) / 2.0;
    void *dense = m->x;
    m->x = NULL;
    enum status status = arena_take(m->arena, kept * (double)precision_info[s->precision].bytes,
                                    "the first matrix", &m->x, error);
    if (status == STATUS_OK)
        status = arena_take(m->arena, kept / 4.0, "the places of its elements", &m->places, error);
    if (status == STATUS_OK)
        status = CUDA(
            kernel_matmul_prune(s->precision, m->x, m->places, dense, s->m, s->k, gpu->stream));
    arena_give(m->arena, dense); /* waits for the stream */
    return status;
}

/* What all implementations need. */
static enum status matmul_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 const struct work_ops *ops, struct matmul_work **created,
                                 struct error *error)
{
    struct matmul_work *m = calloc(1, sizeof *m);
    if (!m)
        return error_set(error, STATUS_FAILED, "no memory");
    m->work.base.ops = ops;
    m->arena = gpu->arena;
    m->shape = matmul_from(config);
    m->work.base.precision = m->shape.precision;
    enum status status = matrices_create(gpu, m, config, seed, error);
    if (status) {
        matmul_release(&m->work.base);
        return status;
    }
    *created = m;
    return STATUS_OK;
}

static enum status dense_offered(const struct config *config, struct error *error)
{
    if (matmul_from(config).sparse)
        return error_set(error, STATUS_UNSUPPORTED, "sparsity=2:4 has implementation=tiled alone");
    return STATUS_OK;
}

bool matmul_cublaslt_takes(const struct config *config)
{
    return !matmul_from(config).sparse;
}

static enum status tiled_offered(const struct gpu *gpu, const struct config *config,
                                 struct error *error)
{
    struct matmul s = matmul_from(config);
    if (gpu->capability < 80)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled needs compute capability 8.0; this GPU has %d.%d",
                         gpu->capability / 10, gpu->capability % 10);
    if (s.precision != PRECISION_FP16 && s.precision != PRECISION_BF16)
        return error_set(error, STATUS_UNSUPPORTED, "implementation tiled is of fp16 and bf16");
    if (s.m % MATMUL_TILED_LINES || s.n % MATMUL_TILED_LINES || s.k % MATMUL_TILED_DEPTH)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation tiled needs m and n in multiples of %d and k of %d",
                         MATMUL_TILED_LINES, MATMUL_TILED_DEPTH);
    return STATUS_OK;
}

enum status matmul_tiled_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct matmul_work *m;
    TRY(tiled_offered(gpu, config, error));
    TRY(matmul_create(gpu, config, seed, &tiled_ops, &m, error));
    enum status status = m->shape.sparse ? matmul_thin(gpu, m, error) : STATUS_OK;
    if (status) {
        matmul_release(&m->work.base);
        return status;
    }
    m->work.base.sparse = m->shape.sparse;
    snprintf(record->algorithm, sizeof record->algorithm, "%s", m->shape.sparse ? "mma-sp" : "mma");
    snprintf(record->math, sizeof record->math, "tensor-op");
    record->unit = UNIT_TENSOR;
    record->workspace = 0.0;
    *work = &m->work.base;
    return STATUS_OK;
}

enum status matmul_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct matmul_work *m;
    TRY(dense_offered(config, error));
    TRY(product_plain_offered(config_precision(config), error));
    TRY(matmul_create(gpu, config, seed, &plain_ops, &m, error));
    snprintf(record->algorithm, sizeof record->algorithm, "thread-per-element");
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = UNIT_VECTOR;
    record->workspace = 0.0;
    *work = &m->work.base;
    return STATUS_OK;
}

/* The library's matrices are column by column: for it, these are the transposed ones, and y
 * transposed is w transposed times x transposed. */
static struct product_form matmul_form(const struct matmul *s)
{
    const struct product_matrix by_rows = {.rows = s->n, .columns = s->k, .leading = s->n};
    const struct product_matrix by_columns = {
        .rows = s->k, .columns = s->n, .leading = s->k, .transposed = true};
    return (struct product_form){
        .precision = s->precision,
        .scale = 1.0,
        .fast_sums = s->fast_sums,
        .batches = 1,
        .a = matmul_by_columns(s) ? by_columns : by_rows,
        .b = {.rows = s->k, .columns = s->m, .leading = s->k},
        .d = {.rows = s->n, .columns = s->m, .leading = s->n},
    };
}

enum status matmul_cublaslt_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    struct matmul_work *m;
    TRY(dense_offered(config, error));
    TRY(product_offered(gpu, config_precision(config), error));
    TRY(matmul_create(gpu, config, seed, &cublaslt_ops, &m, error));
    const struct product_form form = matmul_form(&m->shape);
    enum status status = product_open(gpu, &form, &m->work.product, error);
    if (status == STATUS_OK)
        status = product_choose(gpu, &m->work, config_cold(config), record, error);
    if (status) {
        matmul_release(&m->work.base);
        return status;
    }
    *work = &m->work.base;
    return STATUS_OK;
}
