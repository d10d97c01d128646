/* FLOP/s of tensor units, by the products of cuBLASLt. */
#ifndef ROOFSWEEP_ROOFS_LIBRARY_H
#define ROOFSWEEP_ROOFS_LIBRARY_H

#include "worker/cuda/roofs/family.h"

extern const struct roof_family roofs_library;

#endif
