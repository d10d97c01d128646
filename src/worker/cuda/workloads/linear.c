#include "worker/cuda/workloads/workloads.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/linear.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/workloads/product.h"

struct linear_work {
    struct product_work work; /* its product: cublaslt only */
    struct linear shape;
    struct arena *arena;         /* whose memory it has */
    void *tensors[TENSOR_COUNT]; /* owned */
    bool separate;               /* what stands beside the product has a kernel of its own */
};

/* Which tensor is which in the product of a pass: for the library, column by column, result = a b; for
 * the plain kernel, row by row, result = b a. */
static const struct pass {
    enum tensor a, b, result;
} passes[] = {
    [LINEAR_FORWARD] = {TENSOR_WEIGHT, TENSOR_INPUT, TENSOR_OUTPUT},
    [LINEAR_BACKWARD_DATA] = {TENSOR_WEIGHT, TENSOR_OUTPUT, TENSOR_INPUT},
    [LINEAR_BACKWARD_WEIGHTS] = {TENSOR_INPUT, TENSOR_OUTPUT, TENSOR_WEIGHT},
};

static const char *const tensor_names[TENSOR_COUNT] = {
    [TENSOR_INPUT] = "the inputs",
    [TENSOR_WEIGHT] = "the weights",
    [TENSOR_OUTPUT] = "the outputs",
    [TENSOR_BIAS] = "the bias",
};

static const struct pass *pass_of(const struct linear_work *l)
{
    return &passes[l->shape.pass];
}

/* A bias is added to results. */
static enum precision tensor_precision(const struct linear_work *l, enum tensor tensor)
{
    enum precision precision = l->shape.precision;
    return tensor == pass_of(l)->result || tensor == TENSOR_BIAS ? precision_info[precision].result
                                                                 : precision;
}

static double tensor_bytes(const struct linear_work *l, enum tensor tensor)
{
    return (double)linear_size(&l->shape, tensor) *
           (double)precision_info[tensor_precision(l, tensor)].bytes;
}

static bool is_result(const struct linear_work *l, enum tensor tensor)
{
    bool gradient = l->shape.pass == LINEAR_BACKWARD_WEIGHTS;
    return tensor == pass_of(l)->result || (gradient && tensor == TENSOR_BIAS);
}

/* ---- work_ops ---- */

static enum status finish(struct gpu *gpu, const struct linear_work *l, struct error *error)
{
    const struct linear *s = &l->shape;
    if (!l->separate)
        return STATUS_OK;
    if (s->pass == LINEAR_FORWARD)
        return CUDA(kernel_linear_finish(tensor_precision(l, TENSOR_OUTPUT),
                                         l->tensors[TENSOR_OUTPUT], l->tensors[TENSOR_BIAS],
                                         s->activation, s->batch, s->outputs, gpu->stream));
    return CUDA(kernel_column_sums(s->precision, l->tensors[TENSOR_BIAS], l->tensors[TENSOR_OUTPUT],
                                   s->batch, s->outputs, gpu->stream));
}

static enum status cublaslt_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct linear_work *l = (const struct linear_work *)work;
    const struct pass *pass = pass_of(l);
    TRY(product_run(gpu, &l->work.product, l->tensors[pass->a], l->tensors[pass->b],
                    l->tensors[pass->result], error));
    return finish(gpu, l, error);
}

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct linear_work *l = (const struct linear_work *)work;
    const struct linear *s = &l->shape;
    const struct pass *pass = pass_of(l);
    const void *a = l->tensors[pass->b], *b = l->tensors[pass->a];
    const struct {
        struct kernel_factor a, b;
        int64_t m, n, k;
    } products[] = {
        [LINEAR_FORWARD] = {{a, s->inputs, 1}, {b, s->inputs, 1}, s->batch, s->outputs, s->inputs},
        [LINEAR_BACKWARD_DATA] =
            {{a, s->outputs, 1}, {b, 1, s->inputs}, s->batch, s->inputs, s->outputs},
        [LINEAR_BACKWARD_WEIGHTS] =
            {{a, 1, s->outputs}, {b, 1, s->inputs}, s->outputs, s->inputs, s->batch},
    };
    TRY(CUDA(kernel_product(s->precision, l->tensors[pass->result], products[s->pass].a,
                            products[s->pass].b, products[s->pass].m, products[s->pass].n,
                            products[s->pass].k, gpu->stream)));
    return finish(gpu, l, error);
}

/* All bits set is a NaN in every format. */
static enum status linear_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    const struct linear_work *l = (const struct linear_work *)work;
    (void)samples;
    for (int i = 0; i < TENSOR_COUNT; ++i)
        if (is_result(l, (enum tensor)i) && l->tensors[i])
            TRY(CUDA(cudaMemsetAsync(l->tensors[i], 0xff, (size_t)tensor_bytes(l, (enum tensor)i),
                                     gpu->stream)));
    return work->ops->iterate(gpu, work, error);
}

static const void *linear_result(const struct work *work, enum tensor tensor)
{
    return ((const struct linear_work *)work)->tensors[tensor];
}

static void linear_release(struct work *work)
{
    struct linear_work *l = (struct linear_work *)work;
    product_close(&l->work.product);
    for (int i = 0; i < TENSOR_COUNT; ++i)
        arena_give(l->arena, l->tensors[i]);
    free(l);
}

static const struct work_ops cublaslt_ops = {
    .iterate = cublaslt_iterate,
    .run = linear_run,
    .result = linear_result,
    .release = linear_release,
};
static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = linear_run,
    .result = linear_result,
    .release = linear_release,
};

/* ---- preparation ---- */

