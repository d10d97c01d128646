/* Batch norms by cuDNN's calls, which its newer versions mark as deprecated. */
#ifndef ROOFSWEEP_NORM_BATCH_H
#define ROOFSWEEP_NORM_BATCH_H

#include "worker/gpu/work.h"

work_preparation norm_batch_prepare;

#endif
