#include "worker/cuda/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "worker/cuda/profiling/residency.h"
#include "worker/gpu/arena.h"

enum status capability_check(const struct gpu *gpu, int least, const char *what,
                             struct error *error)
{
    if (gpu->capability >= least)
        return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED,
                     "%s needs compute capability %d.%d; this GPU has %d.%d", what, least / 10,
                     least % 10, gpu->capability / 10, gpu->capability % 10);
}

static int address_of(int index)
{
    int domain = 0, bus = 0, device = 0;
    bool known = cudaDeviceGetAttribute(&domain, cudaDevAttrPciDomainId, index) == cudaSuccess &&
                 cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, index) == cudaSuccess &&
                 cudaDeviceGetAttribute(&device, cudaDevAttrPciDeviceId, index) == cudaSuccess;
    return known ? domain << 16 | bus << 8 | device : 0;
}

void gpu_uuid(const char *raw, char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)raw;
    int at = snprintf(text, size, "GPU-");
    for (int i = 0; i < 16; ++i)
        at += snprintf(text + at, size - (size_t)at,
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

static enum status library_status(bool unsupported)
{
    return cuda_is_lost() ? STATUS_DEVICE : unsupported ? STATUS_UNSUPPORTED : STATUS_FAILED;
}

enum status cudnn_check(cudnnStatus_t code, const char *call, struct error *error)
{
    if (code == CUDNN_STATUS_SUCCESS)
        return STATUS_OK;
    char detail[400] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    detail[strcspn(detail, "\n")] = '\0';
    bool unsupported = CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED ||
                       code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    return error_set(error, library_status(unsupported), "%.*s: %s%s%s", cuda_call_length(call),
                     call, cudnnGetErrorString(code), *detail ? ": " : "", detail);
}

enum status cublas_check(cublasStatus_t code, const char *call, struct error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    bool unsupported = code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_ARCH_MISMATCH ||
                       code == CUBLAS_STATUS_ALLOC_FAILED;
    return error_set(error, library_status(unsupported), "%.*s: %s", cuda_call_length(call), call,
                     cublasLtGetStatusString(code));
}

const char *const cudnn_math_name[] = {
    [CUDNN_DEFAULT_MATH] = "default",
    [CUDNN_TENSOR_OP_MATH] = "tensor-op",
    [CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION] = "tensor-op-allow-conversion",
    [CUDNN_FMA_MATH] = "fma",
};

/* ---- opening ---- */

static enum status count_refuse(cudaError_t code, struct error *error)
{
    int driver = 0, runtime = 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return error_set(error, STATUS_DEVICE, "no NVIDIA driver (libcuda.so.1) on this machine");
    if (code == cudaErrorInsufficientDriver && cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        return error_set(
            error, STATUS_DEVICE,
            "the NVIDIA driver is too old: it knows CUDA %d.%d, this build needs %d.%d",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (code == cudaErrorNoDevice && visible)
        return error_set(error, STATUS_DEVICE,
                         "CUDA_VISIBLE_DEVICES=\"%s\" hides all GPUs of this machine", visible);
    if (code == cudaErrorNoDevice)
        return error_set(error, STATUS_DEVICE, "the NVIDIA driver finds no GPU on this machine");
    return error_set(error, STATUS_DEVICE, "cudaGetDeviceCount: %s (%s)", cudaGetErrorString(code),
                     cudaGetErrorName(code));
}

enum status gpu_count(int *count, struct error *error)
{
    int found = 0;
    cudaError_t code = cudaGetDeviceCount(&found);
    if (code == cudaSuccess && found == 0)
        code = cudaErrorNoDevice;
    if (code != cudaSuccess)
        return count_refuse(code, error);
    *count = found;
    return STATUS_OK;
}

enum status gpu_list(int *count, struct visible_gpu gpus[VISIBLE_MAX], struct error *error)
{
    struct nvml *nvml = nvml_open(NULL);
    *count = nvml_list(nvml, getenv("CUDA_VISIBLE_DEVICES"), gpus);
    nvml_close(nvml);
    if (*count > 0)
        return STATUS_OK;
    TRY(gpu_count(count, error));
    for (int i = 0; i < *count && i < VISIBLE_MAX; ++i)
        gpus[i] = (struct visible_gpu){.address = address_of(i)};
    return STATUS_OK;
}

static int limit(int device, int number)
{
    int value = 0;
    cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)number, device);
    return value;
}

static enum status gpu_describe(int index, struct gpu *gpu, struct device *device,
                                struct error *error)
{
    struct cudaDeviceProp properties;
    int runtime, clock, memory_clock, bus_bits;
    TRY(CUDA(cudaGetDeviceProperties(&properties, index)));
    TRY(CUDA(cudaRuntimeGetVersion(&runtime)));
    TRY(CUDA(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, index)));
    TRY(CUDA(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, index)));
    TRY(CUDA(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, index)));
    gpu->index = index;
    gpu->capability = properties.major * 10 + properties.minor;
    gpu->multiprocessors = properties.multiProcessorCount;
    gpu->l2_bytes = (size_t)properties.l2CacheSize;
    gpu->limits = residency_limits(index, limit);
    gpu->chip = chip_find(gpu->capability, properties.name);

    snprintf(device->kind, sizeof device->kind, "cuda");
    if (gethostname(device->hostname, sizeof device->hostname) != 0)
        return error_set(error, STATUS_SYSTEM, "gethostname failed");
    gpu_uuid(properties.uuid.bytes, device->uuid, sizeof device->uuid);
    snprintf(device->pci_id, sizeof device->pci_id, "%08X:%02X:%02X.0",
             (unsigned)properties.pciDomainID, (unsigned)properties.pciBusID,
             (unsigned)properties.pciDeviceID);
    snprintf(device->model, sizeof device->model, "%.*s", (int)sizeof device->model - 1,
             properties.name);
    snprintf(device->compute_capability, sizeof device->compute_capability, "%d.%d",
             properties.major, properties.minor);
    device->multiprocessors = properties.multiProcessorCount;
    device->multiprocessor_threads = properties.maxThreadsPerMultiProcessor;
    device->memory = (double)properties.totalGlobalMem;
    device->cache[LEVEL_L2] = (double)properties.l2CacheSize;
    device->cache[LEVEL_L1] = gpu->chip->l1_bytes * properties.multiProcessorCount;
    device->clock_max = 1e3 * clock;
    device->memory_clock_max = 1e3 * memory_clock;
    snprintf(device->runtime_version, sizeof device->runtime_version, "%d.%d", runtime / 1000,
             runtime % 1000 / 10);
    gpu->nvml = nvml_open(device->pci_id);
    nvml_describe(gpu->nvml, device);
    gpu->power_limit = device->power_limit;
    if (device->mig == 1) /* with MIG on, CUDA sees slices only and returns the slice's UUID */
        memcpy(device->uuid, "MIG", 3);
    gpu->theory = chip_theory(gpu->chip, properties.multiProcessorCount, device->clock_max,
                              device->memory_clock_max, bus_bits);
    memcpy(device->theory_vector, gpu->theory.vector, sizeof device->theory_vector);
    memcpy(device->theory_tensor, gpu->theory.tensor, sizeof device->theory_tensor);
    memcpy(device->theory_bandwidth, gpu->theory.bandwidth, sizeof device->theory_bandwidth);
    const size_t cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
    snprintf(device->library_version, sizeof device->library_version,
             "cuDNN %zu.%zu.%zu, cuBLASLt %zu.%zu.%zu", cudnn / 10000, cudnn % 10000 / 100,
             cudnn % 100, cublas / 10000, cublas % 10000 / 100, cublas % 100);
    return STATUS_OK;
}

