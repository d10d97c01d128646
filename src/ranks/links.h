/* Links of a job, before the sweep: copies within each node, operations of each node's devices,
 * exchanges of pairs of nodes, operations of all devices. GPUs use NCCL, in a further process of
 * each rank; other devices use MPI, from host to host. */
#pragma once

#include <mpi.h>

#include "base/clock.h"
#include "base/log.h"
#include "ranks/executor.h"

/* Round of a tournament in which two nodes meet: a node meets at most one other in a round. There
 * are `nodes - 1` rounds, one more if `nodes` is odd. Rounds from links_rounds on are not played.
 */
int links_round(int one, int other, int nodes);
int links_rounds(int nodes); /* at most LINK_ROUNDS */

/* Collective over `all` and over the ranks of each node, waits without using the cores. Adds
 * links to executor_links of the first rank of each node; a pair of nodes is stored by the first
 * one of the two. If any rank is `leaving`, nothing is measured. False: a rank did not come, and
 * both communicators have pending calls. */
bool links_measure(MPI_Comm all, MPI_Comm node, struct executor *executor,
                   const struct wait_limit *limit, bool leaving, const struct log *log);
