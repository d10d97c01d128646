/* What is known of the job that is running now. */
#ifndef ROOFSWEEP_JOB_H
#define ROOFSWEEP_JOB_H

#include <mpi.h>

#include "manifest/manifest.h"
#include "results/session.h"

/* Job identifier of the batch system (Slurm, PBS, LSF, Flux), "" if there is none. */
const char *job_id(void);

/* Fills in the entry of this job in the journal; session_clear frees it. */
enum status job_session(const struct manifest *manifest, MPI_Comm comm, int argc, char **argv,
                        struct session *session, struct error *error);

#endif
