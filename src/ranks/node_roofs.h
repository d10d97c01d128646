/* The roofs of all devices of a node, before the sweep.
 *
 * - Tuning: all devices find and prove their fastest variants at the same time.
 * - Alone: each device measures while its neighbours idle, one device after the other; devices that
 *   must rest between two roofs take turns roof by roof.
 * - Together: devices of a kind measure each roof at the same time, because they share power,
 *   cooling, the way to the host, and on CPUs the memory. An agreed moment starts the roof; devices
 *   stay busy until the last has its samples.
 * - Sustained: the fastest variants of each precision and unit run until the clock has settled.
 * - Links: links.h.
 *
 * A worker that is lost or out of step is replaced; its roof is not repeated. */
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "ranks/executor.h"

struct node_roofs_settings {
    struct roof_request request;
    bool prove; /* prove the fastest variants by hardware counters */
    /* The device has its roofs or is lost: the rank only takes part in collective calls. */
    bool skip;
    double timeout; /* s; limit of a roof; tuning may take three times as long */
    /* Limit on waiting for ranks of the node: a time, which a signal can shorten. Afterwards the
     * rank leaves with the roofs so far. */
    struct wait_limit wait_limit;
};

/* Collective over comm, waits without using the cores. Sets the executor's roofs; roofs that failed
 * have the reason. When a rank gets the signal, all ranks of its node leave with the roofs so far.
 */
void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings, const struct log *log);
