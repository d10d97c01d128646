/* Layer norms by cuDNN's operation graphs. */
#ifndef ROOFSWEEP_NORM_LAYER_H
#define ROOFSWEEP_NORM_LAYER_H

#include "worker/gpu/work.h"

work_preparation norm_layer_prepare;

#endif
