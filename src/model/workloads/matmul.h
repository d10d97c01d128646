/* matmul: one matrix product. */
#pragma once

#include "model/workload.h"

extern const struct workload matmul_workload;

/* A matrix product in numbers, row-major: x [m][k], w [k][n], y [m][n] = x w. In fp8 w lies column
 * by column, [n][k]: both factors along their sums, as the tensor units of compute capability 9.0
 * take them in 8 bits. Cost: 2 FLOPs for each product. */
struct matmul {
    int64_t m, n, k;
    enum precision precision;
    const char *implementation;
    bool fast_sums;
};
struct matmul matmul_from(const struct config *config);
bool matmul_by_columns(const struct matmul *shape); /* of w */

/* What libraries take along the sums and of columns, where the elements are of 8 bits. */
enum { MATMUL_LOW_MULTIPLE = 16 };
/* What the product by tiles takes: m and n, k in multiples of. */
enum { MATMUL_TILED_LINES = 16, MATMUL_TILED_DEPTH = 64 };
