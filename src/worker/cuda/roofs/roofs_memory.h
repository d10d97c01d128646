/* Bandwidths of device memory and caches. */
#ifndef ROOFSWEEP_ROOFS_MEMORY_H
#define ROOFSWEEP_ROOFS_MEMORY_H

#include "worker/cuda/roofs/family.h"

extern const struct roof_family roofs_memory, roofs_onchip;

#endif
