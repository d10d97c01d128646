/* The devices of all ranks, as rank 0 sees them: told to people, compared, given their earlier roofs. */
#ifndef ROOFSWEEP_INVENTORY_H
#define ROOFSWEEP_INVENTORY_H

#include <mpi.h>
#include <stdbool.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "ranks/executor.h"

/* What it points to stays the caller's. */
struct inventory {
    MPI_Comm comm;
    const struct manifest *manifest;
    const struct log *log;
    /* set by inventory_collect, freed by inventory_clear */
    int rank, ranks;
    struct device *devices; /* rank 0: of each rank, as opened; else NULL */
};

/* Collective. Ranks that share a device get UUIDs of their own (agreement_tell_apart). STATUS_DEVICE if no rank has a device, two ranks have the same one, they would share out one
 * list and are of different kinds, or counters are required and refused. */
enum status inventory_collect(struct inventory *inventory, struct executor *executor,
                              struct error *error);

/* Collective. Gives each rank's executor the roofs that its device has among these (of rank 0; see
 * earlier_roofs.h). False: this rank's device has none. */
bool inventory_reuse_roofs(const struct inventory *inventory, const struct device *earlier,
                           size_t count, struct executor *executor);

void inventory_clear(struct inventory *inventory);

#endif
