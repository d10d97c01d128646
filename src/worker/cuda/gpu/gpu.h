/* The open GPU: its properties, its one stream, and the handles of cuDNN and cuBLASLt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <cublasLt.h>
#include <cuda_occupancy.h>
#include <cudnn.h>

#include "base/status.h"
#include "model/chip.h"
#include "model/device.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/nvml.h"

struct arena;
struct plan_shelf;
struct timer;

struct gpu {
    int index; /* CUDA's number of the GPU in this process */
    cudaStream_t stream;
    int capability; /* compute capability x 10; 90 is 9.0 */
    const struct chip *chip;
    int multiprocessors;
    size_t l2_bytes;
    double power_limit;       /* W; NaN: unknown */
    cudaOccDeviceProp limits; /* limits of a multiprocessor and of a block */
    struct theory theory;
    struct nvml *nvml;        /* NULL: NVML is not available */
    struct timer *timer;      /* vendor.c */
    struct arena *arena;      /* memory of rows, see arena.h */
    cudnnHandle_t cudnn;      /* NULL: not open */
    struct plan_shelf *plans; /* workloads/cudnn_graph.h: plans of earlier rows; may be NULL */
    cublasLtHandle_t cublas;  /* NULL: not open */
};

/* Data of those functions of worker/gpu/vendor.h that need memory: events, the blocking kernel, the
 * flush, clocks. timer_open returns NULL without memory. */
struct timer *timer_open(void);
void timer_close(struct timer *timer); /* takes NULL */

/* STATUS_UNSUPPORTED if the GPU's compute capability is below `least`, which `what` needs. */
enum status capability_check(const struct gpu *gpu, int least, const char *what,
                             struct error *error);

/* Formats the 16 bytes of a UUID as nvidia-smi does. */
void gpu_uuid(const char *bytes, char *text, size_t size);

/* As cuda_check. STATUS_UNSUPPORTED: the library lacks the operation on this chip. */
enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error);
enum status cublas_check(cublasStatus_t code, const char *call, struct error *error);

#define CUDNN(call)  cudnn_check((call), #call, error)
#define CUBLAS(call) cublas_check((call), #call, error)

extern const char *const cudnn_math_name[]; /* by cudnnMathType_t */

/* Counts the GPUs that CUDA shows to this process. STATUS_DEVICE: there is none. */
enum status gpu_count(int *count, struct error *error);

/* Lists these GPUs by NVML, which does not start CUDA, or else by CUDA. */
enum status gpu_list(int *count, struct visible_gpu gpus[VISIBLE_MAX], struct error *error);

/* Makes GPU `index` the current one, opens it, and describes it in *device (all but roofs, counters
 * and key). The caller closes *gpu after a failure, too. */
enum status gpu_open(int index, struct gpu *gpu, struct device *device, struct error *error);
void gpu_close(struct gpu *gpu); /* also takes a struct that is all zeros */
