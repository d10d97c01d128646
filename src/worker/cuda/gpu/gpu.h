/* The open GPU: what it is, and the one stream that carries all work. */
#ifndef ROOFSWEEP_GPU_H
#define ROOFSWEEP_GPU_H

#include <stddef.h>
#include <cuda_runtime_api.h>

#include "base/status.h"
#include "model/chip.h"
#include "model/device.h"
#include "worker/cuda/gpu/occupancy.h"

struct cudnnContext; /* cudnnHandle_t points to it */
struct arena;
struct nvml;
struct plan_shelf;
struct timer;

struct gpu {
    int index; /* as CUDA numbers it in this process */
    cudaStream_t stream;
    int capability; /* 90 */
    const struct chip *chip;
    int multiprocessors;
    size_t l2_bytes;
    double power_limit; /* W; NaN: not known */
    struct occupancy_limits limits;
    struct theory theory;
    struct nvml *nvml;          /* NULL wherever NVML cannot be used */
    struct timer *timer;        /* vendor.c */
    struct arena *arena;        /* arena.h: the memory of rows */
    struct cudnnContext *cudnn; /* libraries.h; NULL: not opened */
    struct plan_shelf *plans;   /* workloads/cudnn_graph.h: of rows that are done; may be NULL */
    struct cublasLtContext *cublas; /* the same */
};

/* GPUs that this process can see. STATUS_DEVICE with the reason if there is none. */
enum status gpu_count(int *count, struct error *error);

/* Makes GPU `index` the current one, opens it and describes it (all but roofs, counters, key and the
 * libraries' version) in *device. After a failure *gpu is to be closed as well. */
enum status gpu_open(int index, struct gpu *gpu, struct device *device, struct error *error);
void gpu_close(struct gpu *gpu); /* takes one that is all zeros */

/* What its stream is timed with. NULL without memory. */
struct timer *timer_open(void);
void timer_close(struct timer *timer); /* takes NULL */

#endif
