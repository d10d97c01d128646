/* Gathers the devices of all ranks at rank 0, which logs and compares them, numbers shared ones,
 * and finds their roofs in an earlier result. */
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "ranks/executor.h"
#include "results/results.h"

/* The pointers are borrowed. */
struct devices {
    MPI_Comm comm;
    const struct manifest *manifest;
    const struct log *log;
    /* set by devices_collect, freed by devices_clear */
    int rank, ranks;
    struct device *list; /* rank 0: the open device of each rank; else NULL */
};

/* Collective. Gives UUIDs to ranks that share a device (devices_number_shared). STATUS_DEVICE: no
 * rank has a device, two ranks have one exclusive device, ranks that divide the configurations have
 * different kinds, or required counters are refused. */
enum status devices_collect(struct devices *devices, struct executor *executor,
                            struct error *error);

/* Collective. Copies roofs of an earlier result, which rank 0 has (results_roofs), into each rank's
 * executor. False: the result lacks this rank's device. */
bool devices_reuse_roofs(const struct devices *devices, const struct results *earlier,
                         struct executor *executor);

void devices_clear(struct devices *devices);

/* ---- pure functions; they ignore devices that are not open ---- */

/* STATUS_DEVICE if kinds differ: if a CPU and a GPU divided the configurations, the CPU would take
 * and skip rows that only a GPU can run. */
enum status devices_check_kinds(const struct device *devices, int count, struct error *error);

/* Ranks on one device of a shareable kind count as separate devices: all but the first append "#2",
 * "#3", ... to the UUID. A later job with the same number of ranks gets the same UUIDs.
 * STATUS_DEVICE: the kind is exclusive. */
enum status devices_number_shared(struct device *devices, int count, struct error *error);