static enum status tensors_create(struct gpu *gpu, struct linear_work *l,
                                  const struct config *config, uint64_t seed, struct error *error)
{
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        enum tensor tensor = (enum tensor)i;
        const struct fill fill = config_fill(config, seed, tensor);
        if (linear_size(&l->shape, tensor) == 0)
            continue;
        TRY(arena_take(l->arena, tensor_bytes(l, tensor), tensor_names[i], &l->tensors[i], error));
        if (!is_result(l, tensor))
            TRY(CUDA(kernel_fill(tensor_precision(l, tensor), l->tensors[i],
                                 linear_size(&l->shape, tensor), fill, 0, gpu->stream)));
    }
    return STATUS_OK;
}

/* What both implementations need. */
static enum status linear_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 const struct work_ops *ops, struct linear_work **created,
                                 struct error *error)
{
    struct linear_work *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(error, STATUS_FAILED, "no memory");
    l->work.tensors.base.ops = ops;
    l->arena = gpu->arena;
    l->shape = linear_from(config);
    l->work.tensors.base.precision = l->shape.precision;
    enum status status = tensors_create(gpu, l, config, seed, error);
    if (status) {
        linear_release(&l->work.tensors.base);
        return status;
    }
    *created = l;
    return STATUS_OK;
}

enum status linear_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                 struct work **work, struct record *record, struct error *error)
{
    struct linear_work *l;
    const struct linear s = linear_from(config);
    TRY(product_plain_offered(s.precision, error));
    if (s.fusion == LINEAR_FUSED)
        return error_set(error, STATUS_UNSUPPORTED,
                         "implementation plain has bias and activation in a kernel of their own");
    TRY(linear_create(gpu, config, seed, &plain_ops, &l, error));
    l->separate = linear_has_epilogue(&l->shape);
    snprintf(record->algorithm, sizeof record->algorithm, "thread-per-element");
    snprintf(record->math, sizeof record->math, "fma");
    record->unit = UNIT_VECTOR;
    record->workspace = 0.0;
    *work = &l->work.tensors.base;
    return STATUS_OK;
}

static cublasLtEpilogue_t epilogue_of(const struct linear *s)
{
    static const cublasLtEpilogue_t forward[LINEAR_ACTIVATIONS][2] = {
        [LINEAR_NONE] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
        [LINEAR_RELU] = {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
        [LINEAR_GELU] = {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS},
    };
    /* Of the columns of dW as the library sees it: of the outputs. */
    return s->pass == LINEAR_FORWARD ? forward[s->activation][s->bias] : CUBLASLT_EPILOGUE_BGRADB;
}

/* What is row by row here is transposed for the library: y^T = W x^T, dx^T = W^T dy^T, dW^T = x^T dy. */
static struct product_form linear_form(const struct linear_work *l)
{
    const struct linear *s = &l->shape;
    const struct product_matrix x = {.rows = s->inputs, .columns = s->batch, .leading = s->inputs};
    const struct product_matrix w = {
        .rows = s->inputs, .columns = s->outputs, .leading = s->inputs};
    const struct product_matrix y = {
        .rows = s->outputs, .columns = s->batch, .leading = s->outputs};
    struct product_matrix w_transposed = w, y_transposed = y;
    w_transposed.transposed = y_transposed.transposed = true;
    const struct product_form forms[] = {
        [LINEAR_FORWARD] = {.a = w_transposed, .b = x, .d = y},
        [LINEAR_BACKWARD_DATA] = {.a = w, .b = y, .d = x},
        [LINEAR_BACKWARD_WEIGHTS] = {.a = x, .b = y_transposed, .d = w},
    };
    struct product_form form = forms[s->pass];
    form.precision = s->precision;
    form.scale = 1.0;
    form.fast_sums = s->fast_sums;
    form.batches = 1;
    if (linear_has_epilogue(s))
        form.suffix = l->separate ? "-separate" : "-fused";
    if (linear_has_epilogue(s) && !l->separate) {
        form.epilogue = epilogue_of(s);
        form.bias = l->tensors[TENSOR_BIAS];
    }
    return form;
}

static enum status product_describe_as(struct gpu *gpu, struct linear_work *l, bool separate,
                                       struct error *error)
{
    l->separate = separate;
    const struct product_form form = linear_form(l);
    return product_open(gpu, &form, &l->work.product, error);
}

static enum status fused_describe(struct gpu *gpu, struct linear_work *l, struct error *error)
{
    const struct linear *s = &l->shape;
    if (s->activation == LINEAR_GELU && s->precision == PRECISION_FP64)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuBLASLt's gelu is not as exact as fp64; use fusion=separate");
    return product_describe_as(gpu, l, false, error);
}

/* fusion=auto: where the library has no such epilogue, the product and then a kernel. */
static enum status layer_describe(struct gpu *gpu, struct linear_work *l, struct error *error)
{
    const struct linear *s = &l->shape;
    bool epilogue = linear_has_epilogue(s);
    if (!epilogue || s->fusion == LINEAR_SEPARATE)
        return product_describe_as(gpu, l, epilogue, error);
    enum status status = fused_describe(gpu, l, error);
    if (status != STATUS_UNSUPPORTED || s->fusion == LINEAR_FUSED)
        return status;
    product_close(&l->work.product);
    return product_describe_as(gpu, l, true, error);
}

enum status linear_cublaslt_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    struct linear_work *l;
    TRY(product_offered(gpu, config_precision(config), error));
    TRY(linear_create(gpu, config, seed, &cublaslt_ops, &l, error));
    enum status status = layer_describe(gpu, l, error);
    if (status == STATUS_OK)
        status = product_choose(gpu, &l->work, l->shape.cold, record, error);
    if (status) {
        linear_release(&l->work.tensors.base);
        return status;
    }
    *work = &l->work.tensors.base;
    return STATUS_OK;
}
