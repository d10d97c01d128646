#include "worker/cuda/workloads/workloads.h"

#include "model/workloads/linear.h"
#include "worker/cuda/workloads/product.h"

struct linear_work {
    struct product_work work;
    struct linear shape;
    bool separate; /* bias and activation, or the bias gradient, have a kernel of their own */
};

/* The product of each pass: result = a b, on matrices by columns. */
static const struct pass {
    enum tensor a, b, result;
} passes[] = {
    [LINEAR_FORWARD] = {TENSOR_WEIGHT, TENSOR_INPUT, TENSOR_OUTPUT},
    [LINEAR_BACKWARD_DATA] = {TENSOR_WEIGHT, TENSOR_OUTPUT, TENSOR_INPUT},
    [LINEAR_BACKWARD_WEIGHTS] = {TENSOR_INPUT, TENSOR_OUTPUT, TENSOR_WEIGHT},
};

TENSOR_SHAPE(linear)

/* Returns the bias, or in a backward pass its gradient. */
static void *linear_bias(const struct linear_work *l)
{
    const struct tensor_work *t = &l->work.tensors;
    return l->shape.pass == LINEAR_FORWARD ? t->input[TENSOR_BIAS] : t->result[TENSOR_BIAS];
}

static enum status finish(struct gpu *gpu, const struct linear_work *l, struct error *error)
{
    const struct tensor_work *t = &l->work.tensors;
    const struct linear *s = &l->shape;
    if (!l->separate)
        return STATUS_OK;
    if (s->pass == LINEAR_FORWARD)
        return CUDA(kernel_linear_finish(t->stored[TENSOR_OUTPUT], t->result[TENSOR_OUTPUT],
                                         linear_bias(l), s->activation, s->batch, s->outputs,
                                         gpu->stream));
    return CUDA(kernel_column_sums(s->precision, linear_bias(l), t->input[TENSOR_OUTPUT], s->batch,
                                   s->outputs, gpu->stream));
}

static cublasLtEpilogue_t epilogue_of(const struct linear *s)
{
    static const cublasLtEpilogue_t forward[LINEAR_ACTIVATIONS][2] = {
        [LINEAR_NONE] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
        [LINEAR_RELU] = {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
        [LINEAR_GELU] = {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS},
    };
    /* BGRADB also adds up dy over the batch, which gives db. */
    return s->pass == LINEAR_FORWARD ? forward[s->activation][s->bias] : CUBLASLT_EPILOGUE_BGRADB;
}

/* The library reads matrices by columns, so it computes transposed products: y^T = W x^T, dx^T =
 * W^T dy^T, dW^T = x^T dy. */
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
        form.bias = linear_bias(l);
    }
    return form;
}

static enum status layer_open(struct gpu *gpu, struct linear_work *l, bool separate,
                              struct error *error)
{
    const struct linear *s = &l->shape;
    l->separate = separate;
    if (linear_has_epilogue(s) && !separate && s->activation == LINEAR_GELU &&
        s->precision == PRECISION_FP64)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuBLASLt's gelu is not as exact as fp64; use fusion=separate");
    const struct product_form form = linear_form(l);
    return product_open(gpu, &form, &l->work.product, error);
}

static enum status cublaslt_open(struct gpu *gpu, const struct config *config, struct work *work,
                                 struct record *record, struct error *error)
{
    struct linear_work *l = (struct linear_work *)work;
    const bool epilogue = linear_has_epilogue(&l->shape);
    const enum linear_fusion fusion = l->shape.fusion;
    (void)config;
    enum status status = layer_open(gpu, l, epilogue && fusion == LINEAR_SEPARATE, error);
    /* fusion=auto: a kernel follows the product if the library lacks the epilogue. */
    if (status == STATUS_UNSUPPORTED && epilogue && fusion == LINEAR_AUTO) {
        product_close(&l->work.product);
        status = layer_open(gpu, l, true, error);
    }
    TRY(status);
    return product_choose(gpu, &l->work, record, error);
}

static enum status cublaslt_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct linear_work *l = (const struct linear_work *)work;
    const struct tensor_work *t = &l->work.tensors;
    const struct pass *pass = &passes[l->shape.pass];
    TRY(product_run(gpu, &l->work.product, t->input[pass->a], t->input[pass->b],
                    t->result[pass->result], error));
    return finish(gpu, l, error);
}

const struct tensor_routine linear_cublaslt = {
    .bytes = sizeof(struct linear_work),
    .shape = linear_shape,
    .check = product_work_check,
    .open = cublaslt_open,
    .iterate = cublaslt_iterate,
    .close = product_work_close,
};
