/* A convolution by cuDNN, prepared for the open GPU. */
#ifndef ROOFSWEEP_CUDA_CONV2D_H
#define ROOFSWEEP_CUDA_CONV2D_H

#include "worker/gpu/work.h"

work_preparation conv2d_prepare;

#endif
