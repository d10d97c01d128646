/* One element of a tensor in the worker's memory, in any precision that a CPU's routine computes in. */
#ifndef ROOFSWEEP_CPU_ELEMENT_H
#define ROOFSWEEP_CPU_ELEMENT_H

#include <stdint.h>

#include "model/workload.h"

/* A value that the precision does not hold is cut to one that it does; NaN stays NaN. */
void element_store(enum precision precision, void *data, int64_t index, double value);
double element_load(enum precision precision, const void *data, int64_t index);

#endif
