/* matmul: one matrix product. */
#ifndef ROOFSWEEP_WORKLOADS_MATMUL_H
#define ROOFSWEEP_WORKLOADS_MATMUL_H

#include "model/workload.h"

extern const struct workload matmul_workload;

/* A matrix product in numbers, row-major: x [m][k], w [k][n], y [m][n] = x w. In fp8 w lies column by
 * column, [n][k]: both factors along their sums, as the tensor units of compute capability 9.0 take them
 * in 8 bits. */
struct matmul {
    int64_t m, n, k;
    enum precision precision;
    const char *implementation;
};
struct matmul matmul_from(const struct config *config);
bool matmul_by_columns(const struct matmul *shape); /* of w */

/* What libraries take along the sums and of columns, where the elements are of 8 bits. */
enum { MATMUL_LOW_MULTIPLE = 16 };

#endif
