/* compute-loop and shared-loop, whose work is known to the last operation, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_LOOPS_H
#define ROOFSWEEP_CUDA_LOOPS_H

#include "worker/gpu/work.h"

work_preparation loop_prepare;

#endif
