/* Place of a rank on its node, its device and its cores. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "model/protocol.h"
#include "ranks/cpus.h"

struct binding {
    int local_rank, local_count; /* number of the rank on its node, and number of ranks there */
    int device;       /* index among the rank's visible devices; their number if none is left */
    int devices;      /* distinct devices of all ranks of the node; 0: unknown */
    struct cpus cpus; /* cores of the rank's worker */
    bool shared;      /* other ranks have the same cores: times disturb one another */
    bool far;         /* the rank's cores, set by the launcher, are all far from the device */
};

/* Collective over comm. A rank takes one of its visible devices and keeps the cores near it. Ranks
 * with the same set of cores divide the set; with more ranks than cores they share it. */
struct binding binding_create(MPI_Comm comm, const struct visible *visible);

/* Sets device and devices of a rank, from the visible devices of all ranks of its node. Ranks that
 * see fewer devices choose first, each the first free device. A rank that sees a single device
 * takes it in any case. If the PCI addresses are unknown, the rank's number decides. */
struct binding binding_choose(const struct visible *visible, int ranks, int rank);

/* Reduces *cpus to the cores in `near`, unless `near` is empty. False: *cpus has no core near the
 * device and stays. */
bool binding_narrow(struct cpus *cpus, const struct cpus *near);

/* Sets cpus and shared from the masks of all ranks of a node. */
void binding_divide(const struct cpus *masks, int ranks, int rank, struct binding *binding);

/* Returns share `place` of the `count` shares into which the mask `all` is divided: whole cores
 * with all hardware threads, close together. *shared: there are more ranks than cores, and all get
 * the whole mask. */
struct cpus binding_share(const struct cpus *all, int place, int count, bool *shared);
