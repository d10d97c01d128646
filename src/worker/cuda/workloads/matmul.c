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
    void *places; /* uint32_t: of what is kept of a sparse first matrix; NULL: it is dense */
};

/* ---- work_ops ---- */

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct tensor_work *t = &m->work.tensors;
    const struct matmul *s = &m->shape;
    const struct kernel_factor x = {t->input[TENSOR_INPUT], s->k, 1};
    const struct kernel_factor w = {t->input[TENSOR_WEIGHT], 1, s->n};
    return CUDA(kernel_product(s->precision, t->result[TENSOR_OUTPUT], x, w, s->m, s->n, s->k,
                               gpu->stream));
}

static enum status tiled_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct tensor_work *t = &m->work.tensors;
    const struct matmul *s = &m->shape;
    return CUDA(kernel_matmul_tiled(s->precision, t->result[TENSOR_OUTPUT], t->input[TENSOR_INPUT],
                                    m->places, t->input[TENSOR_WEIGHT], s->m, s->n, s->k,
                                    gpu->stream));
}

static enum status cublaslt_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct tensor_work *t = &m->work.tensors;
    return product_run(gpu, &m->work.product, t->input[TENSOR_WEIGHT], t->input[TENSOR_INPUT],
                       t->result[TENSOR_OUTPUT], error);
}

static void matmul_release(struct work *work)
{
    struct matmul_work *m = (struct matmul_work *)work;
    product_close(&m->work.product);
    arena_give(m->work.tensors.arena, m->places);
    tensor_work_clear(&m->work.tensors);
    free(m);
}

/* ---- preparation ---- */

/* An implementation: what runs it, and what prepares it once the tensors are filled. */
struct way {
    struct work_ops ops;
    enum status (*prepare)(struct gpu *gpu, struct matmul_work *m, bool cold, struct record *record,
                           struct error *error);
};

static enum status way_prepare(const struct way *way, struct gpu *gpu, const struct config *config,
                               uint64_t seed, struct work **work, struct record *record,
                               struct error *error)
{
    struct matmul_work *m = calloc(1, sizeof *m);
    if (!m)
        return error_set(error, STATUS_FAILED, "no memory");
    const struct matmul s = m->shape = matmul_from(config);
    const struct tensor_sizes sizes = {
        .read = {[TENSOR_INPUT] = s.m * s.k, [TENSOR_WEIGHT] = s.k * s.n},
        .written = {[TENSOR_OUTPUT] = s.m * s.n},
    };
    m->work.tensors.base.ops = &way->ops;
    enum status status = tensor_work_create(gpu, config, seed, &sizes, &m->work.tensors, error);
    if (status == STATUS_OK)
        status = way->prepare(gpu, m, config_cold(config), record, error);
    if (status) {
        matmul_release(&m->work.tensors.base);
        return status;
    }
    *work = &m->work.tensors.base;
    return STATUS_OK;
}

static enum status dense_check(const struct config *config, struct error *error)
{
    if (matmul_from(config).sparse)
        return error_set(error, STATUS_UNSUPPORTED, "sparsity=2:4 has implementation=tiled alone");
    return STATUS_OK;
}

/* The first matrix becomes what is kept of it. */
static enum status matmul_thin(struct gpu *gpu, struct matmul_work *m, struct error *error)
{
    const struct matmul *s = &m->shape;
    const double kept = (double)(s->m * s->k) / 2.0;
    struct arena *arena = gpu->arena;
    void *dense = m->work.tensors.input[TENSOR_INPUT], **x = &m->work.tensors.input[TENSOR_INPUT];
    *x = NULL;
    enum status status = arena_take(arena, kept * (double)precision_info[s->precision].bytes,
                                    "what is kept of the input", x, error);
    if (status == STATUS_OK)
        status = arena_take(arena, kept / 4.0, "the places of its elements", &m->places, error);
    if (status == STATUS_OK)
        status =
            CUDA(kernel_matmul_prune(s->precision, *x, m->places, dense, s->m, s->k, gpu->stream));
    arena_give(arena, dense); /* waits for the stream */
    return status;
}

static enum status tiled_way(struct gpu *gpu, struct matmul_work *m, bool cold,
                             struct record *record, struct error *error)
{
    (void)cold;
    if (m->shape.sparse)
        TRY(matmul_thin(gpu, m, error));
    m->work.tensors.base.sparse = m->shape.sparse;
    tensor_work_describe(m->shape.sparse ? "mma-sp" : "mma", record);
    snprintf(record->math, sizeof record->math, "tensor-op");
    record->unit = UNIT_TENSOR;
    return STATUS_OK;
}

enum status matmul_tiled_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    static const struct way tiled = {
        {.iterate = tiled_iterate,
         .run = tensor_work_run,
         .result = tensor_work_result,
         .release = matmul_release},
        tiled_way,
    };
    const struct matmul s = matmul_from(config);
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
    return way_prepare(&tiled, gpu, config, seed, work, record, error);
}

static enum status plain_way(struct gpu *gpu, struct matmul_work *m, bool cold,
                             struct record *record, struct error *error)
{
    (void)gpu, (void)m, (void)cold, (void)error;
    tensor_work_describe("thread-per-element", record);
    return STATUS_OK;
}

enum status matmul_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    static const struct way plain = {
        {.iterate = plain_iterate,
         .run = tensor_work_run,
         .result = tensor_work_result,
         .release = matmul_release},
        plain_way,
    };
    TRY(dense_check(config, error));
    TRY(product_plain_offered(config_precision(config), error));
    return way_prepare(&plain, gpu, config, seed, work, record, error);
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

static enum status cublaslt_way(struct gpu *gpu, struct matmul_work *m, bool cold,
                                struct record *record, struct error *error)
{
    const struct product_form form = matmul_form(&m->shape);
    TRY(product_open(gpu, &form, &m->work.product, error));
    return product_choose(gpu, &m->work, cold, record, error);
}

enum status matmul_cublaslt_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    static const struct way cublaslt = {
        {.iterate = cublaslt_iterate,
         .run = tensor_work_run,
         .result = tensor_work_result,
         .release = matmul_release},
        cublaslt_way,
    };
    TRY(dense_check(config, error));
    TRY(product_offered(gpu, config_precision(config), error));
    return way_prepare(&cublaslt, gpu, config, seed, work, record, error);
}
