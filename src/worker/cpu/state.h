/* The open CPU: its OpenMP team, and what is kept from one configuration to the next.
 *
 * The team has one thread on each core, bound to it from open to close. libgomp binds a new
 * thread to the core of its parent. So no parallel region may ask for another number of threads. */
#ifndef ROOFSWEEP_CPU_STATE_H
#define ROOFSWEEP_CPU_STATE_H

#include <stddef.h>

#include "worker/cpu/topology.h"

struct device_state {
    struct topology topology;
    void *flush; /* for cold caches; created when first needed, owned */
    size_t flush_size;
    struct roofs *roofs; /* NULL unless they are tuned; roofs.c */
};

#endif
