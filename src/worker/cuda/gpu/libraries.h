/* cuDNN and cuBLASLt on the open GPU: their handles, and the failures of both as the error
 * convention. */
#ifndef ROOFSWEEP_LIBRARIES_H
#define ROOFSWEEP_LIBRARIES_H

#include <cublasLt.h>
#include <cudnn.h>

#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/gpu.h"

/* As cuda_check. What a library does not offer, or not on this chip: STATUS_UNSUPPORTED. */
enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error);
enum status cublas_check(cublasStatus_t code, const char *call, struct error *error);

#define CUDNN(call)  cudnn_check((call), #call, error)
#define CUBLAS(call) cublas_check((call), #call, error)

/* Sets library_version of *device. */
void libraries_describe(struct device *device);

/* Sets gpu->cudnn, on the GPU's stream, and gpu->cublas. */
enum status libraries_open(struct gpu *gpu, struct error *error);
void libraries_close(struct gpu *gpu); /* once more than opened does no harm */

extern const char *const cudnn_math_name[]; /* by cudnnMathType_t */

#endif
