/* matmul: one matrix product. */
#pragma once

#include "model/workload.h"

extern const struct workload matmul_workload;

/* A matrix product in numbers, row-major: x [m][k], w [k][n], y [m][n] = x w. In fp8 w lies column
 * by column, [n][k]: both factors along their sums, as the tensor units of compute capability 9.0
 * take them in 8 bits. Cost: 2 FLOPs for each product; with 2:4 sparsity of those that are left,
 * half of them, and x has half of its elements and two bits for each of them. */
struct matmul {
    int64_t m, n, k;
    enum precision precision;
    const char *implementation;
    bool fast_sums, sparse;
};
struct matmul matmul_from(const struct config *config);
bool matmul_by_columns(const struct matmul *shape); /* of w */

/* What libraries take along the sums and of columns, where the elements are of 8 bits. */
enum { MATMUL_LOW_MULTIPLE = 16 };
/* What the product by tiles takes: m and n, k in multiples of. */
enum { MATMUL_TILED_LINES = 16, MATMUL_TILED_DEPTH = 64 };

/* sparsity = 2:4: of each four neighbours along k, the two of x with the largest magnitude are
 * kept, of equal ones the first; the others count as zero. Their places come in rising order. */
FILL_FUNCTION void matmul_prune(const double values[4], int places[2])
{
    int kept = 0;
    for (int i = 0; i < 4; ++i) {
        int before = 0; /* those that are kept rather than this one */
        for (int j = 0; j < 4; ++j) {
            double own = values[i] < 0.0 ? -values[i] : values[i];
            double other = values[j] < 0.0 ? -values[j] : values[j];
            before += other > own || (other == own && j < i);
        }
        if (before < 2)
            places[kept++] = i;
    }
}
