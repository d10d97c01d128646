/* The open GPU: what it is, the one stream that carries all work, cuDNN and cuBLASLt on it, and the
 * failures of all three as the project's error convention (base/status.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <cublasLt.h>
#include <cuda_occupancy.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "base/status.h"
#include "model/chip.h"
#include "model/device.h"

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
    double power_limit;       /* W; NaN: not known */
    cudaOccDeviceProp limits; /* of a multiprocessor, and of a block on it */
    struct theory theory;
    struct nvml *nvml;        /* NULL wherever NVML cannot be used */
    struct timer *timer;      /* vendor.c */
    struct arena *arena;      /* arena.h: the memory of rows */
    cudnnHandle_t cudnn;      /* NULL: not opened */
    struct plan_shelf *plans; /* workloads/cudnn_graph.h: of rows that are done; may be NULL */
    cublasLtHandle_t cublas;  /* NULL: not opened */
};

/* GPUs that this process can see. STATUS_DEVICE with the reason if there is none. */
enum status gpu_count(int *count, struct error *error);

/* Its PCI address: domain x 65536 + bus x 256 + device; 0: not known. Opens nothing. */
int gpu_address(int index);

/* The bytes of a UUID as nvidia-smi writes them. */
void gpu_uuid(const char *bytes, char *text, size_t size);

/* Makes GPU `index` the current one, opens it and describes it (all but roofs, counters and key) in
 * *device. After a failure *gpu is to be closed as well. */
enum status gpu_open(int index, struct gpu *gpu, struct device *device, struct error *error);
void gpu_close(struct gpu *gpu); /* takes one that is all zeros */

/* What its stream is timed with. NULL without memory. */
struct timer *timer_open(void);
void timer_close(struct timer *timer); /* takes NULL */

/* ---- failures: every call goes through a check, which puts the call's name into the error ---- */

/* `call` is the text of the call; only what stands before its parenthesis is printed.
 * Memory exhausted: STATUS_UNSUPPORTED. An error that stays after it has been cleared is
 * sticky, and the context is lost: STATUS_DEVICE. Anything else: STATUS_FAILED. */
enum status cuda_check(cudaError_t code, const char *call, struct error *error);

/* Whether the context is lost; clears an error that is not sticky. Waits for the device. */
bool cuda_is_lost(void);

/* As cuda_check. What a library does not offer, or not on this chip: STATUS_UNSUPPORTED. */
enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error);
enum status cublas_check(cublasStatus_t code, const char *call, struct error *error);

/* How much of the text of a call is its name. */
int cuda_call_length(const char *call);

/* For functions that return enum status and have a `struct error *error`. */
#define CUDA(call)   cuda_check((call), #call, error)
#define CUDNN(call)  cudnn_check((call), #call, error)
#define CUBLAS(call) cublas_check((call), #call, error)

extern const char *const cudnn_math_name[]; /* by cudnnMathType_t */
