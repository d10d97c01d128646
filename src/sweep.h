/* One job's share of a sweep, the collective part: all ranks call these in the same order. Each
 * ends in an agreement, so that all ranks return the same status; rank 0 has the text of an
 * error. */
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "options.h"
#include "results/publication.h"

struct sweep;

/* start: s, CLOCK_MONOTONIC, of the program; the time limit counts from there. argv: what *options
 * was parsed from; it must be the same on all ranks.
 * Rank 0 reads the manifest, makes the plan and looks at the outputs; every rank then knows the
 * manifest. *sweep is set, and to be destroyed, whatever the status. */
enum status sweep_load(MPI_Comm comm, const struct options *options, char **argv, double start,
                       const struct log *log, struct sweep **sweep, struct error *error);

/* Nothing is left to measure: a resumed sweep that was complete. */
bool sweep_complete(const struct sweep *sweep);

/* Every rank opens its device, and no two ranks the same GPU. */
enum status sweep_open_devices(struct sweep *sweep, struct error *error);

/* Roofs, then configurations, until all is journaled, or until the ranks that still answer have
 * stopped (sweep_part). */
enum status sweep_measure(struct sweep *sweep, struct error *error);

/* Rank 0 writes the NetCDF file from the journal and prints the table; the others do nothing.
 * *summary is set if the file is there. STATUS_FAILED if configurations have failed. */
enum status sweep_publish(const struct sweep *sweep, bool json, struct summary *summary,
                          struct error *error);

/* Waits for all ranks, which then may part. False: a rank does not answer, and has been named. The
 * sweep must not be destroyed, and MPI not be finalized: both would wait for it. */
bool sweep_part(struct sweep *sweep);

/* Collective. Takes NULL. */
void sweep_destroy(struct sweep *sweep);
