/* NVML: the conditions that a GPU works under, and what CUDA does not tell of it. The library belongs
 * to the driver and is loaded at run time. Where it cannot be loaded, values stay missing. */
#ifndef ROOFSWEEP_NVML_H
#define ROOFSWEEP_NVML_H

#include <stdint.h>
#include <cuda_runtime_api.h>

#include "model/device.h"

struct nvml; /* NULL wherever it cannot be used; all functions take that */

struct nvml *nvml_open(const char *pci_id);
void nvml_close(struct nvml *nvml);

/* Driver version, clocks, power limit, ECC, MIG. */
void nvml_describe(struct nvml *nvml, struct device *device);

/* Where the conditions of a record or of a roof are kept. */
struct conditions {
    double *sm_clock, *memory_clock, *temperature;
    int64_t *throttle_reasons, *throttled;
};
/* Reads clocks, temperature and throttle reasons. Throttle reasons count only if the event `last` had
 * not yet come when they were read: those of an idle device say nothing about the work. What cannot be
 * read stays as it was. */
void nvml_sample(struct nvml *nvml, cudaEvent_t last, const struct conditions *seen);

/* How many processes compute on the GPU, this one included; -1 where that is not known. */
int nvml_processes(struct nvml *nvml);

/* W, the mean of a load that began at `since` (s since 1970-01-01T00:00:00Z) and has ended just now;
 * NaN if that is too short for the sensor, or if there is none. */
double nvml_power(struct nvml *nvml, double since);
double nvml_energy(struct nvml *nvml); /* J since the driver was loaded; NaN if not offered */

#endif
