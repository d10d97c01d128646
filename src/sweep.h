/* One job's share of a sweep. All ranks call these functions in the same order. Each ends with an
 * agreement: all ranks return the same status, and rank 0 has the error's text. */
#pragma once

#include <mpi.h>

#include "base/log.h"
#include "options.h"
#include "results/publication.h"

struct sweep;

/* Rank 0 reads the manifest, makes the plan and checks the outputs; every rank gets the manifest.
 * `start`: clock_monotonic when the program began, from which the time limit counts. `argv`: the
 * command line, which must be the same on all ranks. *sweep is set even on failure, and the caller
 * destroys it. */
enum status sweep_load(MPI_Comm comm, const struct options *options, char **argv, double start,
                       const struct log *log, struct sweep **sweep, struct error *error);

/* Whether the journal of a resumed sweep has all rows. */
bool sweep_complete(const struct sweep *sweep);

/* Every rank opens its device. Two ranks on one GPU are an error. */
enum status sweep_open_devices(struct sweep *sweep, struct error *error);

/* Measures roofs, then configurations, until the journal has all rows or all ranks have stopped or
 * are silent (sweep_part). */
enum status sweep_measure(struct sweep *sweep, struct error *error);

/* Rank 0 writes the NetCDF file from the journal and prints the report. *summary is set if the file
 * exists. STATUS_FAILED: configurations failed. */
enum status sweep_publish(const struct sweep *sweep, bool json, struct summary *summary,
                          struct error *error);

/* Waits for all ranks before they end. False: a rank is silent, and a message has named it. Then
 * sweep_destroy and MPI_Finalize would wait for ever, and must not be called. */
bool sweep_part(struct sweep *sweep);

/* Collective. Takes NULL. */
void sweep_destroy(struct sweep *sweep);
