#include "worker/cuda/workloads/workloads.h"

#include "model/workloads/matmul.h"
#include "worker/cuda/workloads/product.h"

struct matmul_work {
    struct product_work work; /* work.product: cublaslt only */
    struct matmul shape;
};

TENSOR_SHAPE(matmul)

/* ---- plain ---- */

/* The plain product takes the precisions of vector units. */
static enum status plain_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    const enum precision precision = config_precision(config);
    (void)gpu;
    if (precision == PRECISION_TF32 || precision == PRECISION_FP8)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s is a precision of tensor units, which the plain product does not use",
                         precision_info[precision].name);
    return STATUS_OK;
}

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

const struct tensor_routine matmul_plain = {
    .bytes = sizeof(struct matmul_work),
    .algorithm = "thread-per-element",
    .shape = matmul_shape,
    .check = plain_check,
    .iterate = plain_iterate,
};

/* ---- cuBLASLt ---- */

/* The library reads matrices by columns, so it computes y^T = w^T x^T. */
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

static enum status cublaslt_open(struct gpu *gpu, const struct config *config, struct work *work,
                                 struct record *record, struct error *error)
{
    struct matmul_work *m = (struct matmul_work *)work;
    const struct product_form form = matmul_form(&m->shape);
    (void)config;
    TRY(product_open(gpu, &form, &m->work.product, error));
    return product_choose(gpu, &m->work, record, error);
}

static enum status cublaslt_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct matmul_work *m = (const struct matmul_work *)work;
    const struct tensor_work *t = &m->work.tensors;
    return product_run(gpu, &m->work.product, t->input[TENSOR_WEIGHT], t->input[TENSOR_INPUT],
                       t->result[TENSOR_OUTPUT], error);
}

const struct tensor_routine matmul_cublaslt = {
    .bytes = sizeof(struct matmul_work),
    .shape = matmul_shape,
    .check = product_work_check,
    .open = cublaslt_open,
    .iterate = cublaslt_iterate,
    .close = product_work_close,
};
