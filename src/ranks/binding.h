/* Where a rank stands on its node, and which cores are its own. */
#ifndef ROOFSWEEP_BINDING_H
#define ROOFSWEEP_BINDING_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>

struct binding {
    int local_rank, local_count; /* among the ranks of this node */
    cpu_set_t cpus;              /* what the worker of this rank runs on */
    bool shared;                 /* other ranks run on the same cores: times disturb one another */
};

/* Collective over comm. Ranks that the launcher left on the same set of cores divide it among them;
 * where there are more ranks than cores, they share. */
struct binding binding_create(MPI_Comm comm);

/* The share of number `place` of `count` ranks that were all given `all`: whole cores, with all
 * their hardware threads, close together. */
cpu_set_t binding_share(const cpu_set_t *all, int place, int count, bool *shared);

#endif
