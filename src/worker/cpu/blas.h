/* The CBLAS library that this program is linked with. */
#pragma once

#include ROOFSWEEP_CBLAS_HEADER /* cblas.h, or what its vendor calls it */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Sets the library to one thread. A library without a row in blas.c must use one thread within a
 * parallel region by itself, as libraries on OpenMP do. */
void blas_single_thread(void);
/* Writes the library's name and version, and the core type of its kernels if it reports that; the
 * file's name for a library without a row in blas.c. Terminates `text` of `size` bytes. */
void blas_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED if an extent exceeds BLAS's integers. */
enum status blas_check(const int64_t *extents, size_t count, struct error *error);

/* A product of row-major matrices: c [m][n] = a [m][k] b [k][n]. A transposed factor is stored as
 * [k][m] or [n][k]. */
struct factor {
    const void *data;
    int64_t leading; /* elements from one stored row to the next */
    bool transposed;
};
struct product {
    bool wide; /* fp64; else fp32 */
    int64_t m, n, k;
    struct factor a, b;
    void *c;
    int64_t c_leading;
};
/* Computes c by the whole team, within a parallel region. Divides the longer edge among the
 * threads. No barrier at the end. */
void blas_multiply_shared(const struct product *product);
