/* The devices of all ranks, as rank 0 sees them: printed, compared, told apart, given their
 * earlier roofs. */
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "ranks/executor.h"
#include "results/results.h"

/* What it points to stays the caller's. */
struct devices {
    MPI_Comm comm;
    const struct manifest *manifest;
    const struct log *log;
    /* set by devices_collect, freed by devices_clear */
    int rank, ranks;
    struct device *list; /* rank 0: of each rank, as opened; else NULL */
};

/* Collective. Ranks that share a device get UUIDs of their own (devices_number_shared).
 * STATUS_DEVICE if no rank has a device, two ranks have the same one, they would share out one list
 * and are of different kinds, or counters are required and refused. */
enum status devices_collect(struct devices *devices, struct executor *executor,
                            struct error *error);

/* Collective. Gives each rank's executor the roofs of its device in an earlier result, which rank 0
 * has (results_roofs). False: the result has none of this rank's device. */
bool devices_reuse_roofs(const struct devices *devices, const struct results *earlier,
                         struct executor *executor);

void devices_clear(struct devices *devices);

/* ---- the pure parts; they pass over devices that are not open, which measure nothing ---- */

/* STATUS_DEVICE if two of these devices are the same one, (kind, hostname, uuid), of an exclusive
 * kind. */
enum status devices_check_distinct(const struct device *devices, int count, struct error *error);

/* STATUS_DEVICE if they are of different kinds. They must not share out one list: what only a GPU
 * offers, a CPU would take and skip at once. */
enum status devices_check_kinds(const struct device *devices, int count, struct error *error);

/* Ranks on one device of a kind that is not exclusive are devices of their own: all but the first
 * of them get "#2", "#3", ... after the UUID. A later job with as many ranks gives the same
 * names. */
void devices_number_shared(struct device *devices, int count);
