/* Measures the links of a job before the sweep: copies within each node, operations of all devices
 * of a node, exchanges between two nodes, operations of all devices. GPUs use NCCL, in a further
 * process of each rank; other devices use MPI, from host to host. */
#pragma once

#include <mpi.h>

#include "base/clock.h"
#include "base/log.h"
#include "ranks/executor.h"

/* Returns the round of a tournament, from 0, in which two nodes meet; a node meets at most one
 * other in a round. There are `nodes - 1` rounds, one more if `nodes` is odd. */
int links_round(int one, int other, int nodes);
/* Number of rounds that are measured, at most LINK_ROUNDS. */
int links_rounds(int nodes);

/* Collective over `all` and over the ranks of each node, waits without using the cores. Adds
 * links to executor_links of the first rank of each node; a pair of nodes is stored by the first
 * one of the two. If any rank is `leaving`, nothing is measured. False: a rank did not come, and
 * both communicators have pending calls. */
bool links_measure(MPI_Comm all, MPI_Comm node, struct executor *executor,
                   const struct wait_limit *limit, bool leaving, const struct log *log);
