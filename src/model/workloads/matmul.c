#include "model/workloads/matmul.h"

#include "model/reference.h"

#define SHAPE struct matmul
/* clang-format off */
static const char *const matmul_implementation_words[] = {"auto", "cublaslt", "onednn", "plain",
                                                          NULL};

static const struct parameter matmul_parameters[] = {
    WORKLOAD_LATER_SERIES("accumulation", workload_accumulations, "wide",
          "fp8 sums; wide: partial sums are added in fp32, fast: all are added in tensor units",
          INTO(fast_sums)),
    WORKLOAD_CACHE,
    WORKLOAD_IMPLEMENTATION(matmul_implementation_words),
    WORKLOAD_INTEGER("k", 1048576, "1024", "columns of the first matrix, rows of the second",
                     INTO(k)),
    WORKLOAD_LAUNCH,
    WORKLOAD_INTEGER("m", 1048576, "1024", "rows of the first matrix and of the product", INTO(m)),
    WORKLOAD_INTEGER("n", 1048576, "1024", "columns of the second matrix and of the product",
                     INTO(n)),
    WORKLOAD_PRECISION_LOW("of the matrices and the multiplications"),
};
/* clang-format on */

WORKLOAD_SHAPE(matmul)

bool matmul_by_columns(const struct matmul *shape)
{
    return shape->precision == PRECISION_FP8;
}

static enum status matmul_check(const struct config *config, struct error *error)
{
    struct matmul s = matmul_from(config);
    if (s.precision == PRECISION_FP8)
        return config_check_multiples(config, "n", "k", error);
    return s.fast_sums
               ? error_set(error, STATUS_UNSUPPORTED, "accumulation=fast needs precision=fp8")
               : STATUS_OK;
}

static struct cost matmul_cost(const struct config *config)
{
    struct matmul s = matmul_from(config);
    return (struct cost){.flops = 2.0 * (double)s.m * (double)s.k * (double)s.n};
}

static struct tensors matmul_tensors(const struct config *config)
{
    const struct matmul s = matmul_from(config);
    const double m = (double)s.m, n = (double)s.n, k = (double)s.k;
    return (struct tensors){.read = {[TENSOR_INPUT] = m * k, [TENSOR_WEIGHT] = k * n},
                            .written = {[TENSOR_OUTPUT] = m * n}};
}

static double element(const struct reference_inputs *in, int64_t offset)
{
    const struct matmul *s = in->shape;
    int64_t row = offset / s->n, column = offset % s->n;
    int64_t first = matmul_by_columns(s) ? column * s->k : column;
    int64_t step = matmul_by_columns(s) ? 1 : s->n;
    double sum = 0.0;
    for (int64_t i = 0; i < s->k; ++i)
        sum += input_value(in, TENSOR_INPUT, row * s->k + i) *
               input_value(in, TENSOR_WEIGHT, first + i * step);
    return sum;
}

static enum status matmul_reference(const struct reference_request *request,
                                    struct expectation *expectation, struct error *error)
{
    const struct matmul s = matmul_from(request->config);
    const struct elements y = {TENSOR_OUTPUT, (double)s.k, element, NULL};
    return reference_elements(request, &s, &y, expectation, error);
}

const struct workload matmul_workload = {
    .name = "matmul",
    WORKLOAD_TABLE(matmul_parameters),
    .check = matmul_check,
    .cost = matmul_cost,
    .tensors = matmul_tensors,
    .reference = matmul_reference,
};
