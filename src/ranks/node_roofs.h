/* The roofs of all devices of a node, before the sweep begins.
 *
 * The devices of each model share the search for the fastest ways (node_tuning.h). Then each measures its roofs
 * alone, while its neighbours idle: one device after the other, or, where it must rest between two roofs, one roof
 * after the other. Then all of one kind measure each roof together, from an agreed moment on and until the last of
 * them has its samples, because devices of a node share power, cooling, their way to the host, and on CPUs the
 * memory. What is sustained once the clock has settled comes last, of the fastest way to each precision and unit
 * alone, together where that is wanted. A worker that
 * is lost, or answers something else, over a roof is replaced; that roof is not tried again. */
#ifndef ROOFSWEEP_NODE_ROOFS_H
#define ROOFSWEEP_NODE_ROOFS_H

#include <mpi.h>
#include <signal.h>

#include "ranks/executor.h"
#include "base/log.h"

struct node_roofs_settings {
    struct roof_request request;
    bool prove; /* by hardware counters */
    bool
        skip; /* this rank's device has its roofs already, or is lost: it only waits for the others */
    double timeout; /* s, one roof; tuning may take three times as long */
    /* s, how long to wait for the other ranks of the node: while they measure, and after a signal.
     * Then this rank leaves with what it has. */
    double patience, stop_patience;
};

/* Collective over comm, blocking, without burning the cores that are being measured. Sets the
 * executor's roofs; those that could not be measured say so. As soon as *interrupted is set on a
 * rank of the node, all its ranks leave, with what they have. */
void node_roofs_measure(MPI_Comm comm, struct executor *executor,
                        const struct node_roofs_settings *settings,
                        const volatile sig_atomic_t *interrupted, const struct log *log);

#endif
