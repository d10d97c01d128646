/* FLOP/s of vector and tensor units, by chains of operations on chip. */
#ifndef ROOFSWEEP_ROOFS_COMPUTE_H
#define ROOFSWEEP_ROOFS_COMPUTE_H

#include "worker/cuda/roofs/family.h"

extern const struct roof_family roofs_vector, roofs_tensor;

#endif
