/* The right answers, in fp64, from the definition: no library, no layout tricks, no caching.
 *
 * Inputs come from device_fill; nothing is read from the device. OpenMP over the elements. */
#ifndef ROOFSWEEP_REFERENCE_H
#define ROOFSWEEP_REFERENCE_H

#include <stdint.h>

#include "base/status.h"
#include "model/workload.h"

/* values[i] = element offsets[i] of the pass's result tensor (y, x or w; see workloads/). */
void reference_conv2d(const struct config *config, uint64_t seed, const int64_t *offsets,
                      int64_t count, double *values);

/* Multiply-adds behind one element of the pass's result; what bounds the number of elements
 * compared. */
double reference_conv2d_cost(const struct config *config);

/* Elements of y of a matrix product and of a loop. */
void reference_matmul(const struct config *config, uint64_t seed, const int64_t *offsets,
                      int64_t count, double *values);
void reference_loop(const struct config *config, uint64_t seed, const int64_t *offsets,
                    int64_t count, double *values);

/* Results of the whole LSTM for the first `samples` of the batch. y, dx:
 * [sequence][samples][width], dw: the whole of w, from these samples' output gradient alone.
 * forward sets y; backward sets y, dx and dw. The caller owns the arrays (NULL: not wanted).
 * STATUS_SYSTEM without memory. */
enum status reference_lstm(const struct config *config, uint64_t seed, int64_t samples, double *y,
                           double *dx, double *dw, struct error *error);

#endif
