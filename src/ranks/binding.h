/* Where a rank stands on its node, and which cores are its own. */
#pragma once

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>

#include "model/protocol.h"

struct binding {
    int local_rank, local_count; /* among the ranks of this node */
    int device;     /* place among the devices that the rank sees; as many as it sees: none left */
    int devices;    /* that the ranks of this node have, each of them once; 0: not known */
    cpu_set_t cpus; /* what the worker of this rank runs on */
    bool shared;    /* other ranks run on the same cores: times disturb one another */
    bool far;       /* the launcher left the rank no core near its device */
};

/* Collective over comm. A rank chooses one of the devices that it sees, and keeps the cores near
 * it. Ranks then left on the same set of cores divide it among them; where there are more ranks
 * than cores, they share. */
struct binding binding_create(MPI_Comm comm, const struct visible *visible);

/* What this rank of a node chooses, by what each of them sees: device and devices. Those that see
 * fewer come first, and take the first one that is left. The only one that a rank sees it takes in
 * any case. One that does not know what it sees goes by its number. */
struct binding binding_choose(const struct visible *visible, int ranks, int rank);

/* Leaves of *cpus those near a device, if that is known. False: none is, and *cpus stays. */
bool binding_narrow(cpu_set_t *cpus, const cpu_set_t *near);

/* Sets cpus and shared of this rank of a node, by the cores of each of them. */
void binding_divide(const cpu_set_t *masks, int ranks, int rank, struct binding *binding);

/* The share of number `place` of `count` ranks that were all given `all`: whole cores, with all
 * their hardware threads, close together. */
cpu_set_t binding_share(const cpu_set_t *all, int place, int count, bool *shared);
