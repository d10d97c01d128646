#include "model/workloads/implementations.h"

#include <stddef.h>
#include <string.h>

const char *implementation_text(const char *implementation)
{
    static const char *const texts[][2] = {
        {"cudnn", "NVIDIA cuDNN, on CUDA devices"},
        {"cublaslt", "NVIDIA cuBLASLt, on CUDA devices"},
        {"onednn", "Intel oneDNN, on CPUs"},
        {"tiled", "by hand on tensor units, on CUDA devices; forward, fp16 and bf16"},
        {"persistent", "by hand, one launch for all steps of a layer, on CUDA devices; forward, "
                       "fp16 and bf16"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i)
        if (strcmp(texts[i][0], implementation) == 0)
            return texts[i][1];
    return "as one would first write it";
}
