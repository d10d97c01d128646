#include "worker/cuda/gpu/cuda_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"

/* ---- devices ---- */

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

static enum status device_count(int *count, struct error *error)
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

static enum status attribute(int index, enum cudaDeviceAttr name, int *value, struct error *error)
{
    return CUDA(cudaDeviceGetAttribute(value, name, index));
}

/* As nvidia-smi writes it. */
static void uuid_format(const unsigned char *bytes, char *text, size_t size)
{
    int at = snprintf(text, size, "GPU-");
    for (int i = 0; i < 16; ++i)
        at += snprintf(text + at, size - (size_t)at,
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

static void theory_describe(const struct theory *theory, struct device *device)
{
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        device->theory_vector[i] = theory->vector[i];
        device->theory_tensor[i] = theory->tensor[i];
    }
    for (int i = 0; i < LEVEL_COUNT; ++i)
        device->theory_bandwidth[i] = theory->bandwidth[i];
}

static enum status device_describe(int index, struct device_state *state, struct device *device,
                                   struct error *error)
{
    struct cudaDeviceProp properties;
    int runtime, clock, memory_clock, bus_bits;
    TRY(CUDA(cudaGetDeviceProperties(&properties, index)));
    TRY(CUDA(cudaRuntimeGetVersion(&runtime)));
    TRY(attribute(index, cudaDevAttrClockRate, &clock, error));
    TRY(attribute(index, cudaDevAttrMemoryClockRate, &memory_clock, error));
    TRY(attribute(index, cudaDevAttrGlobalMemoryBusWidth, &bus_bits, error));
    state->capability = properties.major * 10 + properties.minor;
    state->multiprocessors = properties.multiProcessorCount;
    state->l2_bytes = (size_t)properties.l2CacheSize;
    const struct chip *chip = chip_find(state->capability);

    snprintf(device->kind, sizeof device->kind, "cuda");
    if (gethostname(device->hostname, sizeof device->hostname) != 0)
        return error_set(error, STATUS_SYSTEM, "gethostname failed");
    uuid_format((const unsigned char *)properties.uuid.bytes, device->uuid, sizeof device->uuid);
    snprintf(device->pci_id, sizeof device->pci_id, "%08X:%02X:%02X.0",
             (unsigned)properties.pciDomainID, (unsigned)properties.pciBusID,
             (unsigned)properties.pciDeviceID);
    device->index = index;
    snprintf(device->model, sizeof device->model, "%.*s", (int)sizeof device->model - 1,
             properties.name);
    snprintf(device->compute_capability, sizeof device->compute_capability, "%d.%d",
             properties.major, properties.minor);
    device->multiprocessors = properties.multiProcessorCount;
    device->memory = (double)properties.totalGlobalMem;
    device->cache[LEVEL_L2] = (double)properties.l2CacheSize;
    device->cache[LEVEL_L1] = chip->l1_bytes * properties.multiProcessorCount;
    device->clock_max = 1e3 * clock;
    device->memory_clock_max = 1e3 * memory_clock;
    device->ecc = properties.ECCEnabled;
    snprintf(device->runtime_version, sizeof device->runtime_version, "%d.%d", runtime / 1000,
             runtime % 1000 / 10);
    size_t cudnn = cudnnGetVersion();
    snprintf(device->library_version, sizeof device->library_version, "cuDNN %zu.%zu.%zu",
             cudnn / 10000, cudnn % 10000 / 100, cudnn % 100);
    state->nvml = nvml_open(device->pci_id);
    nvml_describe(state->nvml, device);
    if (device->mig == 1) /* CUDA then sees slices only, and gives their UUIDs */
        memcpy(device->uuid, "MIG", 3);
    state->theory = chip_theory(chip, properties.multiProcessorCount, device->clock_max,
                                device->memory_clock_max, bus_bits);
    theory_describe(&state->theory, device);
    return STATUS_OK;
}

/* The first kernel shows whether this build carries code for the GPU. */
static enum status code_check(struct device_state *state, struct error *error)
{
    cudaError_t code = kernel_empty(state->stream);
    if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction)
        return error_set(error, STATUS_DEVICE,
                         "this build has no code for compute capability %d.%d: build it with "
                         "CMAKE_CUDA_ARCHITECTURES=%d",
                         state->capability / 10, state->capability % 10, state->capability);
    TRY(cuda_check(code, "kernel_empty", error));
    return CUDA(cudaStreamSynchronize(state->stream));
}

static void device_close(struct device_state *state)
{
    if (!state)
        return;
    roofs_release(state);
    trace_close(state);
    count_close(state);
    timing_close(state);
    if (state->cudnn)
        cudnnDestroy(state->cudnn);
    if (state->stream)
        cudaStreamDestroy(state->stream);
    nvml_close(state->nvml);
    free(state);
}

static enum status state_open(int index, struct device_state *state, struct device *device,
                              struct error *error)
{
    int count;
    TRY(device_count(&count, error));
    if (index < 0 || index >= count)
        return error_set(error, STATUS_DEVICE, "this process sees %d GPUs only, numbered from 0",
                         count);
    state->profiler_ratio = NAN;
    TRY(CUDA(cudaSetDevice(index)));
    TRY(device_describe(index, state, device, error));
    TRY(CUDA(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking)));
    TRY(code_check(state, error));
    TRY(CUDNN(cudnnCreate(&state->cudnn)));
    return CUDNN(cudnnSetStream(state->cudnn, state->stream));
}

