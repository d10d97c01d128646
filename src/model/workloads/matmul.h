/* matmul: one matrix product. */
#ifndef ROOFSWEEP_WORKLOADS_MATMUL_H
#define ROOFSWEEP_WORKLOADS_MATMUL_H

#include "model/workload.h"

extern const struct workload matmul_workload;

/* A matrix product in numbers, row-major: x [m][k], w [k][n], y [m][n] = x w. */
struct matmul {
    int64_t m, n, k;
    enum precision precision;
    const char *implementation;
};
struct matmul matmul_from(const struct config *config);

#endif
