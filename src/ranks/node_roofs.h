/* The roofs of all devices of a node, before the sweep begins.
 *
 * All devices look for their fastest ways at once, and have them proven. Then each device measures
 * its roofs alone, while its neighbours idle: one device after the other, or, where it must rest
 * between two roofs, one roof after the other. Then all of one kind measure each roof together,
 * from an agreed moment on and until the last of them has its samples, because devices of a node
 * share power, cooling, their way to the host, and on CPUs the memory. What is sustained once the
 * clock has settled comes last, of the fastest way to each precision and unit alone, together where
 * that is wanted. A worker that is lost, or answers something else, over a roof is replaced; that
 * roof is not tried again.
 *
 * Links between the devices come at the very end. The first rank of the node has them measured, and
 * keeps them with its device. */
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "ranks/executor.h"
#include "ranks/liveness.h"

struct node_roofs_settings {
    struct roof_request request;
    bool prove; /* by hardware counters */
    /* This rank's device has its roofs already, or is lost: it only waits for the others. */
    bool skip;
    double timeout; /* s, one roof; tuning may take three times as long */
    /* With the other ranks of the node; it has an end and a signal. Then this rank leaves with what
     * it has. */
    struct wait_limit wait_limit;
};

/* Collective over comm, blocking, without burning the cores that are being measured. Sets the
 * executor's roofs; those that could not be measured say so. As soon as the patience's signal is
 * set on a rank of the node, all its ranks leave, with what they have. */
void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings, const struct log *log);