/* Launches a first kernel, which shows whether this build has code for the GPU. */
static enum status code_check(const struct gpu *gpu, struct error *error)
{
    cudaError_t code = kernel_empty(gpu->stream);
    if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction)
        return error_set(error, STATUS_DEVICE,
                         "this build has no code for compute capability %d.%d: build it with "
                         "CMAKE_CUDA_ARCHITECTURES=%d",
                         gpu->capability / 10, gpu->capability % 10, gpu->capability);
    TRY(cuda_check(code, "kernel_empty", error));
    return CUDA(cudaStreamSynchronize(gpu->stream));
}

enum status gpu_open(int index, struct gpu *gpu, struct device *device, struct error *error)
{
    struct visible_gpu gpus[VISIBLE_MAX];
    int count = 0;
    TRY(gpu_list(&count, gpus, error));
    if (index < 0 || index >= count)
        return error_set(error, STATUS_DEVICE, "this process sees %d GPUs only, numbered from 0",
                         count);
    device->index = index;
    if (index < VISIBLE_MAX && *gpus[index].uuid) {
        setenv("CUDA_VISIBLE_DEVICES", gpus[index].uuid, 1);
        index = 0;
    }
    TRY(CUDA(cudaSetDevice(index)));
    TRY(gpu_describe(index, gpu, device, error));
    TRY(CUDA(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking)));
    TRY(code_check(gpu, error));
    TRY(CUDNN(cudnnCreate(&gpu->cudnn)));
    TRY(CUDNN(cudnnSetStream(gpu->cudnn, gpu->stream)));
    TRY(CUBLAS(cublasLtCreate(&gpu->cublas)));
    gpu->timer = timer_open();
    gpu->arena = arena_open(gpu);
    return gpu->timer && gpu->arena ? STATUS_OK : error_set(error, STATUS_SYSTEM, "no memory");
}

void gpu_close(struct gpu *gpu)
{
    if (gpu->cudnn)
        cudnnDestroy(gpu->cudnn);
    if (gpu->cublas)
        cublasLtDestroy(gpu->cublas);
    timer_close(gpu->timer);
    arena_close(gpu->arena);
    if (gpu->stream)
        cudaStreamDestroy(gpu->stream);
    nvml_close(gpu->nvml);
    *gpu = (struct gpu){0};
}
