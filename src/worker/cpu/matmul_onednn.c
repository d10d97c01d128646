/* A matrix product on the CPU by oneDNN. Both matrices are the user's, and neither is packed before. */
#include "worker/cpu/matmul_onednn.h"

#include "model/workloads/matmul.h"
#include "worker/cpu/matmul.h"
#include "worker/cpu/onednn_routine.h"

static struct onednn_tensor matrix(enum precision precision, int64_t rows, int64_t columns)
{
    return (struct onednn_tensor){
        .precision = precision,
        .axes = 2,
        .extents = {rows, columns},
        .strides = {columns, 1},
    };
}

static enum status product_plan(struct work *work, const struct topology *topology,
                                struct error *error)
{
    (void)topology;
    static const struct onednn_roles roles = {
        .inputs = {[TENSOR_INPUT] = ONEDNN_SOURCE, [TENSOR_WEIGHT] = ONEDNN_WEIGHTS},
        .results = {[TENSOR_OUTPUT] = ONEDNN_DESTINATION},
    };
    struct matmul s = matmul_from(&work->config);
    const struct onednn_operation operation = {
        .kind = ONEDNN_MATMUL,
        .tensors = {[ONEDNN_SOURCE] = matrix(s.precision, s.m, s.k),
                    [ONEDNN_WEIGHTS] = matrix(s.precision, s.k, s.n),
                    [ONEDNN_DESTINATION] = matrix(s.precision, s.m, s.n)},
    };
    matmul_tensors(work, &s);
    enum status status = matmul_offered(&s, error);
    return status ? status : onednn_routine_plan(work, &operation, &roles, error);
}

const struct routine matmul_onednn = {
    .workload = &matmul_workload,
    .implementation = "onednn",
    ONEDNN_ROUTINE(product_plan),
};
