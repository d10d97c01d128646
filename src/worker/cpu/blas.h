/* The CBLAS that this program runs with, whichever it is. */
#pragma once

#include ROOFSWEEP_CBLAS_HEADER /* cblas.h, or what its vendor calls it */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* From now on a call of BLAS runs in the thread that calls it. Of libraries that no row of blas.c
 * knows, those on OpenMP do so by themselves within a parallel region. */
void blas_single_thread(void);
/* Its name and version, and the kind of core that its kernels are for where it says that. Of one
 * that no row of blas.c knows, the file's name. `text` of `size` bytes is always ended. */
void blas_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED if one of the extents is beyond BLAS's integers. */
enum status blas_check(const int64_t *extents, size_t count, struct error *error);

/* A product of matrices whose rows follow one another: c [m][n] = a b, with k products for each
 * element, or c + a b. A transposed factor is stored the other way round. */
struct factor {
    const void *data;
    int64_t leading; /* elements from one stored row to the next */
    bool transposed;
};
struct product {
    bool wide; /* fp64; else fp32 */
    bool adds;
    int64_t m, n, k;
    struct factor a, b;
    void *c;
    int64_t c_leading;
};
/* Some rows and columns of c, by the calling thread. */
void blas_multiply(const struct product *product, int64_t row, int64_t rows, int64_t column,
                   int64_t columns);
/* All of c, by the whole team within a region. The longer edge is divided among the threads;
 * products of the same extents in the same way. There is no barrier at the end. */
void blas_multiply_shared(const struct product *product);
