/* The CBLAS that this program runs with, whichever it is. */
#ifndef ROOFSWEEP_BLAS_H
#define ROOFSWEEP_BLAS_H

#include ROOFSWEEP_CBLAS_HEADER /* cblas.h, or what its vendor calls it */
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* From now on a call of BLAS runs in the thread that calls it. Of libraries that no row of blas.c knows,
 * those on OpenMP do so by themselves within a parallel region. */
void blas_single_thread(void);
/* Its name and version, and the kind of core that its kernels are for where it says that. Of one that
 * no row of blas.c knows, the file's name. `text` of `size` bytes is always ended. */
void blas_describe(char *text, size_t size);
/* STATUS_UNSUPPORTED if one of the extents is beyond BLAS's integers. */
enum status blas_check(const int64_t *extents, size_t count, struct error *error);

#endif
