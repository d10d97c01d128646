/* How cuDNN is asked for a convolution in a precision. CUDNN_FMA_MATH keeps TF32 out of fp32. */
#ifndef ROOFSWEEP_CONV2D_FORMAT_H
#define ROOFSWEEP_CONV2D_FORMAT_H

#include <stdbool.h>

#include "model/workload.h"
#include "worker/cuda/gpu/libraries.h"

struct conv2d_format {
    cudnnDataType_t data, result, compute;
    cudnnMathType_t math;
    bool tensor;         /* `math` runs on tensor units */
    bool vector_allowed; /* vector units compute in the same precision: sums of fp32 or wider */
    int capability;      /* least */
    bool graphs_alone;   /* no call takes it */
};

extern const struct conv2d_format conv2d_formats[PRECISION_COUNT];

/* STATUS_UNSUPPORTED with the reason if this GPU has not got the precision. */
enum status conv2d_format_check(const struct gpu *gpu, enum precision precision,
                                struct error *error);

#endif
