/* NVML: the conditions that a GPU works under, and what CUDA does not tell of it. The library
 * belongs to the driver and is loaded at run time. Where it cannot be loaded, values stay
 * missing. */
#pragma once

#include <stdint.h>
#include <cuda_runtime_api.h>

#include "model/device.h"
#include "worker/gpu/vendor.h"

struct nvml; /* NULL wherever it cannot be used; all functions take that */

struct nvml *nvml_open(const char *pci_id);
void nvml_close(struct nvml *nvml);

/* How many processes compute on the GPU, this one included; -1 where that is not known. */
int nvml_processes(struct nvml *nvml);

/* Those of others that compute on it, "python3 (process 4242, 35 % busy), ..."; "none"; "" where
 * that is not known, as in a container with process numbers of its own. */
void nvml_others(struct nvml *nvml, char *text, size_t size);

/* Driver version, firmware, clocks, power limit, ECC, MIG. */
void nvml_describe(struct nvml *nvml, struct device *device);

/* By enum health; what the driver does not tell is missing. */
void nvml_health(struct nvml *nvml, double health[HEALTH_COUNT]);

/* What follows is as vendor.h says. */
void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *seen);
double nvml_power(struct nvml *nvml, double since);
double nvml_energy(struct nvml *nvml);
