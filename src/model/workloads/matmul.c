#include "model/workloads/matmul.h"

/* clang-format off */
static const char *const matmul_implementation_words[] = {"auto", "cublaslt", "cblas", "plain",
                                                          NULL};

static const struct parameter matmul_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_SERIES("implementation", matmul_implementation_words, "auto", "auto: the device's best library"),
    WORKLOAD_INTEGER("k", 1048576, "1024", "columns of the first matrix, rows of the second"),
    WORKLOAD_INTEGER("m", 1048576, "1024", "rows of the first matrix and of the product"),
    WORKLOAD_INTEGER("n", 1048576, "1024", "columns of the second matrix and of the product"),
    WORKLOAD_SERIES("precision", workload_precisions, "fp32", "of the matrices and the multiplications"),
};
/* clang-format on */

static const char *const matmul_implementations[] = {
    "cublaslt: NVIDIA cuBLASLt, on CUDA devices",
    "cblas: CBLAS, on CPUs",
    "plain: one thread for each element of the product, or on CPUs three nested loops",
    NULL,
};

struct matmul matmul_from(const struct config *config)
{
    return (struct matmul){
        .m = config_value(config, "m").first,
        .n = config_value(config, "n").first,
        .k = config_value(config, "k").first,
        .precision = config_precision(config),
        .implementation = config_word(config, "implementation"),
    };
}

static struct cost matmul_cost(const struct config *config)
{
    struct matmul s = matmul_from(config);
    double m = (double)s.m, n = (double)s.n, k = (double)s.k;
    double bytes = (m * k + k * n + m * n) * (double)precision_info[s.precision].bytes;
    return (struct cost){.flops = 2.0 * m * n * k, .bytes = bytes, .memory = bytes};
}

const struct workload matmul_workload = {
    "matmul", WORKLOAD_TABLE(matmul_parameters), matmul_implementations, NULL, matmul_cost,
};