static enum status device_open(int index, struct device_state **state, struct device *device,
                               struct error *error)
{
    struct device_state *result = calloc(1, sizeof *result);
    if (!result)
        return error_set(error, STATUS_SYSTEM, "no memory");
    struct device described = *device;
    enum status status = state_open(index, result, &described, error);
    if (status) {
        device_close(result);
        error_prefix(error, "GPU %d", index);
        return STATUS_DEVICE;
    }
    *device = described;
    *state = result;
    return STATUS_OK;
}

/* ---- work ---- */

const char *const cudnn_math_name[] = {
    [CUDNN_DEFAULT_MATH] = "default",
    [CUDNN_TENSOR_OP_MATH] = "tensor-op",
    [CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION] = "tensor-op-allow-conversion",
    [CUDNN_FMA_MATH] = "fma",
};

/* What this kind of device can run. The first of a workload is its "auto". */
static const struct preparation {
    const struct workload *workload;
    const char *implementation;
    work_preparation *prepare;
} preparations[] = {
    {&conv2d_workload, "cudnn", conv2d_prepare},
    {&lstm_workload, "cudnn", lstm_prepare},
    {&matmul_workload, "cublaslt", matmul_cublaslt_prepare},
    {&matmul_workload, "plain", matmul_plain_prepare},
    {&compute_loop_workload, "plain", loop_prepare},
    {&shared_loop_workload, "plain", loop_prepare},
};

static enum status preparation_find(const struct config *config, const struct preparation **found,
                                    struct error *error)
{
    const char *wanted = config_word(config, ROLE_IMPLEMENTATION);
    char offered[128] = "";
    for (size_t i = 0; i < sizeof preparations / sizeof *preparations; ++i) {
        if (preparations[i].workload != config->workload)
            continue;
        if (strcmp(wanted, "auto") == 0 || strcmp(wanted, preparations[i].implementation) == 0) {
            *found = &preparations[i];
            return STATUS_OK;
        }
        size_t used = strlen(offered);
        snprintf(offered + used, sizeof offered - used, "%s%s", used ? ", " : "",
                 preparations[i].implementation);
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "implementation %s of %s does not run on CUDA devices, which have: %s", wanted,
                     config->workload->name, offered[0] ? offered : "none");
}

static enum status device_prepare(struct device_state *state, const struct config *config,
                                  uint64_t seed, struct work **work, struct record *record,
                                  struct error *error)
{
    const struct preparation *preparation = NULL;
    TRY(preparation_find(config, &preparation, error));
    TRY(memory_check(config_cost(config).memory, "the tensors", error));
    count_withdraw(state);
    TRY(preparation->prepare(state, config, seed, work, record, error));
    (*work)->energy_given = NAN;
    snprintf(record->implementation, sizeof record->implementation, "%s",
             preparation->implementation);
    return STATUS_OK;
}

static enum status device_run(struct device_state *state, struct work *work, int64_t samples,
                              struct error *error)
{
    TRY(work->ops->run(state, work, samples, error));
    return CUDA(cudaStreamSynchronize(state->stream));
}

/* Owned: the device's copies of the offsets and of what lies there, and the translated offsets. */
struct gather {
    void *offsets, *values;
    int64_t *translated;
};

static enum status gather_run(struct device_state *state, struct work *work, enum tensor tensor,
                              struct gather *gather, const int64_t *offsets, int64_t count,
                              double *values, struct error *error)
{
    size_t bytes = (size_t)count * sizeof *values;
    if (work->ops->element) {
        gather->translated = malloc(bytes);
        if (!gather->translated)
            return error_set(error, STATUS_FAILED, "no memory for %lld offsets", (long long)count);
        for (int64_t i = 0; i < count; ++i)
            gather->translated[i] = work->ops->element(work, tensor, offsets[i]);
        offsets = gather->translated;
    }
    TRY(memory_allocate((double)bytes, "the comparison", &gather->offsets, error));
    TRY(memory_allocate((double)bytes, "the comparison", &gather->values, error));
    TRY(CUDA(
        cudaMemcpyAsync(gather->offsets, offsets, bytes, cudaMemcpyHostToDevice, state->stream)));
    TRY(CUDA(kernel_gather(work->precision, work->ops->result(work, tensor), gather->offsets, count,
                           gather->values, state->stream)));
    TRY(CUDA(
        cudaMemcpyAsync(values, gather->values, bytes, cudaMemcpyDeviceToHost, state->stream)));
    return CUDA(cudaStreamSynchronize(state->stream));
}

static enum status device_read(struct device_state *state, struct work *work, enum tensor tensor,
                               const int64_t *offsets, int64_t count, double *values,
                               struct error *error)
{
    struct gather gather = {NULL, NULL, NULL};
    enum status status = gather_run(state, work, tensor, &gather, offsets, count, values, error);
    cudaFree(gather.values);
    cudaFree(gather.offsets);
    free(gather.translated);
    return status;
}

static void device_release(struct device_state *state, struct work *work)
{
    (void)state;
    if (work)
        work->ops->release(work);
}

const struct device_ops device_ops = {
    .kind = "cuda",
    .description = "NVIDIA GPUs, measured with cuDNN and CUPTI",
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .try_counters = count_try,
    .tune_roofs = roofs_tune,
    .measure_roof = roofs_measure,
    .release_roofs = roofs_release,
    .prepare = device_prepare,
    .time = timing_run,
    .trace = trace_run,
    .count_hardware = count_run,
    .run = device_run,
    .read = device_read,
    .release = device_release,
    .self_test = selftest_run,
};
