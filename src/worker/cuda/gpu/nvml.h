/* NVML: sensors and health of the GPU, and which processes use it. The library belongs to the
 * driver and is loaded at run time. Values that the driver does not report stay missing. */
#pragma once

#include <stdint.h>
#include <cuda_runtime_api.h>

#include "model/device.h"
#include "model/protocol.h"
#include "worker/gpu/vendor.h"

struct nvml; /* all functions take NULL: NVML is not available */

/* Opens the GPU with this address; NULL pci_id: no GPU, which is enough for nvml_list. */
struct nvml *nvml_open(const char *pci_id);
void nvml_close(struct nvml *nvml);

/* A GPU that CUDA shows to this process. */
struct visible_gpu {
    char uuid[96]; /* as in CUDA_VISIBLE_DEVICES; "": CUDA is already started */
    int address;   /* as in protocol.h; 0: unknown */
};
/* Lists the GPUs that CUDA will show to a process whose CUDA_VISIBLE_DEVICES is `visible` (NULL:
 * unset), in CUDA's order, and returns their number. Does not start CUDA, which takes 0.2 s for
 * each visible GPU. Returns 0 if only CUDA knows the list: with MIG, with several models, or if
 * `visible` is not a list of distinct numbers and UUIDs. */
int nvml_list(const struct nvml *nvml, const char *visible, struct visible_gpu gpus[VISIBLE_MAX]);

/* Counts the processes that compute on the GPU, including this one; -1: unknown. */
int nvml_processes(struct nvml *nvml);

/* Lists other processes that compute on the GPU: "python3 (process 4242, 35 % busy), ...", "none",
 * or "" if unknown (a container with a process namespace of its own). */
void nvml_others(struct nvml *nvml, char *text, size_t size);

void nvml_describe(struct nvml *nvml, struct device *device);

/* Reads the health, by enum health; unknown values are NaN. */
void nvml_health(struct nvml *nvml, double health[HEALTH_COUNT]);

/* See vendor_conditions, vendor_power and vendor_energy. */
void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *conditions);
double nvml_power(struct nvml *nvml, double since);
double nvml_energy(struct nvml *nvml);
