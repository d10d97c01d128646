/* The OpenMP team of the open CPU: one thread on each core, bound to it. */
#ifndef ROOFSWEEP_CPU_TEAM_H
#define ROOFSWEEP_CPU_TEAM_H

#include "worker/cpu/topology.h"

/* STATUS_DEVICE if OpenMP gives another number of threads, or one cannot be bound. Again after
 * team_loosen. */
enum status team_bind(const struct topology *topology, struct error *error);
/* The calling thread may run on all cores: libgomp ends the threads that a smaller region does not need,
 * and a new one has the cores of the thread that starts it. Needed around a library that asks for
 * regions of its own sizes. */
void team_loosen(const struct topology *topology);
/* All threads may run where the process could. */
void team_unbind(const struct topology *topology);

#endif
