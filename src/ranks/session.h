/* What is known of the job that is running now. */
#ifndef ROOFSWEEP_SESSION_H
#define ROOFSWEEP_SESSION_H

#include <mpi.h>

#include "manifest/manifest.h"
#include "results/results.h"

/* Job identifier of the batch system (Slurm, PBS, LSF, Flux), "" if there is none. */
const char *session_job_id(void);

/* Fills in *session; session_clear frees it. */
enum status session_begin(const struct manifest *manifest, MPI_Comm comm, int argc, char **argv,
                          struct session *session, struct error *error);

#endif
