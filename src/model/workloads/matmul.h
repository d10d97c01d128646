/* matmul: one matrix product. */
#pragma once

#include "model/workload.h"

extern const struct workload matmul_workload;

/* The shape, row-major: x [m][k], w [k][n], y [m][n] = x w. In fp8 w is [n][k], because tensor
 * units of compute capability 9.0 need 8-bit factors that are contiguous along their sums. Cost: 2
 * FLOPs for each multiply-add. */
struct matmul {
    int64_t m, n, k;
    enum precision precision;
    bool fast_sums; /* as in struct linear */
};
struct matmul matmul_from(const struct config *config);
bool matmul_by_columns(const struct matmul *shape); /* w is [n][k] */
